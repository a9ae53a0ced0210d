"""Any combination of filters finds the products that pass each of them, as plain Python says."""

import random
from dataclasses import dataclass
from typing import Any

import pytest

from tests.marketplace.search.conftest import BANDUNG, JAKARTA, SURABAYA, Catalogue
from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.search.product_rows import ProductRow
from tis.marketplace.search.query import PageRequest, ProductQuery

BRANDS, WORDS, SKUS = ("Asus", "HP", "Lenovo", None), ("merah", "besi", "lipat"), ("A-1", "a 1", "B.2", None)
SHOPS = (
    ("Kota Bandung", "Jawa Barat", BANDUNG),
    ("Cimahi", "Jawa Barat", BANDUNG),
    ("Jakarta Selatan", "DKI Jakarta", JAKARTA),
    ("Surabaya", "Jawa Timur", SURABAYA),
)
PROVINCE_OF = {city: province for city, province, _ in SHOPS}
HERE = Point(*JAKARTA)


@dataclass(frozen=True)
class FilterChooser:
    random: random.Random
    ids: list[int]

    def query(self) -> ProductQuery:
        values: dict[str, Any] = {
            "brands": self._some(("asus", "HP", "lenovo")),
            "exclude_brands": self._some(("ASUS", "hp")),
            "cities": self._some(tuple(PROVINCE_OF)),
            "provinces": self._some(("jabar", "DKI Jakarta")),
            "exclude_cities": self._some(("cimahi", "surabaya")),
            "exclude_terms": self._some((*WORDS, "besi lipat")),
            "product_ids": tuple(self.random.sample(self.ids, 20)),
            "sku": self.random.choice(("a1", "b-2")),
            "quantity": self.random.randint(1, 6),
            "fulfilment": self.random.choice(("delivery", "pickup")),
            "max_price": self.random.randint(1, 9),
            "available_only": False,
        }
        chosen = {name: values[name] for name in self.random.sample(sorted(values), self.random.randint(1, 4))}
        return ProductQuery(
            text=self.random.choice((None, "teko")),
            origin=self.random.choice((None, HERE)),
            sort=self.random.choice((None, "price_asc", "newest")),
            **chosen,
        )

    def _some(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.random.sample(names, self.random.randint(1, len(names))))


def passes(product: ProductRow, query: ProductQuery) -> bool:
    shop, brand = product.supplier, (product.brand or "").lower()
    province = PROVINCE_OF[shop.city]
    available = product.on_hand - product.reserved
    text = f" {product.name} {product.description} ".lower()
    sku = (product.sku or "").lower().replace("-", "").replace(" ", "").replace(".", "")
    reach = shop.delivery_radius_km
    distance = kilometres_between(HERE, Point(product.shop_public_latitude, product.shop_public_longitude))
    is_reached = shop.courier_enabled and (query.origin is None or reach is None or distance <= reach)
    return all(
        (
            available > 0 or not query.available_only,
            not query.brands or brand in {one.lower() for one in query.brands},
            brand not in {one.lower() for one in query.exclude_brands},
            not query.cities or shop.city in query.cities,
            not query.provinces or province in {{"jabar": "Jawa Barat"}.get(one, one) for one in query.provinces},
            shop.city.lower() not in query.exclude_cities,
            not any(f" {term} " in text for term in query.exclude_terms),
            query.product_ids is None or product.id in query.product_ids,
            query.sku is None or sku == query.sku.replace("-", ""),
            query.quantity is None or available >= query.quantity,
            query.fulfilment != "pickup" or shop.pickup_enabled,
            query.fulfilment != "delivery" or is_reached,
            query.max_price is None or product.price <= query.max_price,
        )
    )


@pytest.mark.parametrize("limits", [{}, {"max_products_of_rare_cities": 1, "max_products_of_large_stock": 1}])
def test_any_filters_find_what_passes_each_of_them(catalogue: Catalogue, limits: dict[str, int]) -> None:
    chance = random.Random(19)
    catalogue.limit_search(**limits)
    shops = [
        catalogue.shop(
            city,
            place,
            courier_enabled=chance.random() < 0.7,
            pickup_enabled=chance.random() < 0.7,
            delivery_radius_km=chance.choice((None, 50.0, 200.0)),
        )
        for city, _, place in SHOPS
        for _ in range(3)
    ]
    # One SKU once in a shop.
    free = {(shop, sku) for shop in shops for sku in SKUS if sku}
    rows: list[dict[str, Any]] = []
    for _ in range(60):
        shop, sku = chance.choice(shops), chance.choice(SKUS)
        words = chance.sample(WORDS, chance.randint(0, 3))
        rows.append(
            {
                "name": "Teko",
                "description": " ".join(words),
                "brand": chance.choice(BRANDS),
                "shop": shop,
                "sku": sku if (shop, sku) in free else None,
                "price": chance.randint(1, 9),
                "on_hand": (on_hand := chance.randint(0, 8)),
                "reserved": chance.randint(0, on_hand),
            }
        )
        free.discard((shop, str(sku)))
    chooser = FilterChooser(chance, catalogue.put_all(rows))
    num_found = 0
    with catalogue.market.reading() as session:
        products = [hit.product for hit in catalogue.search.lookup(session, chooser.ids)]
        for _ in range(100):
            query = chooser.query()
            found = catalogue.search.find(session, query, PageRequest(limit=100))
            expected = {product.id for product in products if passes(product, query)}
            assert {hit.product.id for hit in found.hits} == expected, query
            assert found.total == len(expected) == catalogue.search.count(session, query).count
            num_found += bool(expected)
    assert num_found > 30
