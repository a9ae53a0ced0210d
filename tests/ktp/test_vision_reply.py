"""What a vision model says of a card: right, wrong, nothing, and digits that it invented."""

import json
from datetime import date
from typing import Any

import pytest

from tests.ktp.card_service import reply_tokens, vision_values
from tests.ktp.printed import CARD
from tis.ktp.regions import regions
from tis.ktp.vision_model import ReplyToken
from tis.ktp.vision_reply import VisionCard, reply_schema, vision_card

TODAY = date(2026, 1, 1)
MOVED = "3171011708859001"  # the same person, of a known district in another province
NO_REGION = "9999011708859001"
OTHER_DATE = "3201010101709001"


def read(
    changes: dict[str, Any] | None = None, sure: dict[str, tuple[float, float]] | None = None, *, is_ktp: bool = True
) -> VisionCard:
    return vision_card(reply_tokens({"is_ktp": is_ktp, **vision_values(), **(changes or {})}, sure), regions(), TODAY)


def nik(card: VisionCard) -> tuple[str | None, float]:
    reading = card.checked.fields["nik"]
    return reading.value, reading.confidence


def test_a_right_answer_is_the_card() -> None:
    card = read()
    assert card.is_card
    assert {name: reading.value for name, reading in card.checked.fields.items()} == CARD
    assert all(reading.confidence > 0.9 for name, reading in card.checked.fields.items() if name != "nik")
    assert card.checked.warnings == [] and card.checked.nik.checks and card.checked.nik.checks.regency


def test_the_schema_takes_null_for_every_field() -> None:
    from jsonschema import Draft202012Validator

    validator, properties = Draft202012Validator(reply_schema()), reply_schema()["properties"]
    assert validator.is_valid({"is_ktp": True, **vision_values()})
    assert validator.is_valid(dict.fromkeys(properties) | {"is_ktp": False})
    assert not validator.is_valid({"is_ktp": True, **vision_values(), "nik": "12"})


def test_nulls_are_unread_fields() -> None:
    card = read({"nik": None, "agama": None})
    assert nik(card) == (None, 0.0) and card.checked.fields["agama"].value is None
    assert [warning.code for warning in card.checked.warnings] == ["nik_unread"]


def test_all_nulls_and_other_pictures_are_no_card() -> None:
    assert not read(dict.fromkeys(vision_values())).is_card
    assert not read(is_ktp=False).is_card
    assert not read({"nik": None, "nama": None}).is_card


@pytest.mark.parametrize("invented", [NO_REGION, OTHER_DATE])
def test_invented_digits_that_contradict_the_card_have_little_confidence(invented: str) -> None:
    """However sure the model is."""
    assert nik(read({"nik": invented}))[1] <= 0.4


def test_a_nik_that_nothing_contradicts_is_still_not_sure_without_ocr() -> None:
    value, confidence = nik(read({"nik": CARD["nik"][:12] + "7777"}))
    assert (value, confidence) == (CARD["nik"][:12] + "7777", 0.8)


@pytest.mark.parametrize("sure", [(0.3, 0.0), (0.05, 0.0), (0.02, 0.9)])
def test_digits_that_the_model_doubts_are_not_shown(sure: tuple[float, float]) -> None:
    assert nik(read(sure={"nik": sure})) == (None, 0.0)


def test_what_the_grammar_wrote_against_the_model_is_worth_half_at_most() -> None:
    card = read(sure={"nama": (0.4, 0.6), "agama": (0.9, 0.1)})
    assert card.checked.fields["nama"].confidence <= 0.5
    assert card.checked.fields["agama"].confidence == pytest.approx(0.9, abs=0.01)


def test_a_word_of_a_list_that_the_model_doubts_stays_doubtful() -> None:
    assert read(sure={"agama": (0.3, 0.0)}).checked.fields["agama"].confidence == pytest.approx(0.3, abs=0.01)


def test_no_other_field_is_filled_from_a_nik_of_a_model_alone() -> None:
    card = read({"tgl_lahir": None})
    assert card.checked.fields["tgl_lahir"].value is None and card.checked.repairs == []


def test_a_moved_holder_is_no_contradiction() -> None:
    card = read({"nik": MOVED})
    assert nik(card) == (MOVED, 0.8)
    assert [warning.code for warning in card.checked.warnings] == ["nik_region_differs"]


def test_an_answer_that_was_cut_has_what_came_before() -> None:
    tokens = reply_tokens({"is_ktp": True, **vision_values()})
    text = b"".join(token.data for token in tokens)
    cut = text[: text.index(b"ISLAM") + 2]
    card = vision_card([ReplyToken(bytes([byte]), 0.99) for byte in cut], regions(), TODAY)
    assert card.is_card and nik(card)[0] == CARD["nik"]
    assert card.checked.fields["agama"].value is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        '{"is_ktp"',
        '{"is_ktp": 1, "nik": {}}',
        '{"is_ktp": true, "nik": 7}',
        '{"is_ktp":' + "[" * 9999,
    ],
    ids=len,
)
def test_whatever_comes_is_no_fault(text: str) -> None:
    assert not vision_card([ReplyToken(text.encode(), 0.9)], regions(), TODAY).is_card


def test_reasoning_before_the_answer_is_passed_over() -> None:
    said = b'<think>{"is_ktp": true, "nama": "SIAPA"}</think>\n\n'
    answer = json.dumps({"is_ktp": True, **vision_values()}).encode()
    card = vision_card([ReplyToken(said, 0.1), ReplyToken(answer, 0.99)], regions(), TODAY)
    assert card.checked.fields["nama"].value == CARD["nama"]
