"""Cards of products: what answers render and models read. Read from the database, texts cleaned."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from tis.marketplace.assistant.clean_text import clean_name, clean_text, cut
from tis.marketplace.assistant.goods import ProductCard, Viewer
from tis.marketplace.assistant.wording import condition_text, decimal_text, kilometres_text, rupiah
from tis.marketplace.columns import now
from tis.marketplace.kit.geo import Point, shown_distance
from tis.marketplace.products.delivery import Language, advise, is_there_today
from tis.marketplace.products.schemas import rating_of
from tis.marketplace.search.product_search import ProductSearch
from tis.marketplace.search.query import MAX_LOOKED_UP, SearchHit
from tis.marketplace.search.relaxed_filters import point_of_city

MAX_MODEL_CHARS = 400
_MAX_NAME_CHARS = 150
_MAX_SHORT_CHARS = 60  # of brands, shops, cities and categories
_MAX_DESCRIPTION_CHARS = 160
_MAX_ATTRIBUTES = 6
_MAX_ATTRIBUTE_CHARS = 40


def cards_of(search: ProductSearch, session: Session, ids: Sequence[int], viewer: Viewer) -> list[ProductCard]:
    """As they are now, in the order of the ids; deleted products and those of suspended shops are left out."""
    found = search.lookup(session, list(dict.fromkeys(ids))[:MAX_LOOKED_UP], origin_of(viewer))
    return [card_of(hit, viewer) for hit in found]


def origin_of(viewer: Viewer) -> Point | None:
    """Where distances are measured from: the viewer's place, or the centre of its city."""
    if viewer.origin is not None or viewer.city is None:
        return viewer.origin
    place = point_of_city(viewer.city)
    return place.point if place else None


def card_of(hit: SearchHit, viewer: Viewer, *, with_advice: bool = True) -> ProductCard:
    """Without advice where the distance is not from the buyer's place."""
    product, shop = hit.product, hit.product.supplier
    distance_km, fulfilment = None, None
    if hit.distance_km is not None:
        distance_km = shown_distance(hit.distance_km, shows_place=shop.shows_place)
        if with_advice:
            fulfilment = advise(distance_km, shop, viewer.language, today=is_there_today(product, now()))
    name = clean_name(product.name, _MAX_NAME_CHARS)
    return ProductCard(
        id=product.id,
        name=name or f"#{product.id}",
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
        attributes=_attributes(product.attributes),
        description=clean_text(product.description or "", _MAX_DESCRIPTION_CHARS),
    )


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


def model_text(card: ProductCard, number: int, language: Language = "id") -> str:
    """A card as a model reads it: the facts first, and of the description what there is room for."""
    facts = " | ".join(_facts(card, language))
    return cut(f"{number}. id={card.id} {cut(card.name, 100)} | {facts}", MAX_MODEL_CHARS)


def _facts(card: ProductCard, language: Language) -> Iterator[str]:
    words = _WORDS[language]
    yield rupiah(card.price)
    yield words["stock"].format(card.available_quantity) if card.available_quantity > 0 else words["sold out"]
    yield f"{card.supplier_name}, {card.city}"
    if card.distance_km is not None:
        yield kilometres_text(card.distance_km, language)
    if card.rating is not None:
        stars = decimal_text(card.rating, language)
        name = {0: "granted rating", 1: "one rating"}.get(card.rating_count, "rating")
        yield words[name].format(stars, card.rating_count)
    if card.fulfilment is not None:
        yield words[card.fulfilment.suggestion]
    yield condition_text(card.condition, language)
    if card.brand:
        yield card.brand
    yield card.category
    if card.attributes:
        yield ", ".join(f"{name}: {_value_text(value, language)}" for name, value in card.attributes.items())
    if card.description:
        yield card.description


def _value_text(value: Any, language: Language) -> str:
    if isinstance(value, bool):
        return _WORDS[language]["yes" if value else "no"]
    return decimal_text(value, language) if isinstance(value, float) else str(value)


_WORDS: dict[Language, dict[str, str]] = {
    "id": {
        "stock": "stok {}",
        "sold out": "stok habis",
        "rating": "nilai {} ({} ulasan)",
        "one rating": "nilai {} (1 ulasan)",
        "granted rating": "nilai {}",
        "pickup": "bisa diambil",
        "courier": "diantar kurir toko",
        "parcel": "lewat ekspedisi",
        "yes": "ya",
        "no": "tidak",
    },
    "en": {
        "stock": "{} in stock",
        "sold out": "sold out",
        "rating": "rated {} ({} reviews)",
        "one rating": "rated {} (1 review)",
        "granted rating": "rated {}",
        "pickup": "pick-up",
        "courier": "shop's courier",
        "parcel": "by parcel",
        "yes": "yes",
        "no": "no",
    },
}
