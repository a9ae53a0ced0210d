"""What answers and models may say of goods: cards, read from the database, with the texts of sellers cleaned."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tis.marketplace.assistant.clean_text import clean_name, clean_text
from tis.marketplace.assistant.measured import Measure
from tis.marketplace.assistant.viewers import Viewer
from tis.marketplace.assistant.wording import value_text
from tis.marketplace.columns import now
from tis.marketplace.kit.picture_links import PictureView
from tis.marketplace.kit.promoted_prices import ShownPromotion
from tis.marketplace.products.delivery import Language, advise, is_there_today
from tis.marketplace.products.schemas import Fulfilment, rating_of
from tis.marketplace.reading.asked import fact_patterns
from tis.marketplace.reading.attribute_values import attribute_key, attribute_label
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.search.product_rows import ProductRow
from tis.marketplace.search.query import SearchHit

MAX_CARDS = 8
_MAX_NAME_CHARS = 150
_MAX_SHORT_CHARS = 60  # of brands, shops, cities and categories
_MAX_DESCRIPTION_CHARS = 160
_MAX_ATTRIBUTES = 6
_MAX_ATTRIBUTE_CHARS = 40


@dataclass(frozen=True, kw_only=True)
class OfferedAction:
    """What a page may offer as a button. The assistant itself never calls a route: a person who presses it does."""

    kind: Literal["hold"]
    method: Literal["POST"] = "POST"
    path: str
    body: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class FoundProduct:
    """A product as the database has it when the answer is given."""

    id: int
    name: str
    price: int
    currency: Literal["IDR"] = "IDR"
    category: str
    brand: str | None
    condition: str
    available_quantity: int
    supplier_id: int
    supplier_name: str
    city: str
    rating: float | None
    rating_count: int
    distance_km: float | None
    fulfilment: Fulfilment | None
    promotion: ShownPromotion | None = None  # that lowers `price` now
    picture: PictureView | None = None  # for people: models get no text of it
    actions: Sequence[OfferedAction] = ()  # for people, too


@dataclass(frozen=True, kw_only=True)
class ProductCard(FoundProduct):
    """All that answers and models may say of a product: no address, no coordinates, no person."""

    attributes: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True)
class TriedFilter:
    """What would be found without a filter, or with a wider one; it was really counted."""

    without: str
    count: int
    count_is_exact: bool
    query: StructuredQuery


@dataclass(frozen=True)
class FoundGoods:
    """At most MAX_CARDS cards, best first. `total` counts what matches; a lower bound if it is not exact.

    Where a named place has nothing, `nearest` are cards from elsewhere, with distances from that place.
    """

    cards: Sequence[ProductCard]
    total: int
    total_is_exact: bool = True
    corrected: str | None = None
    unverified_words: bool = False  # few products match all words: behind them are those that match some
    relaxations: Sequence[TriedFilter] = ()
    skipped: frozenset[int] = frozenset()  # what turns before have shown, left out because the buyer wants others
    nearest_place: str | None = None
    nearest: Sequence[ProductCard] = ()
    values: Mapping[int, Measure] = field(default_factory=dict)  # of the attribute that the cards are ordered by
    is_unmeasured: bool = False  # no product has that attribute
    category_name: str = ""  # in the language of the answer
    told: Mapping[int, Sequence[str]] = field(default_factory=dict)  # of the facts that were asked
    lacks_near: bool = False  # these goods are there, but none is near the place that was named
    lacks_stock: bool = False  # these goods are there, but sold out, or fewer than are wanted
    is_beaten: bool = True  # else nothing goes beyond what was shown, which these are
    missing: Sequence[str] = ()  # phrases of a comparison that no product matches


def card_of(hit: SearchHit, viewer: Viewer, *, with_advice: bool = True) -> ProductCard:
    """Without advice where the distance is not from the buyer's place."""
    product, shop = hit.product, hit.product.supplier
    distance_km, fulfilment = hit.shown_km, None
    if distance_km is not None and with_advice:
        today = is_there_today(product, now(), hit.branch)
        fulfilment = advise(distance_km, shop, viewer.language, today=today)
    return ProductCard(
        id=product.id,
        name=clean_name(product.name, _MAX_NAME_CHARS) or f"#{product.id}",
        price=product.price,
        category=clean_text(product.category, _MAX_SHORT_CHARS),
        brand=clean_text(product.brand or "", _MAX_SHORT_CHARS) or None,
        condition=product.condition,
        available_quantity=product.on_hand - product.reserved if product.is_available else 0,
        supplier_id=product.supplier_id,
        supplier_name=clean_name(shop.business_name, _MAX_SHORT_CHARS) or f"#{product.supplier_id}",
        city=clean_text(shop.city, _MAX_SHORT_CHARS),
        rating=rating_of(product),
        rating_count=product.rating_count,
        distance_km=distance_km,
        fulfilment=fulfilment,
        promotion=product.promotion,
        picture=_picture(product.cover),
        actions=_actions(product),
        attributes=_attributes(product.attributes),
        description=clean_text(product.description or "", _MAX_DESCRIPTION_CHARS),
    )


def _actions(product: ProductRow) -> Sequence[OfferedAction]:
    is_sold = product.is_available and product.on_hand > product.reserved
    hold = OfferedAction(kind="hold", path=f"/api/products/{product.id}/reservations", body={"quantity": 1})
    return (hold,) if is_sold else ()


def _picture(cover: PictureView | None) -> PictureView | None:
    if cover is None or cover.alt is None:
        return cover
    return cover.model_copy(update={"alt": clean_text(cover.alt, _MAX_DESCRIPTION_CHARS) or None})


def _attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    cleaned: dict[str, Any] = {}
    for name, value in attributes.items():
        label = clean_text(name, _MAX_ATTRIBUTE_CHARS)
        shown = clean_text(value, _MAX_ATTRIBUTE_CHARS) if isinstance(value, str) else value
        if label and shown not in ("", None):
            cleaned[label] = shown
        if len(cleaned) == _MAX_ATTRIBUTES:
            break
    return cleaned


# A line of an answer says these of every product.
FACTS_OF_LINES = frozenset({"price", "stock", "shop", "city", "distance", "rating", "condition"})


def told_facts(product: ProductRow, facts: Sequence[str], language: Language) -> list[str]:
    """In the words of the seller: the attributes of each fact, else the sentence of the description that says it."""
    attributes, told = _attributes(product.attributes), list[str]()
    for fact in facts:
        if fact == "brand" and product.brand:
            told.append(clean_text(product.brand, _MAX_SHORT_CHARS))
            continue
        known = [
            f"{attribute_label(attribute_key(name))}: {value_text(value, language)}"
            for name, value in attributes.items()
            if fact == "details" or _is_said_by(fact, name)
        ]
        sentences = re.split(r"(?<=[.!?])\s+", product.description or "")
        said = [one for one in sentences if one and (fact == "details" or _is_said_by(fact, one))]
        told += known or [clean_text(one, _MAX_DESCRIPTION_CHARS).rstrip(".") for one in said[:1]]
    return list(dict.fromkeys(filter(None, told)))


def _is_said_by(fact: str, words: str) -> bool:
    """Whether these words, of a seller or a buyer, speak of the fact."""
    return fact_patterns()[fact].search(words.lower().replace("_", " ")) is not None
