"""Two readings of one card: where they agree, where they differ, and where only one has a value."""

from datetime import date
from typing import Any

import pytest

from tests.ktp.card_service import reply_tokens, vision_values
from tests.ktp.printed import CARD, card_lines
from tis.ktp.card_checks import CheckedCard, check_card
from tis.ktp.fusion import fuse
from tis.ktp.parse import parse_card
from tis.ktp.regions import regions
from tis.ktp.vision_reply import vision_card

TODAY = date(2026, 1, 1)
NIK = CARD["nik"]


def by_ocr(changes: dict[str, str] | None = None, **scores: float) -> CheckedCard:
    return check_card(parse_card(card_lines(changes, scores=scores), regions()), regions(), TODAY)


def by_model(changes: dict[str, Any] | None = None, **sure: tuple[float, float]) -> CheckedCard:
    return vision_card(
        reply_tokens({"is_ktp": True, **vision_values(), **(changes or {})}, sure), regions(), TODAY
    ).checked


def fused(ocr: CheckedCard, model: CheckedCard) -> CheckedCard:
    return fuse(ocr, model, regions(), TODAY)


def codes(card: CheckedCard) -> list[tuple[str, str]]:
    return [(warning.code, warning.field) for warning in card.warnings]


def test_agreement_makes_sure() -> None:
    ocr, model = by_ocr(nama=0.8), by_model()
    card = fused(ocr, model)
    assert {name: reading.value for name, reading in card.fields.items()} == CARD
    assert card.fields["nama"].confidence > max(ocr.fields["nama"].confidence, model.fields["nama"].confidence)
    assert card.fields["nama"].box == ocr.fields["nama"].box
    assert card.nik.confidence == card.fields["nik"].confidence and card.warnings == []


def test_digits_are_those_of_ocr() -> None:
    card = fused(by_ocr(), by_model({"nik": NIK[:12] + "7777", "rt_rw": "001/001"}))
    assert (card.fields["nik"].value, card.fields["alamat.rt_rw"].value) == (NIK, CARD["alamat.rt_rw"])
    assert card.fields["nik"].confidence <= 0.6
    assert codes(card) == [("disagreement", "nik"), ("disagreement", "alamat.rt_rw")]


def test_checks_may_favour_the_model() -> None:
    misread = NIK[:6] + "45" + NIK[8:]  # of a woman, five days long past
    card = fused(by_ocr({"nik": misread}), by_model())
    assert card.fields["nik"].value == NIK and card.fields["nik"].confidence <= 0.6
    assert card.nik.checks and card.nik.checks.date and card.nik.checks.sex
    assert codes(card) == [("disagreement", "nik")]


@pytest.mark.parametrize(
    ("field", "key", "of_ocr", "of_model", "chosen"),
    [
        ("alamat.kecamatan", "kecamatan", "CIBINONK", "CIBINONG", "CIBINONG"),
        ("alamat.kecamatan", "kecamatan", "CIBINONG", "CIBANONG", "CIBINONG"),
        ("pekerjaan", "pekerjaan", "PEMBUAT ROTI", "GURU", "GURU"),
    ],
)
def test_a_known_name_wins(field: str, key: str, of_ocr: str, of_model: str, chosen: str) -> None:
    card = fused(by_ocr({field: of_ocr}), by_model({key: of_model}))
    assert card.fields[field].value == chosen


def test_without_more_to_go_by_the_surer_one_wins_with_doubt() -> None:
    card = fused(by_ocr({"nama": "BUDI SANTOSA"}, nama=0.7), by_model())
    assert (card.fields["nama"].value, codes(card)) == ("BUDI SANTOSO", [("disagreement", "nama")])
    assert card.fields["nama"].confidence == pytest.approx(0.99 * 0.6, abs=0.01)
    card = fused(by_ocr({"nama": "BUDI SANTOSA"}), by_model(nama=(0.7, 0.0)))
    assert card.fields["nama"].value == "BUDI SANTOSA"


def test_a_value_of_one_reader_alone() -> None:
    card = fused(by_ocr({"agama": ""}), by_model({"pekerjaan": None}))
    assert card.fields["agama"].value == "ISLAM" and card.fields["agama"].confidence <= 0.6
    assert card.fields["pekerjaan"].confidence == by_ocr().fields["pekerjaan"].confidence


@pytest.mark.parametrize(("invented", "shown"), [("9999011708859001", None), (NIK, NIK)])
def test_a_nik_that_ocr_did_not_read_needs_support(invented: str, shown: str | None) -> None:
    card = fused(by_ocr({"nik": NIK[:9]}), by_model({"nik": invented}))
    assert card.fields["nik"].value == shown and card.fields["nik"].confidence <= 0.5


def test_what_ocr_repaired_stays_listed() -> None:
    misread = NIK.replace("170885", "170685")
    ocr = by_ocr({"nik": misread}, nik=0.85)
    assert [repair.field for repair in ocr.repairs] == ["nik"]
    assert fused(ocr, by_model()).repairs == ocr.repairs
