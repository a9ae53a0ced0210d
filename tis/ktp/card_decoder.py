"""Text of a recogniser's probabilities: what cards print, how sure each character is, and what stands between two."""

import re
import string
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What cards print. Accents and full-width signs are read as the plain character.
ALPHABET = string.ascii_letters + string.digits + " .,:'/-()+"
# Typographic signs, and the Chinese digit one, which is a stroke.
_LOOKS_LIKE = {**dict.fromkeys("\u2018\u2019\u00b4`", "'"), **dict.fromkeys("\u2010\u2013\u2014\u2212\u4e00", "-")}
_MIN_BLANK = 0.05  # narrow blanks have 0.1 to 0.5, the space between letters of a word under 0.01
_MIN_BLANK_OF_NUMBER = 0.0004  # "NO. 5" in a short line has 0.0007 and more, "NO.5" under 0.0001
# Probabilities between those of good pictures with a sign (blank: 0.1, stop: 0.99) and without (0.003, 0.00005).
_DOUBTFUL_BLANK, _DOUBTFUL_BLANK_OF_NUMBER, _DOUBTFUL_STOP = (0.003, 0.3), (0.0001, 0.1), (0.0002, 0.9)
_DOUBTFUL, _DOUBTFUL_APOSTROPHE = 0.5, 0.001  # texts without one have at most 0.0003
# After these a stop of 0.1 is one: on good pictures JL. has 0.8 and more, JL at most 0.0004; blurred ones lie between.
_ABBREVIATION, _MIN_STOP = re.compile(r"(?<![A-Z0-9])(JL|GG|KP|NO|KAV|HJ|DR)$"), 0.1


class CardDecoder:
    """Takes the place of rapidocr's: the likeliest characters among those that cards print, and how likely each is.

    The second part of its answer has the confidences and the signs of `TextLine`.
    """

    def __init__(self, characters: list[str]) -> None:
        by_plain: dict[str, list[int]] = {}
        for place, character in enumerate(characters[1:], start=1):  # 0 is CTC's blank
            plain = plain_character(character)
            if plain is not None:
                by_plain.setdefault(plain, []).append(place)
        self.character = characters
        self._plain = ["", *by_plain]
        self._space = self._plain.index(" ")
        self._stop = self._plain.index(".") if "." in self._plain else None
        self._comma = self._plain.index(",") if "," in self._plain else None
        self._apostrophe = self._plain.index("'") if "'" in self._plain else None
        self._columns = [0, *(place for places in by_plain.values() for place in places)]
        self._begins = np.cumsum([0, 1, *(len(places) for places in by_plain.values())])[:-1]

    def __call__(
        self, probabilities: NDArray[np.float32], return_word_box: bool = False, **_: Any
    ) -> tuple[list[tuple[str, float]], list[tuple[tuple[float, ...], tuple[float, ...]]]]:
        plain = np.add.reduceat(probabilities[:, :, self._columns], self._begins, axis=2)
        lines = [self._line(line) for line in plain]
        texts = [(text, float(np.mean(sure)) if sure else 0.0) for text, sure, _ in lines]
        return texts, [(sure, signs) for _, sure, signs in lines]

    def _line(self, plain: NDArray[np.float32]) -> tuple[str, tuple[float, ...], tuple[float, ...]]:
        best = plain.argmax(axis=1)
        chosen = best != 0
        chosen[1:] &= best[1:] != best[:-1]
        steps = np.flatnonzero(chosen)
        text, sure, signs = "", [], []
        for step, before in zip(steps, [None, *map(int, steps)], strict=False):
            character = self._plain[best[step]]
            blank = 0.0 if before is None else float(plain[before + 1 : step, self._space].max(initial=0.0))
            if character not in ".," and _ABBREVIATION.search(text):
                stop = self._faint_stop(plain, before, int(step))
                if stop >= _MIN_STOP:
                    text += "."
                    sure.append(round(stop, 5))
                    signs.append(_DOUBTFUL)
            numbered = text[-1:] == "." and character.isdigit()
            min_blank = _MIN_BLANK_OF_NUMBER if numbered else _MIN_BLANK
            if blank >= min_blank and " " not in (character, text[-1:]):
                text += " "
                sure.append(round(blank, 5))
                doubtful = _DOUBTFUL_BLANK_OF_NUMBER if numbered else _DOUBTFUL_BLANK
                signs.append(_DOUBTFUL if blank < doubtful[1] else 1.0)
            signs.append(self._sign(plain, before, int(step), text, character, blank))
            text += character
            sure.append(min(1.0, round(float(plain[step, best[step]]), 5)))
        return text, tuple(sure), tuple(signs)

    def _faint_stop(self, plain: NDArray[np.float32], before: int | None, step: int) -> float:
        """A blurred stop looks like a comma as well."""
        stops = [place for place in (self._stop, self._comma) if place is not None]
        if before is None or not stops:
            return 0.0
        return float(plain[before + 1 : step, stops].sum(axis=1).max(initial=0.0))

    def _sign(
        self, plain: NDArray[np.float32], before: int | None, step: int, text: str, character: str, blank: float
    ) -> float:
        """How sure it is what stands between a character and the one before."""
        if before is None:
            return 1.0
        if self._stop is not None and character != "," and text.rstrip()[-1:] not in (".", ","):
            stop = float(plain[before + 1 : step + 1, self._stop].max())
            if _DOUBTFUL_STOP[0] < stop < _DOUBTFUL_STOP[1]:
                return _DOUBTFUL
        if self._apostrophe is not None and "'" not in (character, text[-1:]):
            if float(plain[before + 1 : step + 1, self._apostrophe].max()) > _DOUBTFUL_APOSTROPHE:
                return _DOUBTFUL
        if character == " " or text[-1:] == " ":
            return 1.0 if character != " " or float(plain[step, self._space]) > _DOUBTFUL_BLANK[1] else _DOUBTFUL
        numbered = text[-1:] == "." and character.isdigit()
        low, high = _DOUBTFUL_BLANK_OF_NUMBER if numbered else _DOUBTFUL_BLANK
        return _DOUBTFUL if low < blank < high else 1.0


def plain_character(character: str) -> str | None:
    """None for what no card prints."""
    if len(character) != 1:
        return None
    plain = _LOOKS_LIKE.get(character) or unicodedata.normalize("NFKD", character)[:1]
    return plain if plain in ALPHABET else None
