"""Ends a text at the first stop string, without ever showing the beginning of one."""

from collections.abc import Sequence
from operator import itemgetter


class StopStrings:
    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found: str | None = None  # the stop string that ended the text

    @property
    def reached(self) -> bool:
        return self.found is not None

    def feed(self, text: str) -> str:
        """What may be shown now. After a stop string was seen: what stood before it, then nothing."""
        if not self._stops or self.reached:
            return "" if self.reached else text
        waiting = self._held + text
        begins = [(at, stop) for stop in self._stops if (at := waiting.find(stop)) >= 0]
        if begins:
            (at, self.found), self._held = min(begins, key=itemgetter(0)), ""
            return waiting[:at]
        keep = longest_beginning(waiting, self._stops)
        self._held = waiting[len(waiting) - keep :]
        return waiting[: len(waiting) - keep]

    def flush(self) -> str:
        """The answer ended otherwise: what was held back is ordinary text."""
        held, self._held = self._held, ""
        return held


def longest_beginning(text: str, wanted: Sequence[str]) -> int:
    """Length of the longest end of `text` that begins one of the wanted strings, and is none of them."""
    longest = 0
    for one in filter(None, wanted):
        # Only where its first character stands: most texts have few of those near their end.
        at = text.find(one[0], max(0, len(text) - len(one) + 1))
        while 0 <= at < len(text) - longest:
            if one.startswith(text[at:]):
                longest = len(text) - at
                break
            at = text.find(one[0], at + 1)
    return longest
