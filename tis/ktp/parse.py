"""Lines of text in, fields of a card with confidence and boxes out. Pure: no picture, no model."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rapidfuzz import fuzz

from tis.ktp.field_parsers import LETTER_OF, PARSERS, UNREAD, FieldReading, certainty, clean, split_birth
from tis.ktp.layout import EMPTY_LAYOUT, CardLayout, lay_out
from tis.ktp.lexicons import FIELDS
from tis.ktp.regions import RegionTable, letters_of
from tis.ktp.text_lines import TextLine, union

_MAX_VALUE_LINES = 4
_SURE = 0.97  # a text read so surely is not bent to a lexicon
_LABEL_MM, _COLON_MM, _VALUE_MM, _BLOOD_MM = 2.6, 24.0, 25.6, (44.5, 60.5)  # on the card, from its left side
_BESIDE_TOWN = {"alamat.kecamatan", "agama", "status_perkawinan", "pekerjaan", "kewarganegaraan"}
_MAX_UNKNOWN = 0.85  # confidence of a district that the header's regency does not have
_MAX_UNDATED = 0.6  # of a place without its date


@dataclass(frozen=True)
class ParsedCard:
    fields: dict[str, FieldReading]
    labels: tuple[str, ...]  # rows whose label was read
    is_card: bool
    regency_code: str | None = None
    regency_confidence: float = 0.0
    unread: dict[str, TextLine] = field(default_factory=dict)  # boxes to look at again, by field
    layout: CardLayout = EMPTY_LAYOUT

    def lines_of(self, name: str) -> list[TextLine]:
        """The lines that a field was read from; a place and a date of birth share theirs."""
        if name == "gol_darah":
            return [self.layout.blood_group] if self.layout.blood_group else []
        if name in ("provinsi", "kabupaten_kota"):
            return [line for line in self.layout.header if line.quad == self.fields[name].box]
        return self.layout.values.get("birth" if name in ("tempat_lahir", "tgl_lahir") else name, [])


def parse_card(lines: Sequence[TextLine], table: RegionTable) -> ParsedCard:
    layout = lay_out(lines)
    fields = dict.fromkeys(FIELDS, UNREAD)
    code = _read_header(layout, fields, table)
    layout = _with_whole_district(_without_town(layout, code, table), code, table)
    for row, values in layout.values.items():
        line = _joined(values)
        if line is None:
            continue
        if row == "birth":
            place, date = split_birth(line)
            fields["tempat_lahir"] = PARSERS["tempat_lahir"](place if date else _before_date(line))
            fields["tgl_lahir"] = PARSERS["tgl_lahir"](date) if date else FieldReading(None, 0.0, line.quad)
        elif row == "nik":
            fields["nik"] = _nik(values)
        else:
            fields[row] = PARSERS[row](line)
            if fields[row].value is None and len(values) > 1:  # the town of issue may stand behind it
                fields[row] = PARSERS[row](_without_colon(values[0]))
    if layout.blood_group is not None:
        fields["gol_darah"] = PARSERS["gol_darah"](layout.blood_group)
    blood = layout.blood_group or _place_of_blood_group(layout)
    unread = {"gol_darah": blood} if blood and not fields["gol_darah"].value else {}
    if fields["nik"].value is None and layout.values.get("nik"):
        unread["nik"] = max(layout.values["nik"], key=lambda line: line.width)
    _prefer_known_names(fields, code, table)
    regency = code if code and len(code) == 4 else None
    confidence = fields["kabupaten_kota"].confidence if regency else 0.0
    return ParsedCard(fields, tuple(layout.labels), layout.is_card, regency, confidence, unread, layout)


def _place_of_blood_group(layout: CardLayout) -> TextLine | None:
    """Where it stands on the row of the sex, if its label was not found."""
    label, value = layout.labels.get("jenis_kelamin"), next(iter(layout.values.get("jenis_kelamin", [])), None)
    if label is None or value is None or value.left == label.line.right:
        return None
    column = _COLON_MM if value.text.startswith(":") else _VALUE_MM
    millimetre = math.dist(label.line.left, value.left) / (column - _LABEL_MM)
    step = (math.cos(value.angle) * millimetre, math.sin(value.angle) * millimetre)
    begin, end = (column_mm - column for column_mm in _BLOOD_MM)
    (left, top), _, _, (left_below, below) = value.quad
    upper, lower = (left, top), (left_below, below)
    a, b, c, d = (
        (x + step[0] * away, y + step[1] * away)
        for (x, y), away in ((upper, begin), (upper, end), (lower, end), (lower, begin))
    )
    return TextLine((a, b, c, d), "", 0.0)


def _without_town(layout: CardLayout, code: str | None, table: RegionTable) -> CardLayout:
    """The town of issue stands on the right, beside some row; it is that of the header."""
    town = letters_of(re.sub(r"^(KABUPATEN|KOTA) ", "", table.name(code) or "")) if code and len(code) == 4 else ""
    if not town:
        return layout
    rows = {
        row: [
            line
            for place, line in enumerate(lines)
            if place == 0 or line.left[0] < lines[place - 1].right[0] or fuzz.ratio(letters_of(line.text), town) < 85
        ]
        for row, lines in layout.values.items()
        if row in _BESIDE_TOWN
    }
    return replace(layout, values={**layout.values, **rows})


def _with_whole_district(layout: CardLayout, code: str | None, table: RegionTable) -> CardLayout:
    """The line above belongs to a district that is only one of the regency's together with it."""
    village, district = layout.values.get("alamat.kel_desa", []), layout.values.get("alamat.kecamatan", [])
    whole = _joined([*village[-1:], *district])
    if len(village) < 2 or not district or whole is None or code is None or len(code) < 4:
        return layout
    match = table.match_district(clean(whole.text), code, 0.9)
    if match is None:
        return layout
    rows = {"alamat.kel_desa": village[:-1], "alamat.kecamatan": [village[-1], *district]}
    return replace(layout, values={**layout.values, **rows})


