"""Compares the fields of a card with each other. What a check changes is listed; a doubt is a warning."""

from dataclasses import dataclass, replace
from datetime import date

from tis.ktp.card_completion import complete
from tis.ktp.field_parsers import FieldReading, date_of
from tis.ktp.nik import FieldRepair, FieldWarning, NikReport, PrintedEvidence, check_nik, date_from_nik
from tis.ktp.parse import ParsedCard
from tis.ktp.regions import RegionTable


@dataclass(frozen=True)
class CheckedCard:
    fields: dict[str, FieldReading]
    nik: NikReport
    warnings: list[FieldWarning]
    repairs: list[FieldRepair]


def check_card(card: ParsedCard, table: RegionTable, today: date) -> CheckedCard:
    fields = dict(card.fields)
    nik, birth, sex = fields["nik"], fields["tgl_lahir"], fields["jenis_kelamin"]
    evidence = PrintedEvidence(
        birth_date=date_of(birth.value),
        birth_date_confidence=birth.confidence,
        sex=sex.value,
        sex_confidence=sex.confidence,
        regency=card.regency_code,
        regency_confidence=card.regency_confidence,
    )
    if nik.value is None:
        warning = FieldWarning("nik_unread", "nik", "The NIK was not read.")
        unread = NikReport(None, 0.0, None, None, [warning])
        fields, completed = complete(fields, unread, card.regency_code, table)
        return CheckedCard(fields, unread, [warning], completed)
    report = check_nik(nik.value, nik.confidence, evidence, table, today, nik.digit_confidences)
    fields["nik"] = replace(nik, value=report.nik, confidence=report.confidence)
    repairs = list(report.repairs)
    if report.parts and (
        known := date_from_nik(evidence.birth_date, birth.confidence, report.confidence, report.parts)
    ):
        value = f"{known:%d-%m-%Y}"
        fields["tgl_lahir"] = FieldReading(value, report.confidence * 0.9, birth.box)
        reason = "The printed date was not read; the NIK has it."
        repairs.append(FieldRepair("tgl_lahir", birth.value, value, reason))
        checks = replace(report.checks, date=None) if report.checks else None  # it would agree with itself
        kept = [warning for warning in report.warnings if warning.code != "nik_date_mismatch"]
        report = replace(report, checks=checks, warnings=kept)
    fields, completed = complete(fields, report, card.regency_code, table)
    return CheckedCard(fields, report, list(report.warnings), [*repairs, *completed])
