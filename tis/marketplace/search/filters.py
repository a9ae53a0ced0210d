"""Resolves the filter `category` to the keys that products are indexed with."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.search.sql import placeholders, run
from tis.marketplace.search.vocabulary import Vocabulary

_MAX_SELECTS = 200  # SQLite allows 500 in one UNION


def category_keys(session: Session, categories: Vocabulary, category: str) -> list[str]:
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
