"""The log of a transcription: records of what happened, and the events that are made of them alone.

Records are stored as the resume states of these events: a process that reads them goes on behind the last window.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tis.audio_api.transcript_writer import Events, TranscriptWriter
from tis.engine.speech.heard import HeardSegment, HeardToken, HeardWindow, HeardWord
from tis.streaming.source import Block
from tis.streaming.stores.store import Status


class TranscriptionLog:
    def __init__(self, writer: TranscriptWriter) -> None:
        self.num_windows = 0
        self.is_over = False
        self.outcome: Status = "finished"
        self.language: str | None = None
        self.has_language = False  # it was looked for
        self.heard_until = 0.0  # seconds of the file
        self._writer = writer
        self._num_events = 0
        self._unsaved: list[str] = []  # records that have made no event yet

    def add_language(self, code: str | None) -> Sequence[Block]:
        return self._add("language", code)

    def add_window(self, start: float, seconds: float, heard: HeardWindow) -> Sequence[Block]:
        segments = [_segment_to_json(segment) for segment in heard.segments]
        return self._add("window", start, seconds, heard.language, heard.num_tokens, segments)

    def add_end(self, seconds: float, *, cancelled: bool) -> Sequence[Block]:
        return self._add("ended", seconds, cancelled)

    def fail(self, event: bytes) -> Block:
        self._unsaved.append('["failed"]')
        self.is_over, self.outcome = True, "failed"
        [block] = self._saved([event])
        return block

    def replay(self, resume_states: Sequence[bytes]) -> None:
        """Makes the events once more and drops them. Raises ValueError if they are not those that are stored."""
        for resume_state in filter(None, resume_states):
            for record in json.loads(resume_state):
                self._num_events += len(self._apply(record))
        if not self.is_over and self._num_events != len(resume_states):
            raise ValueError(f"{len(resume_states)} events are stored, and {self._num_events} follow from the records")

    def _add(self, *record: Any) -> Sequence[Block]:
        written = json.dumps(record)
        self._unsaved.append(written)
        return self._saved(self._apply(json.loads(written)))

    def _saved(self, events: Events) -> Sequence[Block]:
        """All of these events are stored, or none: the first has the records of all of them."""
        if not events:
            return []
        self._num_events += len(events)
        resume_state, self._unsaved = f"[{','.join(self._unsaved)}]".encode(), []
        return [Block(event, b"" if number else resume_state) for number, event in enumerate(events)]

    def _apply(self, record: list[Any]) -> Events:
        match record:
            case ["language", code]:
                self.language, self.has_language = code, True
                self._writer.language(code)
                return []
            case ["window", start, seconds, language, num_tokens, segments]:
                self.num_windows += 1
                self.heard_until = start + seconds
                heard = HeardWindow(language, tuple(map(_segment_from_json, segments)), num_tokens)
                return self._writer.window(start, seconds, heard)
            case ["ended", seconds, cancelled]:
                self.is_over, self.outcome = True, "cancelled" if cancelled else "finished"
                return self._writer.ended(seconds, cancelled=cancelled)
            case ["failed"]:
                self.is_over, self.outcome = True, "failed"
                return []
        raise ValueError(f"unknown record {record[:1]}")


def _segment_to_json(segment: HeardSegment) -> dict[str, Any]:
    given = asdict(segment)
    given["words"] = [[word.text, word.start, word.end, word.probability] for word in segment.words]
    given["tokens"] = [[token.text, token.utf8.hex(), token.logprob] for token in segment.tokens]
    return given


def _segment_from_json(given: dict[str, Any]) -> HeardSegment:
    words = tuple(HeardWord(*word) for word in given["words"])
    tokens = tuple(HeardToken(text, bytes.fromhex(utf8), logprob) for text, utf8, logprob in given["tokens"])
    return HeardSegment(**{**given, "token_ids": tuple(given["token_ids"]), "words": words, "tokens": tokens})
