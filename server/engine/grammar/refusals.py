"""Grammars that were refused lately: who sends one again is told at once, and not after seconds of trying it."""

import time
from collections import OrderedDict

from server.errors import BadRequest

_MOST_KEPT = 256
# On a machine that is busy, what was too slow may be fast enough another time.
_SECONDS_KEPT = 600.0


class Refusals:
    def __init__(self, seconds: float = _SECONDS_KEPT) -> None:
        self._seconds = seconds
        self._kept: OrderedDict[str, tuple[float, str, str | None, str | None]] = OrderedDict()

    def note(self, key: str, refused: BadRequest) -> None:
        self._kept[key] = time.monotonic(), refused.message, refused.param, refused.code
        self._kept.move_to_end(key)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)

    def find(self, key: str) -> BadRequest | None:
        """Another one each time: doors tell it in words of their own."""
        if key not in self._kept:
            return None
        refused_at, message, param, code = self._kept[key]
        if time.monotonic() - refused_at > self._seconds:
            del self._kept[key]
            return None
        return BadRequest(message, param=param, code=code)
