"""What is wrong with a picture of a card."""

import cv2
import numpy as np
import pytest

from tests.ktp.card_drawing import draw_card
from tests.ktp.cards import make_card
from tis.ktp.quality import Pixels, measure_quality

CARD: Pixels = np.asarray(draw_card(make_card(5), 900))
TEXT = [((30.0, 20.0), (670.0, 20.0), (670.0, 560.0), (30.0, 560.0))]
GREY = np.repeat(cv2.cvtColor(CARD, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)


def flags(picture: Pixels) -> set[str]:
    quality = measure_quality(picture, TEXT)
    return {name for name in ("blur", "dark", "bright", "glare", "photocopy") if getattr(quality, name)}


def with_light(picture: Pixels) -> Pixels:
    lit = picture.copy()
    lit[100:400, 100:600] = 255
    return lit


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        (CARD, set()),
        (cv2.GaussianBlur(CARD, (0, 0), 4).astype(np.uint8), {"blur"}),
        ((CARD * 0.25).astype(np.uint8), {"dark"}),
        (GREY, {"photocopy"}),
        (with_light(CARD), {"glare"}),
    ],
    ids=["good", "blurred", "dark", "photocopy", "glare"],
)
def test_a_flag_says_what_is_wrong(picture: Pixels, expected: set[str]) -> None:
    assert flags(picture) == expected


def test_the_width_of_the_card_and_its_tilt_are_given() -> None:
    quality = measure_quality(CARD, [((0.0, 0.0), (640.0, 64.0), (630.0, 130.0), (-10.0, 70.0))])
    assert quality.tilt_degrees == pytest.approx(5.7)
    assert 800 < quality.card_pixels < 950


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 900, 3)])
def test_a_picture_of_any_size_has_a_quality(shape: tuple[int, ...]) -> None:
    measure_quality(np.zeros(shape, np.uint8), [])
