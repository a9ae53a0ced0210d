"""The head of a product's page, for crawlers, which run no script: title, Open Graph and JSON-LD of schema.org."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from tis.marketplace.feeds.feed_entries import gtin_in, named_shop
from tis.marketplace.kit.fields import MAX_ID
from tis.marketplace.kit.picture_links import pictures_of
from tis.marketplace.kit.ratings import mean_rating
from tis.marketplace.kit.suspicious_texts import instruction_like
from tis.marketplace.tables import Category, Product

_MAX_TITLE_CHARS, _MAX_DESCRIPTION_CHARS = 200, 300
_SCHEMA = "https://schema.org"
_NOT_INDEXED = '<meta name="robots" content="noindex">'
# In a script, `</script>` and `<!--` would end or change it, whatever stands around them.
_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


@dataclass(frozen=True)
class CrawledHead:
    """HTML."""

    status: int
    head: str
    text: str


def product_head(session: Session, product_id: int, public_url: str) -> CrawledHead:
    """410 for a deleted product, 404 for one that nobody sees."""
    rows = select(Product).where(Product.id == min(product_id, MAX_ID)).options(joinedload(Product.supplier))
    product = session.scalar(rows)
    if product is None or not product.supplier.is_active:
        return _absent(404, "Not found")
    if product.deleted_at is not None:
        return _absent(410, "No longer sold")
    return _found(session, product, public_url.rstrip("/"))


def _absent(status: int, title: str) -> CrawledHead:
    text = "There is no such product here."
    return CrawledHead(status, f"<title>{title}</title>\n{_NOT_INDEXED}", text)


def _found(session: Session, product: Product, address: str) -> CrawledHead:
    url = f"{address}/shop/products/{product.id}"
    if product.flagged_reason and instruction_like(product.name):
        # A model that reads the page would read it as an order.
        return CrawledHead(200, f"<title>Product {product.id}</title>\n{_NOT_INDEXED}", "")
    name = " ".join(product.name.split())[:_MAX_TITLE_CHARS]
    description = "" if product.flagged_reason else " ".join((product.description or "").split())
    images = [f"{address}{one.urls.large}" for one in pictures_of(session, [product.id])[product.id]]
    price = f"Rp {product.price:,}".replace(",", ".")
    shop = named_shop(product.supplier.business_name, product.supplier_id)
    summary = _cut(description) or f"{name}: {price}, {shop}"
    properties = {
        "og:type": "product",
        "og:title": name,
        "og:description": summary,
        "og:url": url,
        "og:image": images[0] if images else "",
        "product:price:amount": str(product.price),
        "product:price:currency": "IDR",
    }
    data = product_data(product, url, name, description, images, _category_of(session, product))
    lines = [
        f"<title>{escape(name)}</title>",
        f'<meta name="description" content="{escape(summary)}">',
        f'<link rel="canonical" href="{escape(url)}">',
        *(f'<meta property="{key}" content="{escape(value)}">' for key, value in properties.items() if value),
        f'<script type="application/ld+json">{script_json(data)}</script>',
    ]
    text = f"<h1>{escape(name)}</h1><p>{price}, {escape(shop)}</p>"
    return CrawledHead(200, "\n".join(lines), text)


def product_data(
    product: Product, url: str, name: str, description: str, images: list[str], category: str | None
) -> dict[str, Any]:
    """A `Product` of schema.org with one `Offer`. What is not known, or gives orders to models, is left out."""
    attributes: Mapping[str, Any] = product.attributes or {}

    def text(value: Any) -> str | None:
        said = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
        return said if said and not (product.flagged_reason and instruction_like(said)) else None

    brand, rating = text(product.brand), mean_rating(product)
    is_sold = product.is_available and product.on_hand > product.reserved
    offer = {
        "@type": "Offer",
        "url": url,
        "price": str(product.price),
        "priceCurrency": "IDR",
        "availability": f"{_SCHEMA}/{'InStock' if is_sold else 'OutOfStock'}",
        "itemCondition": f"{_SCHEMA}/{'NewCondition' if product.condition == 'new' else 'UsedCondition'}",
        "seller": {"@type": "Organization", "name": named_shop(product.supplier.business_name, product.supplier_id)},
    }
    data = {
        "@context": _SCHEMA,
        "@type": "Product",
        "@id": url,
        "url": url,
        "name": name,
        "description": description or None,
        "image": images or None,
        "sku": text(product.sku),
        "gtin": gtin_in(attributes),
        "mpn": text(attributes.get("mpn")),
        "brand": {"@type": "Brand", "name": brand} if brand else None,
        "category": category,
        "color": text(attributes.get("color")),
        "aggregateRating": {
            "@type": "AggregateRating",
            "ratingValue": round(rating, 1),
            "reviewCount": product.rating_count,
        }
        if product.rating_count and rating is not None
        else None,
        "offers": offer,
    }
    return {key: value for key, value in data.items() if value is not None}


def script_json(data: Any) -> str:
    """JSON that nothing in it can end the script of."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_IN_SCRIPT)


def _category_of(session: Session, product: Product) -> str | None:
    name = session.scalar(select(Category.name_id).where(Category.slug == product.category_key))
    if name is None and product.flagged_reason and instruction_like(product.category):
        return None
    return name or product.category


def _cut(text: str) -> str:
    if len(text) <= _MAX_DESCRIPTION_CHARS:
        return text
    return text[:_MAX_DESCRIPTION_CHARS].rsplit(" ", 1)[0].rstrip(" ,;:.-") + "…"
