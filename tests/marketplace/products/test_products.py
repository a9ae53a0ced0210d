"""Products over HTTP: the documented contract and the refused requests."""

import json
from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import register_supplier
from tests.marketplace.conftest import SECRET
from tests.marketplace.market_server import LAPTOP, MarketServer, new_product
from tests.serving import served, settings_with


def test_the_documented_product_is_created_and_read(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier = server.supplier(business_name="Tech Store Jakarta")
    answer = anybody.post(f"/api/suppliers/{supplier}/products", json={**LAPTOP, "sku": "ASU-ROG-G15-001"})
    product = answer.json()
    assert answer.status_code == 200 and answer.headers["etag"] == '"1"'
    assert (
        product.items()
        >= {
            **LAPTOP,
            "sku": "ASU-ROG-G15-001",
            "supplier_id": supplier,
            "supplier_name": "Tech Store Jakarta",
            "is_available": True,
            "distance_km": None,
            "available_quantity": 5,
            "version": 1,
            "rating": None,
        }.items()
    )
    shown = anybody.get(f"/api/products/{product['id']}")
    assert shown.json() == product and shown.headers["etag"] == '"1"'


def test_a_product_of_an_unknown_supplier_is_a_404(anybody: httpx2.Client) -> None:
    answer = anybody.post("/api/suppliers/4711/products", json=LAPTOP)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Supplier not found"})


def test_a_sku_is_unique_per_supplier(server: MarketServer, anybody: httpx2.Client) -> None:
    one, other = server.supplier(), server.supplier()
    new_product(anybody, one, sku="A-1")
    again = anybody.post(f"/api/suppliers/{one}/products", json={**LAPTOP, "sku": "A-1"})
    assert (again.status_code, again.json()) == (400, {"detail": "SKU already registered"})
    new_product(anybody, other, sku="A-1")
    new_product(anybody, one), new_product(anybody, one)  # without a SKU: as many as one likes


def test_changing_a_sku_to_one_in_use_is_refused(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier = server.supplier()
    new_product(anybody, supplier, sku="A-1")
    product = new_product(anybody, supplier, sku="A-2")
    answer = anybody.put(f"/api/products/{product['id']}", json={"sku": "A-1"})
    assert (answer.status_code, answer.json()) == (400, {"detail": "SKU already registered"})
    assert anybody.get(f"/api/products/{product['id']}").json() == product


@pytest.mark.parametrize("path", ["/api/products/4711", "/api/products/4711/price-history"])
def test_unknown_products_are_a_404(anybody: httpx2.Client, path: str) -> None:
    answer = anybody.get(path)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Product not found"})


def test_a_change_affects_only_the_sent_fields(server: MarketServer, anybody: httpx2.Client) -> None:
    product = new_product(anybody, server.supplier(), sku="A-1", brand="ASUS", attributes={"ram_gb": 16})
    answer = anybody.put(f"/api/products/{product['id']}", json={"price": 14999000, "stock_quantity": 3})
    changed = answer.json()
    assert answer.status_code == 200 and answer.headers["etag"] == '"2"'
    different = {name: changed[name] for name in product if changed[name] != product[name]}
    different.pop("updated_at")
    assert different == {
        "price": 14999000,
        "stock_quantity": 3,
        "available_quantity": 3,
        "version": 2,
        "lowest_price_30d": 15999000,
    }


def test_a_change_without_effect_keeps_the_version(server: MarketServer, anybody: httpx2.Client) -> None:
    product = new_product(anybody, server.supplier())
    for body in ({}, {"price": product["price"], "name": product["name"]}):
        assert anybody.put(f"/api/products/{product['id']}", json=body).json() == product


@pytest.mark.parametrize("field", ["name", "price", "stock_quantity", "category", "is_available", "condition"])
def test_required_fields_cannot_be_null(server: MarketServer, anybody: httpx2.Client, field: str) -> None:
    product = new_product(anybody, server.supplier())
    assert anybody.put(f"/api/products/{product['id']}", json={field: None}).status_code == 422
    assert anybody.get(f"/api/products/{product['id']}").json() == product


def test_optional_fields_can_be_null(server: MarketServer, anybody: httpx2.Client) -> None:
    optional = {"description": "x", "tags": "a", "sku": "S", "brand": "b", "attributes": {"a": 1}, "rating": 4.5}
    product = new_product(anybody, server.supplier(), **optional)
    assert product.items() >= optional.items()
    emptied = anybody.put(f"/api/products/{product['id']}", json=dict.fromkeys(optional)).json()
    assert emptied.items() >= {**dict.fromkeys(optional), "attributes": {}}.items()


@pytest.mark.parametrize(("before", "after"), [(True, 1), (0, False), (1, 1.0)])
def test_an_attribute_that_differs_only_in_json_is_saved(
    server: MarketServer, anybody: httpx2.Client, before: Any, after: Any
) -> None:
    """In Python true equals 1: the ORM would take the change for none, and not write it."""
    product = new_product(anybody, server.supplier(), attributes={"a": before})
    path = f"/api/products/{product['id']}"
    changed = anybody.put(path, json={"attributes": {"a": after}}).json()
    saved = anybody.get(path).json()
    assert json.dumps(saved["attributes"]) == json.dumps(changed["attributes"]) == json.dumps({"a": after})
    assert saved["version"] == product["version"] + 1


BAD_FIELDS: list[tuple[str, Any]] = [
    ("name", ""),
    ("name", " \u0000\u200b "),
    ("name", "\u3164 \u2800\uffa0"),
    ("name", "x" * 256),
    ("name", "x" * 200_000),
    ("name", "\ufb2c" * 255),  # three characters each, once composed
    ("name", 7),
    ("name", []),
    ("description", "x" * 20_001),
    ("price", 0),
    ("price", -5),
    ("price", 15.5),
    ("price", 10**13 + 1),
    ("price", 2**63),
    ("price", "expensive"),
    ("price", True),
    ("price", None),
    ("stock_quantity", -1),
    ("stock_quantity", 10**9 + 1),
    ("stock_quantity", 0.5),
    ("category", ""),
    ("category", "\ufdfa" * 50),  # eighteen letters each, as it is compared
    ("condition", "broken"),
    ("is_available", "perhaps"),
    ("attributes", []),
    ("attributes", {"nested": {"a": 1}}),
    ("attributes", {"list": [1]}),
    ("attributes", {"": 1}),
    ("attributes", {"big": 2**53 + 1}),
    ("attributes", {"big": -1e16}),
    ("attributes", {str(number): number for number in range(51)}),
    ("attributes", {"long": "x" * 9000}),
    ("rating", 5.1),
    ("sku", "x" * 101),
    ("tags", "x" * 1001),
]


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS, ids=lambda value: ascii(value)[:30])
def test_invalid_values_are_refused_with_the_field_name(
    server: MarketServer, anybody: httpx2.Client, field: str, value: Any
) -> None:
    answer = anybody.post("/api/suppliers/1/products", json={**LAPTOP, field: value})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"][:2] == ["body", field], answer.text[:500]


@pytest.mark.parametrize(
    "raw",
    [
        '{"name": NaN}',
        '{"price": NaN}',
        '{"price": Infinity}',
        '{"price": 1e400}',
        '{"attributes": {"a": NaN}}',
        '{"attributes": {"a": 1e999}}',
        '{"rating": NaN}',
        '{"name": "\\ud800"}',
        '{"attributes": {"\\ud800": 1}}',
        '{"attributes": {"a": "\\udfff"}}',
        '{"sku": "\\ud800"}',
        "[]",
        "null",
        "3",
    ],
)
def test_invalid_json_and_invalid_characters_are_refused(
    server: MarketServer, anybody: httpx2.Client, raw: str
) -> None:
    product = new_product(anybody, server.supplier())
    answer = anybody.put(f"/api/products/{product['id']}", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text


def test_invisible_characters_are_removed(server: MarketServer, anybody: httpx2.Client) -> None:
    product = new_product(
        anybody, server.supplier(), name=" Lap\u0000top\u202e ", attributes={"warna\u200b": "hitam\u0000"}
    )
    assert (product["name"], product["attributes"]) == ("Laptop", {"warna": "hitam"})


def test_a_price_may_be_a_float_without_a_fraction(server: MarketServer, anybody: httpx2.Client) -> None:
    assert new_product(anybody, server.supplier(), price=15999000.0)["price"] == 15999000


def test_unknown_categories_are_accepted(server: MarketServer, anybody: httpx2.Client) -> None:
    product = new_product(anybody, server.supplier(), category="Alat  PANCING")
    assert product["category"] == "Alat  PANCING"
    assert server.product_row(product["id"]).category_key == "alat pancing"


@pytest.mark.parametrize("number", ["0", "-1", str(2**63), "9" * 400, "1.5", "NaN", "%00"])
@pytest.mark.parametrize("path", ["/api/products/{}", "/api/products/{}/price-history", "/api/products/{}/reviews"])
def test_invalid_ids_are_refused(anybody: httpx2.Client, path: str, number: str) -> None:
    assert anybody.get(path.format(number)).status_code == 422


def test_deleted_products_are_hidden_from_strangers_and_can_be_restored(
    server: MarketServer, stranger: httpx2.Client
) -> None:
    supplier = server.supplier()
    with server.as_(f"supplier:{supplier}") as owner, server.as_(f"supplier:{server.supplier()}") as rival:
        product = new_product(owner, supplier)
        path = f"/api/products/{product['id']}"
        deleted = owner.delete(path)
        assert deleted.status_code == 200 and deleted.json()["deleted_at"] and deleted.headers["etag"] == '"2"'
        assert owner.delete(path).json() == deleted.json()  # again: nothing new
        for other in (stranger, rival):
            for method, tail in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/restore"), ("GET", "/reviews")]:
                answer = other.request(method, path + tail, json={"price": 1} if method == "PUT" else None)
                assert (answer.status_code, answer.json()) == (404, {"detail": "Product not found"}), method
        assert owner.get(path).json()["deleted_at"]
        assert owner.put(path, json={"price": 1}).status_code == 404  # restored first

        restored = owner.post(f"{path}/restore")
        assert (restored.status_code, restored.json()["deleted_at"], restored.json()["version"]) == (200, None, 3)
        assert owner.post(f"{path}/restore").json() == restored.json()
    assert stranger.get(path).status_code == 200


def test_restoring_is_refused_if_the_sku_is_in_use_by_now(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier = server.supplier()
    product = new_product(anybody, supplier, sku="A-1")
    anybody.delete(f"/api/products/{product['id']}")
    new_product(anybody, supplier, sku="A-1")
    answer = anybody.post(f"/api/products/{product['id']}/restore")
    assert answer.status_code == 409 and "SKU already registered" in answer.json()["detail"]


def test_products_of_a_suspended_supplier_are_a_404(server: MarketServer, stranger: httpx2.Client) -> None:
    supplier = server.supplier(status="suspended")
    with server.as_(f"supplier:{supplier}") as owner:
        product = new_product(owner, supplier)
        assert owner.get(f"/api/products/{product['id']}").status_code == 200
    assert stranger.get(f"/api/products/{product['id']}").status_code == 404


@pytest.mark.parametrize(("account", "status"), [(None, 401), ("user", 403), ("rival", 403)])
def test_only_members_of_a_supplier_change_its_products(server: MarketServer, account: str | None, status: int) -> None:
    supplier = server.supplier()
    who = {None: None, "user": f"user:{server.user()}", "rival": f"supplier:{server.supplier()}"}[account]
    with server.as_("open") as anybody, server.as_(who) as other:
        product = new_product(anybody, supplier)
        assert other.post(f"/api/suppliers/{supplier}/products", json=LAPTOP).status_code == status
        assert other.put(f"/api/products/{product['id']}", json={"price": 1}).status_code == status
        assert other.delete(f"/api/products/{product['id']}").status_code == status
        assert other.post(f"/api/products/{product['id']}/restore").status_code == status
        assert anybody.get(f"/api/products/{product['id']}").json() == product


def test_members_and_admins_may_change_products_of_a_supplier(server: MarketServer, admin: httpx2.Client) -> None:
    supplier, user = server.supplier(), server.user()
    server.employ(user, supplier)
    with server.as_(f"user:{user}") as member:
        product = new_product(member, supplier)
        assert member.put(f"/api/products/{product['id']}", json={"price": 1}).status_code == 200
    assert admin.put(f"/api/products/{product['id']}", json={"price": 2}).status_code == 200


def test_a_supplier_cannot_set_the_rating_of_its_own_products(server: MarketServer, admin: httpx2.Client) -> None:
    supplier = server.supplier()
    with server.as_(f"supplier:{supplier}") as owner:
        product = new_product(owner, supplier, rating=5)
        path = f"/api/products/{product['id']}"
        assert product["rating"] is None
        assert owner.put(path, json={"rating": 5}).json()["rating"] is None
        assert admin.put(path, json={"rating": 4.5}).json()["rating"] == 4.5
        assert owner.put(path, json={"rating": None, "price": 1}).json()["rating"] == 4.5


def test_an_origin_adds_distance_and_delivery_advice(server: MarketServer, stranger: httpx2.Client) -> None:
    supplier = server.supplier(latitude=0.0, longitude=0.0, shows_place=True)
    with server.as_("open") as anybody:
        product = new_product(anybody, supplier)
    path = f"/api/products/{product['id']}"
    here = stranger.get(path, params={"user_lat": 0, "user_lon": 0}).json()
    assert here["distance_km"] == 0 and here["fulfilment"]["suggestion"] == "pickup"
    # One degree along the equator.
    far = stranger.get(path, params={"user_lat": 0, "user_lon": 1}, headers={"accept-language": "en"}).json()
    assert far["distance_km"] == 111.2 and far["fulfilment"]["suggestion"] == "parcel"
    assert "111.2 km away" in far["fulfilment"]["reason"]
    other_side = stranger.get(path, params={"user_lat": 0, "user_lon": 180}).json()
    assert other_side["distance_km"] == 20015.1


@pytest.mark.parametrize(
    "where",
    [{"user_lat": "999", "user_lon": "0"}, {"user_lat": "nan", "user_lon": "0"}, {"user_lat": "0", "user_lon": "inf"}]
    + [{"user_lat": "0"}, {"user_lon": "0"}],
)
def test_invalid_coordinates_are_refused(server: MarketServer, anybody: httpx2.Client, where: dict[str, str]) -> None:
    product = new_product(anybody, server.supplier())
    assert anybody.get(f"/api/products/{product['id']}", params=where).status_code == 422


def test_a_shop_lists_its_deleted_products_and_restores_them(server: MarketServer, anybody: httpx2.Client) -> None:
    supplier = server.supplier()
    first, second, _ = (new_product(anybody, supplier, name=name)["id"] for name in ("Kipas", "Meja", "Kursi"))
    path = f"/api/suppliers/{supplier}/products/deleted"
    with server.as_(f"supplier:{supplier}") as owner:
        assert owner.get(path).json() == []
        for product in (first, second):
            owner.delete(f"/api/products/{product}")
        newest = owner.get(path, params={"limit": 1})
        assert [(one["id"], one["name"], one["deleted_at"] is None) for one in newest.json()] == [
            (second, "Meja", False)
        ]
        assert [one["id"] for one in owner.get(newest.links["next"]["url"]).json()] == [first]
        owner.post(f"/api/products/{second}/restore")
        assert [one["id"] for one in owner.get(path).json()] == [first]
    with server.as_(f"supplier:{server.supplier()}") as other:
        assert other.get(path).status_code == 403


def test_a_supplier_has_so_many_products() -> None:
    settings = settings_with(jwt_secret_key=SECRET, marketplace_auth="open", max_products_per_supplier=3)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        supplier_id = register_supplier(client)["id"]
        path = f"/api/suppliers/{supplier_id}/products"
        first, *_ = [new_product(client, supplier_id)["id"] for _ in range(3)]
        refused = client.post(path, json=LAPTOP)
        assert (refused.status_code, "at most 3 products" in refused.json()["detail"]) == (409, True)
        assert client.delete(f"/api/products/{first}").status_code == 200
        sheet = "name,price,category,stock_quantity\n" + "Kipas,1000,fan,1\n"
        headers = {"Content-Type": "text/csv"}
        for options in ("", "?dry_run=1", "?partial=1"):
            too_many = client.post(f"{path}/import{options}", content=sheet + "Teko,1,fan,1\n", headers=headers)
            assert too_many.status_code == 409, too_many.text
        assert client.post(f"{path}/import", content=sheet, headers=headers).json()["created"] == 1
        assert client.post(f"/api/products/{first}/restore").status_code == 409
