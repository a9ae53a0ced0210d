"""The pictures of a multipart form."""

from collections.abc import Collection

from starlette.requests import Request

from tis.errors import ServiceError, Unprocessable
from tis.http.multipart import FormPart, read_form
from tis.ktp.errors import missing_field, picture_too_large
from tis.media.limits import in_mib


async def read_pictures(
    request: Request, fields: Collection[str], *, max_pictures: int, max_bytes: int
) -> list[FormPart]:
    """Reads the form. Other fields are read and forgotten."""
    num_pictures = 0

    def max_bytes_of(name: str, _: int) -> int | None:
        nonlocal num_pictures
        if name not in fields:
            return None
        if num_pictures == max_pictures:
            raise _too_many_pictures(max_pictures)
        num_pictures += 1
        return max_bytes

    pictures = await read_form(request, max_bytes_of)
    if not pictures:
        raise missing_field(next(iter(fields)))
    return pictures


def require_size(picture: FormPart, field_name: str, max_bytes: int) -> None:
    if picture.is_too_large:
        raise picture_too_large(field_name, f"the limit is {in_mib(max_bytes)}")


def _too_many_pictures(limit: int) -> ServiceError:
    more = "POST /ktp-ocr/batch reads several." if limit == 1 else f"The limit is {limit}."
    return Unprocessable(f"The form has too many pictures. {more}", code="too_many_images")
