"""By which words, hours and ratings suppliers are found, and words by which their products are, too. Written where a
supplier or a review changes.

Locked after all other tables, in the order of `tests/marketplace/test_lock_order.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Row, delete, func, insert, select, update
from sqlalchemy.orm import Session

from tis.marketplace.kit.opening_hours import TimeZone, utc_spans, zone_of
from tis.marketplace.kit.ratings import weighted_stars
from tis.marketplace.reading.tokens import is_cell_token, shop_token, tokenize
from tis.marketplace.reading.word_lists import FUNCTION_WORDS
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.sql import run
from tis.marketplace.tables import Product, Supplier, SupplierFacts, SupplierHours, SupplierWord, Table

_BATCH_SIZE = 500
_MAX_COUNTED_SHOPS = 1000
_MAX_WORDS_OF_SHOP = 30
NAME, PLACE = 0, 1  # scopes of words
_COLUMNS = (
    Supplier.id,
    Supplier.business_name,
    Supplier.city,
    Supplier.province,
    Supplier.opening_hours,
    Supplier.time_zone,
    Supplier.longitude,
)


def index_supplier_words(session: Session, supplier_ids: Iterable[int]) -> None:
    """The caller has locked the suppliers, or has just made them."""
    session.flush()
    ids = list(supplier_ids)
    for start in range(0, len(ids), _BATCH_SIZE):
        _index_batch(session, ids[start : start + _BATCH_SIZE])


def index_new_suppliers(session: Session) -> None:
    """For programs that insert suppliers and rated products themselves: all suppliers that are not found yet."""
    session.flush()
    known = select(SupplierFacts.supplier_id)
    index_supplier_words(session, session.scalars(select(Supplier.id).where(Supplier.id.not_in(known))).all())


def _index_batch(session: Session, ids: Sequence[int]) -> None:
    suppliers = session.execute(select(*_COLUMNS).where(Supplier.id.in_(ids))).all()
    known = set(session.scalars(select(SupplierFacts.supplier_id).where(SupplierFacts.supplier_id.in_(ids))))
    for table in (SupplierWord, SupplierHours):
        session.execute(delete(table).where(table.supplier_id.in_(ids)), execution_options=_UNSYNCHRONIZED)
    new = [supplier.id for supplier in suppliers if supplier.id not in known]
    ratings = _ratings(session, new) if new else {}
    facts: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    hours: list[dict[str, Any]] = []
    for supplier in suppliers:
        name_words = tokenize(supplier.business_name)
        name_key = name_key_of(name_words)
        if supplier.id in known:
            named = update(SupplierFacts).where(SupplierFacts.supplier_id == supplier.id)
            session.execute(named.values(name_key=name_key), execution_options=_UNSYNCHRONIZED)
        else:
            stars, weight = ratings.get(supplier.id, (0, 0))
            facts.append({"supplier_id": supplier.id, "name_key": name_key, "stars": stars, "weight": weight})
        places = tokenize(f"{supplier.city} {supplier.province or ''}")
        scoped = {(word, NAME) for word in name_words} | {(word, PLACE) for word in places}
        words += [{"word": word, "supplier_id": supplier.id, "scope": scope} for word, scope in sorted(scoped)]
        hours += _hours(supplier)
    written: list[tuple[type[Table], list[dict[str, Any]]]]
    written = [(SupplierFacts, facts), (SupplierWord, words), (SupplierHours, hours)]
    for rows_of, rows in written:
        if rows:
            session.connection().execute(insert(rows_of), rows)


def _ratings(session: Session, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    stars, weight = weighted_stars(Product)
    sums = select(Product.supplier_id, func.sum(stars), func.sum(weight)).where(Product.supplier_id.in_(ids))
    return {supplier: (total, count) for supplier, total, count in session.execute(sums.group_by(Product.supplier_id))}


def _hours(supplier: Row[Any]) -> list[dict[str, Any]]:
    if supplier.opening_hours is None:
        return []
    zone = cast(TimeZone | None, supplier.time_zone) or zone_of(supplier.longitude)
    spans = utc_spans(supplier.opening_hours, zone)
    return [{"supplier_id": supplier.id, "opens": opens, "closes": closes} for opens, closes in spans]


def shop_counts(session: Session, words: Sequence[str]) -> dict[str, int]:
    """How many shops have each word in their name, city or province. Words that no shop has are missing."""
    if not words:
        return {}
    rows_of = "SELECT 1 FROM supplier_words WHERE word = :word{0} LIMIT {1}"
    count = f"SELECT :word{{0}} AS word, (SELECT count(*) FROM ({rows_of}) x)"
    sql = " UNION ALL ".join(count.format(number, _MAX_COUNTED_SHOPS) for number in range(len(words)))
    rows = run(session, sql, {f"word{number}": word for number, word in enumerate(words)})
    return {word: count for word, count in rows if count}


def count_stars(session: Session, product_id: int, counters: Any) -> None:
    """Adds what a review adds to `rating_sum` and the other counters of a product to the rating of its supplier."""
    stars, weight = weighted_stars(counters)
    if not (stars or weight):
        return
    supplier = select(Product.supplier_id).where(Product.id == product_id).scalar_subquery()
    rated = update(SupplierFacts).where(SupplierFacts.supplier_id == supplier)
    added = rated.values(stars=SupplierFacts.stars + stars, weight=SupplierFacts.weight + weight)
    session.execute(added, execution_options=_UNSYNCHRONIZED)


def supplier_ratings(session: Session, supplier_ids: Sequence[int]) -> dict[int, float]:
    """The mean of all reviews of their products, of suppliers that have any."""
    facts = select(SupplierFacts.supplier_id, SupplierFacts.stars, SupplierFacts.weight)
    rated = facts.where(SupplierFacts.supplier_id.in_(supplier_ids), SupplierFacts.weight > 0)
    return {supplier_id: stars / weight for supplier_id, stars, weight in session.execute(rated)}


def name_key_of(words: Iterable[str]) -> str:
    """Equal for names of the same words."""
    return " ".join(sorted(set(words)))[:200]


_UNSYNCHRONIZED = {"synchronize_session": False}


def shop_words(session: Session, supplier_ids: Iterable[int]) -> dict[int, list[str]]:
    """Read after the entries are locked: a supplier that is renamed later writes the tokens of these entries, too."""
    names = select(Supplier.id, Supplier.business_name, Supplier.city, Supplier.province)
    rows = session.execute(names.where(Supplier.id.in_(supplier_ids))).all()
    return {supplier_id: words_of_shop(name, city, province) for supplier_id, name, city, province in rows}


def products_of_other_words(
    session: Session, index: TextIndex, products: Mapping[int, Row[Any]], known: Sequence[int]
) -> set[int]:
    """Products whose entries have other words than their shop."""
    shops = shop_words(session, {product.supplier_id for product in products.values()})
    indexed = index.shop_tokens(session, known)
    return {
        one
        for one, tokens in indexed.items()
        if one in products
        and {token for token in tokens if not is_cell_token(token)}
        != set(map(shop_token, shops[products[one].supplier_id]))
    }


def words_of_shop(name: str, city: str, province: str | None) -> list[str]:
    words = [word for text in (name, city, province) for word in tokenize(text) if word not in FUNCTION_WORDS]
    return list(dict.fromkeys(words))[:_MAX_WORDS_OF_SHOP]


def supplier_tokens(tokens: str, shop_words: Iterable[str]) -> str:
    """`tokens` end with the cell."""
    return " ".join([tokens, *map(shop_token, shop_words)])
