"""Lines of text become the fields of a card."""

import math
from dataclasses import replace
from datetime import date

import pytest

from tests.ktp.printed import CARD, card_lines, text_line
from tis.ktp.card_checks import check_card
from tis.ktp.parse import ParsedCard, parse_card
from tis.ktp.regions import regions
from tis.ktp.text_lines import TextLine, turned


def parsed(lines: list[TextLine]) -> ParsedCard:
    return parse_card(lines, regions())


def values(lines: list[TextLine]) -> dict[str, str | None]:
    return {name: reading.value for name, reading in parsed(lines).fields.items()}


def test_every_field_of_a_card_is_found_with_confidence_and_box() -> None:
    card = parsed(card_lines())
    assert {name: reading.value for name, reading in card.fields.items()} == CARD
    assert all(reading.confidence > 0.9 and reading.box for reading in card.fields.values())
    assert (card.is_card, card.regency_code, len(card.labels)) == (True, "3201", 13)


@pytest.mark.parametrize("degrees", [-25, 9, 90, 180])
def test_a_turned_card_is_read_as_an_upright_one(degrees: int) -> None:
    assert values([turned(line, math.radians(degrees)) for line in card_lines()]) == CARD


def test_the_order_of_lines_does_not_matter() -> None:
    assert values(card_lines()[::-1]) == CARD


def test_a_label_and_its_value_may_be_one_line() -> None:
    lines = [line for line in card_lines() if line.text not in ("Agama", ": ISLAM")]
    agama = next(line for line in card_lines() if line.text == "Agama")
    assert values([*lines, text_line("Agama : ISLAM", *agama.left)]) == CARD


@pytest.mark.parametrize(
    ("field", "wrapped"),
    [
        ("nama", "BUDI SANTOSO\nHIDAYAT PRATAMA"),
        ("alamat.name", "PERUM GRIYA ASRI BLOK B2\nNO. 7"),
        ("pekerjaan", "TENTARA NASIONAL\nINDONESIA"),
    ],
)
def test_a_value_goes_on_in_the_next_line(field: str, wrapped: str) -> None:
    assert values(card_lines({field: wrapped})) == {**CARD, field: wrapped.replace("\n", " ")}


def test_a_date_may_stand_in_the_line_below_the_place() -> None:
    assert values(card_lines({"birth": "BOGOR,\n17-08-1985"})) == CARD


@pytest.mark.parametrize("row", ["nama", "alamat.rt_rw", "agama", "pekerjaan", "berlaku_hingga", "nik"])
def test_a_row_without_its_label_is_found_by_its_place(row: str) -> None:
    assert values(card_lines(without_labels=(row,))) == CARD


def test_an_empty_row_does_not_take_the_value_of_its_neighbour() -> None:
    assert values(card_lines({"alamat.kel_desa": ""})) == {**CARD, "alamat.kel_desa": None}


def test_the_issuing_town_and_clutter_are_no_values() -> None:
    clutter = [text_line("TOTAL BAYAR Rp 250.000", 300, -200), text_line("SPECIMEN", 300, 500, height=120)]
    clutter += [text_line("Nama Pelanggan :", 30, 10), text_line("Alamat", 50, 900)]
    assert values([*card_lines(), *clutter]) == CARD


@pytest.mark.parametrize(
    ("field", "read", "value"),
    [
        ("nik", "32O1 0117 0885 9OO1", "3201011708859001"),
        ("nik", "320101170885900", None),
        ("jenis_kelamin", "LAK1-LAKI", "LAKI-LAKI"),
        ("jenis_kelamin", "XXXX", None),
        ("agama", "KATH0LIK", "KATHOLIK"),
        ("status_perkawinan", "BELUMKAWIN", "BELUM KAWIN"),
        ("pekerjaan", "KARYAWANSWASTA", "KARYAWAN SWASTA"),
        ("pekerjaan", "PENJAGA MERCUSUAR", "PENJAGA MERCUSUAR"),
        ("pekerjaan", "KONSUL", "KONSULTAN"),
        ("pekerjaan", "TADIB", "TABIB"),
        ("nama", "BUDI SANTOSO. S.KOM", "BUDI SANTOSO, S.KOM"),
        ("nama", "HJ, SITI AMINAH", "HJ. SITI AMINAH"),
        ("kewarganegaraan", "WN1", "WNI"),
        ("kewarganegaraan", "BELANDA", "BELANDA"),
        ("berlaku_hingga", "SEUMURHIDUP", "SEUMUR HIDUP"),
        ("berlaku_hingga", "17-08-2017", "17-08-2017"),
        ("alamat.rt_rw", "OO7/OO8", "007/008"),
        ("alamat.rt_rw", "007008", "007/008"),
        ("alamat.kecamatan", "CIBIN0NG", "CIBINONG"),
        ("alamat.name", "JL, MELATI NO, 12", "JL. MELATI NO. 12"),
        ("gol_darah", "AB", "AB"),
        ("gol_darah", "0", "O"),
        ("gol_darah", "-", "-"),
        ("gol_darah", "Daran : B", "B"),
        ("provinsi", "PROVINSIJAWABARAT", "PROVINSI JAWA BARAT"),
        ("nama", "BUD1 SANT0SO", "BUDI SANTOSO"),
        ("nama", "H. BUDI SANTOSO, S.PD", "H. BUDI SANTOSO, S.PD"),
    ],
)
def test_a_typed_parser_repairs_what_ocr_confuses(field: str, read: str, value: str | None) -> None:
    assert values(card_lines({field: read}))[field] == value


