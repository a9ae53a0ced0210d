"""The records of a sheet's file, as text: CSV in UTF-8 or UTF-16 with any usual delimiter, or xlsx (its first sheet).

Row numbers are those that a spreadsheet shows. Pure functions, no database. A workbook is a zip of XML, so a small
file may unpack to gigabytes. `_require_modest` unpacks it once, in pieces, and refuses what would cost openpyxl much
memory or time, before openpyxl sees it: docs/decisions/0041-sheets.md.
"""

import csv
import io
import re
import threading
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from tis.errors import TooLarge, Unprocessable

Record = tuple[int, list[str]]
_DELIMITERS = ",;\t"
_BOM = "\ufeff"
# Excel reads this line as a setting: it shows the next line as row 1.
_SEP_LINE = re.compile(r'"?sep=([,;\t|])"?[;,\t]*(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
_XLSX_SIGNATURE = b"PK\x03\x04"
_MAX_PARTS = 1000
_MAX_UNPACKED_BYTES = 64 * 2**20
# In XML, openpyxl may hold 320 bytes for each. 30,000 rows with ten columns have about a million of both.
_MAX_ELEMENTS = 1_500_000
_MAX_ATTRIBUTES = 2_000_000
_MAX_OTHER_ELEMENTS = 100_000  # in the parts that are neither rows nor texts; openpyxl takes much longer for those
_MAX_CHARS = 10_000_000  # of all cells: many cells may have one long text in common
_ROWS_OR_TEXTS = re.compile(r"xl/(?:worksheets/[^/]+|sharedstrings)\.xml", re.IGNORECASE)
_CHUNK_BYTES = 2**20
_OVERLAP_BYTES = 16
_DECLARED_ENCODING = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)")
_ENCODINGS = (b"utf-8", b"utf-16", b"us-ascii", b"ascii")
_MAX_SHEET_ROWS = 2**20  # as in Excel
_MAX_CELLS = 101  # a column more than a sheet may have, so that it is noticed
_one_at_a_time = threading.Lock()
_UNREADABLE = "row 1: this is not a workbook (.xlsx) that can be read; save it again, or as “CSV UTF-8”"


def read_records(data: bytes) -> Iterator[Record]:
    """Some of them are blank."""
    return _xlsx_records(data) if data.startswith(_XLSX_SIGNATURE) else _csv_records(_decode(data))


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


def _xlsx_records(data: bytes) -> Iterator[Record]:
    """Without blank ones. Each is as long as the first, or longer."""
    with _one_at_a_time:
        try:
            _require_modest(data)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
            raise Unprocessable(_UNREADABLE) from None
        try:
            yield from _cells_of_book(data)
        except (MemoryError, TooLarge):
            raise
        except Exception:  # openpyxl raises whatever it meets in a file that is no workbook
            raise Unprocessable(_UNREADABLE) from None


def _cells_of_book(data: bytes) -> Iterator[Record]:
    import openpyxl  # takes a seventh of a second

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    try:
        # The limits, as the workbook may announce other dimensions than it has.
        rows = book.worksheets[0].iter_rows(values_only=True, max_col=_MAX_CELLS, max_row=_MAX_SHEET_ROWS)
        width = num_chars = 0
        for number, values in enumerate(rows, start=1):
            length = len(values)
            if values.count(None) == length:  # one row far below the others makes a million of these
                continue
            while values[length - 1] is None:
                length -= 1
            cells = [_cell_text(value) for value in values[: max(length, width)]]
            num_chars += sum(map(len, cells))
            if num_chars > _MAX_CHARS:
                raise _too_large()
            yield number, cells
            width = width or length
    finally:
        book.close()


def _cell_text(value: Any) -> str:
    """As it would stand in a CSV: 349000.0 is 349000."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _require_modest(data: bytes) -> None:
    """The sizes in a zip's directory may be wrong; zipfile never unpacks more of a part than its directory says."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
        if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > _MAX_UNPACKED_BYTES:
            raise _too_large()
        elements = attributes = other_elements = 0
        for part in parts:
            for text in _texts(archive, part):
                num_elements = text.count(b"<") - text.count(b"</")
                elements += num_elements
                attributes += text.count(b"=")
                other_elements += 0 if _ROWS_OR_TEXTS.fullmatch(part.filename) else num_elements
            is_modest = elements <= _MAX_ELEMENTS and attributes <= _MAX_ATTRIBUTES
            if not is_modest or other_elements > _MAX_OTHER_ELEMENTS:
                raise _too_large()


def _texts(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """The part in pieces. Refuses a DTD, whose entities multiply text, and encodings in which it would not be seen."""
    end = b""
    with archive.open(part) as file:
        while chunk := file.read(_CHUNK_BYTES):
            text = chunk.translate(None, b"\0")  # UTF-16 is ASCII with NULs
            if b"<!DOCTYPE" in end + text or b"<!ENTITY" in end + text:
                raise Unprocessable(_UNREADABLE)
            if not end and (encoding := _DECLARED_ENCODING.search(text[:500])):
                if encoding[1].lower() not in _ENCODINGS:
                    raise Unprocessable(_UNREADABLE)
            yield text
            end = text[-_OVERLAP_BYTES:]


def _too_large() -> TooLarge:
    return TooLarge("This workbook unpacks to too much: save its first sheet alone, or as “CSV UTF-8”.")
