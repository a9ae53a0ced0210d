"""What an upstream hears in a window of sound, which it gets as a WAV file."""

import asyncio
import io
import secrets
import sys
import wave
from collections.abc import Mapping, Sequence
from typing import Any

from tis.engine.prompt import SOUND_RATE
from tis.engine.request_timing import RequestTiming
from tis.engine.speech.heard import HeardSegment, HeardWindow, HeardWord, HearingOptions, SpeechDescription
from tis.upstream.chat_body import lacking
from tis.upstream.errors import failed
from tis.upstream.http_client import UpstreamHttp
from tis.upstream.spoken_languages import LANGUAGES

_WINDOW_SECONDS = 30.0
_MAX_SEGMENTS = 512
_MAX_CHARS = 16_384  # of a window
_CHARS_PER_TOKEN = 4  # of an estimate
DESCRIPTION = SpeechDescription(
    SOUND_RATE, _WINDOW_SECONDS, LANGUAGES, frozenset({"transcribe", "translate"}), has_times=True, has_words=True
)


async def hear(http: UpstreamHttp, model: str, samples: Any, options: HearingOptions, seconds: float) -> HeardWindow:
    if options.with_logprobs:
        raise lacking("include")
    fields = [("model", model), ("response_format", "verbose_json")]
    if options.task == "transcribe":
        fields += [("language", options.language)] if options.language else []
        fields += [("timestamp_granularities[]", "word")] if options.with_words else []
    fields += [("prompt", options.prompt)] if options.prompt else []
    fields += [("temperature", f"{options.temperatures[0]:g}")] if options.temperatures[0] else []
    boundary = secrets.token_hex(16)
    body = await asyncio.to_thread(_form, fields, samples, boundary)
    path = "/audio/translations" if options.task == "translate" else "/audio/transcriptions"
    said = await http.post_form(path, f"multipart/form-data; boundary={boundary}", body, seconds)
    return _heard(said, len(samples) / SOUND_RATE)


def count_heard(timing: RequestTiming, made: HeardWindow, now: float) -> None:
    timing.tokens(made.num_tokens, now, 0)


def _form(fields: Sequence[tuple[str, str]], samples: Any, boundary: str) -> bytes:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode("utf-8", "replace")
        for name, value in fields
    ]
    head = 'Content-Disposition: form-data; name="file"; filename="sound.wav"\r\nContent-Type: audio/wav'
    return b"".join(
        [*parts, f"--{boundary}\r\n{head}\r\n\r\n".encode(), _wav(samples), f"\r\n--{boundary}--\r\n".encode()]
    )


def _wav(samples: Any) -> bytes:
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SOUND_RATE)
        file.writeframes((samples.clip(-1, 1) * 32767).round().astype("<i2").tobytes())
    return written.getvalue()


def _heard(said: Any, seconds: float) -> HeardWindow:
    if not isinstance(said, dict) or not isinstance(said.get("text", ""), str):
        raise failed("sent a transcript of another shape")
    language = _language_code(said.get("language"))
    given = said.get("segments") or []
    words = [word for one in _objects(said.get("words") or []) for word in _word(one, seconds)]
    segments = [_segment(one, seconds, words) for one in _objects(given)]
    text = said.get("text", "")[:_MAX_CHARS]
    if not segments and text.strip():
        segments = [_segment({"text": text, "start": 0.0, "end": seconds}, seconds, words)]
    num_tokens = 1 + sum(len(one.text) for one in segments) // _CHARS_PER_TOKEN
    return HeardWindow(language, tuple(segments), num_tokens)


def _objects(given: Any) -> list[Mapping[str, Any]]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise failed("sent a transcript of another shape")
    return given[:_MAX_SEGMENTS]


def _segment(given: Mapping[str, Any], seconds: float, words: Sequence[HeardWord]) -> HeardSegment:
    text = given.get("text")
    if not isinstance(text, str) or len(text) > _MAX_CHARS:
        raise failed("sent a transcript of another shape")
    start, end = _time(given.get("start"), seconds), _time(given.get("end"), seconds)
    return HeardSegment(
        *(start, max(start, end), text.encode("utf-8", "replace").decode(), ()),
        temperature=_value(given.get("temperature"), 0.0),
        avg_logprob=_value(given.get("avg_logprob"), 0.0),
        compression_ratio=_value(given.get("compression_ratio"), 1.0),
        no_speech_prob=_value(given.get("no_speech_prob"), 0.0),
        words=tuple(word for word in words if start <= word.start < max(end, start + 0.01)),
    )


def _word(given: Mapping[str, Any], seconds: float) -> list[HeardWord]:
    text = given.get("word")
    if not isinstance(text, str) or len(text) > _MAX_CHARS:
        raise failed("sent a transcript of another shape")
    start, end = _time(given.get("start"), seconds), _time(given.get("end"), seconds)
    return [HeardWord(text.encode("utf-8", "replace").decode(), start, max(start, end), 1.0)]


def _time(given: Any, seconds: float) -> float:
    return min(max(0.0, _value(given, 0.0)), seconds)


def _value(given: Any, default: float) -> float:
    is_number = type(given) in (int, float) and abs(given) <= sys.float_info.max  # whole numbers may be larger
    return float(given) if is_number else default


def _language_code(given: Any) -> str | None:
    if not isinstance(given, str):
        return None
    wanted = given.strip().lower()
    return next((code for code, name in LANGUAGES.items() if wanted in (code, name)), None)
