"""A seller of goods, and a reader of the feed: takes it whole once, then what changed, and keeps a copy."""

import csv
import io
from typing import Any
from xml.etree import ElementTree

import httpx2

from tests.marketplace.shop import Shop

G = "{http://base.google.com/ns/1.0}"
DELETED = "{http://purl.org/atompub/tombstones/1.0}deleted-entry"


class SellingShop:
    """A shop that sells by the API."""

    def __init__(self, client: httpx2.Client, shop: Shop) -> None:
        self.client, self.shop = client, shop
        self.headers = shop.auth_headers(f"supplier:{shop.id}")

    def sell(self, name: str = "Kipas meja", **values: Any) -> str:
        body = {"name": name, "price": 250_000, "stock_quantity": 3, "category": "kipas", **values}
        answer = self.client.post(f"/api/suppliers/{self.shop.id}/products", json=body, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def change(self, product_id: str, **values: Any) -> None:
        answer = self.client.put(f"/api/products/{product_id}", json=values, headers=self.headers)
        assert answer.status_code == 200, answer.text

    def delete(self, product_id: str) -> None:
        assert self.client.delete(f"/api/products/{product_id}", headers=self.headers).status_code == 200


class FeedCopy:
    """Of `/api/feed.json`. `price_of` has what is sold; `seen` all ids of the last answer."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client
        self.cursor: str | None = None
        self.products: dict[str, Any] = {}
        self.seen: list[str] = []

    def read(self) -> "FeedCopy":
        answer = self._client.get("/api/feed.json", params={"since": self.cursor} if self.cursor else {})
        assert answer.status_code == 200, answer.text
        self.cursor = answer.headers["X-Feed-Cursor"]
        self.seen = []
        for product in answer.json()["products"]:
            self.seen.append(product["id"])
            if product["variants"][0]["availability"]["status"] == "discontinued":
                self.products.pop(product["id"], None)
            else:
                self.products[product["id"]] = product
        return self


def csv_rows(client: httpx2.Client, **params: str) -> list[dict[str, str]]:
    answer = client.get("/api/feed.csv", params=params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


def xml_items(client: httpx2.Client, **params: str) -> tuple[list[dict[str, str]], list[str]]:
    """The fields of each item, and the ids of what went away."""
    answer = client.get("/api/feed.xml", params=params)
    assert answer.status_code == 200, answer.text
    [channel] = ElementTree.fromstring(answer.content)
    items = [{field.tag.removeprefix(G): field.text or "" for field in item} for item in channel.findall("item")]
    return items, [one.attrib["ref"] for one in channel.findall(DELETED)]
