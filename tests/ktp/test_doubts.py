"""A value that was perhaps not seen whole has little confidence."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from tests.ktp.printed import CARD, card_lines, text_line
from tis.ktp.card_checks import CheckedCard, check_card
from tis.ktp.card_decoder import CardDecoder
from tis.ktp.doubts import doubt_hidden
from tis.ktp.layout import lay_out
from tis.ktp.ocr import Pixels
from tis.ktp.parse import parse_card
from tis.ktp.regions import regions
from tis.ktp.second_try import read_weak_lines_again
from tis.ktp.text_lines import TextLine

PAPER, SKIN = (190, 215, 230), (200, 140, 110)


def paper(colour: tuple[int, int, int] = PAPER) -> Pixels:
    return np.full((900, 1300, 3), colour, np.uint8)


def doubted(picture: Pixels, lines: list[TextLine]) -> CheckedCard:
    card = parse_card(lines, regions())
    return doubt_hidden(check_card(card, regions(), date(2026, 1, 1)), card, picture)


def unsure(card: CheckedCard) -> set[str]:
    return {name for name, reading in card.fields.items() if reading.confidence < 0.9}


def with_patch(field: str, colour: tuple[int, int, int], begin: float, end: float) -> Pixels:
    """Beside or over a value; places are in shares of its width."""
    line = next(line for line in card_lines() if line.text == f": {CARD[field]}")
    picture = paper()
    (left, top), _, (right, bottom), _ = line.quad
    wide = right - left
    picture[int(top) - 4 : int(bottom) + 4, int(left + begin * wide) : int(left + end * wide)] = colour
    return picture


def test_a_card_that_nothing_hides_is_as_sure_as_its_letters() -> None:
    card = doubted(paper(), card_lines())
    assert (unsure(card), card.warnings) == (set(), [])


@pytest.mark.parametrize("colour", [(255, 255, 255), SKIN], ids=["glare", "finger"])
@pytest.mark.parametrize("field", ["nama", "alamat.name", "alamat.kecamatan"])
def test_a_value_that_ends_where_something_lies_may_go_on(field: str, colour: tuple[int, int, int]) -> None:
    card = doubted(with_patch(field, colour, 1.0, 1.4), card_lines())
    assert unsure(card) == {field}
    assert card.fields[field].value == CARD[field]
    assert [(warning.code, warning.field) for warning in card.warnings] == [("hidden", field)]


def test_glare_between_the_words_of_a_value_is_a_doubt() -> None:
    assert unsure(doubted(with_patch("nama", (255, 255, 255), 0.4, 0.7), card_lines())) == {"nama"}


def test_what_lies_beside_a_value_of_fixed_length_is_none() -> None:
    assert unsure(doubted(with_patch("alamat.rt_rw", SKIN, 1.0, 2.0), card_lines())) == set()


def test_glare_cannot_be_seen_on_white_paper() -> None:
    card = doubted(paper((255, 255, 255)), card_lines())
    assert unsure(card) == {"nama", "alamat.name", "alamat.kel_desa"}
    assert min(reading.confidence for reading in card.fields.values()) > 0.8


def test_room_for_a_second_line_that_was_not_read_is_a_doubt() -> None:
    lines = [line for line in card_lines({"nama": "BUDI SANTOSO\nHIDAYAT"}) if line.text != "HIDAYAT"]
    assert lay_out(lines).incomplete == {"nama"}
    card = doubted(paper(), lines)
    assert [(warning.code, warning.field) for warning in card.warnings] == [("incomplete", "nama")]
    assert card.fields["nama"].confidence == 0.5


def test_a_value_that_begins_behind_its_column_has_lost_its_beginning() -> None:
    lines = [replace(line, text=line.text.removeprefix(": ")) for line in card_lines()]
    assert lay_out(lines).incomplete == frozenset()
    moved = [text_line("SANTOSO", 540, line.left[1]) if line.text == "BUDI SANTOSO" else line for line in lines]
    assert unsure(doubted(paper(), moved)) == {"nama"}


def test_a_regency_whose_name_may_go_on_below_a_finger_is_not_certain() -> None:
    lines = card_lines({"provinsi": "PROVINSI SUMATERA BARAT", "kabupaten_kota": "KABUPATEN SOLOK"})
    assert "kabupaten_kota" not in unsure(doubted(paper(), lines))
    [_, (right, top), (_, bottom), _] = next(line.quad for line in lines if line.text == "KABUPATEN SOLOK")
    picture = paper()
    picture[int(top) : int(bottom), int(right) : int(right) + 80] = SKIN
    assert "kabupaten_kota" in unsure(doubted(picture, lines))


def test_a_place_whose_date_was_not_read_ends_nobody_knows_where() -> None:
    place = doubted(paper(), card_lines({"birth": "BOGOR OS-12-1"})).fields["tempat_lahir"]
    assert place.value == "BOGOR" and place.confidence <= 0.6


def test_a_doubtful_blank_or_stop_costs_the_confidence_of_a_text_but_not_of_a_number() -> None:
    lines = [replace(line, signs=(0.5,) * len(line.text)) for line in card_lines()]
    card = doubted(paper(), lines)
    assert {"nama", "alamat.name"} <= unsure(card)
    assert not {"nik", "alamat.rt_rw", "agama", "tgl_lahir"} & unsure(card)


@pytest.mark.parametrize(("blank", "sign"), [(0.0001, 1.0), (0.1, 0.5), (0.9, 1.0)])
def test_the_decoder_says_where_a_blank_is_doubtful(blank: float, sign: float) -> None:
    steps = [[0, 0.99, 0, 0], [1 - blank, 0, 0, blank], [0, 0, 0.99, 0]]
    _, [(_, signs)] = CardDecoder(["blank", "A", "B", " "])(np.array([steps], np.float32))
    assert min(signs) == sign


@pytest.mark.parametrize(("stop", "sign"), [(0.0, 1.0), (0.3, 0.5)])
def test_the_decoder_says_where_a_full_stop_is_doubtful(stop: float, sign: float) -> None:
    steps = [[0, 0.99, 0, 0], [1 - stop, 0, 0, stop], [0, 0, 0.99, 0]]
    _, [(_, signs)] = CardDecoder(["blank", "A", "B", ".", " "])(np.array([[[*s, 0.0] for s in steps]], np.float32))
    assert signs[-1] == sign


@pytest.mark.parametrize(("stop", "text"), [(0.01, "JLA"), (0.2, "JL.A")])
def test_a_faint_stop_after_an_abbreviation_is_one(stop: float, text: str) -> None:
    letters = np.eye(6)[[1, 2, 0, 3]]
    letters[2] = [1 - stop, 0, 0, 0, stop, 0]
    [(read, _)], _ = CardDecoder(["blank", "J", "L", "A", ".", " "])(np.array([letters], np.float32))
    assert read == text


class StripScript:
    def __init__(self, text: str, score: float) -> None:
        self._line = text_line(text, 0, 0, score)
        self.num_strips = 0

    def read(self, picture: Pixels) -> list[TextLine]:
        return []

    def read_strips(self, strips: list[Pixels]) -> list[TextLine | None]:
        self.num_strips += len(strips)
        return [self._line for _ in strips]


def second_try(texts: StripScript, field: str, score: float) -> TextLine:
    lines = card_lines(scores={field: score})
    again = read_weak_lines_again(texts, paper(), lines, parse_card(lines, regions()))
    return again[[line.text for line in lines].index(f": {CARD[field]}")]


def test_of_what_a_list_confirms_only_weak_lines_are_read_again() -> None:
    sure, weak = StripScript("", 0.0), StripScript("", 0.0)
    second_try(sure, "agama", 0.99)
    second_try(weak, "agama", 0.6)
    assert weak.num_strips == sure.num_strips + 3


def test_what_all_readings_have_is_less_doubtful_than_what_one_has() -> None:
    line = second_try(StripScript(": BUDI SANTOSO", 0.8), "nama", 0.8)
    assert line.text == ": BUDI SANTOSO" and line.score > 0.9


def test_two_readings_that_differ_are_never_confident() -> None:
    line = second_try(StripScript(": BUDI SANTOSA", 0.99), "nama", 0.99)
    assert line.text == ": BUDI SANTOSA" and line.score < 0.9
    assert max(line.confidences) < 0.9
