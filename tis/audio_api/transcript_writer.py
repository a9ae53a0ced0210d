"""Makes the events of a transcription, which are OpenAI's, of what was heard in each window."""

import math
from collections.abc import Sequence
from typing import Any

from tis.audio_api.languages import language_name
from tis.audio_api.transcription_spec import TranscriptionSpec
from tis.engine.speech.heard import HeardSegment, HeardToken, HeardWindow
from tis.json_bytes import json_bytes

Events = list[bytes]
_AUDIO_TOKENS_PER_SECOND = 50  # positions of Whisper's encoder
_SEEKS_PER_SECOND = 100  # frames of its spectrogram
# Scripts without spaces between words: Thai to Khmer, kana, hanzi, and their marks.
_WITHOUT_SPACES = (
    ("\u0e00", "\u0eff"),
    ("\u1000", "\u109f"),
    ("\u1780", "\u17ff"),
    ("\u3000", "\u9fff"),
    ("\uff00", "\uffef"),
)


class TranscriptWriter:
    def __init__(self, spec: TranscriptionSpec) -> None:
        self._spec = spec
        self._text: list[str] = []
        self._last = ""  # the last character of the text
        self._logprobs: list[bytes] = []  # JSON
        self._num_segments = 0
        self._num_tokens = 0
        self._heard_seconds = 0.0
        self._language = spec.language

    def language(self, code: str | None) -> None:
        self._language = code or self._language

    def window(self, start: float, seconds: float, heard: HeardWindow) -> Events:
        self.language(self._language or heard.language)
        self._num_tokens += heard.num_tokens
        self._heard_seconds += seconds
        events: Events = []
        for number, segment in enumerate(heard.segments):
            if delta := self._joined(segment.text, is_first=number == 0):
                events.append(self._delta(delta, segment.tokens))
                if self._spec.with_segments:
                    events.append(self._segment(start, segment))
        return events

    def ended(self, seconds: float, *, cancelled: bool) -> Events:
        """`seconds`: of the whole file."""
        audio, made = math.ceil(self._heard_seconds * _AUDIO_TOKENS_PER_SECOND), self._num_tokens
        code = self._language
        logprobs = b',"logprobs":[%b]' % b",".join(self._logprobs) if self._spec.with_logprobs else b""
        more = {
            "task": self._spec.task,
            "language": "english" if self._spec.task == "translate" else self._name(code),
            "languages": [{"code": code}] if code else [],
            "duration": round(seconds, 3),
            **({"cancelled": True} if cancelled else {}),
            "usage": {
                "type": "tokens",
                "input_tokens": audio,
                "input_token_details": {"audio_tokens": audio, "text_tokens": 0},
                "output_tokens": made,
                "total_tokens": audio + made,
            },
        }
        head = json_bytes({"type": "transcript.text.done", "text": "".join(self._text)})
        return [b"%b%b,%b" % (head[:-1], logprobs, json_bytes(more)[1:])]

    def _delta(self, delta: str, tokens: Sequence[HeardToken]) -> bytes:
        self._text.append(delta)
        self._last = delta[-1]
        event: dict[str, Any] = {"type": "transcript.text.delta", "delta": delta}
        if self._spec.with_logprobs:
            event["logprobs"] = [
                {"token": token.text, "logprob": round(token.logprob, 6), "bytes": list(token.utf8)} for token in tokens
            ]
            if tokens:
                self._logprobs.append(json_bytes(event["logprobs"])[1:-1])
        return json_bytes(event)

    def _segment(self, start: float, segment: HeardSegment) -> bytes:
        """As OpenAI sends one with a speaker, and with all that verbose_json has."""
        number = self._num_segments
        self._num_segments += 1
        words = [
            {"word": word.text.strip(), "start": _at(start, word.start), "end": _at(start, word.end)}
            for word in segment.words
        ]
        event = {
            "type": "transcript.text.segment",
            "id": f"seg_{number}",
            "start": _at(start, segment.start),
            "end": _at(start, max(segment.start, segment.end)),
            "text": segment.text,
            "speaker": "",
            "seek": int(start * _SEEKS_PER_SECOND),
            "tokens": list(segment.token_ids),
            "temperature": segment.temperature,
            "avg_logprob": segment.avg_logprob,
            "compression_ratio": segment.compression_ratio,
            "no_speech_prob": segment.no_speech_prob,
            **({"words": words} if self._spec.with_words else {}),
        }
        return json_bytes(event, allow_nan=False)

    def _joined(self, text: str, *, is_first: bool) -> str:
        """The text with the space that belongs before it: the first one of a window is not the model's to write.

        Nothing of a text that is only space.
        """
        if not text.strip():
            return ""
        if not self._last or self._last.isspace():
            return text.lstrip()
        if not is_first or text[0].isspace() or _is_without_spaces(self._last) or _is_without_spaces(text[0]):
            return text
        return f" {text}"

    def _name(self, code: str | None) -> str:
        return language_name(code, self._spec.language_names) if code else ""


def _at(start: float, seconds: float) -> float:
    return round(start + seconds, 3)


def _is_without_spaces(character: str) -> bool:
    return any(first <= character <= last for first, last in _WITHOUT_SPACES)
