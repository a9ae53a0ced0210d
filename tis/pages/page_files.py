"""What the routes of the pages share: the files, read once, and the headers that keep a page to this server."""

import asyncio
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool

from tis.pages.web_files import WebFiles, read_web_files

# Trusted Types: DOMPurify alone makes HTML of text. Blobs are pictures and sounds that a client attaches.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types dompurify; frame-ancestors "
)


class PageFiles:
    def __init__(self, frame_ancestors: Sequence[str], in_development: bool, can_be_killed: bool) -> None:
        self.in_development = in_development
        self.marks = "tis-can-be-killed" if can_be_killed else ""
        self.headers = {
            "Cache-Control": "no-cache",
            "Content-Security-Policy": _POLICY + (" ".join(frame_ancestors) or "'none'"),
            "Cross-Origin-Opener-Policy": "same-origin",
            "Permissions-Policy": "camera=(self), microphone=(self), geolocation=(self)",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        self._files: WebFiles | None = None
        self._reading = asyncio.Lock()

    async def files(self, *, for_page: bool = False) -> WebFiles:
        """In development a page reads the folder anew; what it loads comes from the same reading."""
        async with self._reading:
            if self._files is None or (self.in_development and for_page):
                self._files = await run_in_threadpool(_read_and_compress)
            return self._files


def _read_and_compress() -> WebFiles:
    files = read_web_files()
    files.compress()
    return files
