"""The endpoint with the real OCR engine, and specimen cards."""

import json
from collections.abc import Iterator

import httpx2
import pytest

from tests.ktp.card_photos import negative, photograph
from tests.ktp.card_service import PATH, encoded, form, serve_cards
from tests.ktp.cards import make_card
from tests.serving import REPOSITORY, Served
from tis.ktp.reader import LazyOcr

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def real() -> Iterator[Served]:
    with serve_cards(lazy=LazyOcr()) as running:
        yield running


def test_a_photo_of_a_card_is_read(real: Served) -> None:
    photo = photograph(10, "photo")
    reply = httpx2.post(real.url + PATH, timeout=120, **form(encoded(photo, "JPEG", quality=92)))
    assert reply.status_code == 200, reply.text
    card, printed = reply.json(), make_card(10).fields
    read = {**card, **{f"alamat.{name}": value for name, value in card["alamat"].items()}}
    assert card["nik"] == printed["nik"]
    assert sum(read[name] != value for name, value in printed.items()) <= 1
    assert card["nik_info"]["checks"]["known_code"] and card["engine"]["path"] == "ocr"
    height, width = photo.shape[:2]
    assert all(0 <= x <= width and 0 <= y <= height for box in card["boxes"].values() if box for x, y in box)


def test_what_is_no_card_is_refused(real: Served) -> None:
    _, receipt = negative(1)
    reply = httpx2.post(real.url + PATH, timeout=120, **form(encoded(receipt)))
    assert (reply.status_code, reply.json()["detail"]["code"]) == (422, "ktp_not_found")


def test_the_specimen_of_the_documents_is_read_as_they_say(real: Served) -> None:
    page = (REPOSITORY / "docs" / "ktp.md").read_text(encoding="utf-8")
    shown = json.loads(page.partition("```json\n")[2].partition("```")[0])
    specimen = (REPOSITORY / "docs" / "samples" / "ktp-specimen.jpg").read_bytes()
    assert httpx2.post(f"{real.url}{PATH}?detail=basic", timeout=120, **form(specimen)).json() == shown
