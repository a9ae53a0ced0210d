"""Whatever an OCR engine gives, parsing ends with an answer."""

from datetime import date
from random import Random

import numpy as np
import pytest

from tests.ktp.printed import card_lines
from tis.ktp.card_checks import check_card
from tis.ktp.lexicons import FIELDS
from tis.ktp.ocr import Pixels
from tis.ktp.ocr_card_reader import OcrCardReader
from tis.ktp.parse import parse_card
from tis.ktp.regions import regions
from tis.ktp.text_lines import TextLine

_TEXTS = [line.text for line in card_lines()] + [
    "",
    ":",
    " ",
    "Gol. Darah",
    "3201011708859",
    "NIK 3201",
    "//",
    "-",
    "A" * 300,
]


def any_line(random: Random) -> TextLine:
    text = random.choice(_TEXTS)
    size = random.choice([0, 1, 50, 2000])
    a, b, c, d = ((random.uniform(-size, size), random.uniform(-size, size)) for _ in range(4))
    confidences = tuple(random.random() for _ in text) if random.random() < 0.7 else ()
    return TextLine((a, b, c, d), text, random.random(), confidences)


def shaken(line: TextLine, random: Random) -> TextLine:
    by = random.choice([0, 5, 40])
    a, b, c, d = ((x + random.uniform(-by, by), y + random.uniform(-by, by)) for x, y in line.quad)
    return TextLine((a, b, c, d), line.text, line.score, line.confidences)


@pytest.mark.parametrize("seed", range(8))
def test_parsing_ends_with_an_answer(seed: int) -> None:
    random = Random(seed)
    for _ in range(12):
        lines = [any_line(random) for _ in range(random.randrange(25))]
        lines += [shaken(line, random) for line in random.sample(card_lines(), random.randrange(20))]
        card = parse_card(lines, regions())
        checked = check_card(card, regions(), date(2026, 1, 1))
        assert set(checked.fields) == set(FIELDS)
        assert all(0 <= reading.confidence <= 1 for reading in checked.fields.values())


class AnyTextReader:
    def __init__(self, random: Random) -> None:
        self._random = random

    def read(self, picture: Pixels) -> list[TextLine]:
        lines = [any_line(self._random) for _ in range(self._random.randrange(12))]
        return lines + [shaken(line, self._random) for line in self._random.sample(card_lines(), 14)]

    def read_strips(self, strips: list[Pixels]) -> list[TextLine | None]:
        return [any_line(self._random) if self._random.random() < 0.8 else None for _ in strips]


@pytest.mark.parametrize("size", [(1, 1), (2, 300), (300, 400), (1400, 60)])
def test_reading_ends_with_an_answer(size: tuple[int, int]) -> None:
    random = Random(size[0])
    for _ in range(2):
        picture = np.random.default_rng(random.randrange(99)).integers(0, 256, (*size, 3), np.uint8)
        card = OcrCardReader(AnyTextReader(random), regions()).read(picture, date(2026, 1, 1))
        assert set(card.checked.fields) == set(FIELDS)


def test_more_lines_than_a_card_can_have_are_not_looked_at() -> None:
    many = [any_line(Random(seed)) for seed in range(3000)]
    parse_card([*card_lines(), *many], regions())
