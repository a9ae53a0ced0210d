"""Pictures in a folder of this machine, or of a disk that several servers share."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from tis.marketplace.kit.picture_links import PICTURE_SIZES, PictureSize
from tis.marketplace.picture_files.picture_store import PicturesUnavailable

_PARTIAL = ".partial"
_MAX_PARTIAL_SECONDS = 3600.0  # nobody writes that long: its server was killed


class FolderStore:
    """`ab/abcdef….small.webp`. A file appears by a rename, after its bytes are on the disk."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def put(self, picture_id: str, size: PictureSize, data: bytes) -> None:
        path = self._path(picture_id, size)
        partial = self._folder / _PARTIAL / uuid4().hex
        try:
            partial.parent.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(exist_ok=True)
            with partial.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            raise PicturesUnavailable(error.strerror or type(error).__name__) from error

    def get(self, picture_id: str, size: PictureSize) -> bytes | None:
        try:
            return self._path(picture_id, size).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PicturesUnavailable(error.strerror or type(error).__name__) from error

    def delete(self, picture_id: str) -> None:
        try:
            for size in PICTURE_SIZES:
                self._path(picture_id, size).unlink(missing_ok=True)
        except OSError as error:
            raise PicturesUnavailable(error.strerror or type(error).__name__) from error

    def tidy(self) -> None:
        before = self._clock() - _MAX_PARTIAL_SECONDS
        with suppress(OSError):  # another server may tidy the same folder
            for partial in (self._folder / _PARTIAL).iterdir():
                if partial.stat().st_mtime < before:
                    partial.unlink(missing_ok=True)

    def close(self) -> None:
        pass

    def _path(self, picture_id: str, size: PictureSize) -> Path:
        return self._folder / picture_id[:2] / f"{picture_id}.{size}.webp"
