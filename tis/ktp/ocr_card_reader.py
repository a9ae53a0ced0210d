"""A picture in, the checked fields of a card out, by OCR alone. Blocks for a second or two: call it from a thread."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, Protocol

import cv2
import numpy as np

from tis.ktp.card_checks import CheckedCard, check_card
from tis.ktp.card_outline import WHOLE_PICTURE, CardOutline
from tis.ktp.field_parsers import PARSERS, FieldReading
from tis.ktp.ocr import CardTextReader, Pixels, strip_of
from tis.ktp.parse import ParsedCard, parse_card
from tis.ktp.quality import PictureQuality, doubt_glare, measure_quality
from tis.ktp.regions import RegionTable
from tis.ktp.text_lines import Quad, TextLine

OnStage = Callable[[Literal["found", "rectified", "read", "checked"]], None]  # tells who waits how far it is
_MAX_SIDE, _MIN_SIDE = 2000, 700  # of what the detector gets; text of a card below is too small for it
_MAX_ENLARGED = 2.0


class StripReader(CardTextReader, Protocol):
    def read_strip(self, strip: Pixels) -> TextLine | None: ...


@dataclass(frozen=True)
class OcrCard:
    """`is_card` is False where too few labels were read; the fields are then not to be shown."""

    is_card: bool
    labels: tuple[str, ...]
    checked: CheckedCard
    quality: PictureQuality
    outline: CardOutline


class OcrCardReader:
    def __init__(self, texts: StripReader, table: RegionTable) -> None:
        self._texts, self._table = texts, table

    def read(self, picture: Pixels, today: date, on_stage: OnStage = lambda stage: None) -> OcrCard:
        scaled, scale = _scaled(picture)
        card = parse_card(self._texts.read(scaled), self._table)
        if card.is_card:
            on_stage("found")
            on_stage("rectified")
            card = self._read_again(scaled, card)
            on_stage("read")
        checked = check_card(card, self._table, today)
        fields = {name: _in_picture(reading, scale) for name, reading in checked.fields.items()}
        checked = replace(checked, fields=fields)
        quality, glare = measure_quality(picture, [field.box for field in fields.values() if field.box])
        if card.is_card:
            on_stage("checked")
        return OcrCard(card.is_card, card.labels, doubt_glare(checked, glare), quality, WHOLE_PICTURE)

    def _read_again(self, picture: Pixels, card: ParsedCard) -> ParsedCard:
        """Boxes are often cut too short: a hyphen alone, or the last digit."""
        fields = dict(card.fields)
        for name, line in card.unread.items():
            wider = _widened(line.quad, before=0.3, behind=0.8)
            again = self._texts.read_strip(_doubled(strip_of(picture, wider)))
            if again is None:
                continue
            reading = PARSERS[name](replace(again, quad=wider, text=again.text.lstrip(": ")))
            if reading.value is not None:
                fields[name] = replace(reading, confidence=min(reading.confidence, 0.9))
        return replace(card, fields=fields)


def _scaled(picture: Pixels) -> tuple[Pixels, float]:
    height, width = picture.shape[:2]
    scale = min(_MAX_SIDE / max(height, width), 1.0)
    if max(height, width) < _MIN_SIDE:
        scale = min(_MAX_ENLARGED, _MIN_SIDE * 1.4 / max(height, width))
    if scale == 1.0:
        return picture, 1.0
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return cv2.resize(picture, size, interpolation=way).astype(np.uint8), scale


def _in_picture(reading: FieldReading, scale: float) -> FieldReading:
    if reading.box is None or scale == 1.0:
        return reading
    a, b, c, d = ((x / scale, y / scale) for x, y in reading.box)
    return replace(reading, box=(a, b, c, d))


def _widened(quad: Quad, before: float, behind: float) -> Quad:
    """In heights of the box."""
    a, b, c, d = quad
    height, length = math.dist(a, d), max(1.0, math.dist(a, b))
    step = ((b[0] - a[0]) / length * height, (b[1] - a[1]) / length * height)
    left = [(x - step[0] * before, y - step[1] * before) for x, y in (a, d)]
    right = [(x + step[0] * behind, y + step[1] * behind) for x, y in (b, c)]
    return left[0], right[0], right[1], left[1]


def _doubled(strip: Pixels) -> Pixels:
    return cv2.resize(strip, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC).astype(np.uint8)
