"""Lines of doubt are read again: wider, flat, with more contrast; the readings vote. Never the whole picture."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import cv2
import numpy as np

from tis.ktp.field_parsers import certainty
from tis.ktp.ocr import Pixels, StripReader, strip_of
from tis.ktp.parse import ParsedCard
from tis.ktp.regions import letters_of
from tis.ktp.text_lines import Quad, TextLine
from tis.ktp.visible_text import widened

_WEAK = 0.97
_MAX_LINES = 12
_PAPER_AROUND = 0.55  # of a line's height
_UNLISTED = ("nama", "alamat.name", "alamat.kel_desa")  # no list and no check would notice a wrong letter
_MIN_CONTRAST = 0.1  # of paper and print; less is grain
_MIN_FOUND = 0.5  # confidence of what stands where no box was found
_DOUBT_LEFT = 0.4  # of a reading's own, where all readings are the same
_MAX_OUTVOTED, _MAX_DISPUTED = 0.89, 0.85  # confidence of a line that most, or some readings have otherwise


def read_weak_lines_again(
    texts: StripReader, picture: Pixels, lines: Sequence[TextLine], card: ParsedCard
) -> list[TextLine]:
    """All lines, the doubtful ones of the card's rows as most of their readings have it."""
    layout = card.layout
    ends = {line.right for row in layout.values.values() for line in row} | {line.right for line in layout.header}
    unlisted = {line.right for row in _UNLISTED for line in layout.values.get(row, [])}
    always = unlisted | {layout.values[row][0].right for row in layout.cut}
    weak = [line for line in lines if line.right in always or (line.right in ends and _is_doubtful(line))]
    weak = sorted(weak, key=certainty)[:_MAX_LINES]
    strips = [strip_of(picture, widened(line.quad, before=0.15, behind=0.25)) for line in weak]
    pairs = [(strip, evenly_lit(strip, strip.shape[0] * _PAPER_AROUND)) for strip in strips]
    readings = _read(texts, [variant for pair in pairs for variant in pair], 2)
    values = [_exact_value if line.right in unlisted else _letters for line in weak]
    disputed = [i for i, found in enumerate(readings) if len(set(map(values[i], [weak[i], *found]))) > 1]
    for place, found in zip(disputed, _read(texts, [with_contrast(strips[i]) for i in disputed], 1), strict=True):
        readings[place] += found
    again = {line: _elected([line, *readings[i]], values[i]) for i, line in enumerate(weak)}
    return [*(again.get(line, line) for line in lines), *_found_by_place(texts, picture, layout.places)]


def _found_by_place(texts: StripReader, picture: Pixels, places: Sequence[Quad]) -> list[TextLine]:
    """Detectors miss short and pale values; the rows of a card say where to look."""
    places = [quad for quad in places if math.dist(quad[0], quad[1]) < max(picture.shape[:2])]
    strips = [strip_of(picture, quad) for quad in places]
    pairs = [(strip, evenly_lit(strip, strip.shape[0] * _PAPER_AROUND)) for strip in strips]
    read = _read(texts, [variant for pair in pairs for variant in pair], 2)
    own = [[replace(line, quad=quad) for line in lines] for quad, lines in zip(places, read, strict=True)]
    found = [_elected(lines, _letters) for lines in own if lines]
    return [line for line in found if certainty(line) > _MIN_FOUND and letters_of(line.text)]


def _is_doubtful(line: TextLine) -> bool:
    return len(line.text) > 1 and (certainty(line) < _WEAK or min(line.signs, default=1.0) < 1.0)


def _read(texts: StripReader, strips: list[Pixels], each: int) -> list[list[TextLine]]:
    """In groups of `each`."""
    found = texts.read_strips(strips) if strips else []
    return [[line for line in found[i : i + each] if line is not None] for i in range(0, len(found), each)]


def _exact_value(line: TextLine) -> str:
    return line.text.strip(" :.")


def _letters(line: TextLine) -> str:
    return letters_of(line.text)


def _elected(readings: Sequence[TextLine], value: Callable[[TextLine], str]) -> TextLine:
    """In place of the first."""
    votes = Counter(map(value, readings))
    best = max(readings, key=lambda line: (votes[value(line)], certainty(line)))
    chosen = replace(best, quad=readings[0].quad)
    if len(readings) > 2 and len(votes) == 1:
        # What one reading doubts is less doubtful if all have it. Signs are blanks and full stops.
        surer = tuple(1 - (1 - one) * _DOUBT_LEFT for one in chosen.confidences)
        score = 1 - (1 - chosen.score) * _DOUBT_LEFT
        are_signs_sure = all(min(line.signs, default=1.0) == 1.0 for line in readings[1:])
        sign = 1.0 if are_signs_sure else min(min(line.signs, default=1.0) for line in readings)
        return replace(chosen, score=score, confidences=surer, signs=(sign,) * len(chosen.text))
    if len(votes) == 1:
        return chosen
    limit = _MAX_OUTVOTED if votes[value(best)] > len(readings) / 2 else _MAX_DISPUTED
    confidences = tuple(min(one, limit) for one in chosen.confidences)
    return replace(chosen, score=min(chosen.score, limit), confidences=confidences)


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
    return np.asarray(np.clip((even - dark) / max(light - dark, _MIN_CONTRAST) * 200 + 30, 0, 255), np.uint8)
