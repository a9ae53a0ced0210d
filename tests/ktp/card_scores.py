"""Compares readings of specimen cards with what was printed."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from tests.ktp.cards import SpecimenCard
from tis.ktp.field_parsers import FieldReading
from tis.ktp.lexicons import FIELDS

CONFIDENT = 0.9


@dataclass(frozen=True)
class CardScore:
    """`wrong` and `confidently_wrong` hold names of fields, never values."""

    wrong: frozenset[str]
    confidently_wrong: frozenset[str]
    num_confident: int
    character_errors: int
    num_characters: int
    confused_digits: Counter[tuple[str, str]]  # of the NIK: printed, read
    nik_altered: bool = False  # a repair changed a NIK that was right
    obscured: frozenset[str] = frozenset()  # cannot be read by anybody
    overclaimed: frozenset[str] = frozenset()  # obscured, and answered with confidence


@dataclass(frozen=True)
class LevelScore:
    """A card is exact where all is right that can be read."""

    num_cards: int
    field_exact: float
    nik_exact: float
    card_exact: float
    character_error_rate: float
    confidently_wrong: float  # of the confident answers
    niks_altered: int
    readable_exact: float  # fields, without those that are obscured
    readable_nik_exact: float
    num_obscured: int
    num_overclaimed: int
    right_and_confident: float  # of the right answers
    exact_by_field: Mapping[str, float]


def score_card(
    card: SpecimenCard,
    fields: Mapping[str, FieldReading],
    nik_before_repair: str | None = None,
    obscured: frozenset[str] = frozenset(),
) -> CardScore:
    """Upper case and single blanks; everything else has to be as printed."""
    read = {name: _plain(fields[name].value) for name in FIELDS}
    printed = {name: _plain(card.fields[name]) for name in FIELDS}
    wrong = frozenset(name for name in FIELDS if read[name] != printed[name])
    confident = {name for name in FIELDS if fields[name].value is not None and fields[name].confidence >= CONFIDENT}
    nik = printed["nik"]
    return CardScore(
        wrong,
        wrong & confident,
        len(confident),
        sum(Levenshtein.distance(printed[name], read[name]) for name in FIELDS),
        sum(len(text) for text in printed.values()),
        Counter((one, other) for one, other in zip(nik, read["nik"], strict=False) if one != other),
        nik_before_repair == nik != read["nik"],
        obscured,
        obscured & confident,
    )


def score_level(scores: Iterable[CardScore]) -> LevelScore:
    scores = list(scores)
    count = len(scores)
    exact = {name: sum(name not in score.wrong for score in scores) / count for name in FIELDS}
    confident = sum(score.num_confident for score in scores)
    return LevelScore(
        num_cards=count,
        field_exact=sum(exact.values()) / len(FIELDS),
        nik_exact=exact["nik"],
        card_exact=sum(not score.wrong - score.obscured for score in scores) / count,
        character_error_rate=sum(s.character_errors for s in scores) / sum(s.num_characters for s in scores),
        confidently_wrong=sum(len(score.confidently_wrong) for score in scores) / max(1, confident),
        niks_altered=sum(score.nik_altered for score in scores),
        readable_exact=1
        - sum(len(score.wrong - score.obscured) for score in scores)
        / (count * len(FIELDS) - sum(len(score.obscured) for score in scores)),
        readable_nik_exact=sum("nik" not in score.wrong | score.obscured for score in scores)
        / max(1, sum("nik" not in score.obscured for score in scores)),
        num_obscured=sum(len(score.obscured) for score in scores),
        num_overclaimed=sum(len(score.overclaimed) for score in scores),
        right_and_confident=(confident - sum(len(score.confidently_wrong) for score in scores))
        / max(1, count * len(FIELDS) - sum(len(score.wrong) for score in scores)),
        exact_by_field=exact,
    )


def _plain(value: str | None) -> str:
    return re.sub(r"\s+", " ", (value or "").upper()).strip()
