"""The files of `web/`, read once: under an address that changes when any of them changes, so a browser may keep them.

Modules import each other by relative addresses, which the digest in front of all of them leaves as they are.
"""

import gzip
import hashlib
import mimetypes
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
    ".webp": "image/webp",
    ".txt": "text/plain; charset=utf-8",
}
# Not `import(...)`, which a page loads when it needs it.
_IMPORT = re.compile(r"""\b(?:from|import)\s*["'](\.[^"']+)["']""")
_ASSET = re.compile(r"""(?:src|href)="pages/\w+/([^"]+)\"""")
_HEAD = "head.html"
_MAX_FILES = 1000


@dataclass(frozen=True)
class WebFile:
    path: str
    body: bytes

    @property
    def media_type(self) -> str:
        suffix = PurePosixPath(self.path).suffix
        return _MEDIA_TYPES.get(suffix) or mimetypes.guess_type(self.path)[0] or "application/octet-stream"

    @cached_property
    def compressed(self) -> bytes | None:
        """None for what is compressed already."""
        small = gzip.compress(self.body, 9, mtime=0)
        return small if len(small) < len(self.body) * 0.9 else None

    @property
    def is_compressed(self) -> bool:
        return "compressed" in self.__dict__


class WebFiles:
    """All files of a folder, in memory."""

    def __init__(self, files: dict[str, WebFile]) -> None:
        self._files = files
        contents = "".join(f"{path} {hashlib.sha256(files[path].body).hexdigest()}\n" for path in sorted(files))
        self.digest = hashlib.sha256(contents.encode()).hexdigest()[:16]

    @property
    def _head(self) -> str:
        """What all pages load."""
        file = self._files.get(_HEAD)
        return file.body.decode() if file else ""

    def compress_first(self) -> None:
        """What the pages load at once. The rest (formulas, languages of code) is a hundred milliseconds of work."""
        for name in [path for path in self._files if path.endswith(".html") and path != _HEAD]:
            for path in _ASSET.findall(self.page(name).decode()):
                if path in self._files:
                    self._files[path].compressed  # noqa: B018

    def get(self, path: str) -> WebFile | None:
        return self._files.get(path)

    def page(self, name: str, depth: int = 0, marks: str = "") -> bytes:
        """An HTML file, with the address of its assets and of the modules that its scripts import.

        `depth` is the number of folders that the page's own address has; `marks` are classes of `<html>`.
        """
        assets = f"{'../' * depth}pages/{self.digest}"
        html = self._files[name].body.decode().replace("{{head}}\n", self._head)
        scripts = re.findall(r'<script type="module" src="\{\{assets\}\}/([^"]+)"', html)
        preloads = [f'<link rel="modulepreload" href="{{{{assets}}}}/{path}">' for path in self._imported_by(scripts)]
        html = html.replace("{{preloads}}", "\n".join(preloads)).replace("{{marks}}", marks)
        return html.replace("{{assets}}", assets).encode()

    def _imported_by(self, scripts: list[str]) -> list[str]:
        """Without these names a browser learns of a module only when it has read the one that imports it."""
        found: dict[str, None] = {}
        waiting = list(scripts)
        while waiting:
            path = waiting.pop()
            file = self._files.get(path)
            if path in found or file is None:
                continue
            found[path] = None
            waiting += [_joined(path, name) for name in _IMPORT.findall(file.body.decode())]
        return [path for path in found if path not in scripts]


def read_web_files() -> WebFiles:
    """Reads the disk, for some ten milliseconds."""
    folder = _folder()
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if len(paths) > _MAX_FILES:
        raise ValueError(f"{folder} has more than {_MAX_FILES} files.")
    files = [WebFile(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]
    return WebFiles({file.path: file for file in files})


def _folder() -> Path:
    """Inside the installed package, or beside it in a checkout."""
    here = Path(__file__).parent
    installed = here / "web"
    return installed if installed.is_dir() else here.parents[1] / "web"


def _joined(path: str, relative: str) -> str:
    parts = list(PurePosixPath(path).parent.parts)
    for part in relative.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
