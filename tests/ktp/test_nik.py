"""A NIK is read, compared with the card, and repaired only where that is certain."""

from dataclasses import replace
from datetime import date

import pytest

from tis.ktp.nik import NikReport, PrintedEvidence, check_nik, date_from_nik, split_nik
from tis.ktp.regions import regions

TODAY = date(2026, 1, 1)
NIK = "3201011708859001"  # Cibinong, Bogor; a man born on 17-08-1985; a serial of specimen cards
CARD = PrintedEvidence(date(1985, 8, 17), 0.99, "LAKI-LAKI", 0.99, "3201", 0.99)


def report(nik: str, confidence: float = 0.99, card: PrintedEvidence = CARD, **digits: float) -> NikReport:
    """`d7=0.6`: the seventh digit was read with that confidence."""
    by_digit = [digits.get(f"d{place + 1}", 0.999) for place in range(16)] if digits else None
    return check_nik(nik, confidence, card, regions(), TODAY, by_digit)


def codes(found: NikReport) -> list[str]:
    return [warning.code for warning in found.warnings]


def test_a_nik_says_where_when_and_who() -> None:
    parts = split_nik(NIK, regions(), TODAY)
    assert parts and (parts.birth_date, parts.sex) == (date(1985, 8, 17), "LAKI-LAKI")
    assert parts.region.district == "CIBINONG"


def test_women_have_forty_added_to_the_day() -> None:
    parts = split_nik("3201015708859001", regions(), TODAY)
    assert parts and (parts.birth_date, parts.sex) == (date(1985, 8, 17), "PEREMPUAN")


@pytest.mark.parametrize(("year", "full"), [("08", 2008), ("10", 2010), ("11", 1911), ("85", 1985), ("00", 2000)])
def test_the_century_is_that_of_somebody_old_enough_for_a_card(year: str, full: int) -> None:
    parts = split_nik(f"3201011708{year}9001", regions(), TODAY)
    assert parts and parts.birth_date and parts.birth_date.year == full


def test_the_printed_year_gives_the_century() -> None:
    parts = split_nik("3201011708089001", regions(), TODAY, printed_year=1908)
    assert parts and parts.birth_date == date(1908, 8, 17)


@pytest.mark.parametrize("nik", ["", "320101170885900", NIK + "1", "32010117O8859001", "٣٢٠١٠١١٧٠٨٨٥٩٠٠١"])
def test_what_is_not_sixteen_digits_is_no_nik(nik: str) -> None:
    found = report(nik)
    assert (found.nik, codes(found)) == (None, ["nik_malformed"])


def test_a_nik_that_agrees_with_its_card_has_no_warning() -> None:
    found = report(NIK)
    assert (found.nik, found.confidence, found.warnings, found.repairs) == (NIK, 0.99, [], [])
    assert found.checks and all([found.checks.date, found.checks.sex, found.checks.regency, found.checks.known_code])


def test_a_holder_who_moved_is_information_only() -> None:
    found = report(NIK, card=replace(CARD, regency="3173"))
    assert (codes(found), found.confidence) == (["nik_region_differs"], 0.99)


def test_a_well_read_nik_with_another_date_is_left_alone() -> None:
    found = report("3201011808859001")
    assert (found.nik, codes(found), found.repairs) == ("3201011808859001", ["nik_date_mismatch"], [])
    assert found.confidence < 0.9


def test_another_sex_is_a_warning() -> None:
    assert codes(report(NIK, card=replace(CARD, sex="PEREMPUAN"))) == ["nik_sex_mismatch"]


@pytest.mark.parametrize(
    ("nik", "code"),
    [
        ("3299011708859001", "nik_region_unknown"),
        ("3201991708859001", "nik_region_unknown"),
        ("6404011708859001", "nik_region_retired"),
        ("3201019908859001", "nik_date_invalid"),
    ],
)
def test_what_cannot_be_is_a_warning(nik: str, code: str) -> None:
    found = report(nik)
    assert found.nik == nik
    assert code in codes(found)


def test_a_weak_digit_of_the_date_is_repaired_and_listed() -> None:
    found = report("3201011706859001", d10=0.6)
    assert found.nik == NIK
    [repair] = found.repairs
    assert (repair.field, repair.old, repair.new) == ("nik", "3201011706859001", NIK)
    assert found.checks and found.checks.date


def test_an_impossible_date_is_repaired_from_digits_below_the_limit() -> None:
    assert report("3201011788859001", d9=0.97).nik == NIK
    assert report("3201011788859001", d9=0.985).repairs == []


def test_a_possible_date_needs_a_weaker_digit() -> None:
    assert report("3201011706859001", d10=0.95).repairs == []


@pytest.mark.parametrize("weak", [{"birth_date_confidence": 0.8}, {"sex_confidence": 0.8}, {"sex": None}])
def test_weak_evidence_repairs_nothing(weak: dict[str, float | None]) -> None:
    assert report("3201011706859001", card=replace(CARD, **weak), d10=0.6).repairs == []  # type: ignore[arg-type]


def test_digits_that_do_not_look_alike_are_not_exchanged() -> None:
    assert report("3201011702859001", d10=0.6).repairs == []


def test_three_digits_are_too_many() -> None:
    assert report("3201011106669001", d8=0.5, d10=0.5, d11=0.5, d12=0.5).repairs == []


def test_the_serial_is_never_touched() -> None:
    found = report("3201011708859007", d16=0.1)
    assert (found.nik, found.repairs) == ("3201011708859007", [])


def test_an_unknown_regency_is_repaired_from_the_header() -> None:
    found = report("3281011708859001", d3=0.6)
    assert found.nik == NIK
    assert report("3281011708859001", card=replace(CARD, regency_confidence=0.8), d3=0.6).repairs == []


def test_a_known_code_of_another_regency_is_not_made_that_of_the_header() -> None:
    assert report("3207011708859001", d4=0.3).repairs == []


def test_a_date_that_was_not_read_is_taken_from_a_strong_nik() -> None:
    parts = split_nik(NIK, regions(), TODAY)
    assert parts
    assert date_from_nik(None, 0.0, 0.97, parts) == date(1985, 8, 17)
    assert date_from_nik(date(1985, 8, 16), 0.3, 0.97, parts) == date(1985, 8, 17)
    assert date_from_nik(date(1985, 8, 16), 0.9, 0.97, parts) is None
    assert date_from_nik(None, 0.0, 0.7, parts) is None
