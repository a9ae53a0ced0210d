"""Where the files of pictures lie: in a folder, or in a bucket of S3 or of what speaks its protocol.

Stores block, so they are called in threads. A file is whole or is not there. `PICTURES_URL` chooses the store.
"""

import logging
from typing import Protocol

from tis.errors import Unavailable
from tis.marketplace.kit.picture_links import PictureSize

_log = logging.getLogger("tis.marketplace")


class PicturesUnavailable(Unavailable):
    """The disk or the bucket does not take or give files. `reason` goes to the log alone."""

    def __init__(self, reason: str) -> None:
        super().__init__("The store of pictures does not answer. Retry later.", retry_after=10)
        _log.error("the store of pictures failed: %s", reason)


class PictureStore(Protocol):
    """All methods raise PicturesUnavailable. To put or delete what is there, or is not, changes nothing."""

    def put(self, picture_id: str, size: PictureSize, data: bytes) -> None: ...
    def get(self, picture_id: str, size: PictureSize) -> bytes | None:
        """None if there is none."""
        ...

    def delete(self, picture_id: str) -> None:
        """All sizes."""
        ...

    def tidy(self) -> None:
        """Removes what a killed server has left half written."""
        ...

    def close(self) -> None: ...
