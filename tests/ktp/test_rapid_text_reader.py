"""The real OCR engine reads a specimen card."""

from datetime import date

import numpy as np
import pytest

from tests.ktp.card_photos import photograph
from tests.ktp.cards import make_card
from tests.ktp.negatives import negative
from tis.ktp.ocr import RapidTextReader
from tis.ktp.ocr_card_reader import OcrCardReader
from tis.ktp.regions import regions

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def reader() -> OcrCardReader:
    return OcrCardReader(RapidTextReader(), regions())


@pytest.mark.parametrize("level", ["hard", "small"])
def test_a_specimen_card_is_read(reader: OcrCardReader, level: str) -> None:
    card = reader.read(photograph(10, level), date(2026, 1, 1))
    printed = make_card(10).fields
    assert card.quality.photocopy is (level == "hard")  # card 10 is a copy there, upside down and with glare
    assert card.outline.quad is not None
    wrong = {name for name, reading in card.checked.fields.items() if reading.value != printed[name]}
    assert card.is_card
    assert len(wrong) <= 1 and "nik" not in wrong


@pytest.mark.parametrize("seed", [2, 3, 5, 6, 7])
def test_what_is_no_card_is_refused(reader: OcrCardReader, seed: int) -> None:
    assert not reader.read(negative(seed)[1], date(2026, 1, 1)).is_card


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 3000), (3000, 1), (2, 2000), (700, 9)])
def test_a_picture_thinner_than_any_card_is_refused_like_others(reader: OcrCardReader, height: int, width: int) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
    assert not reader.read(noise, date(2026, 1, 1)).is_card
