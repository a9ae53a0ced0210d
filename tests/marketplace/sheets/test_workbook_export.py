"""All goods of a shop as a workbook."""

import io
from typing import Any

import httpx2
import openpyxl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marketplace.sheets.test_preview import send
from tests.marketplace.sheets.test_routes import counts
from tests.marketplace.shop import Shop
from tis.marketplace.sheets.columns import COLUMNS
from tis.marketplace.sheets.rows import read_rows
from tis.marketplace.sheets.upload import XLSX
from tis.marketplace.sheets.workbook import workbook_parts

PRODUCT: dict[str, Any] = {
    **dict.fromkeys(COLUMNS),
    "name": "Tas <kulit> & tali\nbaru",
    "price": 10**13,
    "stock_quantity": 0,
    "category": "=1+1",
    "condition": "used",
    "is_available": False,
    "pictures": ["https://example.com/a.jpg", "https://example.com/b.jpg"],
}


def workbook_of(*batches: list[dict[str, Any]]) -> bytes:
    return b"".join(workbook_parts(batches))


def test_a_spreadsheet_reads_numbers_as_numbers_and_formulas_as_texts() -> None:
    rows = openpyxl.load_workbook(io.BytesIO(workbook_of([PRODUCT]))).worksheets[0]
    header, values = ([cell.value for cell in row] for row in rows.iter_rows())
    assert header == list(COLUMNS)
    seen = dict(zip(header, values, strict=True))
    assert (seen["price"], seen["stock_quantity"], seen["is_available"]) == (10**13, 0, "false")
    assert seen["name"] == PRODUCT["name"] and seen["category"] == "'=1+1" and seen["sku"] is None


def test_an_export_is_imported_without_a_change(laptop: httpx2.Client, shop: Shop) -> None:
    """More than a batch of the export."""
    rows = "".join(f"S{number},Tas {number},{5000 + number},tas,-x\n" for number in range(501))
    assert counts(send(laptop, shop.id, "sku,name,price,category,description\n" + rows)) == (501, 0, 0, 0)
    answer = laptop.get(f"/api/suppliers/{shop.id}/products/export?format=xlsx")
    assert answer.status_code == 200 and answer.headers["content-type"] == XLSX
    assert answer.headers["content-disposition"].endswith('.xlsx"')
    assert counts(send(laptop, shop.id, answer.content)) == (0, 0, 501, 0)
    assert laptop.get(f"/api/suppliers/{shop.id}/products/export?format=ods").status_code == 422


def test_a_shop_without_goods_exports_the_header(laptop: httpx2.Client, shop: Shop) -> None:
    data = laptop.get(f"/api/suppliers/{shop.id}/products/export?format=xlsx").content
    rows = list(openpyxl.load_workbook(io.BytesIO(data)).worksheets[0].iter_rows(values_only=True))
    assert rows == [tuple(COLUMNS)]


@settings(max_examples=30, deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_any_text_makes_a_workbook_that_can_be_read(text: str) -> None:
    sheet = read_rows(workbook_of([{**PRODUCT, "name": f"a{text}", "category": "tas", "pictures": None}]))
    assert sheet.num_rows == 1 and all(one.field == "name" for one in sheet.problems)
