"""Reads files of this machine that a request names: only regular files below folders that the operator permits."""

import os
import stat
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tis.media.errors import media_too_large, unreadable_file
from tis.media.limits import MediaLimits, in_mib
from tis.media.media_types import MediaKind


def is_file_url(value: str) -> bool:
    return value[:5].lower() == "file:"


def read_local_file(kind: MediaKind, value: str, limits: MediaLimits) -> bytes:
    """Raises the same error for a missing file, a forbidden one, and one that is not regular."""
    try:
        path = Path(_to_path(value)).resolve()
        [root] = [root for root in map(Path.resolve, limits.local_roots) if path.is_relative_to(root)][:1]
        with open(_open_below(root, path), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise unreadable_file(kind)
            if status.st_size > limits.max_item_bytes:
                raise media_too_large(kind, f"the limit is {in_mib(limits.max_item_bytes)}")
            # The size is passed because the file may grow while it is read.
            return file.read(status.st_size)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: symbolic links that form a loop
        raise unreadable_file(kind) from None


def _to_path(value: str) -> str:
    if not is_file_url(value):
        return value
    url = urlsplit(value)
    if url.netloc not in ("", "localhost") or url.query or url.fragment:
        raise ValueError("not a file of this machine")
    path = unquote(url.path, errors="strict")
    return path.removeprefix("/") if sys.platform == "win32" else path  # file:///C:/image.png


def _open_below(root: Path, path: Path) -> int:
    """Opens folder by folder without following links: one that is swapped in after the check cannot lead elsewhere."""
    if sys.platform == "win32":  # cannot open folders: see docs/decisions/0021-media-and-sandboxes.md
        return os.open(path, os.O_RDONLY | os.O_BINARY)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        *folders, name = path.relative_to(root).parts
        for part in folders:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
