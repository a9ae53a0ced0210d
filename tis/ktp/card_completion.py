"""Fields that were not read, or not to their end, and that the rest of the card decides. All are listed as repairs."""

from dataclasses import replace

from tis.ktp.field_parsers import FieldReading
from tis.ktp.nik import MIN_EVIDENCE, FieldRepair, NikReport
from tis.ktp.regions import RegionTable, letters_of

_MAX_COMPLETED = 0.85  # confidence of what was not seen
_MIN_LETTERS = 4  # of a name that goes on
_MIN_RATIO = 0.9


def complete(
    fields: dict[str, FieldReading], report: NikReport, regency: str | None, table: RegionTable
) -> tuple[dict[str, FieldReading], list[FieldRepair]]:
    """`regency` is the code that the header was read as."""
    found = dict(fields)
    repairs: list[FieldRepair] = []

    def take(name: str, value: str | None, confidence: float, reason: str) -> None:
        if value is not None and value != found[name].value:
            repairs.append(FieldRepair(name, found[name].value, value, reason))
            found[name] = replace(found[name], value=value, confidence=min(confidence, _MAX_COMPLETED))

    parts = report.parts if report.confidence >= MIN_EVIDENCE else None
    of_nik = parts.nik if parts and parts.region.known else None
    if parts and parts.birth_date and found["jenis_kelamin"].value is None:
        take("jenis_kelamin", parts.sex, report.confidence, "The printed sex was not read; the NIK has it.")
    district = found["alamat.kecamatan"]
    if of_nik and regency is None and district.value and _is_district(district.value, of_nik, table):
        # The holder lives where the NIK was issued.
        regency = of_nik[:4]
    if regency is not None and len(regency) == 4:
        if district.value and (name := _longer_name(district.value, regency, of_nik, table)):
            take("alamat.kecamatan", name, district.confidence, "Only one district of the regency begins so.")
        sure = max(found["kabupaten_kota"].confidence, report.confidence)
        reason = "It was not read; other fields have it."
        if found["kabupaten_kota"].value is None:
            take("kabupaten_kota", table.name(regency), sure, reason)
        if found["provinsi"].value is None:
            take("provinsi", f"PROVINSI {table.name(regency[:2])}", sure, reason)
    return found, repairs


def _is_district(read: str, nik: str, table: RegionTable) -> bool:
    match = table.match_district(read, nik[:4], _MIN_RATIO)
    return match is not None and match.code == nik[:6]


def _longer_name(read: str, regency: str, nik: str | None, table: RegionTable) -> str | None:
    """The district whose name goes on after what was read; of several, the one of the NIK."""
    letters = letters_of(read)
    names = {code: table.name(code) or "" for code in table.below(regency)}
    if len(letters) < _MIN_LETTERS or any(letters_of(name) == letters for name in names.values()):
        return None
    longer = [code for code, name in names.items() if letters_of(name).startswith(letters)]
    if len(longer) == 1:
        return names[longer[0]]
    return names[nik[:6]] if nik and nik[:6] in longer else None
