"""Writes a workbook (.xlsx) while its rows are read: a zip of XML, of which no more than a batch is in memory.

openpyxl would need the whole of it first.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any
from xml.sax.saxutils import escape

from tis.marketplace.sheets.columns import COLUMNS
from tis.marketplace.sheets.rows import cell_text

_NUMBERS = ("price", "stock_quantity")
_NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_OPEN = "http://schemas.openxmlformats.org"
_RELATIONS = f"{_OPEN}/officeDocument/2006/relationships"
_PACKAGE = f"{_OPEN}/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_SHEET_PATH = "xl/worksheets/sheet1.xml"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/{_SHEET_PATH}" ContentType="{_TYPE}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_OPEN}/spreadsheetml/2006/main" xmlns:r="{_RELATIONS}">'
    '<sheets><sheet name="products" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}
_BEGIN = f'<worksheet xmlns="{_OPEN}/spreadsheetml/2006/main"><sheetData>'
_END = "</sheetData></worksheet>"


class _Sent:
    """What zipfile has written and nobody has taken yet. As it cannot be rewound, the sizes stand behind each part."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes) -> int:
        self._data += data
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        data = bytes(self._data)
        self._data.clear()
        return data


def workbook_parts(batches: Iterable[list[dict[str, Any]]]) -> Iterator[bytes]:
    """One sheet, with the header of an export as CSV."""
    sent = _Sent()
    with zipfile.ZipFile(sent, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for name, content in _PARTS.items():
            archive.writestr(name, _XML + content)
        with archive.open(_SHEET_PATH, "w") as sheet:
            sheet.write((_XML + _BEGIN + _row([_text_cell(name) for name in COLUMNS])).encode())
            for rows in batches:
                sheet.write("".join(_row(_cells(row)) for row in rows).encode())
                yield sent.take()
            sheet.write(_END.encode())
    yield sent.take()


def _cells(row: dict[str, Any]) -> list[str]:
    return [f"<c><v>{row[name]}</v></c>" if name in _NUMBERS else _text_cell(cell_text(row[name])) for name in COLUMNS]


def _text_cell(text: str) -> str:
    """Cells without a reference stand behind each other, so an empty one is written, too."""
    text = escape(_NOT_XML.sub("", text))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>' if text else "<c/>"


def _row(cells: list[str]) -> str:
    return f"<row>{''.join(cells)}</row>"
