"""What was read of a card as the JSON of the API."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from tis.ktp.card_result import CardResult, quality_of

if TYPE_CHECKING:
    from tis.ktp.card_checks import CheckedCard
    from tis.ktp.nik import NikReport

Detail = Literal["basic", "full"] | None
Mask = Literal["nik"] | None
_Hide = Callable[[str, str | None], str | None]

_ADDRESS = "alamat."
# The names that the service promises, in their order.
BASIC_NAMES = (
    "nik", "nama", "tempat_lahir", "tgl_lahir", "jenis_kelamin", "alamat", "agama", "status_perkawinan", "pekerjaan",
    "kewarganegaraan", "berlaku_hingga",
)  # fmt: skip
_MORE_NAMES = ("gol_darah", "provinsi", "kabupaten_kota")
_FALLBACK = {"code": "model_unavailable", "field": None, "message": "The vision model failed; OCR alone read the card."}


def answer_of(result: CardResult, detail: Detail, mask: Mask) -> dict[str, Any]:
    hide = _masked if mask == "nik" else _as_it_is
    checked, ocr = result.checked, result.ocr
    basic = _basic(checked, hide)
    if detail == "basic":
        return basic
    said = _said(checked, hide)
    answer: dict[str, Any] = {
        **basic,
        **_more(checked),
        "confidence": {name: round(reading.confidence, 4) for name, reading in checked.fields.items()},
        "boxes": {name: _points(reading.box) for name, reading in checked.fields.items()},
        "warnings": [*said["warnings"], *([_FALLBACK] if result.has_fallen_back else [])],
        "repairs": said["repairs"],
        "nik_info": said["nik_info"],
        "quality": quality_of(ocr.quality) if ocr else None,
        "card": {
            "quad": _points(ocr.outline.quad) if ocr else None,
            "found_by": ocr.outline.found_by if ocr else "picture",
        },
        "normalized": said["normalized"],
        "engine": {"path": result.path, "model": result.model, "ms": result.milliseconds},
    }
    if detail == "full":
        answer |= {"labels": list(ocr.labels) if ocr else [], "readings": _readings(result.readings, hide)}
    return answer


def check_answer(checked: "CheckedCard", mask: Mask) -> dict[str, Any]:
    """Of fields that a client has sent."""
    hide = _masked if mask == "nik" else _as_it_is
    return {**_basic(checked, hide), **_more(checked), **_said(checked, hide)}


def _basic(checked: "CheckedCard", hide: _Hide) -> dict[str, Any]:
    values = {name: hide(name, reading.value) for name, reading in checked.fields.items()}
    address = {name.removeprefix(_ADDRESS): value for name, value in values.items() if name.startswith(_ADDRESS)}
    return {name: address if name == "alamat" else values[name] for name in BASIC_NAMES}


def _more(checked: "CheckedCard") -> dict[str, str | None]:
    return {name: checked.fields[name].value for name in _MORE_NAMES}


def _said(checked: "CheckedCard", hide: _Hide) -> dict[str, Any]:
    """By the checks."""
    return {
        "warnings": [{"code": w.code, "field": w.field, "message": w.message} for w in checked.warnings],
        "repairs": [
            {"field": r.field, "from": hide(r.field, r.old), "to": hide(r.field, r.new), "reason": r.reason}
            for r in checked.repairs
        ],
        "nik_info": _nik_info(checked.nik),
        "normalized": {name: reading.canonical for name, reading in checked.fields.items() if reading.canonical},
    }


def _points(quad: Any) -> list[list[float]] | None:
    return [[round(x, 1), round(y, 1)] for x, y in quad] if quad else None


def _nik_info(report: "NikReport") -> dict[str, Any] | None:
    parts, checks = report.parts, report.checks
    if parts is None:
        return None
    region = parts.region
    return {
        "region": {
            "province": region.province,
            "regency": region.regency,
            "district": region.district,
            "retired": region.retired,
        },
        "birth_date": parts.birth_date.isoformat() if parts.birth_date else None,
        "sex": parts.sex,
        "checks": {
            "date": checks.date if checks else None,
            "sex": checks.sex if checks else None,
            "regency": checks.regency if checks else None,
            "known_code": checks.known_code if checks else region.known,
        },
    }


def _readings(readings: Mapping[str, "CheckedCard"], hide: _Hide) -> dict[str, Any]:
    """Of each reader, before both became one."""
    return {
        reader: {
            name: {"value": hide(name, reading.value), "confidence": round(reading.confidence, 4)}
            for name, reading in checked.fields.items()
        }
        for reader, checked in readings.items()
    }


def _as_it_is(name: str, value: str | None) -> str | None:
    return value


def _masked(name: str, value: str | None) -> str | None:
    """Region and last four digits of a NIK."""
    if name != "nik" or value is None:
        return value
    return value[:6] + "*" * max(0, len(value) - 10) + value[-4:]
