"""The endpoint with the real OCR engine, and specimen cards."""

import json
from collections.abc import Iterator

import httpx2
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from tests.ktp.card_service import PATH, encoded, form, serve_cards
from tests.serving import REPOSITORY, Served
from tis.ktp.lazy_ocr import LazyOcr

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
    receipt = Image.new("RGB", (900, 600), "white")
    lines = ["KWITANSI", "Nama : BUDI", "Alamat : JL. MELATI NO. 12", "Total : Rp 349.000"]
    for row, line in enumerate(lines):
        ImageDraw.Draw(receipt).text((60, 60 + 90 * row), line, fill="black", font=ImageFont.load_default(40))
    reply = httpx2.post(real.url + PATH, timeout=120, **form(encoded(np.asarray(receipt))))
    assert (reply.status_code, reply.json()["detail"]["code"]) == (422, "ktp_not_found")
    assert reply.json()["detail"]["seen"]["labels"] >= 1
