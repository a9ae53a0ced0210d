"""Import and export of the product sheet over HTTP."""

import csv
import io
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from tests.marketplace.sheets.test_xlsx import workbook
from tests.marketplace.shop import Shop
from tis.marketplace.sheets.upload import MAX_SHEET_BYTES, XLSX
from tis.marketplace.tables import AuditEntry, PriceChange, Product

HEADER = "sku,name,price,stock_quantity,category\n"


def send(client: httpx2.Client, supplier: int, sheet: str | bytes, **how: Any) -> httpx2.Response:
    data = sheet.encode() if isinstance(sheet, str) else sheet
    headers = {"Content-Type": "text/csv"} | how.pop("headers", {})
    return client.post(f"/api/suppliers/{supplier}/products/import", content=data, params=how, headers=headers)


def counts(answer: httpx2.Response) -> tuple[int, int, int, int]:
    said = answer.json()
    return said["created"], said["updated"], said["unchanged"], len(said["errors"])


def goods_of(shop: Shop, supplier: int) -> dict[str | None, Product]:
    with shop.market.reading() as session:
        rows = session.scalars(select(Product).where(Product.supplier_id == supplier, Product.deleted_at.is_(None)))
        return {product.sku: product for product in rows}


def prices_of(shop: Shop, product_id: int) -> list[int]:
    with shop.market.reading() as session:
        lines = select(PriceChange.price).where(PriceChange.product_id == product_id).order_by(PriceChange.id)
        return list(session.scalars(lines))


