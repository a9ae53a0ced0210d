"""What the server and the process that decodes sound exchange: limits, options for FFmpeg, what each answer says."""

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

SoundError: TypeAlias = Literal["format", "damaged", "seconds", "memory", "time"]

_DEMUXERS = ["wav", "w64", "mp3", "flac", "ogg", "mov", "matroska", "aac", "aiff", "au", "caf", "mpeg", "mpegts"]
# Names of decoders, which are not always the names of the codecs.
DECODERS = ["mp3float", "mp3", "mp2float", "mp2", "mp1float", "mp1", "flac", "alac", "vorbis", "libvorbis", "opus"]
DECODERS += ["libopus", "aac", "aac_fixed", "aac_at", "adpcm_ima_wav", "adpcm_ms", "pcm_mulaw", "pcm_alaw", "pcm_u8"]
DECODERS += ["pcm_s8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_s32be"]
DECODERS += ["pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be"]
# No demuxer reads playlists, and no protocol could open the files and URLs that a playlist names.
FFMPEG_AUDIO_OPTIONS = {
    "format_whitelist": ",".join(_DEMUXERS),
    "protocol_whitelist": "none",
    "codec_whitelist": ",".join(DECODERS),
}
OPEN, NEXT = b"open", b"next"
BYTES_PER_SAMPLE = 4  # float32


class SoundRefused(Exception):
    def __init__(self, reason: SoundError) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CutRules:
    padding_seconds: float = 0.3  # kept before and behind speech
    silence_seconds: float = 2.0  # a silence as long as this ends a window
    threshold: float = 0.5  # from 0 to 1: how loud speech must be


@dataclass(frozen=True, slots=True)
class SoundLimits:
    """Of one file, and how its windows are cut."""

    sample_rate: int
    window_seconds: float  # the longest window
    max_seconds: float
    memory_bytes: int
    wall_seconds: float  # for each answer
    cpu_seconds: int  # for all of them
    num_skipped: int = 0  # windows that were heard before
    rules: CutRules | None = CutRules()  # None: nothing is left out

    @property
    def max_window_samples(self) -> int:
        return int(self.sample_rate * self.window_seconds)

    @classmethod
    def from_json(cls, text: str) -> "SoundLimits":
        given = json.loads(text)
        return cls(**{**given, "rules": CutRules(**given["rules"]) if given["rules"] else None})


@dataclass(frozen=True, slots=True)
class WindowAnswer:
    """The process has written `count` samples, or no more are coming and the file had `seconds`."""

    count: int
    start: float
    seconds: float
    has_more: bool = False  # what was cut is nothing to hear: ask again


def encode_answer(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def parse_seconds(message: bytes) -> float:
    """How long the file says that it is: the answer to `OPEN`."""
    return _number(_accepted(message), "seconds")


def parse_window(message: bytes) -> WindowAnswer:
    given = _accepted(message)
    numbers = int(_number(given, "count")), _number(given, "start"), _number(given, "seconds")
    return WindowAnswer(*numbers, has_more=given.get("more") is True)


def _accepted(message: bytes) -> dict[str, Any]:
    """Raises SoundRefused also for what is malformed: a file may exploit FFmpeg."""
    try:
        given = json.loads(message)
    except (ValueError, RecursionError):
        raise SoundRefused("damaged") from None
    if not isinstance(given, dict):
        raise SoundRefused("damaged")
    if (reason := given.get("refused")) is not None:
        raise SoundRefused(reason if reason in get_args(SoundError) else "damaged")
    return given


def _number(given: dict[str, Any], name: str) -> float:
    value = given.get(name)
    if not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise SoundRefused("damaged")
    return float(value)
