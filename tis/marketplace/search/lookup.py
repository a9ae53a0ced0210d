"""Products by their ids, as everybody sees them."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from tis.marketplace.kit.geo import Point, kilometres_between
from tis.marketplace.search.product_rows import ProductRow, load_products
from tis.marketplace.search.query import SearchHit
from tis.marketplace.search.sql import id_list, run

MAX_LOOKED_UP = 100


def look_up(session: Session, product_ids: Sequence[int], origin: Point | None) -> list[SearchHit]:
    """In the order of the ids, each once. Deleted products, and those of closed or suspended shops, do not exist."""
    ids = list(dict.fromkeys(product_ids))
    if len(ids) > MAX_LOOKED_UP:
        raise ValueError(f"at most {MAX_LOOKED_UP} products are looked up at once")
    if not ids:
        return []
    sql = f"SELECT product_id FROM product_search WHERE sellable >= 0 AND product_id IN {id_list(ids)}"
    visible = {product_id for [product_id] in run(session, sql)}
    products = load_products(session, [one for one in ids if one in visible])
    return [SearchHit(product, distance_to(product, origin)) for product in products]


def distance_to(product: ProductRow, origin: Point | None) -> float | None:
    """To the public place of the shop."""
    if origin is None:
        return None
    return kilometres_between(origin, Point(product.shop_public_latitude, product.shop_public_longitude))
