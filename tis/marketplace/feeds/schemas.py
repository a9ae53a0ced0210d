"""Examples of the feeds for /docs."""

from typing import Any

from tis.marketplace.kit.cursor_key import FOREIGN_CURSOR
from tis.marketplace.kit.docs import Responses, json_example

_LINK = "https://shop.example/shop/products/7"
_IMAGE = "https://shop.example/api/pictures/0f6c…/large.webp"
_PRODUCT: dict[str, Any] = {
    "id": "7",
    "title": "Laptop ASUS ROG Strix G15",
    "description": {"plain": "Gaming laptop with RTX 4060"},
    "url": _LINK,
    "media": [{"type": "image", "url": _IMAGE}],
    "variants": [
        {
            "id": "7",
            "title": "Laptop ASUS ROG Strix G15",
            "url": _LINK,
            "price": {"amount": 1599900000, "currency": "IDR"},
            "availability": {"available": True, "status": "in_stock"},
            "categories": [{"value": "Elektronik > Laptop", "taxonomy": "merchant"}],
            "condition": ["new"],
            "media": [{"type": "image", "url": _IMAGE}],
            "seller": {"name": "Toko Maju"},
        }
    ],
}
_XML = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0" '
    'xmlns:at="http://purl.org/atompub/tombstones/1.0">\n<channel>\n<item><g:id>7</g:id>'
    f"<g:title>Laptop ASUS ROG Strix G15</g:title><g:link>{_LINK}</g:link><g:availability>in_stock</g:availability>"
    '<g:price>15999000 IDR</g:price></item>\n<at:deleted-entry ref="8"/>\n</channel>\n</rss>\n'
)
_CSV = (
    '"id","item_id","title","link","availability","price","is_eligible_search"\r\n'
    f'"7","7","Laptop ASUS ROG Strix G15","{_LINK}","in_stock","15999000 IDR","true"\r\n'
    '"8","8","","","out_of_stock","","false"\r\n'
)
_GONE = "All entries of the feed changed since this cursor: take the whole feed, without `since`."


def _feed(media_type: str, example: Any) -> Responses:
    headers = {
        "X-Feed-Cursor": {"schema": {"type": "string"}, "description": "for `since`, the next time"},
        "ETag": {"schema": {"type": "string"}},
    }
    return {
        200: {"description": "OK", "headers": headers, "content": {media_type: {"example": example}}},
        304: {"description": "Nothing changed: `If-None-Match` or `If-Modified-Since` says so"},
        400: json_example("Bad cursor", {"detail": FOREIGN_CURSOR}),
        410: json_example("Old cursor", {"detail": _GONE}),
        429: json_example("Too many", {"detail": "Too many feeds: at most 240 per hour. Try again in 900 s."}),
    }


CSV_FEED = _feed("text/csv", _CSV)
JSON_FEED = _feed("application/json", {"products": [_PRODUCT]})
XML_FEED = _feed("application/xml", _XML)
