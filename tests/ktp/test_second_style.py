"""Cards of the second style, and how well the real engine reads a few cards of both styles."""

from collections.abc import Callable
from datetime import date

import numpy as np
import pytest

from tests.ktp.card_photos import Photograph, take_photograph
from tests.ktp.card_scores import LevelScore, score_card, score_level
from tests.ktp.cards import SpecimenCard, make_card
from tests.ktp.second_style.second_people import make_second_card
from tests.ktp.second_style.second_photos import take_second_photograph
from tis.ktp.lexicons import FIELDS
from tis.ktp.nik import split_nik
from tis.ktp.ocr import RapidTextReader
from tis.ktp.ocr_card_reader import OcrCardReader
from tis.ktp.regions import regions

pytestmark = pytest.mark.long

TODAY = date(2026, 1, 1)
CARDS = [make_second_card(seed) for seed in range(200)]


def test_people_of_the_second_style_are_invented_and_their_niks_agree_with_their_cards() -> None:
    for card in CARDS:
        assert set(card.fields) == set(FIELDS) and all(card.fields.values())
        parts = split_nik(card.fields["nik"], regions(), TODAY, card.birth_date.year)
        assert parts and parts.region.district and parts.sex == card.fields["jenis_kelamin"]
        assert (parts.birth_date == card.birth_date) is not card.misdated
        assert 6000 <= int(card.fields["nik"][12:]) <= 9999
    assert not {card.fields["nama"] for card in CARDS} & {make_card(seed).fields["nama"] for seed in range(200)}


def test_a_photograph_of_the_second_style_is_the_same_each_time() -> None:
    photo, again = (take_second_photograph(3, "hard") for _ in range(2))
    assert np.array_equal(photo.picture, again.picture) and photo.obscured == again.obscured
    assert not np.array_equal(photo.picture, take_second_photograph(4, "hard").picture)


@pytest.mark.parametrize("level", ["clean", "photo", "hard"])
def test_the_corners_of_a_card_of_the_second_style_lie_in_its_picture(level: str) -> None:
    photo = take_second_photograph(5, level)
    height, width = photo.picture.shape[:2]
    assert ((photo.corners > -20) & (photo.corners < np.array([width, height]) + 20)).all()


@pytest.fixture(scope="module")
def reader() -> OcrCardReader:
    return OcrCardReader(RapidTextReader(), regions())


def scores_of(
    reader: OcrCardReader,
    card: Callable[[int], SpecimenCard],
    photo: Callable[[int, str], Photograph],
    seeds: range,
) -> LevelScore:
    scores = []
    for seed in seeds:
        taken = photo(seed, "hard")
        fields = reader.read(taken.picture, TODAY).checked.fields
        scores.append(score_card(card(seed), fields, obscured=taken.obscured))
    return score_level(scores)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["first", "second"])
def test_hard_photos_of_both_styles_are_read_and_what_is_confident_is_right(reader: OcrCardReader, style: str) -> None:
    makers = {"first": (make_card, take_photograph), "second": (make_second_card, take_second_photograph)}
    found = scores_of(reader, *makers[style], range(2100, 2106))
    assert found.readable_exact > 0.85
    assert found.right_and_confident > 0.6
    assert found.confidently_wrong < 0.03
