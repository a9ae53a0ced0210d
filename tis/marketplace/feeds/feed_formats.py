"""The feed as CSV, XML and JSON. Which fields these are, and of which versions: docs/agents.md."""

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import Any, Protocol
from xml.sax.saxutils import escape

from tis.marketplace.feeds.feed_entries import FeedEntry, PromotedPrice

_MAX_TITLE_CHARS, _MAX_DESCRIPTION_CHARS, _MAX_BRAND_CHARS = 150, 5000, 70
_MAX_MORE_IMAGES = 10
_COUNTRY = "ID"
_GOOGLE = "http://base.google.com/ns/1.0"
_TOMBSTONES = "http://purl.org/atompub/tombstones/1.0"
# XML 1.0 has no way to write these.
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class FeedFormat(Protocol):
    media_type: str

    def begin(self) -> str: ...

    def write(self, entries: Iterable[FeedEntry], removed: Iterable[int] = ()) -> str: ...

    def end(self) -> str: ...


def google_fields(entry: FeedEntry) -> dict[str, str]:
    """As Google Merchant Center names them; what is not known is left out."""
    fields = {
        "id": str(entry.id),
        "title": entry.title[:_MAX_TITLE_CHARS],
        "description": (entry.description or "")[:_MAX_DESCRIPTION_CHARS],
        "link": entry.link,
        "image_link": entry.images[0] if entry.images else "",
        "additional_image_link": ",".join(entry.images[1 : _MAX_MORE_IMAGES + 1]),
        "availability": "in_stock" if entry.in_stock else "out_of_stock",
        "price": f"{entry.price} IDR",
        **_promotion_fields(entry.promotion),
        "item_group_id": f"group-{entry.group_id}" if entry.group_id else "",
        "condition": "new" if entry.is_new else "used",
        "brand": (entry.brand or "")[:_MAX_BRAND_CHARS],
        "gtin": entry.gtin or "",
        "mpn": (entry.mpn or "")[:_MAX_BRAND_CHARS],
        "product_type": entry.category,
        "color": entry.color or "",
        "size": entry.size or "",
        "material": entry.material or "",
        "external_seller_id": str(entry.supplier_id),
    }
    return {name: value for name, value in fields.items() if value}


def _promotion_fields(promotion: PromotedPrice | None) -> dict[str, str]:
    if promotion is None:
        return {}
    begin, end = (at.strftime("%Y-%m-%dT%H:%M+0000") for at in (promotion.begins_at, promotion.ends_at))
    return {"sale_price": f"{promotion.price} IDR", "sale_price_effective_date": f"{begin}/{end}"}


class CsvFeed:
    """The fields of Google, and beside them those that OpenAI's flat file names otherwise.

    A product that went away has its id, and is neither in stock nor to be searched.
    """

    media_type = "text/csv; charset=utf-8"
    # OpenAI's name of what Google names otherwise.
    _SAME = {
        "item_id": "id",
        "url": "link",
        "image_url": "image_link",
        "additional_image_urls": "additional_image_link",
        "product_category": "product_type",
    }
    _COLUMNS = (
        *("id", "item_id", "title", "description", "link", "url", "image_link", "image_url"),
        *(
            "additional_image_link",
            "additional_image_urls",
            "availability",
            "price",
            "sale_price",
            "sale_price_effective_date",
            "condition",
            "brand",
            "gtin",
        ),
        *(
            "item_group_id",
            "mpn",
            "product_type",
            "product_category",
            "color",
            "size",
            "material",
            "external_seller_id",
        ),
        *("seller_name", "seller_url", "is_eligible_search", "is_eligible_checkout", "target_countries"),
        "store_country",
    )
    _IDENTIFIERS = ("gtin", "mpn")

    def begin(self) -> str:
        return self._lines([dict(zip(self._COLUMNS, self._COLUMNS, strict=True))])

    def write(self, entries: Iterable[FeedEntry], removed: Iterable[int] = ()) -> str:
        gone = (self._row({"id": str(one), "availability": "out_of_stock"}, is_sold=False) for one in removed)
        return self._lines([*map(self._row_of, entries), *gone])

    def end(self) -> str:
        return ""

    def _row_of(self, entry: FeedEntry) -> dict[str, str]:
        fields = google_fields(entry) | {"seller_name": entry.shop, "seller_url": entry.shop_link}
        fields = {name: plain_cell(value) for name, value in fields.items()}
        exact = {name: value for name, value in google_fields(entry).items() if name in self._IDENTIFIERS}
        # An identifier that a spreadsheet would change is none any more.
        fields |= {name: value if fields[name] == value else "" for name, value in exact.items()}
        return self._row(fields, is_sold=True)

    def _row(self, fields: dict[str, str], *, is_sold: bool) -> dict[str, str]:
        same = {name: fields.get(other, "") for name, other in self._SAME.items()}
        flags = {"is_eligible_search": str(is_sold).lower(), "is_eligible_checkout": "false"}
        return {**fields, **same, **flags, "target_countries": _COUNTRY, "store_country": _COUNTRY}

    def _lines(self, rows: Iterable[dict[str, str]]) -> str:
        written = io.StringIO()
        csv.DictWriter(written, self._COLUMNS, restval="", quoting=csv.QUOTE_ALL).writerows(rows)
        return written.getvalue()


