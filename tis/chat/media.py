"""Pictures, videos and sounds in messages: the server fetches and decodes all of them before the answer begins."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.engine import Engine
from tis.engine.errors import GenerationInterrupted
from tis.engine.prompt import ChatPrompt, Detail, Medium, Picture, Sound, Video, media_of
from tis.engine.resumable_request import SavedMedium
from tis.errors import BadRequest
from tis.media.errors import BadMedia
from tis.media.loader import MediaLoader
from tis.media.media_types import LoadedImage, LoadedMedium, LoadedSound, MediaSource
from tis.streaming.source import ReadAttachments

# Media of a stored prompt, and their bytes by digest.
ReloadMedia = Callable[[Ticket], Awaitable[tuple[Sequence[Medium], Mapping[str, bytes]]]]

_PLURALS = {"image": "images", "video": "videos", "audio": "audio"}


@dataclass(frozen=True, slots=True)
class MediumPlaceholder:
    """The place of a picture or video in a prompt until it is loaded."""

    source: MediaSource
    detail: Detail


async def with_media(
    prompt: ChatPrompt, model_id: str, engine: Engine, media: MediaLoader, ticket: Ticket
) -> tuple[ChatPrompt, dict[str, bytes]]:
    """The prompt with its pictures and videos, and their bytes by digest."""
    [whole], data = await with_media_of_all([prompt], model_id, engine, media, ticket)
    return whole, data


async def with_media_of_all(
    prompts: Sequence[ChatPrompt], model_id: str, engine: Engine, media: MediaLoader, ticket: Ticket
) -> tuple[list[ChatPrompt], dict[str, bytes]]:
    """The prompts of one request: its limits count the pictures and videos of all of them together."""
    placeholders: list[Any] = [one for prompt in prompts for one in media_of(prompt.messages)]
    if not placeholders:
        return [*prompts], {}
    seen = await engine.media_kinds(model_id)
    for one in placeholders:
        if one.source.kind not in seen:
            raise BadRequest(
                f"{one.source.param}: model does not accept {_PLURALS[one.source.kind]}.",
                param=one.source.param,
                code="unsupported_content",
            )
    loaded = await media.load([one.source for one in placeholders], ticket)
    media_ = iter([_to_medium(one, placeholder.detail) for one, placeholder in zip(loaded, placeholders, strict=True)])
    whole = [replace(prompt, messages=_in_place(prompt.messages, media_)) for prompt in prompts]
    return whole, {one.digest: one.data for one in loaded}


async def media_again(
    saved: Sequence[SavedMedium], read: ReadAttachments, media: MediaLoader, ticket: Ticket
) -> tuple[list[Medium], Mapping[str, bytes]]:
    """The pictures and videos of a request, from the stored bytes."""
    if not saved:
        return [], {}
    data = await read({one.digest for one in saved})
    if missing := sum(one.digest not in data for one in saved):
        raise GenerationInterrupted(
            f"The answer cannot be resumed: {missing} of its pictures and videos are not stored."
        )
    try:
        loaded = await media.decode_all([one.kind for one in saved], [data[one.digest] for one in saved], ticket)
        return [_to_medium(one, medium.detail) for one, medium in zip(loaded, saved, strict=True)], data
    except BadMedia as error:
        raise GenerationInterrupted(
            "The answer cannot be resumed: the server no longer accepts one of its pictures or videos."
        ) from error


def _to_medium(loaded: LoadedMedium, detail: Detail) -> Medium:
    if isinstance(loaded, LoadedImage):
        return Picture(loaded.pixels, loaded.digest, detail, loaded.data)
    if isinstance(loaded, LoadedSound):
        return Sound(loaded.samples, loaded.digest, loaded.data)
    return Video(loaded.frames, loaded.times, loaded.fps, loaded.digest, detail, loaded.data)


def _in_place(messages: Sequence[Mapping[str, Any]], media_: Iterator[Medium]) -> list[Mapping[str, Any]]:
    return [
        {**message, "content": [_filled(part, media_) for part in message["content"]]}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]


def _filled(part: Mapping[str, Any], media_: Iterator[Medium]) -> Mapping[str, Any]:
    return part if part["type"] == "text" else {**part, part["type"]: next(media_)}
