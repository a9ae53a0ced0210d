"""How many words of a transcript are wrong: substituted, left out or invented."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class WordErrors:
    errors: int
    words: int  # of the reference

    @property
    def rate(self) -> float:
        return self.errors / max(1, self.words)


def words_of(text: str) -> list[str]:
    """Capitals and punctuation do not count."""
    return re.findall(r"[\w']+", text.casefold())


def word_errors(reference: str, transcript: str) -> WordErrors:
    wanted, found = words_of(reference), words_of(transcript)
    return WordErrors(_distance(wanted, found), len(wanted))


def _distance(wanted: Sequence[str], found: Sequence[str]) -> int:
    row = list(range(len(found) + 1))
    for number, word in enumerate(wanted, 1):
        above, row = row, [number]
        for place, other in enumerate(found, 1):
            row.append(min(above[place] + 1, row[place - 1] + 1, above[place - 1] + (word != other)))
    return row[-1]