def _joined(lines: Sequence[TextLine]) -> TextLine | None:
    kept = [_without_colon(line) for line in lines[:_MAX_VALUE_LINES]]
    kept = [line for line in kept if line.text.strip()]
    if not kept:
        return None
    text = " ".join(line.text.strip() for line in kept)
    score = min(line.score for line in kept)
    confidences = _of_characters([(line.text, line.confidences) for line in kept], len(text))
    signs = _of_characters([(line.text, line.signs) for line in kept], len(text))
    return TextLine(union(*(line.quad for line in kept)), text, score, confidences, signs)


def _before_date(line: TextLine) -> TextLine:
    """Of a row whose date was not read: nobody knows where the place ends."""
    end = re.search(r",|\s\S*[0-9]", line.text)
    place = line.cut(0, end.start()) if end else line
    weak = tuple(min(one, _MAX_UNDATED) for one in place.confidences)
    return replace(place, score=min(line.score, _MAX_UNDATED), confidences=weak)


def _without_colon(line: TextLine) -> TextLine:
    colon = re.match(r"[\s:.]*", line.text)
    return line.cut(colon.end()) if colon and colon.end() else line


def _of_characters(lines: Sequence[tuple[str, tuple[float, ...]]], length: int) -> tuple[float, ...]:
    """Of stripped lines that blanks join; none, where the engine gave none."""
    joined: list[float] = []
    for text, values in lines:
        begin = len(text) - len(text.lstrip())
        joined += [*([1.0] if joined else []), *values[begin : begin + len(text.strip())]]
    return tuple(joined) if len(joined) == length else ()


def _nik(values: Sequence[TextLine]) -> FieldReading:
    """The one of its boxes that is a NIK, else all of them together."""
    readings = [PARSERS["nik"](_without_colon(line)) for line in values]
    whole = _joined(values)
    readings += [PARSERS["nik"](whole)] if whole else []
    return max(readings, key=lambda reading: (reading.value is not None, reading.confidence), default=UNREAD)


def _read_header(layout: CardLayout, fields: dict[str, FieldReading], table: RegionTable) -> str | None:
    """Code of the regency, or of the province if there is no regency."""
    province = None
    for place, line in enumerate(layout.header):
        match = table.match_province(line.text)
        if match is None:
            continue
        province = match.code
        spelled = re.sub(r"^\W*PR[O0]V[I1L|]NS[I1L|]\W*", "", clean(line.text))
        known = match.name if match.ratio >= 0.9 or certainty(line) < _SURE else spelled
        confidence = max(certainty(line), 0.97) if match.ratio == 1.0 else certainty(line) * match.ratio
        fields["provinsi"] = FieldReading(f"PROVINSI {known}", confidence, line.quad)
        for below in layout.header[place + 1 :]:
            regency = table.match_regency(clean(below.text), province)
            if regency is not None:
                confidence = max(certainty(below), 0.97) if regency.ratio == 1.0 else certainty(below) * regency.ratio
                fields["kabupaten_kota"] = FieldReading(regency.name, confidence, below.quad)
                return regency.code
        break
    for line in layout.header:
        regency = table.match_regency(clean(line.text), province, 0.9)
        if regency is not None and re.match(r"\W*(KAB|KOTA|JAKARTA)", line.text.upper()):
            fields["kabupaten_kota"] = FieldReading(regency.name, certainty(line) * regency.ratio, line.quad)
            return regency.code
    return province


def _prefer_known_names(fields: dict[str, FieldReading], code: str | None, table: RegionTable) -> None:
    """Blanks that the engine lost come back; a letter changes only where the reading was not sure."""
    district = fields["alamat.kecamatan"]
    if district.value and code and len(code) == 4:
        match = table.match_district(district.value, code, 0.75)
        same = match is not None and _alike(match.name, district.value)
        if match and (same or district.confidence < _SURE):
            confidence = max(district.confidence, 0.95 if same else match.ratio * 0.9)
            fields["alamat.kecamatan"] = replace(district, value=match.name, confidence=confidence)
        elif not same:
            fields["alamat.kecamatan"] = replace(district, confidence=min(district.confidence, _MAX_UNKNOWN))
    place = fields["tempat_lahir"]
    if place.value:
        names = [f"KABUPATEN {place.value}", f"KOTA {place.value}", place.value]
        matches = [match for name in names if (match := table.match_regency(name, None, 0.88))]
        best = max(matches, key=lambda match: match.ratio, default=None)
        if best and (best.ratio == 1.0 or place.confidence < 0.9):
            bare = re.sub(r"^(KABUPATEN|KOTA) ", "", best.name)
            if not re.match(r"(KAB|KOTA) ?", place.value):
                fields["tempat_lahir"] = replace(place, value=bare)


def _alike(name: str, read: str) -> bool:
    """But for blanks and signs, and digits that look like letters."""
    return letters_of(name).translate(LETTER_OF) == letters_of(read).translate(LETTER_OF)
