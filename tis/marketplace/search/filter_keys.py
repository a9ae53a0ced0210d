"""What the names in the filters of a query mean in this catalogue: keys of categories and cities, ids of products."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from tis.marketplace.columns import now
from tis.marketplace.kit.fields import key_of
from tis.marketplace.reading.tokens import joined_word, tokenize
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.city_filter import CityKeys, resolve_cities
from tis.marketplace.search.geo_filter import has_spread_goods
from tis.marketplace.search.query import AttributeFilter, ProductQuery, SearchLimits
from tis.marketplace.search.sql import id_list, placeholders, run, run_once
from tis.marketplace.search.text_query import TextMatch, TextQuery
from tis.marketplace.tables import Promotion, Supplier

_MAX_SELECTS = 200  # SQLite allows 500 in one UNION
STOCKED = "SELECT id FROM products WHERE deleted_at IS NULL AND on_hand >= :quantity LIMIT :max_products"
_MAX_COMPARED_SKUS = 5000  # of a SKU that is a common word, as 1 may be, the newest products are compared
_MAX_VERIFIED = 200  # suppliers that are named one by one
_MAX_ON_PROMOTION = 1000  # products that are named one by one
_NUM_TIERS_READ = 4  # usually
_OF_VARIANTS = "FROM product_search WHERE group_id IS NOT NULL AND sellable = 1"
_REPEATED_IN_CATEGORY = (
    "SELECT category_key, sum(variants) - count(*) FROM (SELECT category_key, count(*) AS variants"
    f" {_OF_VARIANTS} GROUP BY group_id, category_key) g GROUP BY category_key"
)
_SPLIT_GROUPS = (
    f"SELECT DISTINCT category_key, group_id {_OF_VARIANTS} AND group_id IN"
    f" (SELECT group_id {_OF_VARIANTS} GROUP BY group_id HAVING min(category_key) <> max(category_key))"
)
_SIGNS = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


@dataclass(frozen=True)
class FilterKeys:
    """None where the query does not filter."""

    categories: tuple[str, ...] | None = None
    cities: CityKeys = CityKeys()
    product_ids: tuple[int, ...] | None = None
    rare_attributes: tuple[AttributeFilter, ...] = ()  # filters that few products pass
    verified_suppliers: tuple[int, ...] | None = None  # None: too many to name, or nobody asks
    has_spread_goods: bool = False  # over several places of their shop, from which distances count


def filter_keys(
    session: Session, index: TextIndex, query: ProductQuery, categories: Sequence[str] | None, limits: SearchLimits
) -> FilterKeys:
    """`categories` are the `category_keys` of the query's category."""
    ids = query.product_ids
    if query.sku is not None:
        ids = _within(ids, ids_of_sku(session, index, query.sku))
    if query.large_quantity is not None:
        ids = _within(ids, ids_with_stock(session, query.large_quantity, limits.max_products_of_large_stock))
    if query.on_promotion:
        ids = _within(ids, ids_on_promotion(session))
    # The set of these products is read anew for each tier of a text.
    most = limits.max_products_of_rare_attributes // (1 if query.text is None else _NUM_TIERS_READ)
    return FilterKeys(
        None if categories is None else tuple(categories),
        resolve_cities(session, query, limits.max_products_of_rare_cities),
        ids,
        rare_filters(session, query.attributes, most),
        _verified_suppliers(session) if query.of_verified_shops else None,
        query.origin is not None and has_spread_goods(session),
    )


def _verified_suppliers(session: Session) -> tuple[int, ...] | None:
    """While few shops have the badge, their goods are read and not the goods of all in search of them."""
    found = select(Supplier.id).where(Supplier.verified_at.is_not(None)).limit(_MAX_VERIFIED + 1)
    ids = session.scalars(found).all()
    return None if len(ids) > _MAX_VERIFIED else tuple(sorted(ids))


def category_keys(session: Session, categories: Vocabulary, category: str) -> list[str]:
    """The keys of a category and its descendants that some product has."""
    key = key_of(category)
    return _keys_in_use(session, sorted(categories.keys_below(key))) or [key]


@dataclass(frozen=True)
class CategoryCounts:
    """How many products that can be bought have each key; variants of a group that are in one category count once."""

    counts: dict[str, int]
    split_groups: Sequence[frozenset[str]] = ()  # the categories of each group that is in several

    def of_any(self, keys: Collection[str]) -> int:
        """Of all these together."""
        repeated = (len(categories.intersection(keys)) - 1 for categories in self.split_groups)
        return sum(self.counts.get(key, 0) for key in keys) - sum(more for more in repeated if more > 0)


