"""Resolves the filters `category`, `sku` and `quantity` to the keys and ids of products."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.reading.tokens import joined_word, tokenize
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.cursor import ResolvedQuery
from tis.marketplace.search.query import ProductQuery
from tis.marketplace.search.sql import id_list, placeholders, run
from tis.marketplace.search.text_query import Term, TermGroup, TextMatch, TextQuery

_MAX_SELECTS = 200  # SQLite allows 500 in one UNION
STOCKED = "SELECT id FROM products WHERE deleted_at IS NULL AND on_hand >= :quantity LIMIT :max_products"
_MAX_COMPARED_SKUS = 5000  # of a SKU that is a common word, as 1 may be, the newest products are compared


def category_keys(session: Session, categories: Vocabulary, category: str) -> list[str]:
    """The keys of a category and its descendants that some product has."""
    key = key_of(category)
    return _keys_in_use(session, sorted(categories.keys_below(key))) or [key]


def category_counts(session: Session) -> dict[str, int]:
    """How many products that can be bought have each key."""
    sql = "SELECT category_key, count(*) FROM product_search WHERE sellable = 1 GROUP BY category_key"
    return {key: int(count) for key, count in run(session, sql)}


def ids_of_sku(session: Session, index: TextIndex, sku: str) -> list[int]:
    """The products whose SKU has the same letters and digits: case, blanks and other signs do not count."""
    word = joined_word(tokenize(sku))
    if not word:
        return []
    source = index.match_source(TextMatch(TextQuery((TermGroup((Term((word,)),)),)), "labels"))
    source = replace(source, tables=f"{source.tables} JOIN products g ON g.id = p.product_id")
    newest = f"ORDER BY {source.product_id} DESC LIMIT {_MAX_COMPARED_SKUS}"
    sql = source.select("p.product_id, g.sku", newest, "g.sku IS NOT NULL")
    letters = "".join(tokenize(sku))
    return [product_id for product_id, other in run(session, sql, source.values) if "".join(tokenize(other)) == letters]


def ids_with_stock(session: Session, quantity: int, max_products: int) -> list[int] | None:
    """The products of which so many can be bought; None if many may be: then each candidate is looked at."""
    values = {"quantity": quantity, "max_products": max_products + 1}
    ids = [product_id for [product_id] in run(session, STOCKED, values)]
    if len(ids) > max_products:
        return None
    available = f"SELECT id FROM products WHERE on_hand - reserved >= :quantity AND id IN {id_list(ids)}"
    return [product_id for [product_id] in run(session, available, {"quantity": quantity})] if ids else []


def within(ids: tuple[int, ...] | None, others: Sequence[int] | None) -> tuple[int, ...] | None:
    """None is all products."""
    if ids is None or others is None:
        return ids if others is None else tuple(others)
    return tuple(set(ids).intersection(others))


def _keys_in_use(session: Session, keys: Sequence[str]) -> list[str]:
    """With a single key, an index returns products sorted by price; so it pays to drop the keys that no product has."""
    in_use: list[str] = []
    for start in range(0, len(keys), _MAX_SELECTS):
        _, values = placeholders("key", keys[start : start + _MAX_SELECTS])
        sql = " UNION ALL ".join(
            f"SELECT category_key FROM (SELECT category_key FROM product_search WHERE category_key = :{name} LIMIT 1) k"
            for name in values
        )
        in_use += (key for [key] in run(session, sql, values))
    return in_use


SqlCondition = tuple[str, dict[str, object]]
_NOTHING = "1 = 0"


def brand_conditions(query: ProductQuery) -> list[SqlCondition]:
    conditions: list[SqlCondition] = []
    excluded = {key_of(brand) for brand in query.exclude_brands}
    if query.any_brand:
        brands = sorted({key_of(brand) for brand in query.any_brand} - excluded)
        names, values = placeholders("brand", brands)
        found = "p.brand_key = :brand0" if len(brands) == 1 else f"p.brand_key IN {names}"
        conditions.append((found if brands else _NOTHING, values))
    elif excluded:
        names, values = placeholders("no_brand", sorted(excluded))
        conditions.append((f"COALESCE(p.brand_key, '') NOT IN {names}", values))
    return conditions


def city_conditions(query: ProductQuery, resolved: ResolvedQuery) -> list[SqlCondition]:
    if resolved.cities:
        names, values = placeholders("city", resolved.cities)
        if resolved.are_cities_rare:
            return [(f"p.product_id IN (SELECT product_id FROM product_search WHERE city_key IN {names})", values)]
        # No column: an index would read all products of large cities.
        return [(f"COALESCE(p.city_key, '') IN {names}", values)]
    if resolved.excluded_cities:
        names, values = placeholders("no_city", resolved.excluded_cities)
        return [(f"COALESCE(p.city_key, '') NOT IN {names}", values)]
    # A part of a name is enough: "Jakarta" matches Jakarta Selatan.
    parts = {f"city{number}": f"%{_escape_like(key_of(city))}%" for number, city in enumerate(query.any_city)}
    matches = " OR ".join(f"p.city_key LIKE :{name} ESCAPE '!'" for name in parts)
    return [(f"({matches})", dict(parts))] if parts else []


def goods_conditions(query: ProductQuery, resolved: ResolvedQuery) -> list[SqlCondition]:
    """Which products, and how many units of them."""
    conditions: list[SqlCondition] = []
    if resolved.product_ids is not None:
        found = f"p.product_id IN {id_list(resolved.product_ids)}" if resolved.product_ids else _NOTHING
        conditions.append((found, {}))
    if query.large_quantity is not None:
        # Not a column of `product_search`: every reservation would write it, and its row is otherwise written only when
        # the last unit goes or the first one comes.
        units = "SELECT 1 FROM products g WHERE g.id = p.product_id AND g.on_hand - g.reserved >= :quantity"
        conditions.append((f"EXISTS ({units})", {"quantity": query.quantity}))
    return conditions


def fulfilment_conditions(query: ProductQuery, distance_km: str | None) -> list[SqlCondition]:
    """`distance_km` is the SQL of the distance to the buyer, if the buyer's place is known."""
    if query.fulfilment is None:
        return []
    shop = "SELECT 1 FROM suppliers u WHERE u.id = p.supplier_id AND "
    if query.fulfilment == "pickup":
        return [(f"EXISTS ({shop}u.pickup_enabled)", {})]
    reach = f" AND (u.delivery_radius_km IS NULL OR {distance_km} <= u.delivery_radius_km)" if distance_km else ""
    return [(f"EXISTS ({shop}u.courier_enabled{reach})", {})]


def _escape_like(text: str) -> str:
    for character in "!%_":
        text = text.replace(character, "!" + character)
    return text
