"""Sheets for the import of products that are none, bombs, or no end of rows."""

import io
import zipfile
from collections.abc import Iterator

from tests.faults.hostile.row import Row

_IMPORT = "/api/suppliers/$supplier/products/import"


def rows() -> Iterator[Row]:
    xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    head = b"name,price,stock_quantity,category,sku\n"
    for name, (kind, body) in {
        "nothing": ("text/csv", b""),
        "zeros": ("text/csv", bytes(500_000)),
        "noise": ("text/csv", bytes(range(256)) * 2000),
        "one line of 3 MB": ("text/csv", b"x" * 3_000_000),
        "a million commas": ("text/csv", b"," * 1_000_000),
        "5,000 columns": ("text/csv", b"a," * 5000 + b"\n" + b"1," * 5000),
        "an open quote": ("text/csv", head + b'"' + b"x" * 2_000_000),
        "quotes": ("text/csv", head + b'"' * 1_000_000),
        "100,000 rows": ("text/csv", head + b"a,1,1,b,c\n" * 100_000),
        "20,000 wrong rows": ("text/csv", head + b"a,x,y,b,\n" * 20_000),
        "formulas": ("text/csv", head + b"=cmd|'/c calc'!A1,1,1,b,s1\n"),
        "UTF-16": ("text/csv", (head * 50).decode().encode("utf-16")),
        "columns twice": ("text/csv", b"name,name,name\n1,2,3\n"),
        "no zip": (xlsx, b"x" * 5000),
        "half a zip": (xlsx, b"PK\3\4" + b"\xff" * 5000),
        "a zip of nothing": (xlsx, _zip({})),
        "a zip of paths": (xlsx, _zip({"../../etc/passwd": b"x", "xl/workbook.xml": b"<x/>"})),
        "a bomb": (xlsx, _zip({"[Content_Types].xml": bytes(300_000_000)})),
        "a sheet of entities": (xlsx, _zip(_WORKBOOK | {"xl/worksheets/sheet1.xml": _ENTITIES})),
        "a sheet that is a bomb": (xlsx, _zip(_WORKBOOK | {"xl/worksheets/sheet1.xml": b"<a>" + b" " * 200_000_000})),
        "a sheet, deep": (xlsx, _zip(_WORKBOOK | {"xl/worksheets/sheet1.xml": b"<a>" * 500_000})),
        "30,000 files": (xlsx, _zip({f"f{number}": b"" for number in range(30_000)})),
        "of another kind": ("image/png", b"\x89PNG" + bytes(500)),
        "JSON": ("application/json", b"[]"),
    }.items():
        row = Row(
            f"sheet: {name}",
            (200, 400, 413, 415, 422, 429),
            "POST",
            f"{_IMPORT}?dry_run=1",
            body,
            {"Content-Type": kind},
        )
        yield Row(row.name, row.statuses, row.method, row.path, body, row.headers, account="supplier")
    yield Row(
        "sheet: of somebody else", (403, 404), "POST", _IMPORT, head, {"Content-Type": "text/csv"}, account="mallory"
    )
    yield Row("sheet: of nobody, 9 MB", (401, 413), "POST", _IMPORT, bytes(9_000_000), {"Content-Type": "text/csv"})


_ENTITIES = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><worksheet>&b;</worksheet>'
_WORKBOOK = {
    "[Content_Types].xml": b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    "xl/workbook.xml": b'<workbook><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
}


def _zip(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return file.getvalue()
