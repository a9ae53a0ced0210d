"""How good a picture of a card is: blur, light, glare, photocopy. Measured on the card, at one width."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import cv2
import numpy as np
from numpy.typing import NDArray

from tis.ktp.text_lines import Point, Quad

Pixels = NDArray[np.uint8]
_WIDTH = 640  # of the card, for all measures
_MAX_SHARPNESS_OF_BLUR = 60.0  # variance of the Laplacian
_MAX_DARK, _MIN_BRIGHT = 70.0, 225.0  # mean luma
_MAX_GREY_SATURATION = 12.0
_BLOWN_VALUE, _FLAT_SATURATION = 245, 30
_MIN_GLARE = 0.2  # share of a field's box
_MAX_BLOWN_PAPER = 0.35  # of the usual box: above, the paper itself is white, as on copies


@dataclass(frozen=True)
class PictureQuality:
    blur: bool
    dark: bool
    bright: bool
    glare: bool
    photocopy: bool
    tilt_degrees: float
    card_pixels: int  # width of the card


def card_area(boxes: Sequence[Quad]) -> tuple[int, int, int, int] | None:
    """Left, top, right, bottom of what the boxes of the fields span; None without any."""
    points: list[Point] = [point for box in boxes for point in box]
    if not points:
        return None
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return max(0, math.floor(min(xs))), max(0, math.floor(min(ys))), math.ceil(max(xs)), math.ceil(max(ys))


def measure_quality(picture: Pixels, boxes: Sequence[Quad]) -> PictureQuality:
    """Text covers about three quarters of a card's width."""
    area = card_area(boxes) or (0, 0, picture.shape[1], picture.shape[0])
    left, top, right, bottom = area
    card = picture[top:bottom, left:right]
    if card.size == 0:
        card = picture
    width = max(1, round(max(card.shape[:2]) / (0.75 if boxes else 1.0)))
    scale = _WIDTH * 0.75 / max(card.shape[:2])
    size = (max(1, round(card.shape[1] * scale)), max(1, round(card.shape[0] * scale)))
    small = cv2.resize(card, size, interpolation=cv2.INTER_AREA)
    grey = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    luma = float(grey.mean())
    contrast = float(grey.std()) or 1.0
    # A dim picture has small differences without being blurred.
    sharpness = float(cv2.Laplacian(grey, cv2.CV_64F).var()) * (45 / contrast) ** 2
    saturation = float(np.median(cv2.cvtColor(small, cv2.COLOR_RGB2HSV)[..., 1]))
    mask = glare_mask(picture)
    blown = [covered(mask, box) for box in boxes]
    tilts = [math.degrees(math.atan2(b[1] - a[1], b[0] - a[0])) for a, b, _, _ in boxes]
    return PictureQuality(
        blur=sharpness < _MAX_SHARPNESS_OF_BLUR,
        dark=luma < _MAX_DARK,
        bright=luma > _MIN_BRIGHT,
        glare=bool(blown) and max(blown) >= _MIN_GLARE and (len(blown) < 5 or median(blown) < _MAX_BLOWN_PAPER),
        photocopy=saturation < _MAX_GREY_SATURATION,
        tilt_degrees=round(median(tilts), 1) if tilts else 0.0,
        card_pixels=width,
    )


def glare_mask(picture: Pixels) -> NDArray[np.bool_]:
    """Blown, colourless and flat. White paper is not flat: it has text and grain."""
    value = picture.max(axis=2)
    spread = value.astype(np.int16) - picture.min(axis=2)
    blown = (value > _BLOWN_VALUE) & (spread < _FLAT_SATURATION)
    edges = cv2.dilate(cv2.Canny(np.ascontiguousarray(value), 40, 120), np.ones((5, 5), np.uint8))
    return np.asarray(blown & (edges == 0), dtype=np.bool_)


def covered(mask: NDArray[np.bool_], box: Quad) -> float:
    """Share of a box that lies under the mask."""
    area = card_area([box])
    if area is None:
        return 0.0
    left, top, right, bottom = area
    part = mask[top:bottom, left:right]
    return float(part.mean()) if part.size else 0.0
