"""From a picture to checked fields, with a fake in place of the OCR engine."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from tests.ktp.printed import CARD, card_lines, text_line
from tis.ktp.card_decoder import CardDecoder, plain_character
from tis.ktp.ocr import Pixels, broad_enough, reading_quads, short_enough
from tis.ktp.ocr_card_reader import OcrCard, OcrCardReader, brightened
from tis.ktp.regions import regions
from tis.ktp.text_lines import TextLine

TODAY = date(2026, 1, 1)


class ScriptedTextReader:
    """Gives these lines for a picture, and this text for a strip of it."""

    def __init__(self, lines: list[TextLine], strip: str = "") -> None:
        self._lines, self._strip = lines, strip
        self.sizes: list[tuple[int, ...]] = []

    def read(self, picture: Pixels) -> list[TextLine]:
        self.sizes.append(picture.shape)
        return self._lines

    def read_strips(self, strips: list[Pixels]) -> list[TextLine | None]:
        return [text_line(self._strip, 0, 0) if self._strip else None for _ in strips]


def read(texts: ScriptedTextReader, width: int = 1300, height: int = 900) -> OcrCard:
    return OcrCardReader(texts, regions()).read(np.zeros((height, width, 3), np.uint8), TODAY)


def test_a_card_is_read_and_checked() -> None:
    card = read(ScriptedTextReader(card_lines()))
    assert card.is_card
    assert {name: reading.value for name, reading in card.checked.fields.items()} == CARD
    assert (card.checked.warnings, card.checked.repairs) == ([], [])


def test_a_blank_picture_is_no_card() -> None:
    assert not read(ScriptedTextReader([])).is_card


@pytest.mark.parametrize(("size", "seen"), [((4000, 3000), (1500, 2000, 3)), ((500, 320), (627, 980, 3))])
def test_pictures_are_brought_to_a_size_that_the_engine_reads(size: tuple[int, int], seen: tuple[int, ...]) -> None:
    texts = ScriptedTextReader([])
    read(texts, *size)
    assert texts.sizes == [seen]


def test_a_dark_picture_is_brightened_and_a_light_one_is_not() -> None:
    dark = np.tile(np.arange(60, dtype=np.uint8)[None, :, None], (40, 1, 3))
    assert 220 <= int(brightened(dark).max()) <= 240
    assert int(brightened(np.full((9, 9, 3), 3, np.uint8)).max()) == 12
    light = dark + 150
    assert brightened(light) is light


def test_boxes_are_in_pixels_of_the_picture() -> None:
    small = read(ScriptedTextReader(card_lines())).checked.fields["nama"].box
    large = read(ScriptedTextReader(card_lines()), 4000, 2600).checked.fields["nama"].box
    assert small and large
    assert large[0] == pytest.approx((small[0][0] * 2, small[0][1] * 2))


def test_a_box_that_was_cut_too_short_is_read_again() -> None:
    lines = [replace(line, text=line.text.replace(" O", "")) for line in card_lines()]
    card = read(ScriptedTextReader(lines, "Gol. Darah : O"))
    assert card.checked.fields["gol_darah"].value == "O"
    unknown = read(ScriptedTextReader(lines, "Gol. Darah :")).checked.fields["gol_darah"]
    assert (unknown.value, unknown.confidence) == ("-", 0.5)
    cut = card_lines({"nik": CARD["nik"][:15]})
    assert read(ScriptedTextReader(cut, f": {CARD['nik']}")).checked.fields["nik"].value == CARD["nik"]
    assert read(ScriptedTextReader(cut)).checked.fields["nik"].value is None


@pytest.mark.parametrize(
    ("character", "plain"),
    [("Á", "A"), ("：", ":"), ("é", "e"), ("A", "A"), ("中", None), ("№", "N")]
    + [("\u2019", "'"), ("\u2014", "-"), ("\u4e00", "-")],
)
def test_accents_and_wide_signs_are_read_as_plain_characters(character: str, plain: str | None) -> None:
    assert plain_character(character) == plain


def test_the_decoder_keeps_narrow_blanks_and_gives_a_confidence_per_character() -> None:
    characters = ["blank", "A", "Á", "I", " ", "中"]
    steps = [[0, 0.5, 0.4, 0, 0, 0], [0.7, 0, 0, 0, 0.3, 0], [0.1, 0, 0, 0.9, 0, 0], [0.99, 0, 0, 0.01, 0, 0]]
    [(text, score)], [(confidences, _)] = CardDecoder(characters)(np.array([steps], np.float32))
    assert text == "A I"
    assert confidences == pytest.approx((0.9, 0.3, 0.9))
    assert score == pytest.approx(0.7)


def test_a_strip_without_text_gives_an_empty_line() -> None:
    assert CardDecoder(["blank", "A", " "])(np.array([[[1.0, 0, 0]] * 3], np.float32)) == ([("", 0.0)], [((), ())])


def test_boxes_begin_where_reading_begins() -> None:
    upright = [[(10, 10), (210, 20), (209, 50), (9, 40)], [(10, 60), (40, 61), (40, 90), (10, 89)]]
    shifted = [[*box[1:], box[0]] for box in upright]
    assert reading_quads(np.array(shifted, np.float32)) == reading_quads(np.array(upright, np.float32))
    [long, short] = reading_quads(np.array([[(y, x) for x, y in (box[0], *box[:0:-1])] for box in upright], np.float32))
    assert long[1][1] - long[0][1] > 150 and short[1][1] - short[0][1] > 20


@pytest.mark.parametrize(
    ("size", "padded"),
    [((1, 2000), (500, 2000)), ((2000, 3), (2000, 500)), ((1, 1), (1, 1)), ((900, 1300), (900, 1300))],
)
def test_what_the_detector_gets_is_never_thin(size: tuple[int, int], padded: tuple[int, int]) -> None:
    """It enlarges the shorter side to 736 pixels: a line of 2,000 pixels took 14 GB."""
    picture = np.full((*size, 3), 200, np.uint8)
    seen = broad_enough(picture)
    assert seen.shape == (*padded, 3)
    assert (seen[: size[0], : size[1]] == picture).all()


@pytest.mark.parametrize(("size", "width"), [((2, 2000), 80), ((48, 1900), 1900), ((30, 1), 1)])
def test_what_the_recogniser_gets_is_no_longer_than_a_line_of_a_card(size: tuple[int, int], width: int) -> None:
    assert short_enough(np.zeros((*size, 3), np.uint8)).shape == (size[0], width, 3)
