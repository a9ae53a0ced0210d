"""Lines that were read with little confidence are read once more, with more contrast; never the whole picture."""

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np

from tis.ktp.field_parsers import certainty
from tis.ktp.ocr import Pixels, StripReader, strip_of
from tis.ktp.parse import ParsedCard
from tis.ktp.regions import letters_of
from tis.ktp.text_lines import TextLine
from tis.ktp.visible_text import widened

_WEAK = 0.9
_MAX_LINES = 8
_MAX_DISPUTED = 0.85  # confidence of a line that was read in two ways


def read_weak_lines_again(
    texts: StripReader, picture: Pixels, lines: Sequence[TextLine], card: ParsedCard
) -> list[TextLine]:
    """All lines, the weak ones of the card's rows in the better of two readings."""
    ends = {line.right for row in card.layout.values.values() for line in row}
    ends |= {line.right for line in card.layout.header}
    weak = [line for line in lines if line.right in ends and certainty(line) < _WEAK and len(line.text) > 1]
    weak = sorted(weak, key=certainty)[:_MAX_LINES]
    again = {line: _better(line, _read(texts, picture, line)) for line in weak}
    return [again.get(line, line) for line in lines]


def _read(texts: StripReader, picture: Pixels, line: TextLine) -> TextLine | None:
    strip = strip_of(picture, widened(line.quad, before=0.15, behind=0.25))
    found = texts.read_strip(with_contrast(strip))
    return replace(found, quad=line.quad) if found else None


def _better(first: TextLine, second: TextLine | None) -> TextLine:
    if second is None:
        return first
    better = max(first, second, key=certainty)
    if first.text.strip() == second.text.strip():
        return better
    if letters_of(first.text) == letters_of(second.text):
        return replace(better, signs=(0.5,) * len(better.text))
    confidences = tuple(min(one, _MAX_DISPUTED) for one in better.confidences)
    return replace(better, score=min(better.score, _MAX_DISPUTED), confidences=confidences)


def with_contrast(strip: Pixels) -> Pixels:
    """CLAHE of the lightness."""
    lab = cv2.cvtColor(strip, cv2.COLOR_RGB2LAB)
    tiles = (max(1, round(strip.shape[1] / 80)), 1)
    lab[..., 0] = cv2.createCLAHE(clipLimit=3.0, tileGridSize=tiles).apply(np.ascontiguousarray(lab[..., 0]))
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)
