"""What was not read, and the rest of a card decides."""

from datetime import date

import pytest

from tests.ktp.printed import CARD, card_lines
from tis.ktp.card_checks import CheckedCard, check_card
from tis.ktp.parse import parse_card
from tis.ktp.regions import regions


def checked(changes: dict[str, str]) -> CheckedCard:
    return check_card(parse_card(card_lines(changes), regions()), regions(), date(2026, 1, 1))


def values(card: CheckedCard) -> dict[str, str | None]:
    return {name: reading.value for name, reading in card.fields.items()}


def test_a_sex_that_was_not_read_comes_from_the_nik_and_is_listed() -> None:
    card = checked({"jenis_kelamin": ""})
    assert values(card) == CARD
    assert [(repair.field, repair.old, repair.new) for repair in card.repairs] == [
        ("jenis_kelamin", None, CARD["jenis_kelamin"])
    ]
    assert card.fields["jenis_kelamin"].confidence < 0.9


@pytest.mark.parametrize("read", ["CIBIN", "CIBINO"])
def test_a_district_that_was_read_in_part_is_the_only_one_that_begins_so(read: str) -> None:
    card = checked({"alamat.kecamatan": read})
    assert values(card) == CARD
    assert card.fields["alamat.kecamatan"].confidence < 0.9


def test_of_two_districts_that_begin_so_the_one_of_the_nik_is_meant() -> None:
    bogor = {"kabupaten_kota": "KOTA BOGOR", "alamat.kecamatan": "BOGOR"}
    assert values(checked({**bogor, "nik": "3271041708859001"}))["alamat.kecamatan"] == "BOGOR BARAT"
    assert values(checked({**bogor, "nik": "3201011708859001"}))["alamat.kecamatan"] == "BOGOR"


def test_a_header_that_was_not_read_is_that_of_the_nik_where_the_district_is_the_same() -> None:
    assert values(checked({"provinsi": "XX", "kabupaten_kota": "XX"})) == CARD
    moved = values(checked({"provinsi": "XX", "kabupaten_kota": "XX", "alamat.kecamatan": "UBUD"}))
    assert (moved["provinsi"], moved["kabupaten_kota"]) == (None, None)


def test_nothing_is_completed_by_a_nik_that_contradicts_its_card() -> None:
    card = checked({"jenis_kelamin": "", "birth": "BOGOR, 18-08-1985"})
    assert values(card)["jenis_kelamin"] is None
