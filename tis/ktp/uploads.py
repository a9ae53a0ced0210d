"""Pictures of a multipart form, in memory alone.

The form parsers of Starlette and FastAPI write larger files into a temporary folder. This one has no files at all.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from tis.errors import BadRequest, ServiceError, Unprocessable
from tis.ktp.errors import missing_field, picture_too_large
from tis.media.limits import in_mib

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_MAX_PARTS = 100
_SLICE_BYTES = 8192


@dataclass(slots=True)
class UploadedPicture:
    """`data` is empty if it is larger than a picture may be."""

    data: bytearray = field(default_factory=bytearray)
    is_too_large: bool = False

    def take(self) -> bytes:
        """Its bytes, which it then has no more."""
        data, self.data = bytes(self.data), bytearray()
        return data


async def read_pictures(
    request: Request, fields: Collection[str], *, max_pictures: int, max_bytes: int
) -> list[UploadedPicture]:
    """Reads the form. Other fields are read and forgotten."""
    shown = next(iter(fields))
    content_type, options = parse_options_header(request.headers.get("content-type"))
    if content_type != b"multipart/form-data":
        raise missing_field(shown)
    boundary = options.get(b"boundary")
    if not boundary:
        raise _bad_form("its Content-Type has no boundary")
    form = _PictureForm(fields, max_pictures, max_bytes)
    try:
        parser = MultipartParser(boundary, form.callbacks())
        async for chunk in request.stream():
            for start in range(0, len(chunk), _SLICE_BYTES):
                parser.write(chunk[start : start + _SLICE_BYTES])
                await asyncio.sleep(0)  # bytes that look like a boundary again and again take it milliseconds
        parser.finalize()
    except FormParserError:
        raise _bad_form("it ends early, or its parts are malformed") from None
    except ClientDisconnect:
        raise HTTPException(400) from None  # as FastAPI does; nobody reads it
    if not form.has_ended:
        raise _bad_form("it ends early")
    if not form.pictures:
        raise missing_field(shown)
    return form.pictures


class _PictureForm:
    def __init__(self, fields: Collection[str], max_pictures: int, max_bytes: int) -> None:
        self.pictures: list[UploadedPicture] = []
        self.has_ended = False
        self._fields, self._max_pictures, self._max_bytes = fields, max_pictures, max_bytes
        self._num_parts = 0
        self._header_name, self._header_value = bytearray(), bytearray()
        self._disposition = ""
        self._picture: UploadedPicture | None = None

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": self._add_to_name,
            "on_header_value": self._add_to_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._add_data,
            "on_end": self._end,
        }

    def _begin_part(self) -> None:
        self._num_parts += 1
        if self._num_parts > _MAX_PARTS:
            raise _bad_form(f"it has more than {_MAX_PARTS} parts")
        self._disposition, self._picture = "", None

    def _add_to_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value.decode("latin-1")
        self._header_name, self._header_value = bytearray(), bytearray()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        if options.get(b"name", b"").decode("latin-1") not in self._fields:
            return
        if len(self.pictures) == self._max_pictures:
            raise _too_many_pictures(self._max_pictures)
        self._picture = UploadedPicture()
        self.pictures.append(self._picture)

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        picture = self._picture
        if picture is None or picture.is_too_large:
            return
        if len(picture.data) + end - start > self._max_bytes:
            picture.is_too_large, picture.data = True, bytearray()
        else:
            picture.data += data[start:end]

    def _end(self) -> None:
        self.has_ended = True


def require_size(picture: UploadedPicture, field_name: str, max_bytes: int) -> None:
    if picture.is_too_large:
        raise picture_too_large(field_name, f"the limit is {in_mib(max_bytes)}")


def _bad_form(why: str) -> ServiceError:
    return BadRequest(f"The form could not be read: {why}.", code="bad_form")


def _too_many_pictures(limit: int) -> ServiceError:
    more = "POST /ktp-ocr/batch reads several." if limit == 1 else f"The limit is {limit}."
    return Unprocessable(f"The form has too many pictures. {more}", code="too_many_images")