@pytest.mark.parametrize("date_read", ["31-02-1985", "99-99-9999"])
def test_a_date_that_is_none_is_not_given(date_read: str) -> None:
    assert values(card_lines({"birth": f"BOGOR, {date_read}"}))["tgl_lahir"] is None


def test_the_canonical_spelling_stands_beside_the_printed_one() -> None:
    assert parsed(card_lines({"agama": "BUDHA"})).fields["agama"].canonical == "BUDDHA"


@pytest.mark.parametrize(
    ("field", "value"),
    [("tempat_lahir", "AGAM"), ("alamat.kecamatan", "NAMAN TERAN"), ("alamat.name", "JL. NAMA NO. 1")],
)
def test_a_value_that_resembles_a_label_is_a_value(field: str, value: str) -> None:
    without_colons = [replace(line, text=line.text.removeprefix(": ")) for line in card_lines({field: value})]
    assert values(without_colons)[field] == value


@pytest.mark.parametrize("province", regions().below("")[::4])
def test_names_of_regions_are_read_as_they_are_printed(province: str) -> None:
    table = regions()
    for regency in table.below(province)[::5]:
        place = (table.name(regency) or "").removeprefix("KOTA ").removeprefix("KABUPATEN ")
        district = next(iter(table.below(regency)))
        printed = {
            "provinsi": f"PROVINSI {table.name(province)}",
            "kabupaten_kota": table.name(regency) or "",
            "tempat_lahir": place,
            "alamat.kecamatan": table.name(district) or "",
        }
        read = values(card_lines(printed))
        assert {name: read[name] for name in printed} == printed


def test_a_weak_reading_has_a_weak_confidence() -> None:
    assert parsed(card_lines(scores={"nama": 0.6})).fields["nama"].confidence == pytest.approx(0.6)


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["Nama : BUDI SANTOSO", "Alamat : JL. MELATI", "Pekerjaan : GURU", "Berlaku Hingga : 31-12-2026"],
        ["TOTAL 250.000", "Alamat : JL. PASAR BARU"],
        ["3201011708859001"],
    ],
    ids=["nothing", "library card", "receipt", "a number"],
)
def test_other_papers_are_no_card(texts: list[str]) -> None:
    assert not parsed([text_line(text, 40, 60 + 50 * place) for place, text in enumerate(texts)]).is_card


def test_a_family_card_has_several_niks_and_is_no_ktp() -> None:
    title = text_line("KARTU KELUARGA", 380, 20)
    other = text_line("3201015203909002", 40, 700)
    assert not parsed([*card_lines(), title]).is_card
    assert not parsed([*card_lines(), other]).is_card
    assert parsed([*card_lines(), text_line("0218837465", 40, 700)]).is_card


def test_the_date_of_issue_is_no_occupation() -> None:
    assert values(card_lines({"pekerjaan": "23-12-2019"}))["pekerjaan"] is None


def test_a_piece_of_wni_is_no_country() -> None:
    assert values(card_lines({"kewarganegaraan": "W"}))["kewarganegaraan"] is None


def test_a_district_that_the_regency_does_not_have_is_doubtful() -> None:
    reading = parsed(card_lines({"alamat.kecamatan": "CIBIN"})).fields["alamat.kecamatan"]
    assert reading.confidence <= 0.85


def test_checks_compare_the_nik_with_the_card() -> None:
    checked = check_card(parsed(card_lines({"jenis_kelamin": "PEREMPUAN"})), regions(), date(2026, 1, 1))
    assert [warning.code for warning in checked.warnings] == ["nik_sex_mismatch"]
    assert checked.fields["nik"].value == CARD["nik"]


def test_a_date_that_was_not_read_comes_from_the_nik_and_is_listed() -> None:
    checked = check_card(parsed(card_lines({"birth": "BOGOR, 1X-XX-1985"})), regions(), date(2026, 1, 1))
    assert checked.fields["tgl_lahir"].value == "17-08-1985"
    assert [(repair.field, repair.new) for repair in checked.repairs] == [("tgl_lahir", "17-08-1985")]


def test_a_card_without_a_nik_says_so() -> None:
    checked = check_card(parsed(card_lines({"nik": ""})), regions(), date(2026, 1, 1))
    assert [warning.code for warning in checked.warnings] == ["nik_unread"]
