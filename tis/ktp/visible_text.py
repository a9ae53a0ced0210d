"""Whether a value was seen whole: glare or a finger may hide its beginning, its end or a part."""

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from tis.ktp.ocr import Pixels, strip_of
from tis.ktp.text_lines import Quad

_BEFORE, _BEHIND = 1.2, 1.5  # heights of a line that are looked at beside it
_HEIGHT = 24  # pixels of a strip
_BLOWN_VALUE, _FLAT_SPREAD = 245, 30
_MIN_BLOWN_OF_COLUMN = 0.8
_MIN_RUN_INSIDE, _MIN_RUN_BESIDE, _NEAR = 0.9, 0.6, 0.35  # heights; blanks between words have up to 0.5
_MAX_BLOWN_PAPER = 0.35  # of a card; above, the paper itself is white, as on copies
_END, _MIN_END_DEPTH = 1.0, 0.7  # heights; share of a line's usual depth of ink
_MIN_DIFFERENCE = 20.0  # grey levels, of a finger and its paper
_MIN_BRIGHTNESS, _MAX_TINT = 0.6, 0.22  # of what is beside a line, against its paper
_HYPHEN_HEIGHT, _HYPHEN_WIDTHS, _MAX_HYPHEN = 32, (4, 13), 7  # pixels
_MIN_INK, _MIN_SHARE_OF_INK, _MIN_MARK = 12.0, 0.35, 6  # grey levels; of the darkest; pixels


def widened(quad: Quad, before: float, behind: float) -> Quad:
    """In heights of the box."""
    a, b, c, d = quad
    height, length = math.dist(a, d), max(1.0, math.dist(a, b))
    step = ((b[0] - a[0]) / length * height, (b[1] - a[1]) / length * height)
    left = [(x - step[0] * before, y - step[1] * before) for x, y in (a, d)]
    right = [(x + step[0] * behind, y + step[1] * behind) for x, y in (b, c)]
    return left[0], right[0], right[1], left[1]


class VisibleText:
    """Of one picture and the boxes of its values."""

    def __init__(self, picture: Pixels, boxes: Sequence[Quad]) -> None:
        self._picture = picture
        shares = [float(_blown(_strip(picture, quad)).mean()) for quad in boxes]
        self.is_white = bool(shares) and float(np.median(shares)) > _MAX_BLOWN_PAPER

    def is_hidden_inside(self, quad: Quad) -> bool:
        strip = _strip(self._picture, quad)
        blown = _blown_columns(strip)
        empty = blown & (_depths(strip) < _MIN_SHARE_OF_INK * _usual_depth(strip))
        return max(_runs(empty), default=0) > _MIN_RUN_INSIDE * _HEIGHT

    def may_begin_earlier(self, quad: Quad) -> bool:
        beside = _strip(self._picture, widened(quad, _BEFORE, 0))[:, : round(_BEFORE * _HEIGHT)]
        return self._is_covered(beside[:, ::-1], _strip(self._picture, quad)[:, ::-1])

    def may_go_on(self, quad: Quad, letters: float = _BEHIND) -> bool:
        """By so many heights of the line at least."""
        wide = _strip(self._picture, widened(quad, 0, letters))
        return self._is_covered(wide[:, -round(letters * _HEIGHT) :], _strip(self._picture, quad))

    def _is_covered(self, beside: Pixels, text: Pixels) -> bool:
        """`beside` begins at the end of the text."""
        if beside.shape[1] < 2:
            return False
        near = min(round(_NEAR * _HEIGHT), beside.shape[1] - 1)
        paper = np.percentile(text.reshape(-1, 3), 75, axis=0) + 1.0
        patch = np.median(beside[:, near : near + _HEIGHT].reshape(-1, 3), axis=0) + 1.0
        ratios = patch / paper
        if np.abs(patch - paper).max() > _MIN_DIFFERENCE and (
            ratios.mean() < _MIN_BRIGHTNESS or np.ptp(ratios) > _MAX_TINT
        ):
            return True
        blown = _blown_columns(beside)
        first = int(np.argmax(blown)) if blown.any() else len(blown)
        run = next(iter(_runs(blown[first:])), 0)
        is_bright = (first <= near and run >= _MIN_RUN_BESIDE * _HEIGHT) or patch.min() > _BLOWN_VALUE
        return is_bright and _fades(text)


def _fades(text: Pixels) -> bool:
    """Glare begins softly: letters before it are pale. White paper is as bright, and they are not."""
    end = float(_depths(text)[-round(_END * _HEIGHT) :].max(initial=0.0))
    return end < _MIN_END_DEPTH * _usual_depth(text)


def _depths(strip: Pixels) -> NDArray[np.float32]:
    """By column, how much darker its ink is than the paper around."""
    grey = strip.max(axis=2).astype(np.float32)
    paper = cv2.dilate(np.percentile(grey, 85, axis=0).astype(np.float32)[None], np.ones((1, _HEIGHT + 1), np.uint8))
    return np.asarray(paper[0] - grey.min(axis=0), np.float32)


def _usual_depth(strip: Pixels) -> float:
    """Of the columns with ink."""
    depths = _depths(strip)
    return float(np.percentile(depths, 80)) or 1.0


def _strip(picture: Pixels, quad: Quad) -> Pixels:
    strip = strip_of(picture, quad)
    width = min(4000, max(2, round(strip.shape[1] * _HEIGHT / strip.shape[0])))
    return np.asarray(cv2.resize(strip, (width, _HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def _blown(strip: Pixels) -> NDArray[np.bool_]:
    value = strip.max(axis=2)
    spread = value.astype(np.int16) - strip.min(axis=2)
    return np.asarray((value > _BLOWN_VALUE) & (spread < _FLAT_SPREAD), np.bool_)


def _blown_columns(strip: Pixels) -> NDArray[np.bool_]:
    return np.asarray(_blown(strip).mean(axis=0) >= _MIN_BLOWN_OF_COLUMN, np.bool_)


def _runs(columns: NDArray[np.bool_]) -> list[int]:
    """Lengths of the stretches of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], columns, [False]]).astype(np.int8)))
    return [int(end - begin) for begin, end in edges.reshape(-1, 2)]


def ends_with_hyphen(strip: Pixels) -> bool:
    """Whether the last print of a line is a short dash in the middle of its height. Recognisers often skip one."""
    scale = _HYPHEN_HEIGHT / strip.shape[0]
    size = (max(8, round(strip.shape[1] * scale)), _HYPHEN_HEIGHT)
    grey = cv2.cvtColor(cv2.resize(strip, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    paper = cv2.GaussianBlur(cv2.dilate(grey, np.ones((15, 15), np.uint8)), (0, 0), 8).astype(np.float32)
    depth = paper - grey
    ink = depth > max(_MIN_INK, _MIN_SHARE_OF_INK * float(np.percentile(depth, 98)))
    _, _, stats, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8))
    marks = [box for box in stats[1:] if box[cv2.CC_STAT_AREA] >= _MIN_MARK]
    if not marks:
        return False
    last = max(marks, key=lambda box: box[cv2.CC_STAT_LEFT] + box[cv2.CC_STAT_WIDTH])
    width, height = int(last[cv2.CC_STAT_WIDTH]), int(last[cv2.CC_STAT_HEIGHT])
    middle = (last[cv2.CC_STAT_TOP] + height / 2) / _HYPHEN_HEIGHT
    low, high = _HYPHEN_WIDTHS
    return bool(low <= width <= high and height <= _MAX_HYPHEN and width >= 1.4 * height and 0.35 < middle < 0.75)
