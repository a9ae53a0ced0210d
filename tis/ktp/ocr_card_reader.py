"""A picture in, the checked fields of a card out, by OCR alone. Blocks for a second or two: call it from a thread."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

import cv2
import numpy as np

from tis.ktp.card_checks import CheckedCard, check_card
from tis.ktp.card_finding import find_outline
from tis.ktp.card_outline import WHOLE_PICTURE, CardOutline, FlatCard, flatten, in_picture
from tis.ktp.doubts import doubt_hidden
from tis.ktp.field_parsers import PARSERS, UNREAD, FieldReading
from tis.ktp.ocr import Pixels, StripReader, strip_of
from tis.ktp.parse import ParsedCard, parse_card
from tis.ktp.quality import PictureQuality, measure_quality
from tis.ktp.regions import RegionTable
from tis.ktp.second_try import evenly_lit, read_weak_lines_again
from tis.ktp.text_lines import Quad, TextLine
from tis.ktp.visible_text import ends_with_hyphen, widened

OnStage = Callable[[Literal["found", "rectified", "read", "checked"]], None]  # tells who waits how far it is
_MAX_SIDE, _MIN_SIDE = 2000, 700  # of what the detector gets; text of a card below is too small for it
_MAX_ENLARGED = 2.0
_FLAT_WIDTH = 1400
_MIN_LIGHT, _FULL_LIGHT, _MAX_GAIN = 140.0, 230.0, 4.0  # of the brightest hundredth
_PAPER_AROUND = 0.05  # of a card's height, about that of a line
_MAX_TILT = math.radians(25)
_MIN_CARD_WIDTH = 620  # pixels
_MIN_LABELS, _MAX_UNREAD = 10, 1
_MIN_MEAN_CONFIDENCE = 0.75
_MIN_OBJECTION = 0.7
_MAX_GUESSED = 0.5
_MAX_DISPUTED, _MAX_BORROWED = 0.6, 0.85  # confidence of what one reading has otherwise, or not at all


@dataclass(frozen=True)
class OcrCard:
    """`is_card` is False where too few labels were read; the fields are then not to be shown."""

    is_card: bool
    labels: tuple[str, ...]
    checked: CheckedCard
    quality: PictureQuality
    outline: CardOutline


@dataclass(frozen=True)
class _CardLook:
    """A view of the picture, the lines that were read in it, and what they say."""

    seen: FlatCard
    lines: list[TextLine]
    card: ParsedCard


class OcrCardReader:
    def __init__(self, texts: StripReader, table: RegionTable) -> None:
        self._texts, self._table = texts, table

    def read(self, picture: Pixels, today: date, on_stage: OnStage = lambda stage: None) -> OcrCard:
        scaled, scale = _scaled(picture)
        look = self._look(FlatCard(scaled, np.diag([1 / scale, 1 / scale, 1.0])))
        outline = in_picture(find_outline(scaled, look.card.layout), look.seen)
        card = look.card
        was_found = card.is_card
        if was_found:
            on_stage("found")
        if outline.quad is not None and _is_worth_a_second_look(card, outline.quad, scale):
            seen = flatten(picture, outline, _FLAT_WIDTH)
            if was_found:
                on_stage("rectified")
            flat = self._look(seen)
            outline = _corrected(outline, flat)
            if not (was_found or flat.card.is_card):
                flat = self._look(replace(flat.seen, picture=clearer(flat.seen.picture)))
            other, look = (look, flat) if _worth(flat.card) > _worth(card) else (flat, look)
            card = self._with_weak_fields_read_again(look)
            card = _with_doubts_of(card, other.card) if other.card.is_card else card
        elif was_found:
            on_stage("rectified")
            card = self._with_weak_fields_read_again(look)
        if card.is_card:
            if not was_found:  # only the flat card was recognised
                on_stage("found")
                on_stage("rectified")
            on_stage("read")
        checked = check_card(card, self._table, today)
        checked = doubt_hidden(checked, card, look.seen.picture)
        fields = {name: _in_picture(reading, look.seen) for name, reading in checked.fields.items()}
        checked = replace(checked, fields=fields)
        if card.is_card:
            on_stage("checked")
        boxes = [field.box for field in fields.values() if field.box]
        quality = measure_quality(picture, boxes)
        return OcrCard(card.is_card, card.labels, checked, quality, outline if card.is_card else WHOLE_PICTURE)

    def _look(self, seen: FlatCard) -> _CardLook:
        seen = replace(seen, picture=brightened(seen.picture))
        lines = self._texts.read(seen.picture)
        return _CardLook(seen, lines, parse_card(lines, self._table))

    def _with_weak_fields_read_again(self, look: _CardLook) -> ParsedCard:
        lines = read_weak_lines_again(self._texts, look.seen.picture, look.lines, look.card)
        card = look.card if lines == look.lines else parse_card(lines, self._table)
        fields = dict(card.fields)
        for name, line in card.unread.items():
            # Boxes are often cut too short: a hyphen alone, or the last digit.
            wider = widened(line.quad, before=0.3, behind=0.8)
            strip = strip_of(look.seen.picture, wider)
            [again] = self._texts.read_strips([_doubled(strip)])
            reading = PARSERS[name](replace(again, quad=wider, text=again.text.lstrip(": "))) if again else UNREAD
            if reading.value is None and name == "gol_darah":
                reading = _unknown_blood_group(again, strip, wider)
            if reading.value is not None:
                fields[name] = replace(reading, confidence=min(reading.confidence, 0.9))
        return replace(card, fields=fields)


def _unknown_blood_group(line: TextLine | None, strip: Pixels, box: Quad) -> FieldReading:
    """A hyphen, which recognisers often skip: as ink, or as nothing behind a label that was read."""
    if ends_with_hyphen(strip):
        return FieldReading("-", _MAX_BORROWED, box)
    is_label_alone = line is not None and re.search(r"DARA[HN]?\W*$", line.text.upper()) is not None
    return FieldReading("-", _MAX_GUESSED, box) if is_label_alone else UNREAD


def brightened(picture: Pixels) -> Pixels:
    """A dark picture in full light: the detector misses most lines of one. Contrast within it stays as it is."""
    light = float(np.percentile(picture[::4, ::4].max(axis=2), 99))
    if light >= _MIN_LIGHT:
        return picture
    gain = min(_MAX_GAIN, _FULL_LIGHT / max(light, 1.0))
    return np.asarray(np.clip(picture * gain, 0, 255), np.uint8)


def clearer(picture: Pixels) -> Pixels:
    """Without grain, and lit evenly: for a card of which nothing was read, as it is too dark or shaded."""
    smooth = cv2.bilateralFilter(picture, 5, 30, 3)
    return evenly_lit(np.asarray(smooth, np.uint8), picture.shape[0] * _PAPER_AROUND)


def _corrected(outline: CardOutline, flat: _CardLook) -> CardOutline:
    """What the flat card says about its outline: another one by its labels, or that it stands upside down."""
    found = find_outline(flat.seen.picture, flat.card.layout)
    if not flat.card.labels or outline.quad is None:
        return outline
    if outline.found_by == "labels" and found.quad is not None:
        return in_picture(found, flat.seen)
    backwards = sum(math.cos(label.line.angle) for label in flat.card.layout.labels.values()) < 0
    a, b, c, d = outline.quad
    return replace(outline, quad=(c, d, a, b)) if backwards else outline


def _is_worth_a_second_look(card: ParsedCard, outline: Quad, scale: float) -> bool:
    """Where the card alone, flat and large, may give more than the picture did."""
    if not card.is_card:
        return True
    a, b, c, d = outline
    width = (math.dist(a, b) + math.dist(d, c)) / 2 * scale
    tilt = abs(math.remainder(math.atan2(b[1] - a[1], b[0] - a[0]), math.pi / 2))
    is_small = width < _MIN_CARD_WIDTH
    unread = sum(reading.value is None for reading in card.fields.values())
    is_weak = unread > _MAX_UNREAD or _mean(card) < _MIN_MEAN_CONFIDENCE
    return tilt >= _MAX_TILT or is_small or len(card.labels) < _MIN_LABELS or is_weak


def _mean(card: ParsedCard) -> float:
    return sum(reading.confidence for reading in card.fields.values()) / len(card.fields)


def _worth(card: ParsedCard) -> float:
    return sum(reading.confidence + (reading.value is not None) for reading in card.fields.values())


def _with_doubts_of(card: ParsedCard, other: ParsedCard) -> ParsedCard:
    """The surer of two values, with doubt where they differ. Boxes are of the first card."""
    fields = dict(card.fields)
    for name, reading in card.fields.items():
        also = replace(other.fields[name], box=reading.box)
        if reading.value is None and also.value is not None:
            fields[name] = replace(also, confidence=min(also.confidence, _MAX_BORROWED))
        elif also.value is not None and also.value != reading.value:
            surer = max(reading, also, key=lambda one: one.confidence)
            is_disputed = min(reading.confidence, also.confidence) > _MIN_OBJECTION
            fields[name] = replace(
                surer, confidence=min(surer.confidence, _MAX_DISPUTED if is_disputed else _MAX_BORROWED)
            )
        elif also.value is not None and also.confidence > reading.confidence:
            fields[name] = also
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


def _in_picture(reading: FieldReading, seen: FlatCard) -> FieldReading:
    return reading if reading.box is None else replace(reading, box=seen.in_picture(reading.box))


def _doubled(strip: Pixels) -> Pixels:
    return cv2.resize(strip, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC).astype(np.uint8)
