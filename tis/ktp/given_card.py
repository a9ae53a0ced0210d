"""A card whose fields somebody gives, such as after a correction: the checks of the reader. Pure: no picture."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from tis.ktp.card_checks import CheckedCard, check_card
from tis.ktp.field_parsers import PARSERS, FieldReading
from tis.ktp.lexicons import FIELDS
from tis.ktp.nik import FieldWarning
from tis.ktp.parse import ParsedCard
from tis.ktp.regions import RegionTable
from tis.ktp.text_lines import Quad, TextLine

_NOWHERE: Quad = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
_MIN_LIKENESS = 0.5  # of a parser that keeps what it does not understand
_DATE = "Write a date that the calendar has, as DD-MM-YYYY."
_MESSAGES = {
    "tgl_lahir": _DATE,
    "berlaku_hingga": f"Write SEUMUR HIDUP. {_DATE}",
    "alamat.rt_rw": "Write two numbers of three digits: 007/008.",
}


def check_given(values: Mapping[str, str | None], table: RegionTable, today: date) -> CheckedCard:
    """Given values are certain: no digit of a NIK is repaired. What no card prints is unread, with a warning."""
    read = {name: _reading(name, (values.get(name) or "").strip()) for name in FIELDS}
    regency = table.match_regency(read["kabupaten_kota"].value or "")
    checked = check_card(
        ParsedCard(read, (), True, regency.code if regency else None, float(bool(regency))), table, today
    )
    malformed = [
        FieldWarning("malformed", name, _MESSAGES.get(name, "No card prints this here."))
        for name in FIELDS
        if (values.get(name) or "").strip() and read[name].value is None
    ]
    return replace(checked, warnings=[*checked.warnings, *malformed])


def _reading(name: str, text: str) -> FieldReading:
    if not text or name not in PARSERS:
        return FieldReading(text.upper() or None, float(bool(text)))
    reading = PARSERS[name](TextLine(_NOWHERE, text, 1.0, (1.0,) * len(text)))
    if name == "nik" and reading.value is None:
        return FieldReading(text, 1.0)  # whose check says what is wrong with it
    is_understood = reading.value is not None and reading.confidence >= _MIN_LIKENESS
    return FieldReading(reading.value, 1.0, canonical=reading.canonical) if is_understood else FieldReading(None, 0.0)
