"""The place code of suppliers and users follows from their city and province."""

from typing import Any

import httpx2

from tests.marketplace.accounts import bearer, register_supplier, register_user
from tests.marketplace.shop import Shop
from tis.marketplace.places.coding import PlaceCoder
from tis.marketplace.tables import Supplier, User


def test_a_supplier_has_the_code_of_its_city(internet: httpx2.Client) -> None:
    supplier = register_supplier(internet, city="Kab. Bandung", province="Jawa Barat")
    path, own = f"/api/suppliers/{supplier['id']}", bearer(supplier)
    assert supplier["place_code"] == "3204"
    for change, code in (
        ({"city": "Banjar"}, "3279"),
        ({"province": "Kalimantan Selatan"}, "6303"),
        ({"province": None}, None),
        ({"city": "Atlantis"}, None),
        ({"city": "jaksel", "phone": None}, "3174"),
    ):
        assert internet.put(path, json=change, headers=own).json()["place_code"] == code, change
    assert internet.get(path).json()["place_code"] == "3174"  # as public as its city
    profile = internet.get(f"{path}/export", headers=own).json()["profile"]
    assert profile["place_code"] == "3174"


def test_a_user_has_the_code_of_the_city_and_only_the_user_sees_it(internet: httpx2.Client) -> None:
    user = register_user(internet, city="Surabaya")
    assert user["place_code"] == "3578"
    assert register_user(internet)["place_code"] is None
    for change, code in (({"city": None, "province": "Bali"}, "51"), ({"province": None}, None)):
        assert internet.put("/api/users/me", json=change, headers=bearer(user)).json()["place_code"] == code
    assert internet.get(f"/api/users/{user['id']}", headers=bearer(register_user(internet))).status_code == 404


def test_rows_without_a_code_get_theirs_where_a_later_version_knows_the_name(shop: Shop) -> None:
    suppliers = [shop.supplier(city=city, province=province) for city, province in OLD_PLACES]
    users = [shop.user(city=city, province=province) for city, province in OLD_PLACES] + [shop.user()]
    before = columns_of(shop, suppliers, users, "version", "updated_at")
    coder = PlaceCoder(shop.market.reading, shop.market.writing, batch_rows=2)
    assert coder.code_some() >= 4
    codes = ["3273", "3174", None]
    assert columns_of(shop, suppliers, users, "place_code") == [[code] for code in (*codes, *codes, None)]
    assert columns_of(shop, suppliers, users, "version", "updated_at") == before
    assert coder.code_some() == 0


def test_a_server_codes_them_by_itself(shop: Shop) -> None:
    supplier = shop.supplier(city="Medan")
    shop.market._do_hourly()
    assert columns_of(shop, [supplier], [], "place_code") == [["1271"]]


OLD_PLACES = [("Kota Bandung", "Jawa Barat"), ("Jakarta Selatan", None), ("Atlantis", None)]


def columns_of(shop: Shop, suppliers: list[int], users: list[int], *names: str) -> list[list[Any]]:
    with shop.market.reading() as session:
        rows = [session.get_one(Supplier, one) for one in suppliers] + [session.get_one(User, one) for one in users]
        return [[getattr(row, name) for name in names] for row in rows]
