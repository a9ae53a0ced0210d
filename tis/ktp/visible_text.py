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
        strips = [_blown(_strip(picture, quad)) for quad in boxes]
        shares = [float(strip.mean()) for strip in strips]
        self.is_white = bool(shares) and float(np.median(shares)) > _MAX_BLOWN_PAPER

    def is_hidden_inside(self, quad: Quad) -> bool:
        if self.is_white:
            return False
        return max(_runs(_blown_columns(_strip(self._picture, quad))), default=0) > _MIN_RUN_INSIDE * _HEIGHT

    def may_begin_earlier(self, quad: Quad) -> bool:
        beside = _strip(self._picture, widened(quad, _BEFORE, 0))[:, : round(_BEFORE * _HEIGHT)]
        return self._is_covered(beside[:, ::-1], quad)

    def may_go_on(self, quad: Quad, heights: float = _BEHIND) -> bool:
        """Within so many heights of the line."""
        wide = _strip(self._picture, widened(quad, 0, heights))
        return self._is_covered(wide[:, -round(heights * _HEIGHT) :], quad)

    def _is_covered(self, beside: Pixels, quad: Quad) -> bool:
        """`beside` begins at the end of the text."""
        if beside.shape[1] < 2:
            return False
        near = min(round(_NEAR * _HEIGHT), beside.shape[1] - 1)
        if not self.is_white:
            blown = _blown_columns(beside)
            first = int(np.argmax(blown)) if blown.any() else len(blown)
            run = next(iter(_runs(blown[first:])), 0)
            if first <= near and run >= _MIN_RUN_BESIDE * _HEIGHT:
                return True
        paper = np.percentile(_strip(self._picture, quad).reshape(-1, 3), 75, axis=0) + 1.0
        patch = np.median(beside[:, near : near + _HEIGHT].reshape(-1, 3), axis=0) + 1.0
        if not self.is_white and patch.min() > _BLOWN_VALUE:
            return True
        ratios = patch / paper
        return bool(ratios.mean() < _MIN_BRIGHTNESS or np.ptp(ratios) > _MAX_TINT)


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
