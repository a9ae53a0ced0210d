"""Pictures in sheets: URLs in an export, and an import that fetches what it names."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, update

from tests.marketplace.conftest import SECRET
from tests.marketplace.database_failures import wait_until_true
from tests.marketplace.market_server import new_product
from tests.marketplace.pictures.photos import ids, photo, uploaded
from tests.marketplace.shop import Shop
from tests.media.web import Web, body, serve_web, status
from tests.serving import served, settings_with
from tis.marketplace.columns import now
from tis.marketplace.market import Market
from tis.marketplace.sheets.sheet_pictures import SheetPictures, queue_pictures
from tis.marketplace.tables import PictureFetch, Product, SheetImport
from tis.media.loader import MediaLimits, MediaLoader

pytestmark = pytest.mark.long

HEADER = "sku,name,price,stock_quantity,category,pictures\n"
PUBLIC_URL = "https://shop.example"


@dataclass(frozen=True)
class SheetPlace:
    """A server, and the web that it sees."""

    client: httpx2.Client
    web: Web
    market: Market
    shop: Shop

    def send(self, supplier: int, sheet: str, **how: Any) -> httpx2.Response:
        headers = {"Content-Type": "text/csv"}
        path = f"/api/suppliers/{supplier}/products/import"
        return self.client.post(path, content=sheet.encode(), params=how, headers=headers)

    def imported(self, supplier: int, sheet: str, **how: Any) -> dict[str, Any]:
        """What its progress says at the end."""
        answer = self.send(supplier, sheet, **how)
        assert answer.status_code == 202, answer.text
        progress: dict[str, Any] = {}

        def has_ended() -> bool:
            progress.update(self.client.get(answer.headers["location"]).json())
            return progress["status"] in ("done", "failed")

        wait_until_true(has_ended)
        return progress

    def pictures(self, supplier: int) -> dict[str, list[str]]:
        listed = self.client.get("/api/products", params={"supplier_id": supplier}).json()
        return {one["sku"]: ids(self.client.get(f"/api/products/{one['id']}").json()["pictures"]) for one in listed}

    def exported(self, supplier: int) -> str:
        return self.client.get(f"/api/suppliers/{supplier}/products/export").text


@pytest.fixture(scope="module")
def place(database_url: str) -> Iterator[SheetPlace]:
    settings = settings_with(
        database_url=database_url, jwt_secret_key=SECRET, marketplace_auth="open", public_url=PUBLIC_URL
    )
    with serve_web() as web:
        for seed in range(6):
            web.answers[f"/{seed}.jpg"] = body(photo(seed + 200), "image/jpeg")
        web.answers["/page.jpg"] = body(b"<html>", "image/jpeg")
        web.answers["/gone.jpg"] = status("404 Not Found")
        loader = MediaLoader(MediaLimits(), **web.doubles)
        with served(settings, media=loader) as running, httpx2.Client(base_url=running.url, timeout=60) as client:
            market: Market = running.app.state.marketplace.market
            yield SheetPlace(client, web, market, Shop(market))


def url(number: int) -> str:
    return f"http://cdn.example/{number}.jpg"


def test_a_small_sheet_imports_its_rows_at_once_and_its_pictures_then(place: SheetPlace) -> None:
    supplier = place.shop.supplier()
    sheet = f"{HEADER}A,Laptop,1000,1,laptop,{url(0)} {url(1)}\nB,Mouse,1000,1,mouse,\nC,Tas,1000,1,bag,{url(0)}\n"
    begun = place.send(supplier, sheet).json()
    assert (begun["created"], begun["rows_done"], begun["status"]) == (3, 3, "running")
    assert begun["pictures_left"] == 2 and set(place.pictures(supplier)) == {"A", "B", "C"}
    job = f"/api/suppliers/{supplier}/products/imports/{begun['id']}"
    wait_until_true(lambda: place.client.get(job).json()["status"] == "done")
    ended = place.client.get(job).json()
    assert (ended["errors"], ended["pictures_left"], ended["created"]) == ([], 0, 3)
    found = place.pictures(supplier)
    assert [len(found[sku]) for sku in "ABC"] == [2, 0, 1] and found["A"][0] == found["C"][0]


def test_an_export_names_the_pictures_and_is_imported_again_without_a_change(place: SheetPlace) -> None:
    supplier = place.shop.supplier()
    place.imported(supplier, f"{HEADER}A,Laptop,1000,1,laptop,{url(0)} {url(1)}\nB,Mouse,1000,1,mouse,\n")
    before, heard = place.pictures(supplier), len(place.web.heard)
    sheet = place.exported(supplier)
    [first, second] = csv.DictReader(io.StringIO(sheet.removeprefix("\ufeff")))
    assert first["pictures"].split() == [f"{PUBLIC_URL}/api/pictures/{one}/large.webp" for one in before["A"]]
    assert second["pictures"] == ""
    again = place.send(supplier, sheet)
    assert again.status_code == 200 and again.json()["unchanged"] == 2
    by_source = place.send(supplier, f"{HEADER}A,Laptop,1000,1,laptop,{url(0)} {url(1)}\n")
    assert by_source.status_code == 200 and by_source.json()["unchanged"] == 1
    assert place.pictures(supplier) == before and len(place.web.heard) == heard


def test_an_order_a_removal_and_a_blank_cell_of_a_sheet_are_followed(place: SheetPlace) -> None:
    supplier = place.shop.supplier()
    place.imported(supplier, f"{HEADER}A,Laptop,1000,1,laptop,{url(0)} {url(1)} {url(2)}\n")
    [first, second, third] = place.pictures(supplier)["A"]
    product = place.client.get("/api/products", params={"supplier_id": supplier}).json()[0]["id"]
    place.client.put(f"/api/products/{product}/pictures/{third}", json={"alt": "Dari samping"})
    heard = len(place.web.heard)
    own = f"{PUBLIC_URL}/api/pictures/{third}/large.webp"
    turned = place.imported(supplier, f"sku,pictures\nA,{own} {PUBLIC_URL}/api/pictures/{first}/small.webp\n")
    assert (turned["updated"], turned["errors"]) == (1, []) and len(place.web.heard) == heard
    assert place.pictures(supplier)["A"] == [third, first] and second
    shown = place.client.get(f"/api/products/{product}").json()
    assert shown["picture"]["alt"] == "Dari samping"
    assert place.send(supplier, "sku,price\nA,2000\n").status_code == 200  # without the column nothing changes
    assert place.pictures(supplier)["A"] == [third, first]
    place.imported(supplier, "sku,pictures\nA,\n")
    assert place.pictures(supplier)["A"] == []


def test_each_picture_that_is_not_to_be_had_is_an_error_of_its_row(place: SheetPlace) -> None:
    supplier = place.shop.supplier()
    place.imported(supplier, f"{HEADER}A,Laptop,1000,1,laptop,{url(0)}\n")
    before = place.pictures(supplier)["A"]
    place.web.names["inside.example"] = [["10.0.0.7"]]
    rows = [
        f"A,Laptop,1000,1,laptop,{url(1)} http://cdn.example/gone.jpg http://cdn.example/page.jpg",
        "B,Mouse,1000,1,mouse,http://inside.example/1.jpg",
        f"C,Tas,1000,1,bag,{PUBLIC_URL}/api/pictures/{'0' * 64}/large.webp",
        f"D,Meja,1000,1,furniture,{url(2)}",
        "E,Kursi,1000,1,furniture,http://127.0.0.1/1.jpg",
    ]
    ended = place.imported(supplier, HEADER + "\n".join(rows))
    assert ended["status"] == "done" and (ended["created"], ended["updated"]) == (4, 1)
    found = sorted((one["row"], one["field"], one["message"]) for one in ended["errors"])
    assert [row for row, _, _ in found] == [2, 2, 3, 4, 6] and {field for _, field, _ in found} == {"pictures"}
    messages = [message for _, _, message in found]
    assert messages[0] == "http://cdn.example/gone.jpg: The image could not be fetched from its URL."
    assert messages[1].startswith("http://cdn.example/page.jpg: The format of this image is not supported.")
    assert messages[2] == "http://inside.example/1.jpg: The image could not be fetched from its URL."
    after = place.pictures(supplier)
    assert after["A"] == before  # all pictures of a row, or none
    assert [len(after[sku]) for sku in "BCDE"] == [0, 0, 1, 0]
    assert not any(address.startswith(("10.", "127.")) for address, _ in place.web.dialled)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("photo.jpg", "must be http(s) URLs"),
        ("file:///etc/passwd", "must be http(s) URLs"),
        ("http://user:secret@cdn.example/a.jpg", "must be http(s) URLs"),
        (" ".join(f"http://cdn.example/{number}.jpg" for number in range(9)), "must have at most 8 URLs"),
    ],
)
def test_a_cell_that_is_no_list_of_urls_is_refused_at_once(place: SheetPlace, cell: str, message: str) -> None:
    supplier = place.shop.supplier()
    answer = place.send(supplier, f"{HEADER}A,Laptop,1000,1,laptop,{cell}\n")
    assert answer.status_code == 422 and answer.json()["errors"][0]["field"] == "pictures"
    assert message in answer.json()["errors"][0]["message"] and place.pictures(supplier) == {}


def test_a_dry_run_fetches_nothing(place: SheetPlace) -> None:
    supplier, heard = place.shop.supplier(), len(place.web.heard)
    answer = place.send(supplier, f"{HEADER}A,Laptop,1000,1,laptop,{url(0)}\n", dry_run=1)
    assert answer.status_code == 200 and answer.json()["created"] == 1 and len(place.web.heard) == heard


def test_a_fetch_that_a_killed_server_has_taken_is_done_by_another_when_its_time_is_over(place: SheetPlace) -> None:
    product = place.shop.product(sku="KILLED")
    with place.market.writing() as session:
        job = SheetImport(
            id="0" * 8 + f"-{product}", supplier_id=place.shop.id, num_rows=1, num_done=1, status="running"
        )
        session.add(job)
        session.flush()
        queue_pictures(session, job.id, [SheetPictures(product, 2, [url(3)])])
        taken = update(PictureFetch).where(PictureFetch.import_id == job.id)
        session.execute(taken.values(num_tries=1, due_at=now()))  # as of a server that ended
        job_id = job.id

    def status_of_job() -> str:
        with place.market.reading() as session:
            return session.get_one(SheetImport, job_id).status

    wait_until_true(lambda: status_of_job() != "running")
    with place.market.reading() as session:
        problems = session.get_one(SheetImport, job_id).problems
        assert session.scalars(select(PictureFetch).where(PictureFetch.import_id == job_id)).all() == []
    # In open mode an import without an account has the rights of this computer.
    assert problems == [] and len(place.client.get(f"/api/products/{product}").json()["pictures"]) == 1


def test_a_picture_by_url_is_fetched_for_one_product(place: SheetPlace) -> None:
    product = new_product(place.client, place.shop.supplier())["id"]
    path = f"/api/products/{product}/pictures"
    made = place.client.post(path, json={"url": url(4), "alt": "Laptop"})
    assert made.status_code == 200 and made.json()["alt"] == "Laptop"
    assert made.json()["id"] == uploaded(place.client, product, photo(204))["id"]
    for bad in ("http://127.0.0.1/4.jpg", "http://[::1]/4.jpg", "http://cdn.example/gone.jpg"):
        refused = place.client.post(path, json={"url": bad})
        assert (refused.status_code, refused.json()["detail"]) == (
            400,
            "The image could not be fetched from its URL.",
        )


def test_names_of_the_column_in_indonesian_are_read(place: SheetPlace) -> None:
    supplier = place.shop.supplier()
    ended = place.imported(supplier, f"sku;nama;harga;stok;kategori;foto\nA;Laptop;1000;1;laptop;{url(5)}\n")
    assert ended["errors"] == [] and len(place.pictures(supplier)["A"]) == 1
    with place.market.reading() as session:
        assert session.scalars(select(Product.sku).where(Product.supplier_id == supplier)).all() == ["A"]
