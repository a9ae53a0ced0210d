"""A product as the feed has it, made of what everybody sees."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Row, and_, select
from sqlalchemy.orm import Session

from tis.marketplace.context import MarketServices
from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.picture_links import PictureView, pictures_of
from tis.marketplace.kit.suspicious_texts import instruction_like
from tis.marketplace.search.sql import run
from tis.marketplace.tables import Category, Product, Promotion, Supplier

BATCH_SIZE = 500
_MAX_PARENTS = 10
_NEXT = (
    "SELECT product_id FROM product_search WHERE product_id > :after AND sellable >= 0 ORDER BY product_id LIMIT :batch"
)
_GTIN_NAMES = ("gtin", "ean", "upc", "isbn", "barcode")
_GTIN = re.compile(r"\d{8}|\d{12,14}", re.ASCII)
_SHOP_STATUS = "active"


@dataclass(frozen=True)
class PromotedPrice:
    """What a product costs while its promotion is in force."""

    price: int
    begins_at: datetime
    ends_at: datetime


@dataclass(frozen=True)
class FeedEntry:
    """Addresses are absolute."""

    id: int
    title: str
    description: str | None
    link: str
    images: Sequence[str]
    image_alt: str | None
    price: int  # without a promotion
    promotion: PromotedPrice | None
    group_id: int | None  # of a variant
    in_stock: bool
    is_new: bool
    brand: str | None
    gtin: str | None
    mpn: str | None
    category: str
    color: str | None
    size: str | None
    material: str | None
    supplier_id: int
    shop: str
    shop_link: str


class FeedEntries:
    """Makes entries of products. Names of categories are read once: a change of them ends all cursors."""

    def __init__(self, market: MarketServices) -> None:
        self._market, self._address = market, market.rules.public_url.rstrip("/")
        with market.reading() as session:
            self._categories = _category_paths(session)

    def all_batches(self) -> Iterator[list[FeedEntry]]:
        """In the order of their ids. A short transaction for each batch: a slow reader holds none open."""
        after = 0
        while True:
            with self._market.reading() as session:
                ids = [one for [one] in run(session, _NEXT, {"after": after, "batch": BATCH_SIZE})]
                entries = self._load(session, ids)
            if not ids:
                return
            after = ids[-1]
            yield list(entries.values())

    def batch(self, product_ids: Sequence[int]) -> Mapping[int, FeedEntry]:
        """Without those that nobody offers any more."""
        with self._market.reading() as session:
            return self._load(session, product_ids)

    def _load(self, session: Session, product_ids: Sequence[int]) -> dict[int, FeedEntry]:
        if not product_ids:
            return {}
        rows = session.execute(
            select(*_COLUMNS)
            .join(Supplier, Supplier.id == Product.supplier_id)
            .outerjoin(Promotion, and_(Promotion.product_id == Product.id, Promotion.state == "running"))
            .where(Product.id.in_(product_ids), Product.deleted_at.is_(None), Product.is_available.is_(True))
            .where(Supplier.status == _SHOP_STATUS, Supplier.deleted_at.is_(None))
            .order_by(Product.id)
        ).all()
        pictures = pictures_of(session, [row.id for row in rows])
        made = (self._entry(row, pictures[row.id]) for row in rows)
        return {one.id: one for one in made if one is not None}

    def _entry(self, row: Row[Any], pictures: Sequence[PictureView]) -> FeedEntry | None:
        """None for a product whose very name gives orders to models: its other texts are left out alone."""
        attributes: Mapping[str, Any] = row.attributes or {}

        def text(value: Any) -> str | None:
            said = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
            return said if said and not (row.flagged_reason and instruction_like(said)) else None

        title = text(row.name)
        if title is None:
            return None
        return FeedEntry(
            id=row.id,
            title=title,
            description=None if row.flagged_reason else row.description,
            link=f"{self._address}/shop/products/{row.id}",
            images=[f"{self._address}{one.urls.large}" for one in pictures],
            image_alt=pictures[0].alt if pictures else None,
            price=row.normal_price or row.price,
            promotion=PromotedPrice(row.price, row.begins_at, row.ends_at)
            if row.normal_price and row.begins_at
            else None,
            group_id=row.group_id,
            in_stock=row.on_hand > row.reserved,
            is_new=row.condition == "new",
            brand=text(row.brand),
            gtin=gtin_in(attributes),
            mpn=text(attributes.get("mpn")),
            category=self._categories.get(row.category_key) or text(row.category) or "",
            color=text(attributes.get("color")),
            size=text(attributes.get("size")),
            material=text(attributes.get("material")),
            supplier_id=row.supplier_id,
            shop=named_shop(row.business_name, row.supplier_id),
            shop_link=f"{self._address}/shop#/?supplier_id={row.supplier_id}",
        )


_COLUMNS = (
    Product.id,
    Product.supplier_id,
    Product.name,
    Product.description,
    Product.brand,
    Product.price,
    Product.normal_price,
    Product.group_id,
    Promotion.begins_at,
    Promotion.ends_at,
    Product.on_hand,
    Product.reserved,
    Product.category,
    Product.category_key,
    Product.condition,
    Product.attributes,
    Product.flagged_reason,
    Supplier.business_name,
)


def _category_paths(session: Session) -> dict[str, str]:
    """`Elektronik > Laptop`, by the keys that products have."""
    rows = {
        row.slug: row
        for row in session.execute(select(Category.slug, Category.parent, Category.name_id).order_by(Category.slug))
    }
    paths = {}
    for slug in rows:
        names, at = list[str](), slug
        while at in rows and len(names) < _MAX_PARENTS:
            names.insert(0, rows[at].name_id)
            at = rows[at].parent
        paths[key_of(slug)] = " > ".join(names)
    return paths


@lru_cache(maxsize=1024)
def named_shop(business_name: str, supplier_id: int) -> str:
    """A name that gives orders to models is left out, whatever its goods say: nobody flags names of shops."""
    name = " ".join(business_name.split())
    return f"Shop {supplier_id}" if not name or instruction_like(name) else name


def gtin_in(attributes: Mapping[str, Any]) -> str | None:
    """Of attributes that sellers name so, if its check digit is right."""
    for name in _GTIN_NAMES:
        value = attributes.get(name)
        digits = re.sub(r"[\s-]", "", str(value)) if isinstance(value, str | int) else ""
        if _GTIN.fullmatch(digits) and _checks(digits):
            return digits
    return None


def _checks(digits: str) -> bool:
    weighted = sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(reversed(digits)))
    return weighted % 10 == 0
