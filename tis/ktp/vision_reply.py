"""What a vision model is asked about a card, and its answer as fields with confidence.

The grammar allows null for every field, so that a model is never made to invent digits. Confidence comes from the
probabilities that the model itself gave, before the grammar forbade anything.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from tis.ktp.card_checks import CheckedCard, check_card
from tis.ktp.field_parsers import PARSERS, UNREAD, FieldReading, clean
from tis.ktp.lexicons import FIELDS
from tis.ktp.parse import ParsedCard
from tis.ktp.regions import RegionTable
from tis.ktp.text_lines import Quad, TextLine
from tis.ktp.vision_model import ReplyToken

PROMPT = (
    "Ini foto KTP Indonesia. Salin setiap isian persis seperti tercetak, dengan huruf kapital. "
    "Tulis null untuk isian yang tidak ada atau tidak terbaca; jangan menebak. "
    'Tanggal berbentuk DD-MM-YYYY. Jika foto ini bukan KTP, tulis "is_ktp": false dan null untuk semua isian.'
)
_TEXT = r"^[A-Za-z0-9 .,'/()+-]{1,60}$"
_DATE = r"^[0-9]{2}-[0-9]{2}-[0-9]{4}$"
_PATTERNS = {
    "nik": r"^[0-9]{16}$",
    "tgl_lahir": _DATE,
    "jenis_kelamin": r"^(LAKI-LAKI|PEREMPUAN)$",
    "gol_darah": r"^(A|B|AB|O|-)$",
    "alamat.rt_rw": r"^[0-9]{3}/[0-9]{3}$",
    "berlaku_hingga": rf"^(SEUMUR HIDUP|{_DATE[1:-1]})$",
}
# In the order of the card; a model reads from top to bottom.
_ORDER = ("provinsi", "kabupaten_kota", *(name for name in FIELDS if name not in ("provinsi", "kabupaten_kota")))
_KEYS = {name.rpartition(".")[2] if name != "alamat.name" else "alamat": name for name in _ORDER}

MAX_TOKENS = 512
_MIN_VALUES = 5  # of a card, the NIK or the name among them
_MAX_OVERRULED = 0.5  # share that the grammar may take from the model; above, the value is the grammar's
_OVERRULED_CONFIDENCE = 0.5
_MIN_SHOWN, _MIN_SHOWN_NIK = 0.2, 0.5  # below, the value is not shown at all
_MAX_UNCONFIRMED_NIK, _MAX_CONTRADICTED_NIK = 0.8, 0.4  # of a model alone: nothing confirms its last four digits
_NO_BOX: Quad = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
_BEGIN = re.compile(r'\{\s*"is_ktp"')
_KEY = re.compile(r'[\s{,]*"([a-z_]{1,20})"\s*:\s*')


def reply_schema() -> dict[str, Any]:
    fields = {
        key: {"anyOf": [{"type": "string", "pattern": _PATTERNS.get(name, _TEXT)}, {"type": "null"}]}
        for key, name in _KEYS.items()
    }
    properties = {"is_ktp": {"type": "boolean"}, **fields}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


@dataclass(frozen=True)
class VisionCard:
    is_card: bool
    checked: CheckedCard


@dataclass(frozen=True)
class _Value:
    """A value of the JSON, with the probability of each of its characters and the share that was forbidden."""

    value: Any
    probabilities: tuple[float, ...]
    overruled: float


def vision_card(tokens: Sequence[ReplyToken], table: RegionTable, today: date) -> VisionCard:
    values = dict(_values(tokens))
    fields = dict.fromkeys(FIELDS, UNREAD)
    for key, name in _KEYS.items():
        if (found := values.get(key)) is not None and isinstance(found.value, str):
            fields[name] = _reading(name, found)
    shown = [name for name, reading in fields.items() if reading.value is not None]
    flag = values.get("is_ktp")
    is_card = (
        flag is not None and flag.value is True and len(shown) >= _MIN_VALUES and bool({"nik", "nama"} & set(shown))
    )
    province = table.match_province(fields["provinsi"].value or "")
    regency = table.match_regency(fields["kabupaten_kota"].value or "", province.code if province else None)
    confidence = fields["kabupaten_kota"].confidence if regency else 0.0
    card = ParsedCard(fields, (), is_card, regency.code if regency else None, confidence)
    return VisionCard(is_card, _doubted(check_card(card, table, today)))


def _reading(name: str, found: _Value) -> FieldReading:
    score = math.exp(sum(math.log(max(p, 1e-9)) for p in found.probabilities) / len(found.probabilities))
    line = TextLine(_NO_BOX, found.value, score, found.probabilities)
    parse = PARSERS.get(name)
    reading = parse(line) if parse else FieldReading(clean(found.value) or None, min(score, *found.probabilities))
    weakest = min(found.probabilities)
    confidence = min(reading.confidence, (score * weakest) ** 0.5)
    if found.overruled > _MAX_OVERRULED:
        confidence = min(confidence, _OVERRULED_CONFIDENCE)
    if reading.value is None or confidence < (_MIN_SHOWN_NIK if name == "nik" else _MIN_SHOWN):
        return UNREAD
    if name == "nik":  # before the checks, so that no other field is filled from it
        confidence = min(confidence, _MAX_UNCONFIRMED_NIK)
    return replace(reading, confidence=confidence, box=None)


def _doubted(card: CheckedCard) -> CheckedCard:
    """A language model writes likely digits as surely as those that it sees: one contradiction is enough."""
    nik, checks = card.fields["nik"], card.nik.checks
    if nik.value is None or checks is None:
        return card
    contradicted = checks.date is False or checks.sex is False or not checks.known_code
    contradicted = contradicted or (card.nik.parts is not None and card.nik.parts.birth_date is None)
    if not contradicted:
        return card
    confidence = min(nik.confidence, _MAX_CONTRADICTED_NIK)
    fields = {**card.fields, "nik": replace(nik, confidence=confidence)}
    return replace(card, fields=fields, nik=replace(card.nik, confidence=confidence))


def _values(tokens: Sequence[ReplyToken]) -> Iterator[tuple[str, _Value]]:
    """The members of the JSON object, as far as it is whole. The grammar allows ASCII alone: a byte is a character."""
    text = b"".join(token.data for token in tokens).decode("latin-1")
    begins = [*_BEGIN.finditer(text)]
    if not begins:
        return
    place = begins[-1].start()  # what comes before is reasoning
    owners = _owners(tokens)
    while key := _KEY.match(text, place):
        try:
            value, place = json.JSONDecoder().raw_decode(text, key.end())
        except (ValueError, RecursionError):  # cut by the limit of tokens, or not what was asked for
            return
        own = owners[key.end() : place]
        quoted = own[1:-1] if isinstance(value, str) and len(own) > 2 else own
        # An escaped character would have two places; the patterns have none.
        probabilities = tuple(token.probability for token in quoted)
        yield key[1], _Value(value, probabilities, max(token.overruled for token in own))


def _owners(tokens: Sequence[ReplyToken]) -> list[ReplyToken]:
    """The token of each byte."""
    return [token for token in tokens for _ in token.data]
