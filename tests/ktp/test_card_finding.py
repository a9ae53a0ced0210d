"""Where the card lies on a picture: by its edges, and by what is printed where."""

import math
from datetime import date

import cv2
import numpy as np
import pytest

from tests.ktp.card_photos import take_photograph
from tests.ktp.printed import CARD, card_lines
from tis.ktp.card_finding import find_contours, find_outline, overlap
from tis.ktp.card_outline import flatten, rectified
from tis.ktp.layout import EMPTY_LAYOUT, lay_out
from tis.ktp.ocr import Pixels
from tis.ktp.ocr_card_reader import OcrCardReader
from tis.ktp.regions import regions
from tis.ktp.text_lines import Quad, TextLine

TODAY = date(2026, 1, 1)
# In millimetres, as on a card: label, its left end, its row; values begin at 25.6.
PRINTED = [
    ("NIK", 2.6, 11.8), ("Nama", 2.6, 16.2), ("Tempat/Tgl Lahir", 2.6, 18.98), ("Jenis Kelamin", 2.6, 21.76),
    ("Alamat", 2.6, 24.54), ("RT/RW", 4.8, 27.32), ("Kel/Desa", 4.8, 30.1), ("Kecamatan", 4.8, 32.88),
    ("Agama", 2.6, 35.66), ("Status Perkawinan", 2.6, 38.44), ("Pekerjaan", 2.6, 41.22),
    ("Kewarganegaraan", 2.6, 44.0), ("Berlaku Hingga", 2.6, 46.78),
]  # fmt: skip


def as_quad(points: np.ndarray) -> Quad:
    a, b, c, d = ((float(x), float(y)) for x, y in points)
    return a, b, c, d


def seen(corners: Quad) -> list[TextLine]:
    """The lines of a card that lies so on a picture."""
    card = np.array([(0, 0), (85.6, 0), (85.6, 53.98), (0, 53.98)], np.float32)
    view = cv2.getPerspectiveTransform(card, np.array(corners, np.float32))
    found = []
    for label, x, y in PRINTED:
        for text, left in ((label, x), ("ISLAM", 25.6)):
            box = [
                (left, y - 1.3),
                (left + len(text) * 1.2, y - 1.3),
                (left + len(text) * 1.2, y + 1.3),
                (left, y + 1.3),
            ]
            quad = as_quad(cv2.perspectiveTransform(np.array([box], np.float64), view)[0])
            found.append(TextLine(quad, text, 0.99, (0.99,) * len(text)))
    return found


def on_a_table(corners: Quad, size: tuple[int, int] = (1200, 900)) -> Pixels:
    picture = np.full((size[1], size[0], 3), (90, 70, 60), np.uint8)
    cv2.fillConvexPoly(picture, np.array(corners, np.int32), (190, 215, 230))
    return picture


LYING: Quad = ((300.0, 250.0), (900.0, 330.0), (860.0, 700.0), (250.0, 630.0))


@pytest.mark.parametrize("level", ["photo", "small"])
def test_a_card_is_found_by_its_edges(level: str) -> None:
    photo = take_photograph(3, level)
    assert max(overlap(quad, as_quad(photo.corners)) for quad in find_contours(photo.picture)) > 0.9


def test_an_empty_table_has_no_card() -> None:
    outline = find_outline(np.full((600, 800, 3), 120, np.uint8), EMPTY_LAYOUT)
    assert (outline.quad, outline.found_by) == (None, "picture")


@pytest.mark.parametrize("turns", range(4))
def test_labels_say_where_a_card_without_edges_lies(turns: int) -> None:
    corners = as_quad(np.roll(np.array(LYING), turns, axis=0)) if turns % 2 == 0 else None
    if corners is None:
        a, b, c, d = LYING
        upright: Quad = ((a[1], a[0]), (b[1], b[0]), (c[1], c[0]), (d[1], d[0]))  # a mirrored picture, turned below
        corners = as_quad(np.array([(900 - x, y) for x, y in upright]))
        corners = corners if turns == 1 else as_quad(np.roll(np.array(corners), 2, axis=0))
    outline = find_outline(np.full((1000, 1300, 3), 250, np.uint8), lay_out(seen(corners)))
    assert outline.quad is not None and outline.found_by == "labels"
    assert overlap(outline.quad, corners) > 0.9
    assert math.dist(outline.quad[0], corners[0]) < 40


@pytest.mark.parametrize("turned", [False, True])
def test_edges_that_agree_with_the_labels_are_more_exact(turned: bool) -> None:
    corners = as_quad(np.roll(np.array(LYING), 2, axis=0)) if turned else LYING
    outline = find_outline(on_a_table(corners), lay_out(seen(corners)))
    assert outline.quad is not None and outline.found_by == "contour"
    assert overlap(outline.quad, corners) > 0.95
    assert math.dist(outline.quad[0], corners[0]) < 15


def test_edges_of_something_beside_the_labels_are_not_the_card() -> None:
    far: Quad = ((700.0, 500.0), (1150.0, 500.0), (1150.0, 780.0), (700.0, 780.0))
    near: Quad = ((40.0, 40.0), (600.0, 40.0), (600.0, 393.0), (40.0, 393.0))
    outline = find_outline(on_a_table(far), lay_out(seen(near)))
    assert outline.quad is not None and overlap(outline.quad, near) > 0.85


def test_a_flat_card_has_the_size_of_a_card_and_leads_back_to_the_picture() -> None:
    outline = find_outline(on_a_table(LYING), lay_out(seen(LYING)))
    assert rectified(on_a_table(LYING), outline, 1000).shape == (631, 1000, 3)
    flat = flatten(on_a_table(LYING), outline, 1000)
    whole = flat.in_picture(((30.0, 30.0), (970.0, 30.0), (970.0, 601.0), (30.0, 601.0)))
    assert overlap(whole, LYING) > 0.93


class FlatCardReader:
    """Reads nothing on a table, and a whole card on a picture that is the card alone."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, ...]] = []

    def read(self, picture: Pixels) -> list[TextLine]:
        self.sizes.append(picture.shape)
        return card_lines() if picture.shape == (883, 1400, 3) else []

    def read_strips(self, strips: list[Pixels]) -> list[TextLine | None]:
        return [None for _ in strips]


def test_a_card_too_small_to_read_is_read_alone_and_its_boxes_are_of_the_picture() -> None:
    texts = FlatCardReader()
    card = OcrCardReader(texts, regions()).read(on_a_table(LYING), TODAY)
    assert texts.sizes == [(900, 1200, 3), (883, 1400, 3)]
    assert card.is_card and card.checked.fields["nama"].value == CARD["nama"]
    assert card.outline.found_by == "contour" and card.outline.quad and overlap(card.outline.quad, LYING) > 0.95
    box = card.checked.fields["nama"].box
    assert box and all(cv2.pointPolygonTest(np.array(LYING, np.float32), point, False) > 0 for point in box)
