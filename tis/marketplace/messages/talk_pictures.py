"""The form with a picture for a talk: read only for who may write in it."""

from typing import Annotated, Any

from fastapi import Depends, Request

from tis.errors import TooLarge, Unprocessable
from tis.http.multipart import read_form
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.messages.closing import require_open_talk
from tis.marketplace.messages.service import find_talk
from tis.media.limits import in_mib

TALK_PICTURE_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}


def _require_talk(talk_id: Id, context: ContextDep) -> None:
    with context.reading() as (session, principal):
        require_open_talk(session, find_talk(session, principal, talk_id)[0])


async def _read_picture(request: Request, context: ContextDep, _: Annotated[None, Depends(_require_talk)]) -> bytes:
    max_bytes = context.market.pictures.source.max_bytes
    names: list[str] = []

    def max_bytes_of(name: str, _: int) -> int:
        names.append(name)
        if names != ["file"]:
            raise Unprocessable("The form takes one `file`.")
        return max_bytes

    parts = await read_form(request, max_bytes_of)
    if not parts:
        raise Unprocessable("Send a form with a `file`.")
    if parts[0].is_too_large:
        raise TooLarge(f"The picture is too large: the limit is {in_mib(max_bytes)}.")
    return parts[0].take()


TalkPictureDep = Annotated[bytes, Depends(_read_picture)]
