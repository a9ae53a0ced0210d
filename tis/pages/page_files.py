"""What the routes of the pages share: the files, read once, and the headers that keep a page to this server."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, cast

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from tis.http.documents import Document, DocumentCache
from tis.pages.web_files import WebFiles, read_web_files

# Blobs are pictures and sounds that a client attaches.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors "
)
# DOMPurify alone makes HTML of text.
_TRUSTED_TYPES = "; require-trusted-types-for 'script'; trusted-types dompurify"


class PageFiles:
    def __init__(
        self, frame_ancestors: Sequence[str], in_development: bool, *, can_be_killed: bool, market_is_open: bool
    ) -> None:
        self.in_development = in_development
        # Classes of `<html>`: what a page could ask for only by a request that may fail.
        marks = {"tis-can-be-killed": can_be_killed, "tis-market-is-open": market_is_open}
        self._marks = " ".join(name for name, is_so in marks.items() if is_so)
        policy = _POLICY + (" ".join(frame_ancestors) or "'none'")
        self.headers = {
            "Cache-Control": "no-cache",
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": policy + _TRUSTED_TYPES,
            "Cross-Origin-Opener-Policy": "same-origin",
            "Permissions-Policy": "camera=(self), microphone=(self), geolocation=(self)",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        # Swagger UI, which is not ours, knows no Trusted Types.
        self.headers_around_swagger = self.headers | {"Content-Security-Policy": policy}
        self._files: WebFiles | None = None
        self._documents = DocumentCache()
        self._reading = asyncio.Lock()

    async def files(self, *, anew: bool = False) -> WebFiles:
        async with self._reading:
            if self._files is None or anew:
                self._files = await run_in_threadpool(_read_and_compress)
            return self._files

    async def page(self, name: str, depth: int = 0) -> Document:
        """In development it reads the folder anew, and what the page loads comes from the same reading."""
        files = await self.files(anew=self.in_development)
        of_depth = f"{files.digest}/{depth}/{name}"
        return await self._documents.get(of_depth, lambda: files.page(name, depth, self._marks))


async def _page_files(request: Request) -> PageFiles:
    return cast(PageFiles, request.app.state.page_files)


PageFilesDep = Annotated[PageFiles, Depends(_page_files)]


def _read_and_compress() -> WebFiles:
    files = read_web_files()
    files.compress_first()
    return files
