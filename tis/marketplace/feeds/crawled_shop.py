"""What crawlers read: robots.txt, the sitemap in parts, and the heads of products."""

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.errors import NotFound
from tis.marketplace.context import MarketServices
from tis.marketplace.feeds.product_head import CrawledHead, product_head
from tis.marketplace.search.sql import MAX_PRODUCT_ID, run
from tis.marketplace.tables import Product

PART_SIZE = 50_000  # addresses, as many as a sitemap may have
_MAX_PARTS = 50_000  # of an index
_BATCH_SIZE = 2000
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_NEXT = (
    "SELECT product_id FROM product_search WHERE product_id > :after AND product_id < :end AND sellable >= 0"
    " ORDER BY product_id LIMIT :batch"
)


class CrawledShop:
    def __init__(self, market: MarketServices) -> None:
        self._market, self._address = market, market.rules.public_url.rstrip("/")

    def product_head(self, product_id: int) -> CrawledHead:
        with self._market.reading() as session:
            return product_head(session, product_id, self._address)

    def sitemap(self) -> str:
        """Its parts are ranges of ids, so that a product stays in its part, and a part is read by its key."""
        with self._market.reading() as session:
            last = run(session, MAX_PRODUCT_ID)[0][0] or 0
            parts = [number for number in range(min(last // PART_SIZE + 1, _MAX_PARTS)) if _ids(session, number, -1, 1)]
        named = (f"<sitemap><loc>{self._address}/sitemap-{number}.xml</loc></sitemap>\n" for number in parts)
        return f"{_HEAD}<sitemapindex {_NAMESPACE}>\n{''.join(named)}</sitemapindex>\n"

    def sitemap_part(self, number: int) -> Iterator[str]:
        with self._market.reading() as session:
            first = _ids(session, number, -1, 1) if number < _MAX_PARTS else []
        if not first:
            raise NotFound("There is no such part of the sitemap.")
        return self._part(number)

    def _part(self, number: int) -> Iterator[str]:
        """A short transaction for each batch: a slow reader holds none open."""
        yield f"{_HEAD}<urlset {_NAMESPACE}>\n"
        after = -1
        while True:
            with self._market.reading() as session:
                ids = _ids(session, number, after, _BATCH_SIZE)
                offered = Product.id.in_(ids), Product.is_available.is_(True), Product.flagged_reason.is_(None)
                rows = session.execute(
                    select(Product.id, Product.updated_at).where(*offered).order_by(Product.id)
                ).all()
            if not ids:
                break
            after = ids[-1]
            yield "".join(
                f"<url><loc>{self._address}/shop/products/{row.id}</loc>"
                f"<lastmod>{row.updated_at:%Y-%m-%dT%H:%M:%SZ}</lastmod></url>\n"
                for row in rows
            )
        yield "</urlset>\n"


def _ids(session: Session, part: int, after: int, limit: int) -> list[int]:
    start = part * PART_SIZE
    values = {"after": max(after, start - 1), "end": start + PART_SIZE, "batch": limit}
    return [product_id for [product_id] in run(session, _NEXT, values)]
