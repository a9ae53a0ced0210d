"""Why a medium is refused. The loader adds `param`, as only it knows each medium's place in the request."""

from tis.errors import BadRequest
from tis.media.media_types import MediaKind

_SUPPORTED_FORMATS = {
    "image": "JPEG, PNG, WebP, GIF, BMP, TIFF",
    "video": "MP4, WebM, Matroska, AVI, MPEG, GIF",
    "audio": "WAV, MP3, FLAC, Ogg, M4A, WebM",
}


class BadMedia(BadRequest):
    """A medium that is refused. Says what to change, never what a decoder, a disk or a network answered."""

    code = "invalid_image"


def malformed_url(kind: MediaKind) -> BadMedia:
    return BadMedia(
        f"The {kind} URL is not valid here. Send an http(s) URL without credentials on port 80 or 443, "
        "a base64 data: URI, or the base64 itself.",
        code=f"invalid_{kind}_url",
    )


def unreadable_file(kind: MediaKind) -> BadMedia:
    """One message for a missing and for a forbidden file, so that clients cannot list the disk."""
    return BadMedia(
        f"The server cannot read the {kind} at this path: it does not exist, or the path is not permitted.",
        code=f"invalid_{kind}_url",
    )


def malformed_base64(kind: MediaKind) -> BadMedia:
    return BadMedia(f"The {kind} is not valid base64.", code=f"invalid_base64_{kind}")


def fetch_failed(kind: MediaKind) -> BadMedia:
    """One message for a refused address and for one that does not answer, so that clients cannot map a network."""
    return BadMedia(f"The {kind} could not be fetched from its URL.", code="media_fetch_failed")


def remote_media_disabled(kind: MediaKind) -> BadMedia:
    return BadMedia(
        f"This server does not fetch URLs. Send the {kind} as a base64 data: URI.", code="media_fetch_failed"
    )


def undecodable_media(kind: MediaKind) -> BadMedia:
    return BadMedia(f"The {kind} could not be decoded: it is damaged or incomplete.", code=f"invalid_{kind}")


def unsupported_format(kind: MediaKind) -> BadMedia:
    message = f"The format of this {kind} is not supported. Send one of: {_SUPPORTED_FORMATS[kind]}."
    return BadMedia(message, code=f"invalid_{kind}_format")


def media_too_large(kind: MediaKind, limit: str) -> BadMedia:
    return BadMedia(f"The {kind} is too large: {limit}.", code=f"{kind}_too_large")


def sound_too_long(limit: float) -> BadMedia:
    return BadMedia(
        f"The audio is too long: the limit for all audio in the messages of a request is {limit:g} seconds.",
        code="audio_too_long",
    )


def too_many_media(limit: int) -> BadMedia:
    return BadMedia(
        f"The request has too many images, videos and audio parts: the limit is {limit} per request.",
        code="too_many_media",
    )
