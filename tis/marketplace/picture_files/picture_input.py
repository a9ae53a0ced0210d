"""`PictureInput` decodes files and URLs of clients, by `tis/media`: its limits, its rules of addresses."""

from typing import TYPE_CHECKING

from tis.admission.admission import Admission
from tis.admission.ticket import Ticket
from tis.cancellation import LoopCalls
from tis.media.errors import malformed_url
from tis.media.loader import LoadedImage, MediaLoader, MediaSource
from tis.media.media_types import LoadedMedium
from tis.network.url import is_http_url

if TYPE_CHECKING:
    from tis.media.media_types import Pixels

_OWNER = "pictures of sheets"
_MAX_SECONDS = 90.0  # to fetch a picture and to decode it, with the wait for others


class PictureInput:
    """Used on the event loop, but for `fetched`."""

    def __init__(self, media: MediaLoader, admission: Admission, calls: LoopCalls) -> None:
        self.max_bytes = media.limits.max_item_bytes
        self._media, self._admission, self._calls = media, admission, calls

    async def from_file(self, data: bytes, ticket: Ticket) -> LoadedImage:
        """Whatever its name and type say, it is what its bytes are."""
        return _image(await self._media.decode_all(["image"], [data], ticket))

    async def from_url(self, url: str, ticket: Ticket) -> LoadedImage:
        """No paths and no data URIs: those of `MEDIA_LOCAL_ROOTS` are for requests of `/v1`."""
        if not is_http_url(url):
            raise malformed_url("image")
        return _image(await self._media.load([MediaSource("image", url, "url")], ticket))

    def fetched(self, url: str) -> "Pixels":
        """For threads: blocks until it is decoded."""
        return self._calls.wait(self._fetch(url), _MAX_SECONDS)

    async def _fetch(self, url: str) -> "Pixels":
        ticket = self._admission.ticket(_OWNER)
        try:
            return (await self.from_url(url, ticket)).pixels
        finally:
            ticket.end_request()


def _image(loaded: list[LoadedMedium]) -> LoadedImage:
    [image] = loaded
    assert isinstance(image, LoadedImage)
    return image
