"""Pictures in answers of the assistant and of MCP, in the export of a shop, and gone with a shop that is erased."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.databases import new_sqlite
from tests.marketplace.accounts import PASSWORD, bearer, register_supplier, register_user
from tests.marketplace.conftest import SECRET
from tests.marketplace.market_server import new_product
from tests.marketplace.pictures.photos import photo, upload, uploaded
from tests.serving import served, settings_with
from tis.database.database import Database
from tis.marketplace.market import Market
from tis.marketplace.picture_files.picture_storage import open_picture_store
from tis.marketplace.search.product_rows import load_products
from tis.marketplace.seed import commands
from tis.marketplace.tables import StoredPicture


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[httpx2.Client, Market]]:
    settings = settings_with(
        marketplace_auth="open", jwt_secret_key=SECRET, public_url="https://shop.example", assistant_model="off"
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=60) as client:
        yield client, running.app.state.marketplace.market


@pytest.fixture
def client(both: tuple[httpx2.Client, Market]) -> httpx2.Client:
    return both[0]


def test_cards_of_the_assistant_have_the_picture(client: httpx2.Client) -> None:
    supplier = register_supplier(client)["id"]
    product = new_product(client, supplier, name="Payung kuning besar", category="lain")["id"]
    made = uploaded(client, product, photo(300), alt="Payung kuning")
    user = register_user(client, ai_access_enabled=True)
    answer = client.post("/api/chat/search", json={"user_id": user["id"], "query": "payung kuning"}).json()
    [card] = [one for one in answer["products"] if one["id"] == product]
    assert card["picture"]["id"] == made["id"] and card["picture"]["alt"] == "Payung kuning"
    assert card["picture"]["urls"] == made["urls"] and "webp" not in answer["response"]


def test_mcp_clients_get_the_address_of_the_picture(client: httpx2.Client) -> None:
    supplier = register_supplier(client)["id"]
    one, other = (new_product(client, supplier, name=name)["id"] for name in ("Tenda hijau", "Tenda biru"))
    made = uploaded(client, one, photo(301))
    call = {"name": "lookup_catalog", "arguments": {"ids": [one, other]}}
    answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    found = json.loads(answer.json()["result"]["content"][0]["text"])["products"]
    assert found[0]["picture"] == f"https://shop.example{made['urls']['medium']}" and "picture" not in found[1]


def test_a_shop_gets_its_pictures_in_its_export_and_they_go_when_it_is_erased(
    both: tuple[httpx2.Client, Market],
) -> None:
    client, market = both
    shop = register_supplier(client, password=PASSWORD)
    headers = bearer(shop)
    product = new_product(client, shop["id"])["id"]
    made = uploaded(client, product, photo(302), alt="Laptop perak")
    exported = client.get(f"/api/suppliers/{shop['id']}/export", headers=headers).json()
    assert [(one["product_id"], one["id"], one["alt"]) for one in exported["pictures"]] == [
        (product, made["id"], "Laptop perak")
    ]
    gone = client.request("DELETE", f"/api/suppliers/{shop['id']}", headers=headers, json={"password": PASSWORD})
    assert gone.status_code == 200, gone.text
    with market.reading() as session:
        row = session.get_one(StoredPicture, made["id"])
        assert row.unused_since is not None  # its files go in a day


def test_the_rate_of_uploads_is_limited() -> None:
    settings = settings_with(jwt_secret_key=SECRET, pictures_per_hour=2)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=60) as client:
        answers = [upload(client, 1, photo(1)) for _ in range(3)]
    assert [one.status_code for one in answers] == [404, 404, 429]
    assert answers[2].json()["detail"].startswith("Too many pictures: at most 2 per hour.")


def test_the_sample_has_drawn_pictures_that_a_reset_removes(tmp_path: Path) -> None:
    database, url = Database(new_sqlite(tmp_path)), (tmp_path / "drawn").as_uri()
    assert commands.add_sample(database, url) == "Added 5 suppliers, 21 products, 3 users, 6 reviews."
    store = open_picture_store(url)
    with database.reading() as session:
        shown = [one.cover for one in load_products(session, range(1, 16))]
    for cover in shown:
        assert cover and cover.alt and cover.alt.startswith("Gambar contoh: ")
        assert (cover.width, cover.height) == (640, 480) and store.get(cover.id, "large")
    assert len({cover.id for cover in shown if cover}) == 15  # no two look the same
    num_bytes = sum(file.stat().st_size for file in (tmp_path / "drawn").glob("*/*"))
    assert num_bytes < 200_000
    commands.reset(database, sure=True, pictures_url=url)
    assert not list((tmp_path / "drawn").glob("*/*.webp"))
    database.close()
