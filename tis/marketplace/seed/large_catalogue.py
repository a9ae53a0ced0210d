"""A large generated catalogue for measurements. The same number of products gives the same catalogue."""

import csv
import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import func, insert, select, text
from sqlalchemy.orm import Session

from tis.marketplace.kit.feed_marks import mark_supplier
from tis.marketplace.kit.fields import key_of
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.seed.sample import max_supplier_id, write_history
from tis.marketplace.tables import UNRATED, Product, Supplier, Table

PRODUCTS_PER_SUPPLIER = 50
_EMAIL_DOMAIN = "@many.example.com"
START_DATE = datetime(2025, 1, 1, tzinfo=UTC)
_BATCH_ROWS = 5000

_HERE = Path(__file__).parent

Row = dict[str, Any]


@dataclass(frozen=True)
class ProductKind:
    """A row of `products.csv`. `price` is the median, `spread` that of its logarithm; common words come first."""

    category: str
    share: int  # relative frequency
    price: int
    spread: float
    brands: list[str]
    names: list[str]
    words: list[str]


def count_catalogue(session: Session, domain: str = _EMAIL_DOMAIN) -> int:
    """Number of products of such a catalogue in the database."""
    suppliers = select(Supplier.id).where(Supplier.email_key.endswith(domain))
    return session.scalar(select(func.count()).where(Product.supplier_id.in_(suppliers))) or 0


