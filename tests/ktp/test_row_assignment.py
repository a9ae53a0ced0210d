"""Lines of values are given to their rows, also where labels are lost, values wrap, or a box was not found."""

import pytest

from tests.ktp.printed import CARD, card_lines, text_line
from tis.ktp.layout import lay_out
from tis.ktp.parse import parse_card
from tis.ktp.regions import regions
from tis.ktp.row_assignment import ValueLine, assign_rows, kinds_of


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("3201011708859001", "nik"),
        ("BOGOR, 17-08-1985", "birth"),
        ("007/008", "alamat.rt_rw"),
        ("PEREMPUAN", "jenis_kelamin"),
        ("KATHOLIK", "agama"),
        ("BELUM KAWIN", "status_perkawinan"),
        ("WNI", "kewarganegaraan"),
        ("SEUMUR HIDUP", "berlaku_hingga"),
        ("MENGURUS RUMAH TANGGA", "pekerjaan"),
    ],
)
def test_some_values_say_themselves_which_row_is_theirs(text: str, row: str) -> None:
    assert kinds_of(text) == {row}


@pytest.mark.parametrize("text", ["BUDI SANTOSO", "JL. MELATI NO. 12", "SUKAMAJU", "", "O"])
def test_names_and_addresses_do_not(text: str) -> None:
    assert kinds_of(text) == frozenset()


def values(**changes: object) -> dict[str, str | None]:
    return {name: reading.value for name, reading in parse_card(card_lines(**changes), regions()).fields.items()}  # type: ignore[arg-type]


def test_rows_without_their_labels_are_told_by_what_they_say() -> None:
    lost = ("alamat.name", "alamat.rt_rw", "alamat.kel_desa", "alamat.kecamatan", "agama", "status_perkawinan")
    assert values(without_labels=lost) == CARD


def test_a_district_of_two_lines_is_whole_although_its_label_is_lost() -> None:
    sidempuan = {"provinsi": "PROVINSI SUMATERA UTARA", "kabupaten_kota": "KOTA PADANGSIDIMPUAN"}
    wrapped = {**sidempuan, "alamat.kecamatan": "PADANGSIDIMPUAN\nHUTAIMBARU"}
    found = values(changes=wrapped, without_labels=("alamat.kel_desa", "alamat.kecamatan"))
    assert found["alamat.kecamatan"] == "PADANGSIDIMPUAN HUTAIMBARU"
    assert (found["alamat.kel_desa"], found["agama"]) == (CARD["alamat.kel_desa"], CARD["agama"])


def test_a_date_below_its_place_belongs_to_it_although_their_label_is_lost() -> None:
    found = values(changes={"birth": "PENUKAL ABAB LEMATANG ILIR,\n17-08-1985"}, without_labels=("birth",))
    assert found == {**CARD, "tempat_lahir": "PENUKAL ABAB LEMATANG ILIR"}


def test_the_town_of_issue_beside_a_row_is_no_part_of_its_value() -> None:
    agama = next(line for line in card_lines() if line.text == ": ISLAM")
    lines = [*card_lines(), text_line("BOGOR", agama.right[0] + 40, agama.left[1])]
    assert parse_card(lines, regions()).fields["agama"].value == "ISLAM"


def test_lines_below_the_card_belong_to_no_row() -> None:
    lines = [ValueLine(float(y), text) for y, text in ((0, "BUDI SANTOSO"), (50, "BOGOR, 17-08-1985"), (900, "TOTAL"))]
    assert assign_rows(lines, {"nama": 0.0, "birth": 50.0}, 50.0)[:2] == ["nama", "birth"]


def test_nothing_gives_nothing() -> None:
    assert assign_rows([], {"nama": 0.0}, 50.0) == []


def test_the_place_of_a_value_that_no_box_was_found_for_is_known() -> None:
    missing = next(line for line in card_lines() if line.text == ": WNI")
    [place] = lay_out([line for line in card_lines() if line.text != ": WNI"]).places
    (left, top), _, _, (_, bottom) = place
    assert abs(left - missing.left[0]) < 40 and top < missing.left[1] < bottom
    assert lay_out(card_lines()).places == ()
