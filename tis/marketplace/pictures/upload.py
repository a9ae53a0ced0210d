"""The body of an upload: a picture as the file of a form, or JSON with its URL."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect

from tis.errors import BadRequest, TooLarge, Unprocessable
from tis.http.multipart import read_form
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import MAX_ALT_CHARS, AltText, Id
from tis.marketplace.pictures.schemas import URL_BODY, PictureUrl
from tis.marketplace.pictures.service import pictures_for_member
from tis.media.limits import in_mib

_MAX_JSON_BYTES = 64 * 1024
_MAX_ALT_BYTES = 4 * MAX_ALT_CHARS
_ALT: TypeAdapter[str] = TypeAdapter(AltText)
_ALT_SCHEMA = {"type": "string", "maxLength": MAX_ALT_CHARS}
OPENAPI_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}, "alt": _ALT_SCHEMA},
                }
            },
            "application/json": {"schema": PictureUrl.model_json_schema(), "example": URL_BODY},
        },
    }
}


@dataclass(frozen=True)
class PictureUpload:
    picture: bytes | str  # a file, or a URL
    alt: str | None


def _require_member(product_id: Id, context: ContextDep) -> None:
    """Before the body is read: nobody else makes the server hold megabytes, or fetch."""
    with context.reading() as (session, principal):
        pictures_for_member(session, principal, product_id)


async def _read_upload(
    request: Request, context: ContextDep, _: Annotated[None, Depends(_require_member)]
) -> PictureUpload:
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return await _read_form(request, context.market.pictures.source.max_bytes)
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > _MAX_JSON_BYTES:
                raise TooLarge("Send a picture as the file of a form (`file`), or JSON with its `url`.")
    except ClientDisconnect:
        raise BadRequest("The body ended before it was complete.") from None
    try:
        body = PictureUrl.model_validate_json(bytes(data))
    except ValidationError as error:
        raise RequestValidationError(
            [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False, include_context=False)]
        ) from None
    return PictureUpload(body.url, body.alt)


async def _read_form(request: Request, max_bytes: int) -> PictureUpload:
    """The name and the type of the file say nothing: they are not read."""

    def max_bytes_of(name: str, _: int) -> int:
        if name not in ("file", "alt"):
            raise Unprocessable("The form takes only `file` and `alt`.")
        if name in seen:
            raise Unprocessable(f"The form has more than one `{name}`.")
        seen.add(name)
        return max_bytes if name == "file" else _MAX_ALT_BYTES

    seen = set[str]()
    parts = {part.name: part for part in await read_form(request, max_bytes_of) or ()}
    file, text = parts.get("file"), parts.get("alt")
    if file is None:
        raise Unprocessable("The form has no file called `file`.")
    if file.is_too_large:
        raise TooLarge(f"The picture is too large: the limit is {in_mib(max_bytes)}.")
    try:
        alt = _ALT.validate_python(text.take().decode()) if text else None
    except ValueError:
        alt = None
        text_is_wrong = True
    else:
        text_is_wrong = text is not None and text.is_too_large
    if text_is_wrong:
        raise Unprocessable(f"`alt` must be a text of 1 to {MAX_ALT_CHARS} characters.")
    return PictureUpload(file.take(), alt)


UploadDep = Annotated[PictureUpload, Depends(_read_upload)]
