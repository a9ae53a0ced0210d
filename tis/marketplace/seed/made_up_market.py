"""A made-up market of any size: shops in real places, goods with prices of their kind, stock, buyers and reviews.

The same size and seed make the same market. Rows are made and inserted in batches, so memory does not grow with the
size. The lists of places, goods and words are those of the large catalogue, whose texts are for measurements alone.
"""

import itertools
import random
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from tis.marketplace.kit.feed_marks import mark_supplier
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.ratings import rating_rank_of
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.seed.large_catalogue import (
    ATTRIBUTES,
    COLORS,
    PRODUCTS_PER_SUPPLIER,
    START_DATE,
    ProductKind,
    Row,
    insert_rows,
    model_name,
    product_kind,
    read_table,
    supplier_row,
)
from tis.marketplace.seed.sample import max_supplier_id, write_history
from tis.marketplace.tables import Product, Review, Supplier, User

SHOPS_AT = "@size.example.com"
_BUYERS_AT = "@buyers.size.example.com"
_MAX_BUYERS = 5000
_MAX_REVIEWS = 40  # of a product
_BATCH_SIZE = 2000
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


def insert_market(session: Session, search: ProductSearch, products: int, seed: int) -> None:
    """Keeps what is there. Works once per database, because its e-mails are taken after that."""
    rng = random.Random(f"market {seed}")
    last_id = max_supplier_id(session)
    insert_rows(session, Supplier, _shops(rng, max(1, products // PRODUCTS_PER_SUPPLIER)))
    insert_rows(session, User, _buyers(rng, max(_MAX_REVIEWS, min(_MAX_BUYERS, products // 20))))
    shops = session.execute(select(Supplier.id, Supplier.city).where(Supplier.id > last_id).order_by(Supplier.id)).all()
    of_buyers = User.email_key.endswith(_BUYERS_AT)
    buyers = session.scalars(select(User.id).where(of_buyers).order_by(User.id)).all()
    insert_rows(session, Product, _goods(rng, [(shop.id, shop.city) for shop in shops], products, seed))
    _add_reviews(session, last_id, buyers, seed)
    write_history(session, last_id)
    if session.get_bind().dialect.name == "postgresql":
        # Without it PostgreSQL plans for empty tables and scans both for every thousand products.
        session.execute(text("ANALYZE suppliers, products"))
    search.rebuild(session)
    for shop in shops:
        mark_supplier(session, shop.id)


def _shops(rng: random.Random, count: int) -> Iterator[Row]:
    places = read_table("places.csv")
    weights = list(itertools.accumulate(int(place["thousands"]) for place in places))  # inhabitants
    for number in range(1, count + 1):
        place = places[bisect_left(weights, rng.random() * weights[-1])]
        row = supplier_row(rng, number, place, SHOPS_AT)
        opens, closes = f"{rng.randrange(7, 11):02}:00", f"{rng.randrange(16, 22):02}:00"
        yield row | {
            "name": f"{rng.choice(_FIRST_NAMES)} Specimen",
            "opening_hours": {day: [[opens, closes]] for day in _DAYS} if rng.random() < 0.8 else None,
        }


def _buyers(rng: random.Random, count: int) -> Iterator[Row]:
    for number in range(1, count + 1):
        email = f"buyer-{number}{_BUYERS_AT}"
        moment = START_DATE - timedelta(minutes=rng.randrange(500_000))
        yield {
            "name": f"{rng.choice(_FIRST_NAMES)} {rng.choice(_LETTERS)} Specimen",
            "email": email,
            "email_key": email,
            "role": "user",
            "ai_access_enabled": False,
            "version": 1,
            "created_at": moment,
            "updated_at": moment,
        }


def _goods(rng: random.Random, shops: Sequence[tuple[int, str]], count: int, seed: int) -> Iterator[Row]:
    kinds = [product_kind(row) for row in read_table("products.csv")]
    shares = list(itertools.accumulate(kind.share for kind in kinds))
    for number in range(1, count + 1):
        kind = kinds[bisect_left(shares, rng.random() * shares[-1])]
        # A few shops are large and many are small.
        shop_id, city = shops[int(len(shops) * rng.random() ** 1.6)]
        yield _product(rng, number, kind, city, seed) | {"supplier_id": shop_id}


def _product(rng: random.Random, number: int, kind: ProductKind, city: str, seed: int) -> Row:
    brand, is_used = rng.choice(kind.brands), rng.random() < 0.12
    attributes = {name: rng.choice(values) for name, values in ATTRIBUTES.get(kind.category, {}).items()}
    attributes |= {"color": rng.choice(COLORS), "weight_g": rng.randrange(5, 500) * 10}
    words = list(dict.fromkeys(rng.choices(kind.words, k=8)))[:4]
    price = kind.price * rng.lognormvariate(0, kind.spread) * (0.65 if is_used else 1)
    ratings = _ratings(seed, number)
    moment = START_DATE + timedelta(seconds=rng.randrange(31_000_000))
    return {
        "name": _name(rng, kind, brand, attributes) + (" (bekas)" if is_used else ""),
        "description": _description(rng, kind, brand, words, city, is_used=is_used),
        "brand": brand,
        "price": _shop_price(price),
        "on_hand": 0 if rng.random() < 0.06 else 1 + int(rng.expovariate(1 / 15)),
        "reserved": 0,
        "category": kind.category,
        "category_key": key_of(kind.category),
        "tags": ",".join(words),
        "sku": f"{kind.category[:3].upper()}-{number:07}",
        "condition": "used" if is_used else "new",
        "attributes": attributes,
        "is_available": rng.random() > 0.02,
        "rating_sum": sum(ratings),
        "rating_count": len(ratings),
        "verified_sum": 0,
        "verified_count": 0,
        "granted_rating": None,
        "rating_rank": rating_rank_of(None, sum(ratings), len(ratings)),
        "version": 1,
        "created_at": moment,
        "updated_at": moment,
    }


def _name(rng: random.Random, kind: ProductKind, brand: str, attributes: Mapping[str, Any]) -> str:
    shown = [form.format(attributes[name]) for name, form in _SHOWN.items() if name in attributes][:2]
    return " ".join([rng.choice(kind.names), brand, model_name(rng), *shown, attributes["color"]])


def _description(
    rng: random.Random, kind: ProductKind, brand: str, words: Sequence[str], city: str, *, is_used: bool
) -> str:
    listed = ", ".join(words[:-1]) + f" dan {words[-1]}" if len(words) > 1 else words[0]
    state = f"Bekas pakai, kondisi {rng.randrange(80, 99)}%." if is_used else rng.choice(_NEW)
    sentences = [f"{rng.choice(kind.names)} {brand}: {listed}.", state, rng.choice(_SAYINGS), f"Dikirim dari {city}."]
    return " ".join(sentences)


def _shop_price(price: float) -> int:
    """As shops write them: 149,000 and 3,499,000."""
    step = 1000 if price < 100_000 else 5000 if price < 1_000_000 else 50_000
    return max(1000, round(price / step) * step - (1000 if price > 50_000 else 0))


def _ratings(seed: int, number: int) -> list[int]:
    """Of a product: two thirds have none, a few have many."""
    rng = random.Random(f"reviews {seed} {number}")
    if rng.random() > 0.34:
        return []
    liked = rng.betavariate(6, 2)
    return [1 + sum(rng.random() < liked for _ in range(4)) for _ in range(min(_MAX_REVIEWS, _num_reviews(rng)))]


def _num_reviews(rng: random.Random) -> int:
    return 1 + int(rng.paretovariate(1.3)) if rng.random() < 0.6 else 1


def _add_reviews(session: Session, last_supplier_id: int, buyers: Sequence[int], seed: int) -> None:
    """By the ids that the database gave the products; the number of a product is in its SKU."""
    after = 0
    while True:
        rows = (
            select(Product.id, Product.supplier_id, Product.sku, Product.created_at)
            .where(Product.supplier_id > last_supplier_id, Product.id > after)
            .order_by(Product.id)
            .limit(_BATCH_SIZE)
        )
        batch = session.execute(rows).all()
        if not batch:
            return
        after = batch[-1].id
        reviews = [review for product in batch for review in _reviews(product, buyers, seed)]
        insert_rows(session, Review, reviews)


def _reviews(product: Any, buyers: Sequence[int], seed: int) -> Iterator[Row]:
    number = int(product.sku.rpartition("-")[2])
    rng, ratings = random.Random(f"texts {seed} {number}"), _ratings(seed, number)
    for buyer, rating in zip(rng.sample(buyers, len(ratings)), ratings, strict=True):
        moment = product.created_at + timedelta(hours=rng.randrange(24, 2000))
        yield {
            "product_id": product.id,
            "supplier_id": product.supplier_id,
            "user_id": buyer,
            "rating": rating,
            "title": None,
            "body": rng.choice(_BODIES[rating]) if rng.random() < 0.7 else None,
            "status": "published",
            "verified_purchase": False,
            "created_at": moment,
            "updated_at": moment,
        }


_FIRST_NAMES = (
    "Adi Ayu Bagus Citra Dewi Dimas Eka Fajar Gita Hadi Indah Joko Kartika Lestari Made Nia Putri Rizky".split()
)
_LETTERS = "ABCDEFGHIJKLMNOPRSTUWY"
_SHOWN = {
    "ram_gb": "{} GB",
    "storage_gb": "{} GB",
    "screen_inch": "{} inci",
    "battery_mah": "{} mAh",
    "refresh_hz": "{} Hz",
    "size": "ukuran {}",
    "doors": "{} pintu",
    "power_pk": "{} PK",
}
_NEW = ("Barang baru, masih segel.", "Garansi resmi 1 tahun.", "Garansi toko 30 hari.", "Stok baru, siap kirim.")
_SAYINGS = (
    "Cocok untuk rumah dan kantor.",
    "Bisa dicoba di toko.",
    "Sudah termasuk kardus dan nota.",
    "Harga bisa berubah, tanyakan dulu bila ragu.",
    "Dikemas dengan aman.",
)
_BODIES = {
    1: ("Tidak sesuai gambar.", "Cepat rusak, kecewa."),
    2: ("Kurang dari harapan.", "Pengiriman lama."),
    3: ("Lumayan untuk harganya.", "Biasa saja."),
    4: ("Bagus, sesuai harga.", "Barang sesuai, kemasan rapi.", "Cukup puas."),
    5: ("Sangat puas!", "Barang bagus, penjual ramah.", "Sesuai foto, cepat sampai.", "Sudah beli dua kali di sini."),
}
