"""The endpoint with the real OCR engine, and specimen cards."""

import json
from collections.abc import Iterator

import httpx2
import pytest

from tests.ktp.card_photos import negative
from tests.ktp.card_service import PATH, encoded, form, serve_cards
from tests.serving import REPOSITORY, Served
from tis.ktp.reader import LazyOcr

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def real() -> Iterator[Served]:
    with serve_cards(lazy=LazyOcr()) as running:
        yield running


def test_the_specimen_of_the_documents_is_read_as_they_say(real: Served) -> None:
    page = (REPOSITORY / "docs" / "ktp.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])
    specimen = (REPOSITORY / "docs" / "samples" / "ktp-specimen.jpg").read_bytes()
    reply = httpx2.post(real.url + PATH, timeout=120, **form(specimen))
    assert reply.status_code == 200, reply.text
    card = reply.json()
    assert {name: card[name] for name in shown} == shown
    assert card["engine"]["path"] == "ocr" and card["confidence"]["nik"] > 0.9 and card["warnings"] == []
    assert all(0 <= x <= 1000 and 0 <= y <= 631 for box in card["boxes"].values() for x, y in box)


def test_what_is_no_card_is_refused(real: Served) -> None:
    _, receipt = negative(1)
    reply = httpx2.post(real.url + PATH, timeout=120, **form(encoded(receipt)))
    assert (reply.status_code, reply.json()["detail"]["code"]) == (422, "ktp_not_found")