def test_a_sheet_creates_new_products_and_changes_known_ones(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    first = send(laptop, supplier, HEADER + "A,Laptop,15.999.000,5,Laptop\nB,Mouse,99000,10,mouse\n,Tas,50000,1,tas\n")
    assert first.status_code == 200 and counts(first) == (3, 0, 0, 0) and first.json()["dry_run"] is False
    laptop_before = goods_of(shop, supplier)["A"]
    assert (laptop_before.price, laptop_before.on_hand, laptop_before.category_key) == (15_999_000, 5, "laptop")

    second = send(laptop, supplier, "price;sku;stock_quantity\n14999000;A;3\n;B;10\n")
    assert counts(second) == (0, 1, 1, 0)
    changed = goods_of(shop, supplier)["A"]
    assert (changed.id, changed.price, changed.name) == (laptop_before.id, 14_999_000, "Laptop")
    assert changed.version == laptop_before.version + 1
    assert shop.stock_ledger(changed.id) == shop.stock_columns(changed.id) == (3, 0)
    assert prices_of(shop, changed.id) == [15_999_000, 14_999_000]
    with shop.market.reading() as session:
        noted = list(session.scalars(select(AuditEntry).where(AuditEntry.entity_id == str(changed.id))))
    assert [one.action for one in noted] == ["create", "change"]
    assert noted[1].changes == {"price": [15_999_000, 14_999_000], "stock_quantity": [5, 3]}


def test_a_product_of_a_sheet_is_logged_as_any_other(laptop: httpx2.Client, shop: Shop) -> None:
    """Cells that are empty are no changes."""
    supplier = shop.supplier()
    assert counts(send(laptop, supplier, "name,price,category,tags,sku\nTas,50000,tas,,\n")) == (1, 0, 0, 0)
    form = {"name": "Tas", "price": 50000, "category": "tas", "stock_quantity": 0}
    made = laptop.post(f"/api/suppliers/{supplier}/products", json=form).json()["id"]
    with shop.market.reading() as session:
        ids = [str(made - 1), str(made)]
        of_sheet, of_form = session.scalars(select(AuditEntry).where(AuditEntry.entity_id.in_(ids)).order_by("id"))
    given = {"name": [None, "Tas"], "price": [None, 50000], "category": [None, "tas"]}
    assert of_sheet.changes == given and of_form.changes.items() >= given.items()
    assert (of_sheet.action, of_form.action) == ("create", "create")
    assert None not in [after for _, after in of_form.changes.values()]


def test_options_in_the_form_are_refused_and_not_ignored(laptop: httpx2.Client, shop: Shop) -> None:
    """`curl -F dry_run=1` must not import the sheet."""
    supplier = shop.supplier()
    path, sheet = f"/api/suppliers/{supplier}/products/import", (HEADER + "A,Laptop,5000,5,laptop\n").encode()
    refused = laptop.post(path, files={"file": ("goods.csv", sheet, "text/csv")}, data={"dry_run": "1"})
    assert refused.status_code == 422 and "`dry_run`" in refused.json()["detail"]
    assert goods_of(shop, supplier) == {}


def test_a_sheet_can_be_the_file_of_a_form(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    path = f"/api/suppliers/{supplier}/products/import"
    sheet = ("\ufeff" + HEADER + "A,Laptop,5000,5,laptop\n").encode()
    assert counts(laptop.post(path, files={"file": ("goods.csv", sheet, "text/csv")})) == (1, 0, 0, 0)
    assert laptop.post(path, files={"other": ("goods.csv", sheet, "text/csv")}).status_code == 422
    two = [("file", (name, sheet, "text/csv")) for name in ("a.csv", "b.csv")]
    assert laptop.post(path, files=two).json() == {"detail": "The form has more than one `file`."}
    broken = {"Content-Type": "multipart/form-data; boundary=x"}
    assert laptop.post(path, content=b"no form", headers=broken).status_code == 400


def test_a_dry_run_reports_and_changes_nothing(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    answer = send(laptop, supplier, HEADER + "A,Laptop,5000,5,laptop\nB,,x,5,\n", dry_run=1)
    assert answer.status_code == 200 and answer.json()["dry_run"] is True
    assert counts(answer) == (1, 0, 0, 1) and goods_of(shop, supplier) == {}


def test_a_dry_run_says_how_each_column_is_read(laptop: httpx2.Client, shop: Shop) -> None:
    sheet = "Nama Barang,Catatan,Harga (Rp),Stok,,Kategori\nTas,dari Budi,Rp349.000,5,,tas\n"
    answer = send(laptop, shop.id, sheet, dry_run=1)
    assert answer.status_code == 200 and answer.json()["columns"] == [
        {"position": 1, "column": "Nama Barang", "field": "name"},
        {"position": 2, "column": "Catatan", "field": None},
        {"position": 3, "column": "Harga (Rp)", "field": "price"},
        {"position": 4, "column": "Stok", "field": "stock_quantity"},
        {"position": 6, "column": "Kategori", "field": "category"},
    ]
    [unknown] = answer.json()["errors"]
    assert (unknown["row"], unknown["field"]) == (1, "Catatan") and "?ignore_unknown=1" in unknown["message"]
    refused = send(laptop, shop.supplier(), sheet, partial=1)
    assert refused.status_code == 422 and "`Catatan`" in refused.json()["detail"]
    supplier = shop.supplier()
    done = send(laptop, supplier, sheet, ignore_unknown=1)
    assert counts(done) == (1, 0, 0, 0) and "columns" not in done.json()
    assert goods_of(shop, supplier)[None].price == 349_000


def test_a_workbook_is_imported_as_a_body_and_as_a_file(laptop: httpx2.Client, shop: Shop) -> None:
    supplier, data = shop.supplier(), workbook(["kode", "nama", "harga", "kategori"], ["A", "Tas", 349000.0, "tas"])
    assert counts(send(laptop, supplier, data, headers={"Content-Type": XLSX})) == (1, 0, 0, 0)
    path = f"/api/suppliers/{supplier}/products/import"
    assert counts(laptop.post(path, files={"file": ("goods.xlsx", data, XLSX)})) == (0, 0, 1, 0)
    assert goods_of(shop, supplier)["A"].price == 349_000


@pytest.mark.parametrize("kind", ["body", "form"])
def test_a_sheet_sent_again_with_its_key_adds_nothing(laptop: httpx2.Client, shop: Shop, kind: str) -> None:
    """Rows without a SKU would be new products each time. The boundaries of two forms differ, their files do not."""
    supplier, sheet = shop.supplier(), "name,price,category\nTas,50000,tas\n"
    key = {"Idempotency-Key": f"sheet-{kind}"}

    def sent(data: str) -> httpx2.Response:
        if kind == "body":
            return send(laptop, supplier, data, headers=key)
        path = f"/api/suppliers/{supplier}/products/import"
        return laptop.post(path, files={"file": ("goods.csv", data.encode(), "text/csv")}, headers=key)

    first, again = sent(sheet), sent(sheet)
    assert counts(first) == counts(again) == (1, 0, 0, 0) and first.content == again.content
    assert "idempotent-replayed" not in first.headers and again.headers["idempotent-replayed"] == "true"
    assert sent(sheet + "Topi,20000,topi\n").status_code == 422
    assert len(laptop.get(f"/api/suppliers/{supplier}/products/export").text.splitlines()) == 2


def test_a_refused_sheet_may_be_sent_again_with_its_key(laptop: httpx2.Client, shop: Shop) -> None:
    supplier, key = shop.supplier(), {"Idempotency-Key": "sheet-refused"}
    product = shop.product(supplier_id=supplier, sku="A", on_hand=5)
    held = laptop.post(f"/api/products/{product}/reservations", json={"quantity": 3}).json()["id"]
    assert send(laptop, supplier, "sku,stock_quantity\nA,2\n", headers=key).status_code == 422
    assert laptop.post(f"/api/reservations/{held}/release").status_code == 200
    assert counts(send(laptop, supplier, "sku,stock_quantity\nA,2\n", headers=key)) == (0, 1, 0, 0)


def test_one_wrong_row_refuses_the_sheet_unless_partial_is_set(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    sheet = HEADER + "A,Laptop,5000,5,laptop\nB,Mouse,-1,5,mouse\nA,Twice,1,1,x\nC,,,1,x\n"
    refused = send(laptop, supplier, sheet)
    assert refused.status_code == 422 and counts(refused) == (0, 0, 0, 4)
    assert refused.json()["detail"] == "Nothing was imported. Wrong rows: 3."
    wrong = [(one["row"], one["field"]) for one in refused.json()["errors"]]
    assert wrong == [(3, "price"), (4, "sku"), (5, "name"), (5, "price")]
    assert goods_of(shop, supplier) == {}
    kept = send(laptop, supplier, sheet, partial=1)
    assert kept.status_code == 200 and counts(kept) == (1, 0, 0, 4) and list(goods_of(shop, supplier)) == ["A"]


def test_stock_is_not_set_below_what_is_reserved(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    product = shop.product(supplier_id=supplier, sku="A", on_hand=5)
    laptop.post(f"/api/products/{product}/reservations", json={"quantity": 3})
    refused = send(laptop, supplier, "sku,stock_quantity\nA,2\n")
    assert refused.json()["errors"] == [
        {"row": 2, "field": "stock_quantity", "message": "must be at least 3, the reserved units"}
    ]
    assert send(laptop, supplier, "sku,stock_quantity\nA,3\n").status_code == 200
    assert shop.stock_columns(product) == (3, 3)


def test_deleted_products_and_those_of_others_stay_unchanged(laptop: httpx2.Client, shop: Shop) -> None:
    supplier, other = shop.supplier(), shop.supplier()
    theirs = shop.product(supplier_id=other, sku="A")
    gone = shop.product(supplier_id=supplier, sku="A")
    assert laptop.delete(f"/api/products/{gone}").status_code == 200
    assert counts(send(laptop, supplier, HEADER + "A,Laptop,5000,7,laptop\n")) == (1, 0, 0, 0)
    assert shop.stock_columns(theirs) == shop.stock_columns(gone) == (5, 0)


@pytest.mark.parametrize(
    ("sheet", "status"),
    [
        ("name,prise\n", 422),
        (b"name\n\xff\n", 422),
        ('name\n"A\n', 422),
        ("name\n" + "x" * 200_000, 422),
        ("name,price,category\n" + "x" * 300 + ",1,a\n", 422),
        (b"x" * (MAX_SHEET_BYTES + 1), 413),
        (b"x" * (MAX_SHEET_BYTES + 100_000), 413),
        ("", 422),
    ],
    ids=range(8),
)
def test_an_invalid_sheet_is_refused(laptop: httpx2.Client, shop: Shop, sheet: str | bytes, status: int) -> None:
    answer = send(laptop, shop.id, sheet)
    assert answer.status_code == status and answer.json()["detail"]


def test_the_sheet_of_an_unknown_supplier_is_a_404(laptop: httpx2.Client) -> None:
    assert send(laptop, 999_999, HEADER).status_code == 404
    assert laptop.get("/api/suppliers/999999/products/export").status_code == 404


def test_an_exported_sheet_imports_without_changes(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    for number, name in enumerate(["=1+1", "'@SUM(A1)", "-5%", 'He said "hi"\nand left', "a;b,c", "Kopi ☕"]):
        shop.product(supplier_id=supplier, sku=f"+{number}", name=name, tags="a,b", description=None, brand=name)
    answer = laptop.get(f"/api/suppliers/{supplier}/products/export")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="products-{supplier}.csv"'
    cells = [cell for row in csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")) for cell in row]
    assert len(cells) == 91 and not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert counts(send(laptop, supplier, answer.content)) == (0, 0, 6, 0)


@pytest.mark.slow
@pytest.mark.long
def test_five_thousand_rows_are_imported_and_exported(laptop: httpx2.Client, shop: Shop) -> None:
    supplier = shop.supplier()
    sheet = HEADER + "".join(f"S-{number},Barang {number},{1000 + number},5,lain\n" for number in range(5000))
    assert counts(send(laptop, supplier, sheet)) == (5000, 0, 0, 0)
    assert counts(send(laptop, supplier, sheet.replace(",5,", ",6,"))) == (0, 5000, 0, 0)
    exported = laptop.get(f"/api/suppliers/{supplier}/products/export").content
    assert counts(send(laptop, supplier, exported)) == (0, 0, 5000, 0)
    product = goods_of(shop, supplier)["S-4999"].id
    assert shop.stock_ledger(product) == shop.stock_columns(product) == (6, 0)


def test_only_members_import_and_export_sheets(internet: httpx2.Client, strict_shop: Shop) -> None:
    shop = strict_shop
    seller, rival = (shop.auth_headers(f"supplier:{one}") for one in (shop.id, shop.supplier()))
    path = f"/api/suppliers/{shop.id}/products/export"
    assert [internet.get(path, headers=who).status_code for who in ({}, rival, seller)] == [401, 403, 200]
    answers = [send(internet, shop.id, HEADER + "A,B,1,1,c\n", headers=who) for who in ({}, rival, seller)]
    assert [answer.status_code for answer in answers] == [401, 403, 200]
    # Before the sheet is read, so that strangers do not make the server hold megabytes.
    too_large = [send(internet, shop.id, b"x" * (MAX_SHEET_BYTES + 1), headers=who) for who in ({}, rival, seller)]
    assert [answer.status_code for answer in too_large] == [401, 403, 413]
