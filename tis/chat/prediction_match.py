"""Counts how much of a predicted answer came true. From the tokens alone, so a resumed answer has the same count."""

from array import array
from collections.abc import Iterable, Sequence

_TO_FIND = 3  # tokens that must agree where the answer comes back to its prediction
_WINDOW = 4096  # tokens behind the place where it left
_SIZE = array("i").itemsize


class PredictionMatch:
    """Goes through the prediction from the beginning to the end, beside the answer."""

    def __init__(self, prediction_ids: Sequence[int]) -> None:
        self.num_right = 0
        self._ids = array("i", prediction_ids)
        self._bytes = self._ids.tobytes()
        self._at = 0
        self._strayed = array("i")  # the newest tokens of the answer that were not foretold

    def feed(self, token_ids: Iterable[int]) -> None:
        for token_id in token_ids:
            if self._at < len(self._ids) and self._ids[self._at] == token_id:
                self._advance(1)
                continue
            self._strayed.append(token_id)
            del self._strayed[:-_TO_FIND]
            if len(self._strayed) == _TO_FIND and (skipped := self._find_strayed()) is not None:
                self._at += skipped
                self._advance(_TO_FIND)

    def _advance(self, num_tokens: int) -> None:
        self._at += num_tokens
        self.num_right += num_tokens
        del self._strayed[:]

    def _find_strayed(self) -> int | None:
        """How many tokens of the prediction are before those that the answer has again."""
        begin, wanted = self._at * _SIZE, self._strayed.tobytes()
        found = self._bytes.find(wanted, begin, begin + _WINDOW * _SIZE)
        while found >= 0 and found % _SIZE:
            found = self._bytes.find(wanted, found + 1, begin + _WINDOW * _SIZE)
        return None if found < 0 else (found - begin) // _SIZE
