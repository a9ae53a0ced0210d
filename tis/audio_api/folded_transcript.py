"""A transcription that is not streamed: its recorded events as JSON, plain text or subtitles."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from tis.audio_api.transcription_request import Format
from tis.errors import Conflict, error_with_code
from tis.json_bytes import json_bytes

MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "verbose_json": "application/json",
    "text": "text/plain; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}
_LOGPROBS = b'"logprobs":['


def folded(events: Iterable[bytes], form: Format, granularities: Sequence[str], *, with_logprobs: bool) -> bytes:
    """A recorded error is raised as what it was."""
    segments: list[dict[str, Any]] = []
    done: dict[str, Any] = {}
    logprobs = b""
    for event in events:
        if event.startswith(b'{"type":"transcript.text.delta"'):
            continue  # the last event has the whole text
        if event.startswith(b'{"type":"transcript.text.done"'):
            if with_logprobs and _LOGPROBS not in event:
                raise _not_recorded("log probabilities", "include")
            event, logprobs = _without_logprobs(event) if with_logprobs else (event, b"")
        given = json.loads(event)
        if error := given.get("error"):
            raise error_with_code(
                error["message"], error["type"], error["code"], error["param"], given.get("retry_after")
            )
        if given["type"] == "transcript.text.segment":
            segments.append(given)
        else:
            done = given
    if done.get("cancelled"):
        refusal = Conflict("The transcription was cancelled before its end.", code="cancelled")
        refusal.may_be_repeated = False
        raise refusal
    if form in ("verbose_json", "srt", "vtt") and done["text"].strip() and not segments:
        raise _not_recorded("segments", "response_format")
    if "word" in granularities and not all("words" in segment for segment in segments):
        raise _not_recorded("words", "timestamp_granularities")
    if form == "json":
        body = {"text": done["text"], "usage": _usage(done)}
        return b'%b,"logprobs":[%b]}' % (json_bytes(body)[:-1], logprobs) if with_logprobs else json_bytes(body)
    if form == "verbose_json":
        return json_bytes(_verbose(done, segments, granularities))
    if form == "text":
        return f"{done['text']}\n".encode()
    return (_srt(segments) if form == "srt" else _vtt(segments)).encode()


def _not_recorded(what: str, param: str) -> Conflict:
    return Conflict(f"{param}: this answer was recorded without {what}. Send the file again.", param=param)


def _without_logprobs(event: bytes) -> tuple[bytes, bytes]:
    """Copied as they are: parsed, those of hours are many objects. In a JSON string the quotes would be escaped."""
    before, _, rest = event.partition(_LOGPROBS)
    entries, _, after = rest.rpartition(b'],"task":')
    return before + b'"task":' + after, entries


def _usage(done: dict[str, Any]) -> dict[str, Any]:
    return {"type": "duration", "seconds": math.ceil(done["duration"])}


def _verbose(done: dict[str, Any], segments: Sequence[dict[str, Any]], granularities: Sequence[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {name: done[name] for name in ("task", "language", "duration", "text")}
    if "word" in granularities:
        shown["words"] = [word for segment in segments for word in segment.get("words", ())]
    if "segment" in granularities or not granularities:
        left_out = ("type", "id", "speaker", "words")
        shown["segments"] = [
            {"id": number, **{name: value for name, value in segment.items() if name not in left_out}}
            for number, segment in enumerate(segments)
        ]
    return {**shown, "usage": _usage(done)}


def _srt(segments: Sequence[dict[str, Any]]) -> str:
    cues = [
        f"{number}\n{_clock(one['start'], ',')} --> {_clock(one['end'], ',')}\n{_line(one['text'])}\n"
        for number, one in enumerate(segments, 1)
    ]
    return "\n".join(cues) or "\n"


def _vtt(segments: Sequence[dict[str, Any]]) -> str:
    cues = [
        f"{_clock(one['start'], '.')} --> {_clock(one['end'], '.')}\n{_escaped(_line(one['text']))}\n"
        for one in segments
    ]
    return "\n".join(["WEBVTT\n", *cues])


def _line(text: str) -> str:
    """A line break would end the cue, and an arrow begin one."""
    return " ".join(text.split()).replace("-->", "->")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(seconds: float, point: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{point}{rest % 1000:03}"
