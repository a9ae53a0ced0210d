"""Little confidence for values that were perhaps not seen whole: glare, a finger, a line that is missing."""

from dataclasses import replace

from tis.ktp.card_checks import CheckedCard
from tis.ktp.field_parsers import FieldReading
from tis.ktp.nik import FieldWarning
from tis.ktp.ocr import Pixels
from tis.ktp.parse import ParsedCard
from tis.ktp.text_lines import TextLine
from tis.ktp.visible_text import VisibleText

MAX_HIDDEN_CONFIDENCE = 0.5
# On white paper nobody sees where glare has hidden the end of a text that may have any length.
MAX_COPIED_CONFIDENCE = 0.85
_OF_ANY_LENGTH = {"nama", "alamat.name", "alamat.kel_desa"}
# Values that could be the beginning of others, and values that could be the end of others: BELUM KAWIN.
# A regency is in a list, but SOLOK may have been SOLOK SELATAN.
_MAY_GO_ON = {"nama", "kabupaten_kota", "alamat.name", "alamat.kel_desa", "alamat.kecamatan"}
_ONE_LETTER = 0.8  # heights of a line: A may be AB, and the portrait is near
_MAY_BEGIN_EARLIER = (_MAY_GO_ON - {"kabupaten_kota"}) | {"tempat_lahir", "status_perkawinan"}
_MAY_HAVE_GAPS = _OF_ANY_LENGTH | {"tempat_lahir", "alamat.kecamatan", "pekerjaan"}


def doubt_hidden(checked: CheckedCard, card: ParsedCard, picture: Pixels) -> CheckedCard:
    """Fields that something hides in part keep their value, with little confidence and a warning."""
    lines = {name: card.lines_of(name) for name, reading in checked.fields.items() if reading.value is not None}
    visible = VisibleText(picture, [line.quad for found in lines.values() for line in found])
    fields: dict[str, FieldReading] = dict(checked.fields)
    warnings = list(checked.warnings)
    for name, found in lines.items():
        if found and _is_hidden(name, found, visible):
            warnings.append(FieldWarning("hidden", name, "Glare, a finger or the like hides a part of this field."))
        elif ("birth" if name == "tempat_lahir" else name) in card.layout.incomplete:
            warnings.append(FieldWarning("incomplete", name, "This field has room for text that was not read."))
        elif visible.is_white and name in _OF_ANY_LENGTH:
            fields[name] = replace(fields[name], confidence=min(fields[name].confidence, MAX_COPIED_CONFIDENCE))
            continue
        else:
            continue
        confidence = min(fields[name].confidence, MAX_HIDDEN_CONFIDENCE)
        fields[name] = replace(fields[name], confidence=confidence)
    return replace(checked, fields=fields, warnings=warnings)


def _is_hidden(name: str, lines: list[TextLine], visible: VisibleText) -> bool:
    without_colon = [line for line in lines if not line.text.lstrip().startswith(":")]
    return (
        (name in _MAY_HAVE_GAPS and any(visible.is_hidden_inside(line.quad) for line in lines))
        or (name in _MAY_BEGIN_EARLIER and any(visible.may_begin_earlier(line.quad) for line in without_colon))
        or (name in _MAY_GO_ON and any(visible.may_go_on(line.quad) for line in lines))
        or (name == "gol_darah" and any(visible.may_go_on(line.quad, _ONE_LETTER) for line in lines))
    )
