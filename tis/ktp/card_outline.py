"""Where on a picture the card lies, and the card alone, flat and upright."""

from dataclasses import dataclass, replace
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from tis.ktp.text_lines import Quad

Pixels = NDArray[np.uint8]
CARD_RATIO = 85.60 / 53.98
_MARGIN = 0.03  # of a card's sides, around an outline that is to be read: outlines are not exact


@dataclass(frozen=True)
class CardOutline:
    """`quad` has the upper left corner of the print first, then clockwise; None where no outline was found."""

    quad: Quad | None
    found_by: Literal["contour", "labels", "picture"]


WHOLE_PICTURE = CardOutline(None, "picture")


@dataclass(frozen=True)
class FlatCard:
    """A view of a picture, with the homography from its pixels to those of the picture."""

    picture: Pixels
    view: NDArray[np.float64]

    def in_picture(self, quad: Quad) -> Quad:
        seen = cv2.perspectiveTransform(np.array([quad], np.float64), self.view)[0]
        a, b, c, d = ((float(x), float(y)) for x, y in seen)
        return a, b, c, d


def rectified(picture: Pixels, outline: CardOutline, width: int) -> Pixels:
    """The card alone; the whole picture, if the outline is not known."""
    if outline.quad is None:
        return picture
    return _flat(picture, outline.quad, width, 0.0).picture


def flatten(picture: Pixels, outline: CardOutline, width: int) -> FlatCard:
    """With a little of what is around the card."""
    if outline.quad is None:
        return FlatCard(picture, np.eye(3))
    return _flat(picture, outline.quad, width, _MARGIN)


def in_picture(outline: CardOutline, seen: FlatCard) -> CardOutline:
    return outline if outline.quad is None else replace(outline, quad=seen.in_picture(outline.quad))


def _flat(picture: Pixels, quad: Quad, width: int, margin: float) -> FlatCard:
    height = round(width / CARD_RATIO)
    low, right, below = margin * width, (1 - margin) * width, height - margin * width
    corners = np.array([(low, low), (right, low), (right, below), (low, below)], dtype=np.float32)
    view = cv2.getPerspectiveTransform(corners, np.array(quad, dtype=np.float32))
    way = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    flat = cv2.warpPerspective(picture, view, (width, height), flags=way, borderMode=cv2.BORDER_REPLICATE)
    return FlatCard(np.asarray(flat, dtype=np.uint8), np.asarray(view, np.float64))
