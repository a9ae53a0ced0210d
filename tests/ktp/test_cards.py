"""The specimen cards of the benchmark: invented, marked, the same for the same seed; and their scorer."""

from datetime import date

import numpy as np
import pytest

from tests.ktp.card_drawing import draw_card
from tests.ktp.card_photos import photograph, take_photograph
from tests.ktp.card_scores import score_card, score_level
from tests.ktp.cards import make_card
from tests.ktp.negatives import negative
from tis.ktp.field_parsers import FieldReading
from tis.ktp.lexicons import FIELDS
from tis.ktp.nik import split_nik
from tis.ktp.regions import regions

CARDS = [make_card(seed) for seed in range(400)]


def test_a_seed_gives_one_card() -> None:
    assert make_card(7) == make_card(7) != make_card(8)


def test_serials_are_far_above_those_that_are_issued() -> None:
    assert all(6000 <= int(card.fields["nik"][12:]) <= 9999 for card in CARDS)


def test_niks_agree_with_their_cards_but_for_those_that_differ_by_design() -> None:
    for card in CARDS:
        parts = split_nik(card.fields["nik"], regions(), date(2026, 1, 1), card.birth_date.year)
        assert parts and parts.region.district and parts.sex == card.fields["jenis_kelamin"]
        assert (parts.birth_date == card.birth_date) is not card.misdated
    assert 4 <= sum(card.misdated for card in CARDS) <= 20
    assert 45 <= sum(card.moved for card in CARDS) <= 95


def test_the_portrait_is_red_in_odd_years_and_blue_in_even_ones() -> None:
    for card in CARDS[:3]:
        red, _, blue = draw_card(card, 400).getpixel((320, 60))  # type: ignore[misc]
        assert (red > blue) is card.red_portrait


def test_a_photograph_is_the_same_each_time() -> None:
    picture = photograph(3, "clean")
    assert picture.dtype == np.uint8 and picture.ndim == 3
    assert np.array_equal(picture, photograph(3, "clean"))


def test_what_glare_hides_is_obscured() -> None:
    photo = take_photograph(105, "hard")
    assert {"alamat.kel_desa", "alamat.kecamatan"} <= photo.obscured
    assert not {"nik", "nama", "provinsi", "agama"} & photo.obscured
    assert np.array_equal(photo.picture, photograph(105, "hard"))


@pytest.mark.parametrize("level", ["clean", "small", "photocopy"])
def test_the_corners_of_a_card_lie_in_its_picture(level: str) -> None:
    photo = take_photograph(3, level)
    height, width = photo.picture.shape[:2]
    assert ((photo.corners > -12) & (photo.corners < np.array([width, height]) + 12)).all()
    assert photo.obscured == frozenset()


def test_negatives_are_of_eight_kinds() -> None:
    assert len({negative(seed)[0] for seed in range(8)}) == 8


def reading(card_seed: int, **changes: FieldReading) -> dict[str, FieldReading]:
    right = {name: FieldReading(value, 0.95) for name, value in make_card(card_seed).fields.items()}
    return {**right, **{name.replace("__", "."): change for name, change in changes.items()}}


def test_a_right_reading_scores_one() -> None:
    level = score_level(score_card(make_card(seed), reading(seed)) for seed in range(3))
    assert (level.field_exact, level.card_exact, level.character_error_rate) == (1.0, 1.0, 0.0)
    assert set(level.exact_by_field) == set(FIELDS)


def test_a_wrong_field_is_counted_and_more_so_when_it_was_confident() -> None:
    sure = score_card(make_card(1), reading(1, nama=FieldReading("SPECIMEN", 0.95)))
    unsure = score_card(make_card(1), reading(1, nama=FieldReading("SPECIMEN", 0.5), agama=FieldReading(None, 0.0)))
    assert sure.wrong == sure.confidently_wrong == frozenset({"nama"})
    assert unsure.wrong == frozenset({"nama", "agama"})
    assert (len(unsure.confidently_wrong), unsure.num_confident) == (0, 15)


def test_an_obscured_field_may_be_wrong_but_not_confident() -> None:
    hidden = frozenset({"nama", "agama"})
    fields = reading(1, nama=FieldReading("SPECIMEN", 0.5), agama=FieldReading("ISLAM", 0.95))
    level = score_level([score_card(make_card(1), fields, obscured=hidden)])
    assert (level.readable_exact, level.card_exact, level.num_obscured, level.num_overclaimed) == (1.0, 1.0, 2, 1)
    assert level.field_exact < 1.0


def test_a_nik_that_a_repair_made_wrong_is_counted() -> None:
    card = make_card(1)
    nik = card.fields["nik"]
    other = nik[:-1] + str((int(nik[-1]) + 1) % 10)
    score = score_card(card, reading(1, nik=FieldReading(other, 0.95)), nik_before_repair=nik)
    assert score.nik_altered
    assert score.confused_digits == {(nik[-1], other[-1]): 1}
