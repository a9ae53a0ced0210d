"""Prompt lookup: drafts the next tokens of an answer from what its prompt, its prediction or itself has said before.

The last tokens are looked up; what followed them then may follow them now. Each token of the answer shows whether the
place that was found foretold it, also while nothing is drafted: so an answer that copies nothing has no drafts.
"""

from array import array
from collections.abc import Sequence

import numpy as np

DRAFT_WIDTH = 16  # tokens of answers in a step, drafts included: with packed weights so many cost little more than one
MAX_DRAFT = DRAFT_WIDTH - 1
_SIZES = (5, 3, 2)  # of n-grams, looked up in this order
_MULTIPLIERS = (0x5F3759DF3D5, 0x3C6EF372FE9, 0x6A54FF53A5F, 0x42F359DF3D7, 0x7BF359DF1D7)
_MIN_BITS, _MAX_BITS = 8, 16
_WEIGHT_OF_NEWEST = 0.15
# Of the tokens of late, foretold by any place: with fewer, a new place has to prove itself before it is drafted from.
_MIN_SHARE = 0.3
_FIRST_SHARE = 0.5
_MANY = 32  # tokens at once, after a while without drafts: they are added without being followed


class NgramIndex:
    """Where in a text an n-gram came last. Of fixed size: an n-gram may displace an older one."""

    def __init__(self, max_tokens: int) -> None:
        bits = min(_MAX_BITS, max(_MIN_BITS, (2 * max_tokens).bit_length()))
        self._mask = (1 << bits) - 1
        self._tables = [np.zeros(1 << bits, np.int32) for _ in _SIZES]

    def add(self, text: Sequence[int], start: int, stop: int) -> None:
        """Adds the n-grams that end before each of these positions."""
        for table, size in zip(self._tables, _SIZES, strict=True):
            first = max(start, size)
            if stop - first == 1:  # the newest token of an answer
                table[self._slot(text, first, size)] = first
            elif first < stop:
                ids = np.array(text[first - size : stop - 1], np.int64)
                mixed = np.zeros(stop - first, np.int64)
                for at in range(size):
                    mixed ^= ids[at : at + stop - first] * _MULTIPLIERS[at]
                table[mixed >> 20 & self._mask] = np.arange(first, stop)

    def find(self, text: Sequence[int]) -> int | None:
        """Returns the position behind the last place of the longest n-gram that the text ends with."""
        end = len(text)
        for table, size in zip(self._tables, _SIZES, strict=True):
            if end > size:
                place = int(table[self._slot(text, end, size)])
                if place and text[place - size : place] == text[end - size : end]:
                    return place
        return None

    def _slot(self, text: Sequence[int], position: int, size: int) -> int:
        mixed = 0
        for at in range(size):
            mixed ^= text[position - size + at] * _MULTIPLIERS[at]
        return mixed >> 20 & self._mask


class Drafter:
    """Follows the answer of one sequence, and drafts how it may go on."""

    def __init__(self, prompt_ids: Sequence[int], prediction_ids: Sequence[int], max_tokens: int) -> None:
        self._text = array("i", prediction_ids)
        self._text.extend(prompt_ids)
        self._index = NgramIndex(len(self._text) + max_tokens)
        # The prediction comes first in the text, but last into the index: it is the better source of what both have.
        self._index.add(self._text, len(prediction_ids), len(self._text))
        self._index.add(self._text, 0, len(prediction_ids))
        self._source = 0 if prediction_ids else self._index.find(self._text)
        self._num_followed = 0  # tokens of the answer
        self._streak = 0  # how many tokens in a row the source foretold
        self._share = _FIRST_SHARE

    def draft(self, answer_ids: Sequence[int], max_length: int) -> list[int]:
        """`answer_ids` may only grow from one call to the next."""
        new_ids, self._num_followed = answer_ids[self._num_followed :], len(answer_ids)
        if len(new_ids) > _MANY:
            self._skip(new_ids)
        else:
            for token_id in new_ids:
                self._follow(token_id)
        length = min(max_length, self._length)
        if self._source is None or length <= 0:
            return []
        return self._text[self._source : self._source + length].tolist()

    @property
    def _length(self) -> int:
        if not self._streak and self._share < _MIN_SHARE:
            return 0
        return min(MAX_DRAFT, 2 + 2 * self._streak + int(6 * self._share))

    def _skip(self, token_ids: Sequence[int]) -> None:
        start = len(self._text)
        self._text.extend(token_ids)
        self._index.add(self._text, start, len(self._text))
        self._streak, self._source = 0, self._index.find(self._text)

    def _follow(self, token_id: int) -> None:
        text, source = self._text, self._source
        text.append(token_id)
        self._index.add(text, len(text) - 1, len(text))
        if source is not None:
            is_foretold = text[source] == token_id
            self._share += _WEIGHT_OF_NEWEST * (is_foretold - self._share)
            if is_foretold:
                self._streak += 1
                self._source = source + 1
                return
        self._streak = 0
        self._source = self._index.find(text)