def category_counts(session: Session) -> CategoryCounts:
    sql = "SELECT category_key, count(*) FROM product_search WHERE sellable = 1 GROUP BY category_key"
    counts = {key: int(count) for key, count in run(session, sql)}
    for key, repeated in run(session, _REPEATED_IN_CATEGORY):
        counts[key] -= int(repeated)
    return CategoryCounts(counts, categories_of_groups(run(session, _SPLIT_GROUPS)))


def categories_of_groups(rows: Iterable[tuple[str, int]]) -> Sequence[frozenset[str]]:
    groups: dict[int, set[str]] = {}
    for key, group_id in rows:
        groups.setdefault(group_id, set()).add(key)
    return [frozenset(keys) for keys in groups.values()]


def ids_of_sku(session: Session, index: TextIndex, sku: str) -> list[int]:
    """The products whose SKU has the same letters and digits: case, blanks and other signs do not count."""
    letters = "".join(tokenize(sku))
    if not letters:
        return []
    source = index.match_source(TextMatch(TextQuery.of_words(joined_word([letters])), "labels"))
    source = replace(source, tables=f"{source.tables} JOIN products g ON g.id = p.product_id")
    newest = f"ORDER BY {source.product_id} DESC LIMIT {_MAX_COMPARED_SKUS}"
    sql = source.select("p.product_id, g.sku", newest, "g.sku IS NOT NULL")
    return [product_id for product_id, other in run(session, sql, source.values) if "".join(tokenize(other)) == letters]


def ids_with_stock(session: Session, quantity: int, max_products: int) -> list[int] | None:
    """The products of which so many can be bought; None if many may be: then each candidate is looked at."""
    values = {"quantity": quantity, "max_products": max_products + 1}
    ids = [product_id for [product_id] in run(session, STOCKED, values)]
    if len(ids) > max_products:
        return None
    available = f"SELECT id FROM products WHERE on_hand - reserved >= :quantity AND id IN {id_list(ids)}"
    return [product_id for [product_id] in run(session, available, {"quantity": quantity})] if ids else []


def ids_on_promotion(session: Session) -> Sequence[int] | None:
    """While few products are, these are read and not all goods in search of them."""
    # The first condition is that of the index, which SQLite does not conclude from the third.
    is_open = Promotion.state.in_(("running", "sold_out")), Promotion.ends_at > now()
    found = select(Promotion.product_id).where(*is_open, Promotion.state == "running").limit(_MAX_ON_PROMOTION + 1)
    ids = session.scalars(found).all()
    return None if len(ids) > _MAX_ON_PROMOTION else ids


def _within(ids: tuple[int, ...] | None, others: Sequence[int] | None) -> tuple[int, ...] | None:
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
        in_use += (key for [key] in run_once(session, sql, values))
    return in_use


def attribute_tests(one: AttributeFilter, prefix: str) -> tuple[list[str], dict[str, object]]:
    """Conditions on a row of this name, one of which must hold; each is a range of an index."""
    if one.operator in _SIGNS:
        return [f"a.number {_SIGNS[one.operator]} :{prefix}_n"], {f"{prefix}_n": one.numbers[0]}
    tests, values = list[str](), dict[str, object]()
    for column, own in (("number", one.numbers), ("text_key", one.keys)):
        if own:
            names, named = placeholders(f"{prefix}_{column[0]}", own)
            tests.append(f"a.{column} IN {names}")
            values |= named
    return tests, values


def rare_filters(
    session: Session, filters: Iterable[AttributeFilter], max_products: int
) -> tuple[AttributeFilter, ...]:
    """Those that at most so many products pass."""
    return tuple(
        one for one in filters if one.operator != "ne" and _count(session, one, max_products + 1) <= max_products
    )


def unknown_attributes(session: Session, filters: Iterable[AttributeFilter]) -> tuple[str, ...]:
    """Names that no product has."""
    names = dict.fromkeys(one.name for one in filters)
    sql = "SELECT 1 FROM product_attributes WHERE name = :name LIMIT 1"
    return tuple(name for name in names if not run(session, sql, {"name": name}))


def _count(session: Session, one: AttributeFilter, most: int) -> int:
    tests, values = attribute_tests(one, "attr")
    sql = f"SELECT count(*) FROM (SELECT product_id FROM ({with_attribute('attr', tests)}) y LIMIT :most) x"
    [(count,)] = run(session, sql, {"attr": one.name, "most": most, **values})
    return int(count)


def with_attribute(prefix: str, tests: Sequence[str]) -> str:
    """Selects the products that pass one of the tests."""
    return " UNION ALL ".join(
        f"SELECT a.product_id FROM product_attributes a WHERE a.name = :{prefix} AND {test}" for test in tests
    )
