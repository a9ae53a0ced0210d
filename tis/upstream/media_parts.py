"""Pictures, videos and sounds of messages, as an upstream takes them: the files as clients sent them, in base64.

A stored body has a digest in the place of each file; the bytes take its place when the request is sent.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from tis.engine.prompt import Medium, MediumKind, Picture, Sound, Video
from tis.errors import BadRequest
from tis.upstream.kinds import UpstreamAbilities

_MEDIUM = "digest:"
_TOKENS_PER_PICTURE = 512  # of an estimate: a picture of 700 x 700 pixels
_TOKENS_PER_FRAME = 256
_TOKENS_PER_SECOND = 25  # of sound
_BEGINNINGS: Mapping[MediumKind, Mapping[bytes, str]] = {
    "image": {b"\x89PNG": "png", b"\xff\xd8": "jpeg", b"GIF8": "gif", b"RIFF": "webp"},
    "video": {b"\x1aE\xdf\xa3": "webm", b"RIFF": "avi"},
    "audio": {
        **{b"RIFF": "wav", b"ID3": "mpeg", b"\xff\xfb": "mpeg", b"\xff\xf3": "mpeg", b"\xff\xf2": "mpeg"},
        **{b"fLaC": "flac", b"OggS": "ogg", b"\x1aE\xdf\xa3": "webm"},
    },
}
_OTHERS: Mapping[MediumKind, str] = {"image": "webp", "video": "mp4", "audio": "mp4"}
_NAMES = {"wav": "wav", "mpeg": "mp3"}  # of forms of `input_audio`


def medium_part(medium: Medium, abilities: UpstreamAbilities) -> dict[str, Any]:
    """With the digest of the file. Raises BadRequest for what the upstream has no form for."""
    place = f"{_MEDIUM}{medium.digest}"
    match medium:
        case Picture():
            return {"type": "image_url", "image_url": {"url": place, "detail": medium.detail}}
        case Video():
            return {"type": "video_url", "video_url": {"url": place}}
        case Sound() if abilities.takes_media_urls:
            return {"type": "audio_url", "audio_url": {"url": place}}
        case Sound():
            form = _NAMES.get(_type_of("audio", medium.data))
            if form is None:
                raise BadRequest(
                    "The upstream of this model takes sounds as wav and mp3 files alone.",
                    param="messages",
                    code="unsupported_content",
                )
            return {"type": "input_audio", "input_audio": {"data": place, "format": form}}


def with_files(body: Mapping[str, Any], files: Mapping[str, bytes]) -> Mapping[str, Any]:
    """The body with its files. Called in a thread: base64 takes time."""
    messages = [
        {**message, "content": [_filled(part, files) for part in message["content"]]}
        if isinstance(message.get("content"), list)
        else message
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


def files_of(media: Sequence[Medium]) -> dict[str, bytes]:
    return {one.digest: one.data for one in media}


def estimated_media_tokens(media: Sequence[Medium]) -> int:
    return sum(map(_estimated, media))


def _estimated(medium: Medium) -> int:
    match medium:
        case Picture():
            return _TOKENS_PER_PICTURE
        case Video():
            return _TOKENS_PER_FRAME * len(medium.times)
        case Sound():
            return 1 + round(_TOKENS_PER_SECOND * medium.seconds)


def _filled(part: Mapping[str, Any], files: Mapping[str, bytes]) -> Mapping[str, Any]:
    match part["type"]:
        case "image_url" | "video_url" | "audio_url" as name:
            kind: MediumKind = name.removesuffix("_url")
            data = _file(part[name]["url"], files)
            return {**part, name: {**part[name], "url": f"data:{kind}/{_type_of(kind, data)};base64,{_base64(data)}"}}
        case "input_audio" as name:
            return {**part, name: {**part[name], "data": _base64(_file(part[name]["data"], files))}}
    return part


def _file(place: str, files: Mapping[str, bytes]) -> bytes:
    return files[place.removeprefix(_MEDIUM)]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _type_of(kind: MediumKind, data: bytes) -> str:
    return next((name for begin, name in _BEGINNINGS[kind].items() if data.startswith(begin)), _OTHERS[kind])
