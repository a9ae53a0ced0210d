"""The desk of a shop: its goods are edited in their cells, changed by many, and imported from sheets."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import FilePayload, Locator, Page, Route, expect

from tests.browser.conftest import Visitor
from tests.browser.desk_page import DeskPage
from tests.browser.looks import (
    DARK_DESKTOP,
    DESKTOP,
    LIGHT_PHONE,
    PHONE,
    on_both_screens,
    on_both_screens_too,
    with_a_database_each,
)
from tests.browser.page_watch import require_accessible
from tests.databases import new_sqlite
from tests.marketplace.conftest import SECRET
from tests.marketplace.pictures.photos import photo
from tests.marketplace.postgres import Postgres
from tests.serving import Served, pictures_url, served, settings_with

_EMAIL, _PASSWORD = "sari@example.com", "a long sentence"
_PLACE = {"latitude": -6.2, "longitude": 106.8, "city": "Jakarta"}
_HEADER = "Kode;Nama Barang;Harga (Rp);Stok;Jenis;Kondisi"
# The row of the sheet, its cells, and which of them is mended how.
_FAULTS = {
    21: (["B-021", "Barang 021", "lima puluh ribu", "5", "tas", "baru"], "price", "50.000"),
    77: (["B-077", "Barang 077", "50000", "-3", "tas", "baru"], "stock_quantity", "3"),
    140: (["B-140", "", "50000", "5", "tas", "baru"], "name", "Barang 140"),
    200: (["B-200", "Barang 200", "50000", "5", "tas", "rusak"], "condition", "bekas"),
    301: (["B-002", "Barang 301", "50000", "5", "tas", "baru"], "sku", "B-301"),
    402: (["B-402", "Barang 402", "0", "5", "tas", "baru"], "price", "Rp 1.500"),
    499: (["B-499", "Barang 499", "50000", "5", "", "baru"], "category", "tas"),
}


def sheet_with_faults() -> str:
    rows = (
        _FAULTS[row][0] if row in _FAULTS else [f"B-{row:03}", f"Barang {row:03}", "50.000", "5", "tas", "baru"]
        for row in range(2, 502)
    )
    return "\n".join([_HEADER, *(";".join(row) for row in rows)]) + "\n"


class Seller:
    """A user who owns a shop, and what a program of theirs does to it."""

    def __init__(self, http: httpx2.Client) -> None:
        account = {"name": "Sari Specimen", "email": _EMAIL, "password": _PASSWORD}
        made = http.post("/api/auth/register", json=account)
        assert made.status_code == 200, made.text
        self.http, self.headers = http, {"Authorization": f"Bearer {made.json()['access_token']}"}
        shop = {"name": "Sari Specimen", "business_name": "Kios Sari", "email": "kios@example.com", **_PLACE}
        self.shop = http.post("/api/suppliers/register", json=shop, headers=self.headers).json()["id"]

    def add(self, name: str, price: int, stock: int, **more: object) -> int:
        form = {"name": name, "price": price, "stock_quantity": stock, "category": "laptop", **more}
        answer = self.http.post(f"/api/suppliers/{self.shop}/products", json=form, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["id"])

    def change(self, product: int, **fields: object) -> None:
        self.http.put(f"/api/products/{product}", json=fields, headers=self.headers).raise_for_status()

    def goods(self) -> dict[str, int]:
        """Prices by name."""
        answer = self.http.get(f"/api/suppliers/{self.shop}/products?limit=500&sort=name", headers=self.headers)
        return {one["name"]: one["price"] for one in answer.json()}


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return new_sqlite(tmp_path)
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_market(tmp_path.name)


@pytest.fixture
def server(database_url: str) -> Iterator[Served]:
    settings = settings_with(
        database_url=database_url,
        jwt_secret_key=SECRET,
        assistant_model="off",
        pictures_url=pictures_url(),
        imports_per_hour=0,
    )
    with served(settings) as running:
        yield running


@pytest.fixture
def seller(server: Served) -> Iterator[Seller]:
    with httpx2.Client(base_url=server.url, timeout=30) as http:
        yield Seller(http)


def desk_of(visitor: Visitor, server: Served, part: str = "goods") -> DeskPage:
    desk = DeskPage(visitor.open(f"{server.url}/desk#/{part}"), visitor.look)
    desk.sign_in(_EMAIL, _PASSWORD)
    return desk


@pytest.mark.slow
@with_a_database_each("database_url", DESKTOP, PHONE, scope="function")
def test_a_seller_imports_a_sheet_mends_its_cells_edits_a_price_and_raises_many(
    visitor: Visitor, server: Served, seller: Seller
) -> None:
    visitor.expected = ("422",)  # of the import that is refused
    desk = desk_of(visitor, server, "sheets")
    page, t = desk.page, desk.t
    expect(desk.button("sheets.choose")).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-sheets")
    desk.drop_sheet("barang.csv", sheet_with_faults())
    expect(page.get_by_text(t("sheets.rows", number=500), exact=True)).to_be_visible()
    # One column has a name that nobody knows.
    column = page.get_by_role("combobox", name=t("sheets.column.is", name="Jenis"), exact=True).first
    expect(column).to_have_value("")
    column.select_option("category")
    expect(page.get_by_text(t("sheets.wrong", number=7), exact=True)).to_be_visible()
    visitor.whole_picture(page, "desk-sheet-faults")
    for row, (_, field, mended) in _FAULTS.items():
        cell = desk.sheet_cell(field, row)
        expect(cell).to_have_attribute("aria-invalid", "true")
        if row != 499:
            cell.fill(mended)
    require_accessible(page)
    desk.button("sheets.import").click()
    expect(page.get_by_text(t("sheets.wrong.one"), exact=True)).to_be_visible()
    last = desk.sheet_cell("category", 499)
    expect(last).to_have_attribute("aria-invalid", "true")
    last.fill("tas")
    visitor.whole_picture(page, "desk-sheet-mended")
    desk.button("sheets.import").click()
    expect(page.get_by_text(t("sheets.numbers", created=500, updated=0, unchanged=0))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-sheet-done")

    desk.go_to("goods")
    expect(page.get_by_text(t("goods.found", number=500), exact=True)).to_be_visible()
    visitor.picture(page, "desk-goods")
    desk.find("b-40")
    expect(page.get_by_text(t("goods.found", number=10), exact=True)).to_be_visible()
    price = desk.edit("Barang 402", "price", "2.750")
    expect(price).to_contain_text(desk.rupiah(2750))
    expect(desk.undo_bar).to_be_visible()
    assert seller.goods()["Barang 402"] == 2750
    require_accessible(page)
    visitor.picture(page, "desk-goods-edited")
    if desk.look.is_phone:
        desk.button("goods.undo").click()
    else:
        expect(price).to_be_focused()
        page.keyboard.press("Control+z")
    expect(price).to_contain_text(desk.rupiah(1500))
    assert seller.goods()["Barang 402"] == 1500

    page.get_by_role("checkbox", name=t("goods.choose.page"), exact=True).check()
    desk.find("")
    expect(page.get_by_text(t("goods.found", number=500), exact=True)).to_be_visible()
    page.get_by_role("checkbox", name=t("goods.choose.page"), exact=True).check()
    desk.button("goods.choose.all", number=500).click()
    expect(page.get_by_text(t("goods.chosen.number", number=500), exact=True)).to_be_visible()
    desk.button("goods.bulk").click()
    desk.dialog.get_by_role("textbox", name=t("goods.bulk.price.percent.amount"), exact=True).fill("10")
    expect(desk.dialog.get_by_role("row", name="Barang 499")).to_contain_text(desk.rupiah(55_000))
    require_accessible(page)
    visitor.picture(page, "desk-bulk")
    desk.button("goods.bulk.do", number=500).click()
    expect(desk.undo_bar).to_contain_text(t("goods.many.changed", number=500))
    goods = seller.goods()
    assert len(goods) == 500 and (goods["Barang 402"], goods["Barang 021"], goods["Barang 002"]) == (
        1700,
        55_000,
        55_000,
    )
    desk.button("goods.undo").click()
    expect(desk.undo_bar).to_contain_text(t("goods.undone", what=t("goods.many.changed", number=500)))
    assert set(seller.goods().values()) == {1500, 50_000}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@on_both_screens_too
def test_what_others_changed_is_not_overwritten(visitor: Visitor, server: Served, seller: Seller) -> None:
    visitor.expected = ("412", "422", "400")
    product = seller.add("Laptop Rinjani", 9_000_000, 5, sku="RJ-1")
    seller.add("Laptop Merapi", 7_000_000, 2, sku="MP-1")
    desk = desk_of(visitor, server)
    page, t = desk.page, desk.t
    price = desk.edit("Laptop Rinjani", "price", "murah")
    expect(price.get_by_role("alert")).to_be_visible()
    expect(price).to_contain_text("murah")
    expect(desk.edit("Laptop Rinjani", "sku", "MP-1").get_by_role("alert")).to_contain_text("SKU already registered")
    require_accessible(page)
    visitor.picture(page, "desk-goods-refused")
    desk.edit("Laptop Rinjani", "sku", "RJ-2")
    # Another field was changed meanwhile: both changes stay.
    seller.change(product, name="Laptop Rinjani 15", brand="Rinjani")
    desk.edit("Laptop Rinjani", "price", "8.500.000")
    expect(desk.cell("Laptop Rinjani 15", "price")).to_contain_text(desk.rupiah(8_500_000))
    # The same one was: nothing is overwritten before the seller says so.
    seller.change(product, price=8_000_000)
    price = desk.edit("Laptop Rinjani 15", "price", "8.250.000")
    expect(price.get_by_role("alert")).to_contain_text(t("goods.conflict", value=desk.rupiah(8_000_000)))
    require_accessible(page)
    visitor.picture(page, "desk-goods-conflict")
    assert seller.goods()["Laptop Rinjani 15"] == 8_000_000
    price.get_by_role("button", name=t("goods.conflict.mine", value=desk.rupiah(8_250_000)), exact=True).click()
    expect(desk.undo_bar).to_contain_text(desk.rupiah(8_250_000))
    expect(price.get_by_role("alert")).to_have_count(0)
    assert seller.goods()["Laptop Rinjani 15"] == 8_250_000
    seller.change(product, price=1_000_000)
    desk.button("goods.undo").click()
    expect(desk.undo_bar).to_contain_text(desk.rupiah(1_000_000))
    assert seller.goods()["Laptop Rinjani 15"] == 1_000_000


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_grid_is_walked_by_keys(visitor: Visitor, server: Served, seller: Seller) -> None:
    for number in range(3):
        seller.add(f"Laptop {number}", 1_000_000 + number, 5)
    desk = desk_of(visitor, server)
    page = desk.page
    expect(desk.row("Laptop 2")).to_be_visible()
    desk.cell("Laptop 2", "name").click()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(desk.cell("Laptop 1", "price")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(desk.cell("Laptop 1", "price")).to_be_focused()
    page.keyboard.type("2500")
    page.keyboard.press("Tab")
    # The next cell is being edited.
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(desk.cell("Laptop 1", "price")).to_contain_text("2,500")
    expect(desk.cell("Laptop 1", "stock_quantity")).to_contain_text("7")
    expect(desk.cell("Laptop 1", "stock_quantity")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(desk.cell("Laptop 1", "stock_quantity")).to_contain_text("5")
    page.keyboard.press("Control+z")
    expect(desk.cell("Laptop 1", "price")).to_contain_text("1,000,001")
    page.keyboard.press("Control+End")
    expect(desk.row("Laptop 0").get_by_role("button", name=desk.t("goods.actions.of", name="Laptop 0"))).to_be_focused()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Space")
    expect(desk.row("Laptop 2")).to_have_attribute("aria-selected", "true")
    _until_one_stop(desk.grid)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_what_is_still_being_written_is_undone_as_soon_as_it_is(
    visitor: Visitor, server: Served, seller: Seller
) -> None:
    seller.add("Laptop 0", 1_000_000, 5)
    desk = desk_of(visitor, server)
    page = desk.page
    expect(desk.row("Laptop 0")).to_be_visible()
    held: list[Route] = []
    page.route("**/api/products/*", lambda route: held.append(route) if not held else route.continue_())
    price = desk.edit("Laptop 0", "price", "2500")
    expect(price).to_have_attribute("aria-busy", "true")
    page.keyboard.press("Control+z")
    held[0].continue_()
    expect(desk.undo_bar).to_have_class("undo-bar is-undone")
    expect(price).to_contain_text(desk.rupiah(1_000_000))
    assert seller.goods() == {"Laptop 0": 1_000_000}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@on_both_screens_too
def test_a_product_is_made_gets_pictures_and_comes_back_after_its_end(
    visitor: Visitor, server: Served, seller: Seller
) -> None:
    visitor.expected = ("422",)
    desk = desk_of(visitor, server)
    page, t = desk.page, desk.t
    expect(page.get_by_role("heading", name=t("goods.none"))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-goods-none")
    desk.button("goods.new").first.click()
    for field, text in (("name", "Kipas meja"), ("price", "gratis"), ("stock_quantity", "4"), ("category", "fan")):
        desk.dialog.locator(f"[name={field}]").fill(text)
    desk.button("goods.new.do").click()
    expect(desk.dialog.locator("[name=price]")).to_have_attribute("aria-invalid", "true")
    require_accessible(page)
    visitor.picture(page, "desk-product")
    desk.dialog.locator("[name=price]").fill("Rp 150.000")
    desk.button("goods.new.do").click()
    expect(desk.cell("Kipas meja", "price")).to_contain_text(desk.rupiah(150_000))

    desk.button("goods.pictures.of", name="Kipas meja").click()
    files: list[FilePayload] = [
        {"name": f"{seed}.jpg", "mimeType": "image/jpeg", "buffer": photo(seed, (320, 240))} for seed in (1, 2)
    ]
    desk.dialog.locator("input[type=file]").set_input_files(files)
    pictures = desk.dialog.get_by_role("listitem")
    expect(pictures).to_have_count(2)
    first = pictures.first.locator("img").get_attribute("src")
    desk.button("goods.picture.later", number=1).click()
    expect(pictures.last.locator("img")).to_have_attribute("src", str(first))
    pictures.first.get_by_role("textbox", name=t("goods.picture.alt")).fill("Kipas putih di meja")
    pictures.first.get_by_role("button", name=t("save"), exact=True).click()
    expect(pictures.first.get_by_role("img", name="Kipas putih di meja")).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-pictures")
    desk.dialog.get_by_role("button", name=t("close"), exact=True).click()
    expect(desk.cell("Kipas meja", "picture").locator("img")).to_be_visible()

    desk.button("goods.actions.of", name="Kipas meja").click()
    page.get_by_role("menuitem", name=t("delete"), exact=True).click()
    expect(page.get_by_role("heading", name=t("goods.none"))).to_be_visible()
    page.get_by_role("combobox", name=t("goods.filter.show"), exact=True).select_option("deleted")
    expect(desk.button("goods.restore.of", name="Kipas meja")).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-deleted")
    desk.button("goods.restore.of", name="Kipas meja").click()
    expect(page.get_by_role("heading", name=t("goods.deleted.none"))).to_be_visible()
    page.get_by_role("combobox", name=t("goods.filter.show"), exact=True).select_option("all")
    expect(desk.row("Kipas meja")).to_be_visible()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_sheet_is_taken_as_soon_as_there_is_a_place_to_drop_it(
    visitor: Visitor, server: Served, seller: Seller
) -> None:
    desk = DeskPage(visitor.open(f"{server.url}/desk#/sheets"), visitor.look)
    desk.drop_sheet_at_once("one.csv", "sku,name,price,category\nS1,Tas,5000,tas\n")
    desk.sign_in(_EMAIL, _PASSWORD)
    expect(desk.button("sheets.import")).to_be_enabled()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@on_both_screens
def test_an_import_in_the_background_is_found_again_after_a_reload(
    visitor: Visitor, server: Served, seller: Seller
) -> None:
    desk = desk_of(visitor, server, "sheets")
    page, t = desk.page, desk.t
    rows = "".join(f"S{number},Tas {number},{5000 + number},tas\n" for number in range(5001))
    desk.drop_sheet("many.csv", "sku,name,price,category\n" + rows)
    expect(page.get_by_text(t("sheets.created", number=desk.look.number(5001)), exact=True)).to_be_visible(
        timeout=120_000
    )
    desk.button("sheets.import").click()
    expect(page.get_by_text(t("sheets.background"))).to_be_visible()
    visitor.picture(page, "desk-import")
    page.reload()
    job = page.get_by_role("article")
    expect(job).to_contain_text(t("sheets.rows", number=desk.look.number(5001)))
    expect(job).to_contain_text(t("sheets.import.done"), timeout=120_000)
    expect(job).to_contain_text(t("sheets.numbers", created=desk.look.number(5001), updated=0, unchanged=0))
    require_accessible(page)
    with page.expect_download() as download:
        desk.button("sheets.export.xlsx").click()
    assert download.value.path().read_bytes().startswith(b"PK")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@on_both_screens_too
def test_somebody_without_a_shop_registers_one(visitor: Visitor, server: Served) -> None:
    desk = DeskPage(visitor.open(f"{server.url}/desk"), visitor.look)
    page, t = desk.page, desk.t
    expect(page.get_by_text(t("desk.sign.in"))).to_be_visible()
    require_accessible(page)
    visitor.picture(page, "desk-stranger")
    with httpx2.Client(base_url=server.url, timeout=30) as http:
        account = {"name": "Dewi Specimen", "email": _EMAIL, "password": _PASSWORD}
        http.post("/api/auth/register", json=account).raise_for_status()
    desk.sign_in(_EMAIL, _PASSWORD)
    given = {"business_name": "Kios Dewi", "email": "kios.dewi@example.com", "city": "Bandung"}
    given |= {"latitude": "-6,9147", "longitude": "107.6098"}
    for field, text in given.items():
        _field(page, field).fill(text)
    require_accessible(page)
    visitor.whole_picture(page, "desk-register-shop")
    desk.button("desk.shop.register.do").click()
    expect(page.get_by_role("heading", name=t("goods.none"))).to_be_visible()
    expect(page.get_by_text("Kios Dewi")).to_be_visible()


def _field(page: Page, name: str) -> Locator:
    return page.locator(f"main [name={name}]")


def _until_one_stop(grid: Locator) -> None:
    """Of all its rows, one element is in the order of Tab."""
    expect(grid.locator("[aria-rowindex]:not([aria-rowindex='1']) [tabindex='0']")).to_have_count(1)
    others = "[aria-rowindex]:not([aria-rowindex='1']) :is(button, input):not([tabindex='-1'], [tabindex='0'])"
    expect(grid.locator(others)).to_have_count(0)


@with_a_database_each("database_url", LIGHT_PHONE, DARK_DESKTOP, scope="function")
def test_a_seller_makes_one_product_of_several_sizes(visitor: Visitor, server: Served, seller: Seller) -> None:
    for size, price in ((41, 249_000), (42, 249_000), (43, 259_000)):
        seller.add(f"Sandal Semeru {size}", price, 3, sku=f"SS-{size}")
    desk = desk_of(visitor, server)
    page, t = desk.page, visitor.look.t
    for size in (41, 42, 43):
        page.get_by_role("checkbox", name=t("goods.choose", name=f"Sandal Semeru {size}"), exact=True).check()
    desk.button("goods.variants").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label(t("goods.variants.name"))).to_have_value("Sandal Semeru")
    axis = t("goods.variants.axis.example")
    for size in (41, 42, 43):
        value = t("goods.variants.value.of", axis=axis, name=f"Sandal Semeru {size}")
        dialog.get_by_role("textbox", name=value, exact=True).fill(str(size))
    require_accessible(page)
    visitor.picture(page, "desk-variants")
    dialog.get_by_role("button", name=t("goods.variants.make"), exact=True).click()
    expect(dialog).to_have_count(0)
    groups = seller.http.get(f"/api/suppliers/{seller.shop}/product-groups", headers=seller.headers).json()
    [[name, axes, options]] = [(one["name"], one["axes"], one["options"]) for one in groups]
    assert (name, axes, options) == ("Sandal Semeru", [axis], {axis: ["41", "42", "43"]})
    page.get_by_role("checkbox", name=t("goods.choose", name="Sandal Semeru 43"), exact=True).check()
    desk.button("goods.variants").click()
    dialog.get_by_role("button", name=t("goods.variants.take.out"), exact=True).click()
    expect(dialog).to_have_count(0)
    [group] = seller.http.get(f"/api/suppliers/{seller.shop}/product-groups", headers=seller.headers).json()
    assert [one["sku"] for one in group["variants"]] == ["SS-41", "SS-42"]
    page.close()  # before its server
