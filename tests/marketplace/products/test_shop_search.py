"""Products are found by the words of their shop, over HTTP."""

import httpx2

from tests.marketplace.accounts import register_supplier
from tests.marketplace.market_server import new_product

LAMP = {"category": "lampu", "tags": None, "description": None}


def names(client: httpx2.Client, text: str, **parameters: str) -> list[str]:
    answer = client.get("/api/products/search", params={"q": text, **parameters})
    assert answer.status_code == 200 and "x-corrected-query" not in answer.headers, answer.text
    return [product["name"] for product in answer.json()]


def test_words_of_a_shop_find_its_products(laptop: httpx2.Client) -> None:
    shop = register_supplier(laptop, business_name="Toko Gemerlap Takengon", city="Takengon", province="Aceh")
    other = register_supplier(laptop, business_name="Toko Lampion Terang", city="Sabang")
    for name, own in (("Lampion bambu", shop), ("Lampion kertas", other), ("Lampion kain gemerlip", other)):
        new_product(laptop, own["id"], **LAMP, name=name)
    for text in ("lampion gemerlap", "lampion dari toko Gemerlap", "lampion takengon", "bambu gemerlap takengon"):
        assert names(laptop, text)[0] == "Lampion bambu", text
    alone = laptop.get("/api/products/search", params={"q": "gemerlap"})
    assert [one["name"] for one in alone.json()] == ["Lampion bambu"] and alone.headers["x-total-count"] == "1"
    facets = laptop.get("/api/products/facets", params={"q": "gemerlap", "facets": "category"}).json()
    assert [one["count"] for one in facets["category"]] == [1]


def test_a_renamed_shop_is_found_by_its_new_name_alone(laptop: httpx2.Client) -> None:
    shop = register_supplier(laptop, business_name="Zaitun Murni", city="Calang")
    new_product(laptop, shop["id"], **LAMP, name="Obor tembaga")
    assert names(laptop, "zaitun") == names(laptop, "calang") == ["Obor tembaga"]
    changed = laptop.put(f"/api/suppliers/{shop['id']}", json={"business_name": "Zamrud Kirana", "city": "Sigli"})
    assert changed.status_code == 200
    assert names(laptop, "zamrud") == names(laptop, "sigli") == ["Obor tembaga"]
    assert names(laptop, "zaitun") == names(laptop, "calang") == []