def insert_catalogue(session: Session, search: ProductSearch, products: int) -> None:
    """Keeps what is there. Works once per database, because the e-mails of its suppliers are taken after that."""
    rng = random.Random(products)
    last_id = max_supplier_id(session)
    insert_rows(session, Supplier, _suppliers(rng, max(1, products // PRODUCTS_PER_SUPPLIER)))
    of_catalogue = select(Supplier.id).where(Supplier.email_key.endswith(_EMAIL_DOMAIN)).order_by(Supplier.id)
    supplier_ids = session.scalars(of_catalogue).all()
    insert_rows(session, Product, _products(rng, supplier_ids, products))
    write_history(session, last_id)
    if session.get_bind().dialect.name == "postgresql":
        # Without it PostgreSQL plans for empty tables and scans both for every thousand products.
        session.execute(text("ANALYZE suppliers, products"))
    search.rebuild(session)
    for supplier_id in supplier_ids:
        mark_supplier(session, supplier_id)


def insert_rows(session: Session, table: type[Table], rows: Iterable[Row]) -> None:
    """Core inserts: a million ORM objects would take too long."""
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, _BATCH_ROWS)):
        session.connection().execute(insert(table), batch)


def _suppliers(rng: random.Random, count: int) -> Iterator[Row]:
    places = read_table("places.csv")
    chosen = rng.choices(places, [int(place["thousands"]) for place in places], k=count)  # inhabitants
    for number, place in enumerate(chosen, 1):
        yield supplier_row(rng, number, place)


def supplier_row(rng: random.Random, number: int, place: Mapping[str, str], domain: str = _EMAIL_DOMAIN) -> Row:
    email = f"shop-{number}{domain}"
    moment = START_DATE - timedelta(minutes=rng.randrange(500_000))
    # Most suppliers are a few kilometres from the centre of their city.
    latitude = round(float(place["latitude"]) + rng.gauss(0, 0.05), 6)
    longitude = round(float(place["longitude"]) + rng.gauss(0, 0.05), 6)
    return {
        "name": f"SPECIMEN {number}",
        "business_name": f"Toko {rng.choice(_SHOPS)} {rng.choice(_SHOPS)} {number}",
        "email": email,
        "email_key": email,
        "latitude": latitude,
        "longitude": longitude,
        "city": place["city"],
        "city_key": key_of(place["city"]),
        "province": place["province"],
        "place_code": gazetteer().code_of(place["city"], place["province"]),
        "status": "suspended" if rng.random() < 0.01 else "active",
        "shows_place": True,
        "pickup_enabled": rng.random() < 0.8,
        "courier_enabled": rng.random() < 0.7,
        "version": 1,
        "registration_date": moment,
        "updated_at": moment,
    }


def _products(rng: random.Random, supplier_ids: Sequence[int], count: int) -> Iterator[Row]:
    kinds = [product_kind(row) for row in read_table("products.csv")]
    common_words = (_HERE / "common_words.txt").read_text(encoding="utf-8").split()  # fit any product
    chosen = rng.choices(kinds, [kind.share for kind in kinds], k=count)
    for number, kind in enumerate(chosen, 1):
        yield _product(rng, number, kind, common_words) | {"supplier_id": rng.choice(supplier_ids)}


def read_table(name: str) -> list[dict[str, str]]:
    with (_HERE / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def product_kind(row: Mapping[str, str]) -> ProductKind:
    return ProductKind(
        row["category"],
        int(row["share"]),
        int(row["price"]),
        float(row["spread"]),
        row["brands"].split("|"),
        row["names"].split("|"),
        row["words"].split(),
    )


def _product(rng: random.Random, number: int, kind: ProductKind, common_words: list[str]) -> Row:
    brand, roll = rng.choice(kind.brands), rng.random()
    price = kind.price * rng.lognormvariate(0, kind.spread)
    words = list(dict.fromkeys(_words(rng, kind.words, 5, 12) + _words(rng, common_words, 8, 22)))
    rng.shuffle(words)
    stars = round(rng.triangular(1, 5, 4.6), 1) if rng.random() < 0.6 else None
    moment = START_DATE + timedelta(seconds=rng.randrange(31_000_000))
    return {
        "name": f"{rng.choice(kind.names)} {brand} {model_name(rng)} {words[0]} {words[-1]}",
        "description": " ".join(words),
        "brand": brand,
        "price": max(1000, int(price / 1000) * 1000),
        "on_hand": 0 if roll < 0.08 else 1 + int(rng.expovariate(1 / 20)),
        "reserved": 0,
        "category": kind.category,
        "category_key": key_of(kind.category),
        "tags": ",".join(words[1:5]),
        "sku": f"M-{number:07}",
        "condition": "used" if 0.08 <= roll < 0.2 else "new",
        "attributes": attributes_of(number, kind.category),
        "is_available": not 0.2 <= roll < 0.22,
        "rating_sum": 0,
        "rating_count": 0,
        "verified_sum": 0,
        "verified_count": 0,
        "granted_rating": stars,
        "rating_rank": UNRATED if stars is None else stars,
        "version": 1,
        "created_at": moment,
        "updated_at": moment,
        "deleted_at": moment + timedelta(days=3) if roll > 0.98 else None,
    }


def attributes_of(number: int, category: str) -> Row:
    rng = random.Random(number)
    chosen = {name: rng.choice(values) for name, values in ATTRIBUTES.get(category, {}).items()}
    return {**chosen, "color": rng.choice(COLORS), "weight_g": rng.randrange(50, 5000)}


def _words(rng: random.Random, pool: list[str], minimum: int, maximum: int) -> list[str]:
    """Few words are common and many are rare, as in a natural language."""
    return [pool[int(len(pool) * rng.random() ** 1.25)] for _ in range(rng.randint(minimum, maximum))]


def model_name(rng: random.Random) -> str:
    return f"{rng.choice(_LETTERS)}{rng.choice(_LETTERS)}{rng.randrange(1, 400) * 5}"


_SHOPS = (
    "Maju Jaya Makmur Sentosa Abadi Berkah Sumber Rejeki Mitra Cahaya Mandiri Sejahtera Karya Utama Bintang Melati "
    "Kencana Gemilang Harapan Nusantara Mulia Rapi Damai Lestari Bahagia Surya Samudra Pelita Wijaya Anugerah"
).split()
COLORS = "hitam putih abu-abu biru merah hijau perak emas".split()
_SCREENS = (13.3, 14, 15.6, 17.3)
ATTRIBUTES: dict[str, dict[str, tuple[Any, ...]]] = {
    "laptop": {"ram_gb": (4, 8, 16, 32), "storage_gb": (256, 512, 1000), "screen_inch": _SCREENS},
    "smartphone": {"ram_gb": (4, 6, 8, 12), "storage_gb": (64, 128, 256, 512), "battery_mah": (4000, 5000, 6000)},
    "tablet": {"ram_gb": (4, 8), "storage_gb": (64, 128, 256), "screen_inch": (8, 10.1, 11)},
    "monitor": {"screen_inch": (21.5, 24, 27, 32), "refresh_hz": (60, 75, 144, 165)},
    "tv": {"screen_inch": (32, 43, 50, 55, 65)},
    "storage": {"storage_gb": (128, 256, 512, 1000, 2000)},
    "power-bank": {"battery_mah": (5000, 10_000, 20_000)},
    "clothing": {"size": ("S", "M", "L", "XL")},
    "shoes": {"size": tuple(range(36, 46))},
    "refrigerator": {"doors": (1, 2, 4)},
    "air-conditioner": {"power_pk": (0.5, 1, 1.5, 2)},
}
_LETTERS = "ABCDEFGHKLMNPRSTVXZ"
