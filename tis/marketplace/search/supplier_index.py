"""How suppliers are found, and products by their supplier: words, hours, ratings and the place of its goods.

Written where a supplier or a review changes. Locked after all other tables, in the order of
`tests/marketplace/test_lock_order.py`. A supplier that moves, closes or opens changes its goods by one statement per
table, which reads and locks no product, so buyers and other suppliers go on: `docs/decisions/0014-transactions.md`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from sqlalchemy import Row, delete, func, insert, select, update
from sqlalchemy.orm import Session

from tis.marketplace.kit.opening_hours import (
    MINUTES_OF_WEEK,
    UTC_OFFSET_HOURS,
    Span,
    TimeZone,
    WeeklyHours,
    weekly_spans,
    zone_of,
)
from tis.marketplace.kit.ratings import weighted_stars
from tis.marketplace.reading.tokens import tokenize
from tis.marketplace.reading.word_lists import word_list
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.geo_filter import cell_token_at
from tis.marketplace.search.goods_places import branch_cells, move_places, moved_places, points_of_shop
from tis.marketplace.search.index_tokens import shop_token
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
_ANY_ENTRY = (
    "SELECT latitude, longitude, city_key, sellable, product_id FROM product_search"
    " WHERE supplier_id = :supplier_id LIMIT 1"
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


def utc_spans(hours: WeeklyHours, zone: TimeZone) -> list[Span]:
    """The times of the week in minutes of a week in UTC, as the database knows no zones."""
    offset = UTC_OFFSET_HOURS[zone] * 60
    shifted = [((opens - offset) % MINUTES_OF_WEEK, closes - opens) for opens, closes in weekly_spans(hours)]
    return sorted((opens, opens + length) for opens, length in shifted)


def shop_counts(session: Session, words: Sequence[str]) -> dict[str, int]:
    """How many shops have each word in their name, city or province. Words that no shop has are missing."""
    if not words:
        return {}
    rows_of = "SELECT 1 FROM supplier_words WHERE word = :word{0} LIMIT {1}"
    count = f"SELECT :word{{0}} AS word, (SELECT count(*) FROM ({rows_of}) x)"
    sql = " UNION ALL ".join(count.format(number, _MAX_COUNTED_SHOPS) for number in range(len(words)))
    rows = run(session, sql, {f"word{number}": word for number, word in enumerate(words)})
    return {word: count for word, count in rows if count}


def name_key_of(words: Iterable[str]) -> str:
    """Equal for names of the same words."""
    return " ".join(sorted(set(words)))[:200]


_UNSYNCHRONIZED = {"synchronize_session": False}


def shop_tokens(session: Session, supplier_ids: Iterable[int]) -> dict[int, list[str]]:
    """What stands behind the cell of the own address: the cells of branches, and the words of the shop.

    Read after the entries are locked: a supplier that is renamed later writes the tokens of these entries, too.
    """
    ids = sorted(supplier_ids)
    names = select(Supplier.id, Supplier.business_name, Supplier.city, Supplier.province)
    rows, cells = session.execute(names.where(Supplier.id.in_(ids))).all(), branch_cells(session, ids)
    return {
        supplier_id: [*cells.get(supplier_id, ()), *map(shop_token, words_of_shop(name, city, province))]
        for supplier_id, name, city, province in rows
    }


def words_of_shop(name: str, city: str, province: str | None) -> list[str]:
    words = [word for text in (name, city, province) for word in tokenize(text) if word not in word_list("function")]
    return list(dict.fromkeys(words))[:_MAX_WORDS_OF_SHOP]


def index_supplier(session: Session, index: TextIndex, supplier_id: int, *, with_branches: bool = False) -> None:
    """The caller has locked the row of the supplier, so all entries of its products agree about it. `with_branches`:
    one of these has changed."""
    session.flush()
    supplier = session.execute(
        select(
            Supplier.public_latitude,
            Supplier.public_longitude,
            Supplier.city_key,
            Supplier.status,
            Supplier.deleted_at,
        ).where(Supplier.id == supplier_id)
    ).one()
    is_open = supplier.status == "active" and supplier.deleted_at is None
    entries = run(session, _ANY_ENTRY, {"supplier_id": supplier_id})
    if not entries:
        return
    [(latitude, longitude, city_key, sellable, product_id)] = entries
    place = supplier.public_latitude, supplier.public_longitude
    changes: dict[str, str] = {}
    # Only what changed: a database rewrites the indexes of every column that is named.
    if (latitude, longitude) != place:
        changes |= {"latitude": ":latitude", "longitude": ":longitude"}
    if city_key != supplier.city_key:
        changes["city_key"] = ":city_key"
    if is_open != (sellable >= 0):
        # Relative: a change of stock at the same time is not lost.
        changes["sellable"] = "sellable + 2" if is_open else "sellable - 2"
    values = {"latitude": place[0], "longitude": place[1], "city_key": supplier.city_key, "supplier_id": supplier_id}
    if changes:
        _update_entries(session, changes, values)
    tokens = [cell_token_at(*place), *shop_tokens(session, [supplier_id])[supplier_id]]
    points = points_of_shop(session, supplier_id)
    has_other_tokens = index.shop_tokens(session, [product_id]).get(product_id, set()) != set(tokens)
    if not changes and (has_other_tokens or with_branches):
        _lock_entries(session, supplier_id)
    # Behind the locks: a product that is written at this moment has its rows where the place was.
    moved = moved_places(session, supplier_id, points)
    if has_other_tokens:
        index.move(session, supplier_id, " ".join(tokens))
    move_places(session, supplier_id, points, moved)


def _lock_entries(session: Session, supplier_id: int) -> None:
    """Or a change of a product at the same time would write the old words of the shop after this transaction."""
    if session.get_bind().dialect.name != "sqlite":
        sql = "SELECT product_id FROM product_search WHERE supplier_id = :supplier_id ORDER BY product_id FOR UPDATE"
        run(session, sql, {"supplier_id": supplier_id})


def _update_entries(session: Session, changes: dict[str, str], values: dict[str, Any]) -> None:
    """Locks the rows in the order of their ids, as `index_products` does."""
    assigned = ", ".join(f"{column} = {value}" for column, value in changes.items())
    used = {name: value for name, value in values.items() if name in changes or name == "supplier_id"}
    dialect = session.get_bind().dialect.name
    if dialect == "postgresql":
        sql = (
            "WITH locked AS MATERIALIZED (SELECT product_id FROM product_search WHERE supplier_id = :supplier_id"
            f" ORDER BY product_id FOR UPDATE) UPDATE product_search f SET {assigned} FROM locked"
            " WHERE f.product_id = locked.product_id"
        )
    else:
        order = "" if dialect == "sqlite" else " ORDER BY product_id"
        sql = f"UPDATE product_search SET {assigned} WHERE supplier_id = :supplier_id{order}"
    run(session, sql, used)
