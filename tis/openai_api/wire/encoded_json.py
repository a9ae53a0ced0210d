"""JSON with parts that are encoded already: events of a response repeat its tools and logprobs, megabytes perhaps."""

import json
import secrets
from collections.abc import Sequence
from typing import Any

_PLACE = secrets.token_hex(16)  # no text of a client or a model contains it
_QUOTED_PLACE = json.dumps(_PLACE).encode()


class EncodedList:
    """A list that grows, and keeps its items as JSON only: millions of objects would hold up the garbage collector."""

    def __init__(self, items: Sequence[Any] = ()) -> None:
        self._pieces: list[bytes] = []
        self.extend(items)

    def extend(self, items: Sequence[Any]) -> None:
        if items:
            self._pieces.append(encode_json(items)[1:-1])

    def encoded(self) -> bytes:
        return b"[%b]" % b",".join(self._pieces)


class EncodedValue:
    """A value that is written again and again, and encoded once."""

    def __init__(self, value: Any) -> None:
        self._bytes = encode_json(value)

    def encoded(self) -> bytes:
        return self._bytes


def encode_json(value: Any) -> bytes:
    """Encodes what `json.dumps` can encode, EncodedList and EncodedValue."""
    lists: list[EncodedList | EncodedValue] = []

    def place(found: object) -> str:
        if not isinstance(found, EncodedList | EncodedValue):
            raise TypeError(f"{type(found).__name__} is not JSON")
        lists.append(found)
        return _PLACE

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=place).encode()
    if not lists:
        return text
    around = text.split(_QUOTED_PLACE)
    pieces = [around[0]]
    for found, after in zip(lists, around[1:], strict=True):
        pieces += [found.encoded(), after]
    return b"".join(pieces)
