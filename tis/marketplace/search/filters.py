"""Resolves the filters `category` and `city` to the keys that products are indexed with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import uuid4

from sqlalchemy import update
from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.search.sql import placeholders, run
from tis.marketplace.search.tokens import tokenize
from tis.marketplace.tables import TaxonomyVersion

_MAX_SELECTS = 200  # SQLite allows 500 in one UNION
_MAX_RARE_CITIES = 50


@dataclass(frozen=True)
class CategoryTree:
    """`names` holds the keys by which sellers may name each category, `parents` its parent; both by slug."""

    names: dict[str, set[str]]
    parents: dict[str, str | None]

    # The slugs of each phrase in the categories' own names, without their synonyms.
    phrases: Mapping[tuple[str, ...], tuple[str, ...]]

    @cached_property
    def _slugs_of_name(self) -> dict[str, set[str]]:
        slugs: dict[str, set[str]] = {}
        for slug, names in self.names.items():
            for name in names:
                slugs.setdefault(name, set()).add(slug)
        return slugs

    @cached_property
    def _children(self) -> dict[str, set[str]]:
        children: dict[str, set[str]] = {}
        for slug, parent in self.parents.items():
            if parent is not None:
                children.setdefault(parent, set()).add(slug)
        return children

    def slugs_named(self, key: str) -> set[str]:
        return self._slugs_of_name.get(key, set())

    def keys_below(self, key: str) -> set[str]:
        """The key itself, and all names of the categories that it names and of their descendants."""
        slugs = set[str]()
        found = self.slugs_named(key)
        while found:
            slugs |= found
            found = set[str]().union(*(self._children.get(slug, ()) for slug in found)) - slugs
        return {key}.union(*(self.names[slug] for slug in slugs))


class CategoryCache:
    """The categories as this transaction sees them, loaded again only after a change of any server."""

    def __init__(self) -> None:
        self._loaded: tuple[str, CategoryTree] | None = None

    def tree(self, session: Session) -> CategoryTree:
        # Read first: what is loaded is at least as new as this.
        version = next((version for [version] in run(session, "SELECT version FROM taxonomy_version")), "")
        loaded = self._loaded
        if loaded is None or loaded[0] != version:
            loaded = self._loaded = (version, _load_categories(session))
        return loaded[1]


def expire_categories(session: Session) -> None:
    """Call it in every transaction that changes categories or synonyms. A version that is rolled back stays unused."""
    session.execute(update(TaxonomyVersion).values(version=uuid4().hex))


def _load_categories(session: Session) -> CategoryTree:
    rows = run(session, "SELECT slug, parent, name_id, name_en FROM categories ORDER BY slug")
    names = {slug: _spellings(slug, name_id, name_en) for slug, _, name_id, name_en in rows}
    for term, slug in run(session, "SELECT term, category FROM synonyms WHERE category IS NOT NULL"):
        names[slug] |= _spellings(term)
    phrases: dict[tuple[str, ...], tuple[str, ...]] = {}
    for slug, _, *own_names in rows:
        for phrase in {tuple(tokenize(name)) for name in (slug, *own_names)}:
            phrases[phrase] = (*phrases.get(phrase, ()), slug)
    return CategoryTree(names, {slug: parent for slug, parent, *_ in rows}, phrases)


def category_keys(session: Session, categories: CategoryTree, category: str) -> list[str]:
    """The keys of a category and its descendants that some product has."""
    key = key_of(category)
    return _keys_in_use(session, sorted(categories.keys_below(key))) or [key]


def category_counts(session: Session) -> dict[str, int]:
    """How many products that can be bought have each key."""
    sql = "SELECT category_key, count(*) FROM product_search WHERE sellable = 1 GROUP BY category_key"
    return {key: int(count) for key, count in run(session, sql)}


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


def _spellings(*names: str) -> set[str]:
    keys = {key_of(name) for name in names}
    return keys | {key.replace("-", " ") for key in keys}


def rare_city_keys(session: Session, city: str, max_products: int) -> tuple[str, ...] | None:
    """The cities whose name contains `city`; None if they have more than `max_products` products.

    Reading all products of rare cities is faster than walking an index in the order of the list.
    """
    keys = [key for key in _city_keys(session) if key_of(city) in key]
    if len(keys) > _MAX_RARE_CITIES:
        return None
    names, values = placeholders("city", keys or [key_of(city)])
    sql = f"SELECT count(*) FROM (SELECT 1 FROM product_search WHERE city_key IN {names} LIMIT {max_products + 1}) x"
    [(count,)] = run(session, sql, values)
    return tuple(keys or [key_of(city)]) if count <= max_products else None


def _city_keys(session: Session) -> list[str]:
    """Distinct cities: jumps from one to the next in the index and does not read every product."""
    sql = (
        "WITH RECURSIVE cities (city) AS (SELECT min(city_key) FROM product_search UNION ALL"
        " SELECT (SELECT min(city_key) FROM product_search WHERE city_key > cities.city) FROM cities"
        " WHERE cities.city IS NOT NULL) SELECT city FROM cities WHERE city IS NOT NULL"
    )
    return [city for [city] in run(session, sql)]
