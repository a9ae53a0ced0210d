"""The log of a speech: its events, and with each sentence how much of the file readers have, to go on behind it."""

import base64
import hashlib
import json
from collections.abc import Sequence

from tis.json_bytes import json_bytes
from tis.streaming.source import Block
from tis.streaming.stores.store import Status

_MAX_BYTES = 24 * 1024  # of sound in an event, which is 32 KiB of base64


class SpeechLog:
    def __init__(self) -> None:
        self.num_bytes = 0  # of the file, that are in events
        self.num_samples = 0  # of the model, that they were made of
        self.digest = hashlib.blake2b(digest_size=16)  # of those bytes; not known after a replay
        self.digest_before = ""  # of the bytes that another process sent
        self.is_over = False
        self.outcome: Status = "finished"
        self._num_events = 0

    def add_sound(self, data: bytes, num_samples: int) -> Sequence[Block]:
        """All of these events are stored, or none: the first has the record of all of them."""
        parts = [data[begin : begin + _MAX_BYTES] for begin in range(0, len(data), _MAX_BYTES)]
        if not parts:
            return []
        self.num_bytes += len(data)
        self.num_samples = num_samples
        self.digest.update(data)
        self._num_events += len(parts)
        counts = self._num_events, self.num_bytes, self.num_samples
        record = json.dumps(["sound", *counts, self.digest.hexdigest()]).encode()
        return [
            Block(b'{"type":"speech.audio.delta","audio":"%b"}' % base64.b64encode(part), b"" if number else record)
            for number, part in enumerate(parts)
        ]

    def add_end(self, num_input: int, num_output: int, *, cancelled: bool) -> Sequence[Block]:
        self.is_over, self.outcome = True, "cancelled" if cancelled else "finished"
        usage = {"input_tokens": num_input, "output_tokens": num_output, "total_tokens": num_input + num_output}
        event = {"type": "speech.audio.done", "usage": usage, **({"cancelled": True} if cancelled else {})}
        return [Block(json_bytes(event), json.dumps(["ended", cancelled]).encode())]

    def fail(self, event: bytes) -> Block:
        self.is_over, self.outcome = True, "failed"
        return Block(event, b'["failed"]')

    def replay(self, resume_states: Sequence[bytes]) -> None:
        """Raises ValueError if the events are not those that are stored."""
        for resume_state in filter(None, resume_states):
            match json.loads(resume_state):
                case ["sound", num_events, num_bytes, num_samples, digest]:
                    self._num_events, self.num_bytes, self.num_samples = num_events, num_bytes, num_samples
                    self.digest_before = digest
                case ["ended", cancelled]:
                    self.is_over, self.outcome = True, "cancelled" if cancelled else "finished"
                case ["failed"]:
                    self.is_over, self.outcome = True, "failed"
                case record:
                    raise ValueError(f"unknown record {record[:1]}")
        if not self.is_over and self._num_events != len(resume_states):
            raise ValueError(f"{len(resume_states)} events are stored, and {self._num_events} are in the records")
