"""Two readings of one card, by OCR and by a vision model, become one.

Boxes come from OCR. A model never changes what OCR read well without a reason that can be checked.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from tis.ktp.card_checks import CheckedCard, check_card
from tis.ktp.field_parsers import UNREAD, FieldReading
from tis.ktp.lexicons import MARITAL_STATUSES, OCCUPATIONS, RELIGIONS, SEXES
from tis.ktp.nik import FieldWarning, NikReport
from tis.ktp.parse import ParsedCard
from tis.ktp.regions import RegionTable, letters_of

_DIGITS = {"nik", "tgl_lahir", "alamat.rt_rw"}  # OCR tells digits apart, where a language model writes likely ones
_CHECKED_WITH_NIK = ("nik", "tgl_lahir", "jenis_kelamin", "kabupaten_kota")
_DOUBT = 0.6  # of a value that one of two readers gave, and the other did not confirm
_MAX_LONE_NIK = 0.5
_LEXICONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "jenis_kelamin": SEXES,
    "agama": RELIGIONS,
    "status_perkawinan": MARITAL_STATUSES,
    "pekerjaan": OCCUPATIONS,
}


def fuse(ocr: CheckedCard, model: CheckedCard, table: RegionTable, today: date) -> CheckedCard:
    fields: dict[str, FieldReading] = {}
    disagreements: list[FieldWarning] = []
    regency = table.match_regency(ocr.fields["kabupaten_kota"].value or "")
    for name, by_ocr in ocr.fields.items():
        by_model = model.fields.get(name, UNREAD)
        fields[name] = _fused(name, by_ocr, by_model, ocr, model, regency.code if regency else None, table)
        if by_ocr.value and by_model.value and not _same(by_ocr, by_model):
            message = "OCR and the vision model read this field differently."
            disagreements.append(FieldWarning("disagreement", name, message))
    checked = _checked(fields, ocr, table, today)
    return replace(checked, warnings=[*checked.warnings, *disagreements])


def _fused(
    name: str,
    by_ocr: FieldReading,
    by_model: FieldReading,
    ocr: CheckedCard,
    model: CheckedCard,
    regency: str | None,
    table: RegionTable,
) -> FieldReading:
    if by_model.value is None:
        return by_ocr
    if by_ocr.value is None:
        return _lone(name, by_model, by_ocr, model.nik)
    if _same(by_ocr, by_model):
        return replace(by_ocr, confidence=1 - (1 - by_ocr.confidence) * (1 - by_model.confidence))
    prefers_model = by_model.confidence > by_ocr.confidence
    if name == "nik":
        prefers_model = _passed(model.nik) > _passed(ocr.nik)
    elif name in _DIGITS:
        prefers_model = False
    elif (ocr_knows := _is_known(name, by_ocr, regency, table)) != _is_known(name, by_model, regency, table):
        prefers_model = not ocr_knows
    chosen = replace(by_model, box=by_ocr.box) if prefers_model else by_ocr
    return replace(chosen, confidence=chosen.confidence * _DOUBT)


def _lone(name: str, by_model: FieldReading, by_ocr: FieldReading, report: NikReport) -> FieldReading:
    """OCR read nothing here. A NIK that nothing else on the card supports is not believed at all."""
    confidence = by_model.confidence * _DOUBT
    if name == "nik":
        checks = report.checks
        if not (checks and checks.date and checks.sex and checks.known_code):
            return by_ocr
        confidence = min(confidence, _MAX_LONE_NIK)
    return replace(by_model, confidence=confidence, box=by_ocr.box)


def _same(one: FieldReading, other: FieldReading) -> bool:
    return letters_of(one.canonical or one.value or "") == letters_of(other.canonical or other.value or "")


def _passed(report: NikReport) -> int:
    """How many checks of a NIK agree, less those that do not."""
    if report.checks is None:
        return -1
    results = (report.checks.date, report.checks.sex, report.checks.known_code)
    return sum(1 if result else -1 for result in results if result is not None)


def _is_known(name: str, reading: FieldReading, regency: str | None, table: RegionTable) -> bool:
    """A word of a list, or a name of the region table."""
    value = reading.value or ""
    if name == "alamat.kecamatan":
        return regency is not None and table.match_district(value, regency, 1.0) is not None
    if name == "kabupaten_kota":
        return table.match_regency(value, None, 1.0) is not None
    if name == "provinsi":
        return table.match_province(value, 1.0) is not None
    return any(value in (canonical, *others) for canonical, others in _LEXICONS.get(name, {}).items())


def _checked(fields: dict[str, FieldReading], ocr: CheckedCard, table: RegionTable, today: date) -> CheckedCard:
    """What OCR's checks found still holds unless one of the fields that they compare has changed."""
    if all(fields[name].value == ocr.fields[name].value for name in _CHECKED_WITH_NIK):
        report = replace(ocr.nik, confidence=fields["nik"].confidence)
        return CheckedCard(fields, report, list(ocr.warnings), list(ocr.repairs))
    regency = table.match_regency(fields["kabupaten_kota"].value or "")
    confidence = fields["kabupaten_kota"].confidence if regency else 0.0
    card = ParsedCard(fields, (), True, regency.code if regency else None, confidence)
    checked = check_card(card, table, today)
    others = [warning for warning in ocr.warnings if not warning.code.startswith("nik_")]
    still = [repair for repair in ocr.repairs if fields[repair.field].value == repair.new]
    return replace(checked, warnings=[*checked.warnings, *others], repairs=[*still, *checked.repairs])
