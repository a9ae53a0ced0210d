"""Where on a picture the card lies, and the card alone, flat and upright."""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from tis.ktp.text_lines import Quad

Pixels = NDArray[np.uint8]
CARD_RATIO = 85.60 / 53.98


@dataclass(frozen=True)
class CardOutline:
    """`quad` has the upper left corner of the print first, then clockwise; None where no outline was found."""

    quad: Quad | None
    found_by: Literal["contour", "labels", "picture"]


WHOLE_PICTURE = CardOutline(None, "picture")


def rectified(picture: Pixels, outline: CardOutline, width: int) -> Pixels:
    """The card alone; the whole picture, if the outline is not known."""
    if outline.quad is None:
        return picture
    height = round(width / CARD_RATIO)
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float32)
    flattening = cv2.getPerspectiveTransform(np.array(outline.quad, dtype=np.float32), corners)
    flat = cv2.warpPerspective(picture, flattening, (width, height), flags=cv2.INTER_LINEAR)
    return np.asarray(flat, dtype=np.uint8)
