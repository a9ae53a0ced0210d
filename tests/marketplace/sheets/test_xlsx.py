"""Workbooks (.xlsx): what a spreadsheet writes is read, and what would exhaust the server is refused."""

import io
import zipfile
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tis.errors import ServiceError, TooLarge, Unprocessable
from tis.marketplace.sheets.rows import read_rows

MEBIBYTE = b" " * 2**20


def workbook(*rows: list[Any]) -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.worksheets[0].append(row)
    book.create_sheet("Other").append(["name", "nonsense"])
    book.save(file)
    return file.getvalue()


GOODS = workbook(["Nama", "Harga"], ["Tas", 50000])
SHEET = "xl/worksheets/sheet1.xml"


def changed(**parts: bytes | None) -> bytes:
    """`GOODS` with other parts, or without them."""
    names = {"sheet": SHEET, "styles": "xl/styles.xml", "book": "xl/workbook.xml", "types": "[Content_Types].xml"}
    names["strings"] = "xl/sharedStrings.xml"
    new = {names[name]: content for name, content in parts.items()}
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(GOODS)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ({part: old.read(part) for part in old.namelist()} | new).items():
            if content is not None:
                archive.writestr(name, content)
    return file.getvalue()


def part_of(name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(GOODS)) as archive:
        return archive.read(name)


def test_the_first_sheet_is_read_with_numbers_as_they_are_shown() -> None:
    sheet = read_rows(
        workbook(
            [],
            ["Kode", "Nama", None, "Harga (Rp)", "Stok", "Tersedia", "Kategori", None],
            [12345, "Tas kulit", None, 349000.0, 5, True, "tas"],
            [None, None, None, None],
            ["B-2", "Topi", None, "Rp349.000,00", 7.0, "tidak", "topi"],
        )
    )
    assert not sheet.problems and [row.number for row in sheet.rows] == [3, 5]
    tas = {"sku": "12345", "name": "Tas kulit", "price": 349_000, "stock_quantity": 5}
    topi = {"sku": "B-2", "name": "Topi", "price": 349_000, "stock_quantity": 7}
    assert [row.values for row in sheet.rows] == [
        tas | {"is_available": True, "category": "tas"},
        topi | {"is_available": False, "category": "topi"},
    ]


def test_wrong_cells_are_reported_with_their_rows() -> None:
    sheet = read_rows(workbook(["name", "price"], ["Tas", 0.5], ["Topi", 1000, "more"], ["Baju", "#N/A"]))
    assert sheet.rows == [] and [(one.row, one.field) for one in sheet.problems] == [
        (2, "price"),
        (3, None),
        (4, "price"),
    ]


def test_a_sheet_that_announces_wrong_dimensions_is_read_whole() -> None:
    """Some programs write `A1` there, whatever follows."""
    assert b'ref="A1:B2"' in part_of(SHEET)
    sheet = read_rows(changed(sheet=part_of(SHEET).replace(b'ref="A1:B2"', b'ref="A1"')))
    assert sheet.rows[0].values == {"name": "Tas", "price": 50_000}


def test_a_cell_far_away_costs_nothing() -> None:
    book, file = openpyxl.load_workbook(io.BytesIO(GOODS)), io.BytesIO()
    book.worksheets[0]["XFD1048576"] = 1
    book.save(file)
    assert len(read_rows(file.getvalue()).rows) == 1


SHARED = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    b'<row><c t="s"><v>1</v></c><c t="s"><v>0</v></c></row>'
    b'<row r="7"><c r="A7" t="s"><v>2</v></c><c r="B7"><f>6*7</f><v>42</v></c></row></sheetData></worksheet>'
)
SST = b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
STRINGS = (
    b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>price</t></si><si><t>name</t></si>'
    b"<si><r><t>Tas </t></r><r><t>kulit</t></r></si></sst>"
)
TYPES = part_of("[Content_Types].xml").replace(
    b"</Types>",
    b'<Override PartName="/xl/sharedStrings.xml" ContentType='
    b'"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>',
)


def test_shared_texts_and_the_values_of_formulas_are_read() -> None:
    [row] = read_rows(changed(sheet=SHARED, strings=STRINGS, types=TYPES)).rows
    assert (row.number, row.values) == (7, {"name": "Tas kulit", "price": 42})


MANY_CELLS = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>' + (
    b'<row><c t="inlineStr"><is><t>description</t></is></c></row>'
    + b'<row><c t="s"><v>0</v></c></row>' * 101
    + b"</sheetData></worksheet>"
)
DTD = b'<?xml version="1.0"?><!DOCTYPE worksheet [<!ENTITY a "aaaaaaaaaa">]><worksheet>&a;</worksheet>'
EBCDIC = b'<?xml version="1.0" encoding="cp037"?>' + "<worksheet/>".encode("cp037")


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04",
        b"PK\x03\x04" + b"x" * 1000,
        GOODS[:-100],
        GOODS[: len(GOODS) // 2],
        changed(book=None),
        changed(sheet=b"no xml"),
        changed(sheet=b"<worksheet>" + b"<a>" * 10_000),
        changed(sheet=part_of(SHEET).replace(b'r="1"', b'r="x"', 1)),
        changed(sheet=SHARED, strings=b"<sst/>", types=TYPES),
        changed(sheet=DTD),
        changed(sheet=DTD.decode().encode("utf-16")),
        changed(sheet=EBCDIC),
    ],
    ids=range(12),
)
def test_what_is_no_workbook_is_refused(data: bytes) -> None:
    with pytest.raises(Unprocessable) as refused:
        read_rows(data)
    assert refused.value.message.startswith("row 1: this is not a workbook (.xlsx) that can be read")


@pytest.mark.parametrize(
    "data",
    [
        changed(sheet=MEBIBYTE * 65),
        changed(sheet=b"<a/>" * 1_500_001),
        changed(sheet=b"<a " + b'a="" ' * 2_000_001 + b"/>"),
        changed(sheet="<a/>".encode("utf-16-le") * 1_500_001),
        changed(styles=b"<a/>" * 100_001),
        changed(sheet=MANY_CELLS, strings=SST + b"<si><t>" + b"x" * 100_000 + b"</t></si></sst>", types=TYPES),
    ],
    ids=["bytes", "cells", "attributes", "UTF-16", "styles", "one text in many cells"],
)
def test_what_unpacks_to_too_much_is_refused_before_it_is_parsed(data: bytes) -> None:
    assert len(data) < 200_000
    with pytest.raises(TooLarge):
        read_rows(data)


def test_a_part_is_not_unpacked_beyond_the_size_that_the_directory_says() -> None:
    data = bytearray(changed(sheet=MEBIBYTE * 10))
    size = (10 * 2**20).to_bytes(4, "little")
    assert data.count(size) == 2
    with pytest.raises(Unprocessable):
        read_rows(bytes(data).replace(size, (100).to_bytes(4, "little")))


@settings(max_examples=60)
@given(st.integers(0, len(GOODS) - 1), st.binary(min_size=1, max_size=8))
def test_a_damaged_workbook_is_read_or_refused(place: int, noise: bytes) -> None:
    try:
        read_rows(GOODS[:place] + noise + GOODS[place + len(noise) :])
    except ServiceError as refused:
        assert refused.status in (413, 422)
