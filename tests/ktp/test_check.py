"""POST /ktp-ocr/check: given fields get the checks of the reader, without a picture."""

import logging
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import httpx2
import pytest

from tests.ktp.card_service import form, picture, serve_all, serve_cards
from tests.ktp.printed import CARD
from tests.serving import Served
from tis.ktp.card_checks import CheckedCard
from tis.ktp.given_card import check_given
from tis.ktp.lazy_ocr import LazyOcr
from tis.ktp.regions import regions
from tis.ktp.schemas import CHECK_EXAMPLE, GIVEN_EXAMPLE, CheckedFields

PATH = "/ktp-ocr/check"
TODAY = date(2026, 1, 1)


@pytest.fixture(scope="module")
def whole() -> Iterator[Served]:
    """The whole server, with all its middlewares, and nothing that could read a card."""

    def fail() -> Any:
        raise ImportError

    with serve_all(lazy=LazyOcr(fail)) as running:
        yield running


def check(changes: Mapping[str, str | None]) -> CheckedCard:
    return check_given({**CARD, **changes}, regions(), TODAY)


def codes(checked: CheckedCard) -> list[tuple[str, str]]:
    return [(warning.code, warning.field) for warning in checked.warnings]


def body_of(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """`CARD` as a client sends it."""
    address = {name.partition(".")[2]: value for name, value in CARD.items() if "." in name}
    return {**{name: value for name, value in CARD.items() if "." not in name}, "alamat": address, **(changes or {})}


def test_a_whole_card_that_agrees_with_itself_has_no_warning() -> None:
    checked = check({})
    assert codes(checked) == [] and checked.repairs == []
    assert {name: reading.value for name, reading in checked.fields.items()} == CARD
    assert checked.nik.checks and all([checked.nik.checks.date, checked.nik.checks.regency])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tgl_lahir": "18-08-1985"}, [("nik_date_mismatch", "nik")]),
        ({"jenis_kelamin": "PEREMPUAN"}, [("nik_sex_mismatch", "nik")]),
        ({"kabupaten_kota": "KOTA BEKASI"}, [("nik_region_differs", "nik")]),
        ({"nik": "3201011713859001"}, [("nik_date_invalid", "nik")]),
        ({"nik": "9999991708859001"}, [("nik_region_unknown", "nik")]),
        ({"nik": "32010117088590"}, [("nik_malformed", "nik")]),
        ({"nik": ""}, [("nik_unread", "nik")]),
        ({"alamat.rt_rw": "7-8-9"}, [("malformed", "alamat.rt_rw")]),
        ({"jenis_kelamin": "RUSA"}, [("malformed", "jenis_kelamin")]),
        ({"berlaku_hingga": "31-02-2020"}, [("malformed", "berlaku_hingga")]),
        ({"gol_darah": "Z"}, [("malformed", "gol_darah")]),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert codes(check(changes)) == expected


def test_values_come_back_as_a_card_prints_them() -> None:
    typed = {"nik": "3201 0117 0885 9001", "tgl_lahir": "17/08/1985", "agama": "katholik", "alamat.rt_rw": "7/8"}
    fields = check({**typed, "nama": "  budi  santoso ", "pekerjaan": None}).fields
    values = {name: fields[name].value for name in (*typed, "nama", "pekerjaan")}
    assert values == {
        "nik": CARD["nik"], "tgl_lahir": "17-08-1985", "agama": "KATHOLIK", "alamat.rt_rw": "7/8",
        "nama": "BUDI SANTOSO", "pekerjaan": None,
    }  # fmt: skip
    assert fields["agama"].canonical == "KATOLIK"


def test_a_date_that_the_calendar_does_not_have_comes_from_the_nik() -> None:
    checked = check({"tgl_lahir": "31-02-1985"})
    assert codes(checked) == [("malformed", "tgl_lahir")]
    assert [(one.field, one.new) for one in checked.repairs] == [("tgl_lahir", "17-08-1985")]


def test_a_nik_that_somebody_gives_is_never_repaired() -> None:
    """A digit that OCR would have taken for another one: 6 for 8."""
    checked = check({"nik": CARD["nik"].replace("170885", "170685")})
    assert checked.fields["nik"].value == "3201011706859001" and checked.repairs == []
    assert codes(checked) == [("nik_date_mismatch", "nik")]


def test_the_checks_are_those_of_the_reader() -> None:
    """A card that is read and sent back has the warnings that it had."""
    with serve_cards() as cards, httpx2.Client(base_url=cards.url, timeout=30) as client:
        read = client.post("/ktp-ocr/", **form(picture())).json()
        given = {name: read[name] for name in body_of()}
        checked = client.post(PATH, json=given).json()
    for name in ("warnings", "repairs", "nik_info", "normalized", *given):
        assert checked[name] == read[name], name


def test_it_answers_without_anything_that_reads_cards(whole: Served) -> None:
    reply = httpx2.post(whole.url + PATH, json=body_of({"tgl_lahir": "18-08-1985"}))
    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store")
    answer = reply.json()
    assert CheckedFields.model_validate(answer).model_dump(by_alias=True) == answer, "as /docs says"
    assert [one["code"] for one in answer["warnings"]] == ["nik_date_mismatch"]
    assert answer["nik_info"]["birth_date"] == "1985-08-17"


def test_the_example_of_the_documentation_is_the_answer(whole: Served) -> None:
    answer = httpx2.post(whole.url + PATH, json=GIVEN_EXAMPLE).json()
    assert {name: answer[name] for name in ("warnings", "nik_info", "normalized")} == {
        name: CHECK_EXAMPLE[name] for name in ("warnings", "nik_info", "normalized")
    }


def test_a_masked_nik_is_nowhere_in_the_answer(whole: Served) -> None:
    reply = httpx2.post(f"{whole.url}{PATH}?mask=nik", json=body_of())
    assert reply.json()["nik"] == "320101******9001" and CARD["nik"] not in reply.text


@pytest.mark.parametrize(
    ("request_parts", "status", "code"),
    [
        ({"json": {"nik": 3201011708859001}}, 422, "invalid_parameter"),
        ({"json": {"name": "BUDI"}}, 422, "invalid_parameter"),
        ({"json": {"alamat": {"rt": "007"}}}, 422, "invalid_parameter"),
        ({"json": {"alamat": "JL. MELATI"}}, 422, "invalid_parameter"),
        ({"json": {"nama": "A" * 201}}, 422, "invalid_parameter"),
        ({"json": []}, 422, "invalid_parameter"),
        ({"json": {}, "params": {"masc": "nik"}}, 422, "invalid_parameter"),
        ({"json": {}, "params": {"detail": "full"}}, 422, "invalid_parameter"),
        ({"content": b'{"nik":', "headers": {"Content-Type": "application/json"}}, 422, "invalid_parameter"),
        ({"content": b"[" * 60_000, "headers": {"Content-Type": "application/json"}}, 400, "invalid_json"),
        ({"content": b" " * 70_000, "headers": {"Content-Type": "application/json"}}, 413, "too_large"),
        ({"content": iter([b" " * 40_000] * 2), "headers": {"Content-Type": "application/json"}}, 413, "too_large"),
    ],
    ids=[
        "number", "other field", "other address", "flat address", "long", "list", "misspelled", "detail", "half",
        "deep", "large", "large by chunks",
    ],
)  # fmt: skip
def test_a_refusal_has_the_shape_of_its_neighbours(
    whole: Served, request_parts: dict[str, Any], status: int, code: str
) -> None:
    reply = httpx2.post(whole.url + PATH, **request_parts)
    assert (reply.status_code, reply.json()["detail"]["code"]) == (status, code)
    assert reply.headers["cache-control"] == "no-store" and "picture" not in reply.text


def test_nothing_counts_as_unread(whole: Served) -> None:
    for nothing in ({}, {"alamat": None}, {"alamat": {"rt_rw": " "}, "nama": ""}):
        answer = httpx2.post(whole.url + PATH, json=nothing).json()
        assert [one["code"] for one in answer["warnings"]] == ["nik_unread"]
        assert answer["nik_info"] is None and answer["nama"] is None and answer["alamat"]["rt_rw"] is None


def test_given_values_are_in_no_log_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    bodies = [
        body_of(),
        body_of({"agama": CARD["nik"] + "x" * 200}),
        body_of({"alamat": CARD["nama"]}),
    ]
    with serve_all(log_level="debug") as running:
        replies = [httpx2.post(running.url + PATH, json=body) for body in bodies]
    assert [reply.status_code for reply in replies] == [200, 422, 422]
    secrets = [CARD["nik"], CARD["nama"], CARD["tgl_lahir"], CARD["alamat.name"]]
    assert "POST /ktp-ocr/check" in caplog.text, "there is a log at all"
    assert [one for one in secrets if one in caplog.text + replies[1].text + replies[2].text] == []


def test_keys_are_required_as_for_pictures() -> None:
    with serve_all(api_keys="secret-1") as closed:
        assert httpx2.post(closed.url + PATH, json={}).json()["detail"]["code"] == "invalid_api_key"
        headers = {"Authorization": "Bearer secret-1"}
        assert httpx2.post(closed.url + PATH, json={}, headers=headers).status_code == 200
