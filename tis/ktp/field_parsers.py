"""Typed parsers: the text of a value as it was read, with a confidence per character, to what the card prints."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from tis.ktp.lexicons import (
    BLOOD_GROUPS,
    CITIZEN,
    LIFELONG,
    MARITAL_STATUSES,
    OCCUPATIONS,
    RELIGIONS,
    SEXES,
    nearest,
)
from tis.ktp.regions import letters_of
from tis.ktp.text_lines import Quad, TextLine

NIK_LENGTH = 16
MAX_NAME = 60
_DIGIT_OF = str.maketrans("OQDILZSBGoilzsb|", "0001125860112581")
LETTER_OF = str.maketrans("01258", "OIZSB")
_DATE = re.compile(r"([0-9OILSB]{2})\W{0,2}([0-9OILSB]{2})\W{0,2}([0-9OILSB]{4})\W*$")
_LIKELY_RATIO, _MIN_RATIO = 0.8, 0.72  # TADIB is TABIB
_MAX_UNLISTED, _MAX_SHORT = 0.85, 0.85  # confidence of an occupation that is in no list; of 1/14
# A comma before a title at the end; a blurred one looks like a full stop, which stands after abbreviations only.
_STOP_BEFORE_TITLE = re.compile(r"(?<=[A-Z]{5})\.\s?(?=(S|M|A)\.?[A-Z]{1,3}\.?$)")
_MAX_DOUBTFUL_SIGNS = 0.8  # confidence of a text that has perhaps another blank or full stop
_MIN_COUNTRY = 4


@dataclass(frozen=True)
class FieldReading:
    """`value` is as printed; `canonical` is set where an enumeration has another official spelling."""

    value: str | None
    confidence: float
    box: Quad | None = None
    canonical: str | None = None
    digit_confidences: tuple[float, ...] = ()


UNREAD = FieldReading(None, 0.0)
FieldParser = Callable[[TextLine], FieldReading]


def certainty(line: TextLine) -> float:
    """Of a text: its weakest letter counts as much as all of them together. Blanks do not count."""
    sure = [c for c, character in zip(line.confidences, line.text, strict=False) if character.isalnum()]
    if not sure:
        return line.score
    return min(line.score, (sum(sure) / len(sure) * min(sure)) ** 0.5) if min(sure) < 0.9 else sum(sure) / len(sure)


def clean(text: str) -> str:
    """Capitals, single blanks, no colon in front."""
    text = re.sub(r"[^A-Z0-9 .,'/()+-]", " ", text.upper())
    text = re.sub(r"\s+", " ", text).strip(" -,")
    return re.sub(r"\s+([.,])", r"\1", text).lstrip(".'/ ")


def parse_nik(line: TextLine) -> FieldReading:
    """Letters that look like digits count as digits; None unless there are 16."""
    kept = [
        (character.translate(_DIGIT_OF), sure)
        for character, sure in zip(line.text, line.confidences or [line.score] * len(line.text), strict=False)
        if not (character.isspace() or character in ":.,'-/")
    ]
    digits = "".join(digit for digit, _ in kept)
    if not re.fullmatch(rf"[0-9]{{{NIK_LENGTH}}}", digits):
        return FieldReading(None, 0.0, line.quad)
    confidences = tuple(sure for _, sure in kept)
    mean = sum(confidences) / NIK_LENGTH
    return FieldReading(digits, min(mean, min(confidences) ** 0.5), line.quad, digit_confidences=confidences)


def parse_name(line: TextLine) -> FieldReading:
    value = _STOP_BEFORE_TITLE.sub(", ", clean(line.text).translate(LETTER_OF))
    value = re.sub(r"^(H|HJ|DR|DRA|DRS|IR|PROF),", r"\1.", value)
    return _text(line, re.sub(r"[^A-Z .,'-]", "", value)[:MAX_NAME].strip())


def parse_place(line: TextLine) -> FieldReading:
    return _text(line, re.sub(r"[^A-Z .'/-]", "", clean(line.text).translate(LETTER_OF)).strip(" .'-/"))


def parse_text(line: TextLine) -> FieldReading:
    # After an abbreviation stands a full stop; a blurred one looks like a comma.
    return _text(line, re.sub(r"\b(NO|JL|GG|KP),", r"\1.", clean(line.text)))


def _text(line: TextLine, value: str) -> FieldReading:
    sure = certainty(line)
    if line.signs and min(line.signs) < 1.0:
        sure = min(sure, _MAX_DOUBTFUL_SIGNS)
    return FieldReading(value, sure, line.quad) if value else UNREAD


def split_birth(line: TextLine) -> tuple[TextLine, TextLine | None]:
    """A place and a date."""
    found = _DATE.search(line.text.upper())
    if found is None:
        return line, None
    return line.cut(0, found.start()), line.cut(found.start())


def parse_date(line: TextLine) -> FieldReading:
    """DD-MM-YYYY; None where the calendar does not have it."""
    found = _DATE.search(line.text.upper())
    if found is None:
        return FieldReading(None, 0.0, line.quad)
    day, month, year = (part.translate(_DIGIT_OF) for part in found.groups())
    value = f"{day}-{month}-{year}"
    if date_of(value) is None:
        return FieldReading(None, 0.0, line.quad)
    return FieldReading(value, certainty(line), line.quad)


def date_of(value: str | None) -> date | None:
    try:
        day, month, year = (int(part) for part in (value or "").split("-"))
        return date(year, month, day) if 1880 <= year <= 2200 else None
    except ValueError:
        return None


def parse_validity(line: TextLine) -> FieldReading:
    lifelong = _enumeration(LIFELONG)(line)
    return lifelong if lifelong.value else parse_date(line)


def parse_rt_rw(line: TextLine) -> FieldReading:
    text = re.sub(r"\s", "", line.text.upper().lstrip(": .")).translate(_DIGIT_OF)
    if (found := re.fullmatch(r"([0-9]{3})\D?([0-9]{3})\D*", text)) is not None:
        return FieldReading(f"{found[1]}/{found[2]}", certainty(line), line.quad)
    if (found := re.fullmatch(r"([0-9]{1,3})/([0-9]{1,3})\D*", text)) is not None:
        # Nearly all cards print three digits; the first are perhaps hidden.
        return FieldReading(f"{found[1]}/{found[2]}", min(certainty(line), _MAX_SHORT), line.quad)
    return FieldReading(clean(line.text), 0.3, line.quad) if set(line.text) & set("0123456789-") else UNREAD


def parse_blood_group(line: TextLine) -> FieldReading:
    """The label may be in front. A hyphen stands for unknown."""
    value = re.sub(r"^.*?DARA?H?\W*(?=[^H]|$)", "", line.text.upper()) if "DAR" in line.text.upper() else line.text
    value = value.upper().replace("0", "O").strip(" :.,'")
    found = re.match(rf"({'|'.join(BLOOD_GROUPS)})\s?([+-]?)$", value)
    if found is None and (last := re.search(r"(?<=[\s:.])(AB|A|B|O)\s?[+-]?$", value)) is not None:
        # Behind a label that was not read well.
        return FieldReading(last[0].strip(), min(certainty(line), _MAX_SHORT), line.quad)
    if found is None:
        unknown = bool(re.search(r"-\W*$", line.text)) or "TIDAK" in value
        return FieldReading("-", min(line.score, 0.9), line.quad) if unknown else UNREAD
    return FieldReading(found[0], certainty(line), line.quad)


def parse_citizenship(line: TextLine) -> FieldReading:
    known = _enumeration(CITIZEN, 0.6)(line)
    country = parse_place(line)  # foreigners' cards print one; fewer letters are a piece of WNI
    return known if known.value else country if len(country.value or "") >= _MIN_COUNTRY else UNREAD


def parse_occupation(line: TextLine) -> FieldReading:
    """The list of occupations grows: what is not near one of them stays as it was read, unless it is a number."""
    known = _enumeration(OCCUPATIONS, _LIKELY_RATIO, margin=0.03)(line)
    read = parse_text(line)
    is_number = sum(character.isdigit() for character in read.value or "") > 1  # the date of issue, beside a lost row
    if known.value or is_number:
        return known if known.value else UNREAD
    letters = letters_of(read.value or "")
    longer = [name for name in OCCUPATIONS if letters_of(name).startswith(letters)] if len(letters) >= 4 else []
    if len(longer) == 1:  # something hides the rest
        return replace(read, value=longer[0], confidence=min(read.confidence, _MAX_UNLISTED))
    return replace(read, confidence=min(read.confidence, _MAX_UNLISTED))


def _enumeration(
    lexicon: Mapping[str, Iterable[str]], min_ratio: float = _MIN_RATIO, margin: float = 0.06
) -> FieldParser:
    def parse(line: TextLine) -> FieldReading:
        match = nearest(clean(line.text), lexicon, min_ratio, margin)
        if match is None:
            return FieldReading(None, 0.0, line.quad)
        # That a word of a short list was read cannot be chance.
        confidence = max(certainty(line), 0.97) if match.ratio == 1.0 else certainty(line) * match.ratio
        canonical = match.canonical if match.canonical != match.printed else None
        return FieldReading(match.printed, confidence, line.quad, canonical)

    return parse


PARSERS: Mapping[str, FieldParser] = {
    "nik": parse_nik,
    "nama": parse_name,
    "tempat_lahir": parse_place,
    "tgl_lahir": parse_date,
    "jenis_kelamin": _enumeration(SEXES),
    "gol_darah": parse_blood_group,
    "alamat.name": parse_text,
    "alamat.rt_rw": parse_rt_rw,
    "alamat.kel_desa": parse_text,
    "alamat.kecamatan": parse_text,
    "agama": _enumeration(RELIGIONS),
    "status_perkawinan": _enumeration(MARITAL_STATUSES),
    "pekerjaan": parse_occupation,
    "kewarganegaraan": parse_citizenship,
    "berlaku_hingga": parse_validity,
}
