"""The records of a sheet's file, as text: CSV in UTF-8 or UTF-16 with any usual delimiter, or xlsx (its first sheet).

Row numbers are those that a spreadsheet shows. Pure functions, no database.
"""

import csv
import io
import re
from collections.abc import Iterator

from tis.errors import Unprocessable
from tis.marketplace.sheets.xlsx import is_xlsx, xlsx_records

Record = tuple[int, list[str]]
_DELIMITERS = ",;\t"
_BOM = "\ufeff"
# Excel reads this line as a setting: it shows the next line as row 1.
_SEP_LINE = re.compile(r'"?sep=([,;\t|])"?[;,\t]*(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')


def read_records(data: bytes) -> Iterator[Record]:
    """Some of them are blank."""
    return xlsx_records(data) if is_xlsx(data) else _csv_records(_decode(data))


def _decode(data: bytes) -> str:
    encoding = _encoding_of(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise Unprocessable("row 1: this is not UTF-16, although it begins like it") from None
        line = data.count(b"\n", 0, error.start) + 1
        raise Unprocessable(f"row {line}: this is not UTF-8; save the sheet as “CSV UTF-8”") from None
    if "\0" in text:
        raise Unprocessable(f"row {text.count(chr(10), 0, text.index(chr(0))) + 1}: contains a NUL character")
    return text.removeprefix(_BOM)


def _encoding_of(data: bytes) -> str:
    """Excel's “Unicode Text” is UTF-16 with a byte order mark. Without one, an ASCII header in UTF-16 has NULs."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if len(data) >= 2 and not len(data) % 2:
        if data[0] and not data[1]:
            return "utf-16-le"
        if data[1] and not data[0]:
            return "utf-16-be"
    return "utf-8"


def _csv_records(text: str) -> Iterator[Record]:
    sep_line = _SEP_LINE.match(text)
    if sep_line:
        text = text[sep_line.end() :]
    delimiter = sep_line[1] if sep_line else _delimiter_of(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number = 0
    try:
        for number, cells in enumerate(reader, start=1):
            yield number, cells
    except csv.Error as error:
        raise Unprocessable(f"row {number + 1}: {error}") from None


def _delimiter_of(text: str) -> str:
    """Where the decimal separator is a comma, spreadsheets write semicolons; text copied from one has tabs."""
    first = _QUOTED.sub("", text.lstrip("\r\n").partition("\n")[0])
    return max(_DELIMITERS, key=first.count)