def plain_cell(text: str) -> str:
    """A spreadsheet runs a cell that begins with one of `=+-@`, and one with semicolons between cells begins a new one
    at each. A merchant centre would show a mark in front of them to buyers: so they go, and a semicolon is a comma."""
    return " ".join(text.replace(";", ",").split()).lstrip("=+-@ \u200b")


class XmlFeed:
    """RSS 2.0 with Google's names. A product that went away is a `deleted-entry` of RFC 6721."""

    media_type = "application/xml; charset=utf-8"

    def __init__(self, address: str) -> None:
        self._address = address

    def begin(self) -> str:
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<rss version="2.0" xmlns:g="{_GOOGLE}" xmlns:at="{_TOMBSTONES}">\n<channel>\n'
            f"<title>Goods of all shops</title>\n<link>{_xml(self._address)}/shop</link>\n"
            "<description>What is sold here, and what changed</description>\n"
        )

    def write(self, entries: Iterable[FeedEntry], removed: Iterable[int] = ()) -> str:
        items = [f"<item>{self._fields(google_fields(entry))}</item>\n" for entry in entries]
        return "".join([*items, *(f'<at:deleted-entry ref="{one}"/>\n' for one in removed)])

    def end(self) -> str:
        return "</channel>\n</rss>\n"

    def _fields(self, fields: dict[str, str]) -> str:
        more = fields.pop("additional_image_link", "").split(",")
        written = [f"<g:{name}>{_xml(value)}</g:{name}>" for name, value in fields.items()]
        images = [f"<g:additional_image_link>{_xml(one)}</g:additional_image_link>" for one in more if one]
        return "".join([*written, *images])


def _xml(text: str) -> str:
    return escape(_NOT_IN_XML.sub(" ", text))


class JsonFeed:
    """`products` as the Feed API of the Agentic Commerce Protocol has them, a line each.

    What changed is a body of its PATCH, too. A product that went away is `discontinued`.
    """

    media_type = "application/json"

    def __init__(self) -> None:
        self._separator = "\n"

    def begin(self) -> str:
        return '{"products":['

    def write(self, entries: Iterable[FeedEntry], removed: Iterable[int] = ()) -> str:
        products = [*map(acp_product, entries), *map(_acp_tombstone, removed)]
        lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in products]
        if not lines:
            return ""
        written = self._separator + ",\n".join(lines)
        self._separator = ",\n"
        return written

    def end(self) -> str:
        return "\n]}\n"


def acp_product(entry: FeedEntry) -> dict[str, Any]:
    """A product has one variant, itself. Prices are in minor units, of which ISO 4217 gives a rupiah a hundred."""
    media = [{"type": "image", "url": url} for url in entry.images]
    if media and entry.image_alt:
        media[0]["alt_text"] = entry.image_alt
    options = {"Color": entry.color, "Size": entry.size, "Material": entry.material}
    variant = {
        "id": str(entry.id),
        "title": entry.title,
        "url": entry.link,
        "barcodes": [{"type": "GTIN", "value": entry.gtin}] if entry.gtin else None,
        "price": {"amount": (entry.promotion.price if entry.promotion else entry.price) * 100, "currency": "IDR"},
        "availability": {"available": entry.in_stock, "status": "in_stock" if entry.in_stock else "out_of_stock"},
        "categories": [{"value": entry.category, "taxonomy": "merchant"}] if entry.category else None,
        "condition": ["new" if entry.is_new else "secondhand"],
        "variant_options": [{"name": name, "value": value} for name, value in options.items() if value] or None,
        "media": media or None,
        "seller": {"name": entry.shop},
    }
    product = {
        "id": str(entry.id),
        "title": entry.title,
        "description": {"plain": entry.description} if entry.description else None,
        "url": entry.link,
        "media": media or None,
        "variants": [{name: value for name, value in variant.items() if value is not None}],
    }
    return {name: value for name, value in product.items() if value is not None}


def _acp_tombstone(product_id: int) -> dict[str, Any]:
    gone = {"available": False, "status": "discontinued"}
    variant = {"id": str(product_id), "title": f"Product {product_id}", "availability": gone}
    return {"id": str(product_id), "variants": [variant]}
