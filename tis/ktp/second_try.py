"""Lines of doubt are read again: wider, flat, with more contrast; the readings vote. Never the whole picture."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np

from tis.ktp.field_parsers import certainty
from tis.ktp.ocr import Pixels, StripReader, strip_of
from tis.ktp.parse import ParsedCard
from tis.ktp.text_lines import TextLine
from tis.ktp.visible_text import widened

_WEAK = 0.97
_MAX_LINES = 12
_PAPER_AROUND = 0.55  # of a line's height
_UNLISTED = ("nama", "alamat.name", "alamat.kel_desa")  # no list and no check would notice a wrong letter
_MAX_DISPUTED = 0.85  # confidence of a line that was read in two ways


def read_weak_lines_again(
    texts: StripReader, picture: Pixels, lines: Sequence[TextLine], card: ParsedCard
) -> list[TextLine]:
    """All lines, the doubtful ones of the card's rows as most of their readings have it."""
    layout = card.layout
    ends = {line.right for row in layout.values.values() for line in row} | {line.right for line in layout.header}
    always = {layout.values[row][0].right for row in layout.cut}
    always |= {line.right for row in _UNLISTED for line in layout.values.get(row, [])}
    weak = [line for line in lines if line.right in always or (line.right in ends and _is_doubtful(line))]
    weak = sorted(weak, key=certainty)[:_MAX_LINES]
    strips = [strip_of(picture, widened(line.quad, before=0.15, behind=0.25)) for line in weak]
    readings = _read(
        texts, [variant for strip in strips for variant in (strip, evenly_lit(strip, strip.shape[0] * 0.55))], 2
    )
    disputed = [place for place, found in enumerate(readings) if not _agree([weak[place], *found])]
    for place, found in zip(disputed, _read(texts, [with_contrast(strips[i]) for i in disputed], 1), strict=True):
        readings[place] += found
    again = {line: _elected(line, found) for line, found in zip(weak, readings, strict=True)}
    return [again.get(line, line) for line in lines]


def _is_doubtful(line: TextLine) -> bool:
    return len(line.text) > 1 and (certainty(line) < _WEAK or min(line.signs, default=1.0) < 1.0)


def _read(texts: StripReader, strips: list[Pixels], each: int) -> list[list[TextLine]]:
    """In groups of `each`."""
    found = texts.read_strips(strips) if strips else []
    return [[line for line in found[i : i + each] if line is not None] for i in range(0, len(found), each)]


def _value(line: TextLine) -> str:
    return line.text.strip(" :.")


def _agree(readings: Sequence[TextLine]) -> bool:
    return len({_value(line) for line in readings}) == 1


def _elected(first: TextLine, others: Sequence[TextLine]) -> TextLine:
    readings = [first, *others]
    votes = Counter(_value(line) for line in readings)
    best = max(readings, key=lambda line: (votes[_value(line)], certainty(line)))
    chosen = replace(best, quad=first.quad)
    if len(readings) > 2 and len(votes) == 1:
        return replace(chosen, signs=(1.0,) * len(chosen.text))  # the doubt of one reading is not that of all
    if len(votes) == 1 or votes[_value(best)] > len(readings) / 2:
        return chosen
    confidences = tuple(min(one, _MAX_DISPUTED) for one in chosen.confidences)
    return replace(chosen, score=min(chosen.score, _MAX_DISPUTED), confidences=confidences)


def with_contrast(strip: Pixels) -> Pixels:
    """CLAHE of the lightness."""
    lab = cv2.cvtColor(strip, cv2.COLOR_RGB2LAB)
    tiles = (max(1, round(strip.shape[1] / 80)), 1)
    lab[..., 0] = cv2.createCLAHE(clipLimit=3.0, tileGridSize=tiles).apply(np.ascontiguousarray(lab[..., 0]))
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)


def evenly_lit(picture: Pixels, around: float) -> Pixels:
    """Divided by its paper: shades, bands of reflected light and casts go, faint print becomes dark.

    `around` is how far paper is looked for, in pixels: at least the width of a stroke.
    """
    seen = picture.astype(np.float32)
    side = max(3, round(around) | 1)
    paper = cv2.GaussianBlur(cv2.dilate(seen, np.ones((side, side), np.uint8)), (0, 0), around)
    even = seen / np.maximum(paper, 20)
    dark, light = np.percentile(even, (2, 80))
    return np.asarray(np.clip((even - dark) / max(light - dark, 0.15) * 200 + 30, 0, 255), np.uint8)
