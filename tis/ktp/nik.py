"""What a NIK says (PPKKCC DDMMYY SSSS), whether the card agrees, and the few digits that may be repaired.

A NIK is never reissued, not when its holder moves and not when the birth date is corrected:
a disagreement is a warning.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations, product

from tis.ktp.regions import CodedRegion, RegionTable

FEMALE_DAY_OFFSET = 40
MIN_CARD_AGE = 16  # a card is issued at 17, or on marriage
MIN_EVIDENCE = 0.9  # confidence of the field that a repair relies on
MAX_REPAIRED_CONFIDENCE = 0.98  # a digit read more surely than this is never changed
MAX_CONTRADICTED_CONFIDENCE = 0.9  # the same, where the digits as read are a date: NIKs with another date exist
MAX_REPAIRED_DIGITS = 2
NUM_CHECKED_DIGITS = 12  # the rest is a serial that nothing confirms
_MIN_MARGIN = 1.0  # of the logarithm of the score, to the next candidate
_DATE_WEIGHT, _SEX_WEIGHT, _CODE_WEIGHT, _REGENCY_WEIGHT = 6.0, 4.0, 2.0, 1.0

# Pairs that OCR takes for each other: 0/6/8/9, 1/7, 1/2, 3/8, 5/6, 4/9.
CONFUSABLE = {
    **{"0": "689", "1": "27", "2": "1", "3": "8", "4": "9"},
    **{"5": "6", "6": "0589", "7": "1", "8": "0369", "9": "0468"},
}

MALE, FEMALE = "LAKI-LAKI", "PEREMPUAN"


@dataclass(frozen=True)
class FieldWarning:
    code: str
    field: str
    message: str


@dataclass(frozen=True)
class FieldRepair:
    field: str
    old: str | None
    new: str
    reason: str


@dataclass(frozen=True)
class PrintedEvidence:
    """What the rest of the card says, each with the confidence of its reading."""

    birth_date: date | None = None
    birth_date_confidence: float = 0.0
    sex: str | None = None
    sex_confidence: float = 0.0
    regency: str | None = None  # code of the regency in the header
    regency_confidence: float = 0.0


@dataclass(frozen=True)
class NikChecks:
    """None: nothing to compare with."""

    date: bool | None
    sex: bool | None
    regency: bool | None
    known_code: bool


@dataclass(frozen=True)
class NikParts:
    nik: str
    region: CodedRegion
    birth_date: date | None  # None: the six digits are no date
    sex: str

    @property
    def regency_code(self) -> str:
        return self.nik[:4]


@dataclass(frozen=True)
class NikReport:
    """`nik` is the reading after repairs; None where it is no NIK."""

    nik: str | None
    confidence: float
    parts: NikParts | None
    checks: NikChecks | None
    warnings: list[FieldWarning] = field(default_factory=list)
    repairs: list[FieldRepair] = field(default_factory=list)


def split_nik(nik: str, table: RegionTable, today: date, printed_year: int | None = None) -> NikParts | None:
    """None unless it is 16 digits. The printed year gives the century, else the age of a holder does."""
    if not re.fullmatch(r"[0-9]{16}", nik):
        return None
    day, month, year = int(nik[6:8]), int(nik[8:10]), int(nik[10:12])
    female = day > FEMALE_DAY_OFFSET
    birth_date = _date_of(day - FEMALE_DAY_OFFSET * female, month, year, today, printed_year)
    return NikParts(nik, table.region(nik[:6]), birth_date, FEMALE if female else MALE)


def _date_of(day: int, month: int, year: int, today: date, printed_year: int | None) -> date | None:
    if printed_year is not None and printed_year % 100 == year:
        full = printed_year
    else:
        full = 2000 + year if 2000 + year <= today.year - MIN_CARD_AGE else 1900 + year
    try:
        return date(full, month, day)
    except ValueError:
        return None


def check_nik(
    nik: str,
    confidence: float,
    evidence: PrintedEvidence,
    table: RegionTable,
    today: date,
    digit_confidences: Sequence[float] | None = None,
) -> NikReport:
    """Compares a reading with the rest of the card; repairs it where that is certain.

    Without a confidence per digit, every digit has that of the reading.
    """
    parts = split_nik(nik, table, today, evidence.birth_date.year if evidence.birth_date else None)
    if parts is None:
        warning = FieldWarning("nik_malformed", "nik", "The NIK was not read as 16 digits.")
        return NikReport(None, 0.0, None, None, [warning])
    digits = list(digit_confidences) if digit_confidences and len(digit_confidences) == 16 else [confidence] * 16
    repaired = _repaired(parts, digits, evidence, table, today)
    repairs = []
    if repaired is not None:
        reason = "The digits contradict the printed date, sex or region, and were read with low confidence."
        repairs.append(FieldRepair("nik", nik, repaired.nik, reason))
        changed = [i for i in range(16) if repaired.nik[i] != nik[i]]
        supports = [evidence.birth_date_confidence if i >= 6 else evidence.regency_confidence for i in changed]
        unchanged = [digits[i] for i in range(16) if i not in changed]
        confidence = min([confidence, *supports] if digit_confidences is None else [*unchanged, *supports])
        parts = repaired
    checks = _checks(parts, evidence, table)
    warnings = list(_warnings(parts, checks))
    if any(warning.code in ("nik_date_mismatch", "nik_sex_mismatch", "nik_date_invalid") for warning in warnings):
        confidence *= 0.8
    elif not checks.known_code:
        confidence *= 0.9
    return NikReport(parts.nik, confidence, parts, checks, warnings, repairs)


def _checks(parts: NikParts, evidence: PrintedEvidence, table: RegionTable) -> NikChecks:
    return NikChecks(
        date=None if evidence.birth_date is None else parts.birth_date == evidence.birth_date,
        sex=None if evidence.sex is None else parts.sex == evidence.sex,
        regency=None if evidence.regency is None else table.current_code(parts.regency_code) == evidence.regency,
        known_code=parts.region.known,
    )


def _warnings(parts: NikParts, checks: NikChecks) -> Iterator[FieldWarning]:
    if parts.birth_date is None:
        yield FieldWarning("nik_date_invalid", "nik", "Digits 7 to 12 of the NIK are no date.")
    elif checks.date is False:
        yield FieldWarning("nik_date_mismatch", "nik", "The NIK has another birth date than the card prints.")
    if checks.sex is False:
        yield FieldWarning("nik_sex_mismatch", "nik", "The NIK has another sex than the card prints.")
    if parts.region.retired:
        yield FieldWarning("nik_region_retired", "nik", "The region code of the NIK is not in use any more.")
    elif not parts.region.known:
        yield FieldWarning("nik_region_unknown", "nik", "The region code of the NIK is not in the table.")
    elif parts.region.district is None:
        yield FieldWarning("nik_region_unknown", "nik", "The district code of the NIK is not in the table.")
    if checks.regency is False and checks.known_code:
        yield FieldWarning("nik_region_differs", "nik", "The NIK was issued in another regency; its holder moved.")


def _repaired(
    parts: NikParts, digits: Sequence[float], evidence: PrintedEvidence, table: RegionTable, today: date
) -> NikParts | None:
    """The one candidate that repairs a contradiction, or None."""
    changeable = _changeable_digits(parts, digits, evidence)
    if not changeable:
        return None
    scored = sorted(
        ((_score(other, parts.nik, digits, evidence, table), other.nik, other) for other in
         _candidates(parts, changeable, evidence, table, today)),
        reverse=True,
        key=lambda candidate: candidate[:2],
    )  # fmt: skip
    (best_score, _, best), *rest = scored
    if best.nik == parts.nik or (rest and best_score - rest[0][0] < _MIN_MARGIN):
        return None
    return best


def _changeable_digits(parts: NikParts, digits: Sequence[float], evidence: PrintedEvidence) -> list[int]:
    """Digits that contradict strong evidence and were read with little confidence."""
    found = []
    dated = evidence.birth_date is not None and evidence.birth_date_confidence >= MIN_EVIDENCE
    sexed = evidence.sex is not None and evidence.sex_confidence >= MIN_EVIDENCE
    agrees = parts.birth_date == evidence.birth_date and parts.sex == evidence.sex
    if dated and sexed and not agrees:
        limit = MAX_REPAIRED_CONFIDENCE if parts.birth_date is None else MAX_CONTRADICTED_CONFIDENCE
        found += [i for i in range(6, NUM_CHECKED_DIGITS) if digits[i] < limit]
    located = evidence.regency is not None and evidence.regency_confidence >= MIN_EVIDENCE
    # A known code of another regency is a holder who moved.
    if located and not parts.region.known:
        found += [i for i in range(4) if digits[i] < MAX_REPAIRED_CONFIDENCE]
    return found


def _candidates(
    parts: NikParts, changeable: list[int], evidence: PrintedEvidence, table: RegionTable, today: date
) -> Iterator[NikParts]:
    year = evidence.birth_date.year if evidence.birth_date else None
    yield parts
    for count in range(1, MAX_REPAIRED_DIGITS + 1):
        for places in combinations(changeable, count):
            for replacements in product(*(CONFUSABLE[parts.nik[place]] for place in places)):
                changed = list(parts.nik)
                for place, digit in zip(places, replacements, strict=True):
                    changed[place] = digit
                other = split_nik("".join(changed), table, today, year)
                if other is not None and _explains(other, places, evidence):
                    yield other


def _explains(other: NikParts, places: Sequence[int], evidence: PrintedEvidence) -> bool:
    """A change that leaves its contradiction is no repair."""
    dates = any(place >= 6 for place in places)
    codes = any(place < 6 for place in places)
    return (not dates or (other.birth_date == evidence.birth_date and other.sex == evidence.sex)) and (
        not codes or other.regency_code == evidence.regency
    )


def _score(other: NikParts, read: str, digits: Sequence[float], evidence: PrintedEvidence, table: RegionTable) -> float:
    checks = _checks(other, evidence, table)
    score = _DATE_WEIGHT * (checks.date is True) + _SEX_WEIGHT * (checks.sex is True)
    score += _CODE_WEIGHT * other.region.known + _REGENCY_WEIGHT * (checks.regency is True)
    for place, confidence in enumerate(digits):
        sure = min(max(confidence, 0.01), 0.999)
        same = other.nik[place] == read[place]
        score += math.log(sure if same else (1 - sure) / len(CONFUSABLE[read[place]]))
    return score


def date_from_nik(
    printed: date | None, printed_confidence: float, nik_confidence: float, parts: NikParts
) -> date | None:
    """The birth date of a well-read NIK, where the printed one was not read or is weak and disagrees."""
    weak = printed is None or printed_confidence < 0.5
    strong = nik_confidence >= MIN_EVIDENCE and parts.birth_date is not None and parts.region.known
    return parts.birth_date if weak and strong and printed != parts.birth_date else None
