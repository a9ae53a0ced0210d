"""The direction of text as a function of place: in a photo taken from the side, rows are not parallel."""

import math
from collections.abc import Sequence

import numpy as np

from tis.ktp.text_lines import TextLine

_MIN_LINES = 5
_MAX_ANGLE = 0.5  # radians
_MAX_OFF_MEDIAN, _MIN_TOLERANCE = 0.15, 0.02


class SlopeField:
    """A plane of dy/dx through the long lines, without those that do not fit; level where they are too few."""

    def __init__(self, lines: Sequence[TextLine]) -> None:
        self._level, self._over_x, self._over_y = 0.0, 0.0, 0.0
        self._centre = (0.0, 0.0)
        long = [line for line in lines if line.width > 4 * line.height and abs(line.angle) < _MAX_ANGLE]
        if len(long) >= _MIN_LINES:
            self._fit(long)

    def at(self, x: float, y: float) -> float:
        return self._level + self._over_x * (x - self._centre[0]) + self._over_y * (y - self._centre[1])

    def _fit(self, lines: Sequence[TextLine]) -> None:
        middles = np.array([((line.left[0] + line.right[0]) / 2, (line.left[1] + line.right[1]) / 2) for line in lines])
        slopes = np.array([math.tan(line.angle) for line in lines])
        weights = np.sqrt([line.width for line in lines])
        scale = float(np.ptp(middles)) or 1.0
        centre = middles.mean(axis=0)
        terms = np.column_stack([np.ones(len(lines)), (middles - centre) / scale])
        kept = np.abs(slopes - np.median(slopes)) < _MAX_OFF_MEDIAN
        plane = np.array([float(np.median(slopes)), 0.0, 0.0])
        for _ in range(3):
            if kept.sum() < _MIN_LINES - 1:
                break
            plane, *_ = np.linalg.lstsq(terms[kept] * weights[kept][:, None], slopes[kept] * weights[kept], rcond=None)
            errors = np.abs(terms @ plane - slopes)
            kept = errors < max(_MIN_TOLERANCE, 2.5 * float(np.median(errors[kept])))
        self._level, self._over_x, self._over_y = float(plane[0]), float(plane[1]) / scale, float(plane[2]) / scale
        self._centre = (float(centre[0]), float(centre[1]))
