"""Multipart forms, in memory alone.

The form parsers of Starlette and FastAPI write larger files into a temporary folder. This one has no files at all.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from tis.errors import BadRequest, ServiceError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_MAX_PARTS = 100
_SLICE_BYTES = 8192
# How many bytes the part of a name may have, if a part with so many before it is wanted at all; it may raise.
MaxBytesOf = Callable[[str, int], int | None]


@dataclass(slots=True)
class FormPart:
    """`data` is empty if it is larger than it may be."""

    name: str
    is_file: bool = False
    data: bytearray = field(default_factory=bytearray)
    is_too_large: bool = False

    def take(self) -> bytes:
        """Its bytes, which it then has no more."""
        data, self.data = bytes(self.data), bytearray()
        return data


async def read_form(request: Request, max_bytes_of: MaxBytesOf) -> list[FormPart] | None:
    """The parts that are wanted; the others are read and forgotten. None: the body is no multipart form."""
    content_type, options = parse_options_header(request.headers.get("content-type"))
    if content_type != b"multipart/form-data":
        return None
    boundary = options.get(b"boundary")
    if not boundary:
        raise bad_form("its Content-Type has no boundary")
    form = _Form(max_bytes_of)
    try:
        parser = MultipartParser(boundary, form.callbacks())
        async for chunk in request.stream():
            for start in range(0, len(chunk), _SLICE_BYTES):
                parser.write(chunk[start : start + _SLICE_BYTES])
                await asyncio.sleep(0)  # bytes that look like a boundary again and again take it milliseconds
        parser.finalize()
    except FormParserError:
        raise bad_form("it ends early, or its parts are malformed") from None
    except ClientDisconnect:
        raise HTTPException(400) from None  # as FastAPI does; nobody reads it
    if not form.has_ended:
        raise bad_form("it ends early")
    return form.parts


def bad_form(why: str) -> ServiceError:
    return BadRequest(f"The form could not be read: {why}.", code="bad_form")


class _Form:
    def __init__(self, max_bytes_of: MaxBytesOf) -> None:
        self.parts: list[FormPart] = []
        self.has_ended = False
        self._max_bytes_of = max_bytes_of
        self._num_parts = 0
        self._header_name, self._header_value = bytearray(), bytearray()
        self._disposition = ""
        self._part: FormPart | None = None
        self._max_bytes = 0

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
            raise bad_form(f"it has more than {_MAX_PARTS} parts")
        self._disposition, self._part = "", None

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
        name = options.get(b"name", b"").decode("latin-1")
        max_bytes = self._max_bytes_of(name, sum(part.name == name for part in self.parts))
        if max_bytes is None:
            return
        self._max_bytes = max_bytes
        self._part = FormPart(name, b"filename" in options)
        self.parts.append(self._part)

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        if part is None or part.is_too_large:
            return
        if len(part.data) + end - start > self._max_bytes:
            part.is_too_large, part.data = True, bytearray()
        else:
            part.data += data[start:end]

    def _end(self) -> None:
        self.has_ended = True
