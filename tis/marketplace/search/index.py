"""Updates the search index in the transaction that changes products. `supplier_index.py` does so for suppliers."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.ratings import COUNTERS, mean_rating, rating_rank_of, weighted_stars
from tis.marketplace.search.backends.text_index import TextIndex
from tis.marketplace.search.geo_filter import cell_token_at
from tis.marketplace.search.goods_places import forget_places, spread_goods, write_places
from tis.marketplace.search.index_entry import IndexEntry, index_entry
from tis.marketplace.search.sql import id_list, quoted, run, run_many
from tis.marketplace.search.supplier_index import shop_tokens
from tis.marketplace.search.variant_groups import members_of
from tis.marketplace.tables import Product, ProductGroup, Supplier

_BATCH_SIZE = 1000
_HIDDEN = 2  # what `sellable` is less while the supplier is closed or suspended
# The columns that make an entry.
_OF_PRODUCT = (
    "id supplier_id name description brand tags sku attributes category category_key price on_hand reserved"
    " is_available condition rating_sum rating_count verified_sum verified_count granted_rating rating_rank created_at"
    " group_id"
).split()
_OF_SUPPLIER = "city_key public_latitude public_longitude status deleted_at".split()
_COLUMNS = (
    "product_id price rating rating_rank created_us condition category_key brand_key sellable words_digest attributes"
    " supplier_id latitude longitude city_key group_id is_spread"
).split()
_INSERT = (
    f"INSERT INTO product_search ({', '.join(map(quoted, _COLUMNS))})"
    f" VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"
)
_ASSIGNED = ", ".join(f"{quoted(column)} = :{column}" for column in _COLUMNS[1:])
_UPDATE = f"UPDATE product_search SET {_ASSIGNED} WHERE product_id = :product_id"
_INSERT_ATTRIBUTE = (
    "INSERT INTO product_attributes (product_id, name, number, text_key, label)"
    " VALUES (:product_id, :name, :number, :text_key, :label)"
)


class KnownFacts(NamedTuple):
    """What `product_search` has of a product, and its supplier wrote or the words depend on."""

    product_id: int
    words_digest: int
    sellable: int
    latitude: float
    longitude: float
    city_key: str


def index_products(
    session: Session, index: TextIndex, product_ids: Iterable[int], rated_groups: Iterable[int] = ()
) -> None:
    session.flush()
    counts: Counter[str] = Counter()
    ids = iter(sorted(set(product_ids)))
    groups = sorted(set(rated_groups))
    while batch := list(itertools.islice(ids, _BATCH_SIZE)):
        _index_batch(session, index, batch, counts, groups)
        groups = []  # with the first batch, which locks their variants
    _update_lexicon(session, counts)


def rebuild_index(session: Session, index: TextIndex) -> None:
    """Writes every entry anew, and removes those of products that do not exist."""
    session.flush()
    index.before_rebuild(session)
    orphans = run(session, "SELECT product_id FROM product_search WHERE product_id NOT IN (SELECT id FROM products)")
    index_products(session, index, [product_id for [product_id] in orphans])
    counts: Counter[str] = Counter()
    done, max_id = 0, session.scalar(select(func.max(Product.id))) or 0
    while done < max_id:
        next_ids = select(Product.id).where(Product.id > done).order_by(Product.id).limit(_BATCH_SIZE)
        batch = list(session.scalars(next_ids))
        _index_batch(session, index, batch, counts, all_anew=True)
        done = batch[-1]
    _update_lexicon(session, counts)
    index.after_rebuild(session)


def _index_batch(
    session: Session,
    index: TextIndex,
    ids: Sequence[int],
    counts: Counter[str],
    rated_groups: Sequence[int] = (),
    *,
    all_anew: bool = False,
) -> None:
    """Updates the entries of the products with these ids, and adds the changes of the lexicon to `counts`.

    An entry keeps the columns of the supplier that it has, or a change of the supplier at the same time would be lost.
    `all_anew` writes them, too, and entries that did not change.
    """
    products = {product.id: product for product in _select_indexable(session, ids)}
    # Read after the products are locked, so that it includes what the previous holders of the locks wrote.
    known = _lock_known(session, ids, rated_groups)
    # Behind the locks, too: a review of another variant writes these before it writes the entries of all.
    counters = _group_counters(session, {product.group_id for product in products.values()})
    suppliers = {one: product.supplier_id for one, product in products.items()}
    places = spread_goods(session, suppliers) if suppliers else {}
    removed = [one for one in known if one not in products]
    outdated, entries = list(removed), list[IndexEntry]()
    inserted, updated = list[dict[str, Any]](), list[dict[str, Any]]()
    for product_id, product in products.items():
        before = known.get(product_id)
        columns = _columns(product, None if all_anew else before, counters.get(product.group_id))
        entry = index_entry(product, cell_token_at(columns["latitude"], columns["longitude"]))
        columns |= {"words_digest": entry.digest, "attributes": entry.counted_attributes}
        columns["is_spread"] = int(product_id in places)
        is_moved = before is not None and cell_token_at(before.latitude, before.longitude) != entry.cell
        if all_anew or before is None or before.words_digest != entry.digest or is_moved:
            entries.append(entry)
            outdated += [] if before is None else [product_id]
        (inserted if before is None else updated).append(columns)

    shops = shop_tokens(session, {products[entry.product_id].supplier_id for entry in entries}) if entries else {}
    entries = [
        replace(entry, tokens=" ".join([entry.tokens, *shops[products[entry.product_id].supplier_id]]))
        for entry in entries
    ]
    for words in index.indexed_words(session, outdated).values() if outdated else ():
        counts.subtract(words)
    for entry in entries:
        counts.update(entry.words)
    if removed:
        run(session, f"DELETE FROM product_search WHERE product_id IN {id_list(removed)}")
    run_many(session, _UPDATE, updated)
    run_many(session, _INSERT, inserted)
    _rate_groups(session, rated_groups)
    if removed:
        index.delete(session, removed)
    index.put(session, entries)
    if outdated:
        run(session, f"DELETE FROM product_attributes WHERE product_id IN {id_list(outdated)}")
    attributes = [(entry.product_id, name, value) for entry in entries for name, value in entry.attributes.items()]
    run_many(
        session,
        _INSERT_ATTRIBUTE,
        [
            {"product_id": one, "name": name, "number": value.number, "text_key": value.key, "label": value.label}
            for one, name, value in attributes
        ],
    )
    if places:
        write_places(session, suppliers, places)
    if removed:
        forget_places(session, removed)


def _lock_known(session: Session, ids: Sequence[int], rated_groups: Sequence[int]) -> dict[int, KnownFacts]:
    """In the order of the ids, as `index_supplier` locks them; those of the groups, too, which are written next."""
    locked = sorted({*ids, *members_of(session, rated_groups)})
    sql = f"SELECT {', '.join(KnownFacts._fields)} FROM product_search WHERE product_id IN {id_list(locked)}"
    for_update = "" if session.get_bind().dialect.name == "sqlite" else " FOR UPDATE"
    rows = run(session, f"{sql} ORDER BY product_id{for_update}")
    wanted = set(ids)
    return {row[0]: KnownFacts._make(row) for row in rows if row[0] in wanted}


def _rate_groups(session: Session, group_ids: Sequence[int]) -> None:
    """Sorts and filters all variants by the reviews of their group, and each by the rating that an admin granted it."""
    if not group_ids:
        return
    columns = (Product.id, Product.granted_rating, *(getattr(ProductGroup, name) for name in COUNTERS))
    rows = select(*columns).join(ProductGroup, ProductGroup.id == Product.group_id)
    variants = session.execute(rows.where(Product.group_id.in_(group_ids)).order_by(Product.id)).all()
    rated = [
        {
            "product_id": one.id,
            "rating": mean_rating(one),
            "rating_rank": rating_rank_of(one.granted_rating, *weighted_stars(one)),
        }
        for one in variants
    ]
    sql = "UPDATE product_search SET rating = :rating, rating_rank = :rating_rank WHERE product_id = :product_id"
    run_many(session, sql, rated)


def _select_indexable(session: Session, ids: Sequence[int]) -> Sequence[Row[Any]]:
    """Only products that are not deleted."""
    columns = [getattr(Product, name) for name in _OF_PRODUCT]
    columns += [Supplier.__table__.c[name] for name in _OF_SUPPLIER]
    rows = select(*columns).join(Supplier, Supplier.id == Product.supplier_id)
    rows = rows.where(Product.id.in_(ids), Product.deleted_at.is_(None)).order_by(Product.id)
    if session.get_bind().dialect.name == "postgresql":
        # Waits for concurrent changes of the products, so the last of them indexes the final state. Not the supplier:
        # whoever adds products has locked it already.
        rows = rows.with_for_update(read=True, of=Product)
    return session.execute(rows).all()


def _group_counters(session: Session, group_ids: Iterable[int | None]) -> dict[int | None, Row[Any]]:
    ids = [one for one in group_ids if one is not None]
    if not ids:
        return {}
    columns = (ProductGroup.id, *(getattr(ProductGroup, name) for name in COUNTERS))
    return {row.id: row for row in session.execute(select(*columns).where(ProductGroup.id.in_(ids)))}


def _columns(product: Row[Any], known: KnownFacts | None, of_group: Row[Any] | None) -> dict[str, Any]:
    """All columns but those of words and attributes. Those of the supplier are the known ones, if there are any."""
    is_hidden = known.sellable < 0 if known else product.status != "active" or product.deleted_at is not None
    sellable = int(product.is_available and product.on_hand > product.reserved)
    rank = product.rating_rank
    if of_group is not None:
        rank = rating_rank_of(product.granted_rating, *weighted_stars(of_group))
    return {
        "product_id": product.id,
        "supplier_id": product.supplier_id,
        "sellable": sellable - _HIDDEN * is_hidden,
        "price": product.price,
        "rating": mean_rating(product, of_group),
        "rating_rank": rank,
        "created_us": round(product.created_at.timestamp() * 1_000_000),
        "latitude": known.latitude if known else product.public_latitude,
        "longitude": known.longitude if known else product.public_longitude,
        "condition": product.condition,
        "category_key": product.category_key,
        "brand_key": key_of(product.brand)[:100] if product.brand else None,
        "city_key": known.city_key if known else product.city_key,
        "group_id": product.group_id,
    }


def _update_lexicon(session: Session, counts: Counter[str]) -> None:
    """Called once per transaction: PostgreSQL keeps every version of a row that one transaction writes repeatedly."""
    # Sorted, so that two transactions with the same words do not deadlock.
    rows: list[dict[str, Any]] = [{"term": term, "count": count} for term, count in sorted(counts.items()) if count]
    if session.get_bind().dialect.name == "mysql":
        tail = "ON DUPLICATE KEY UPDATE count = count + VALUES(count)"
    else:
        tail = "ON CONFLICT (term) DO UPDATE SET count = lexicon.count + excluded.count"
    run_many(session, f"INSERT INTO lexicon (term, count) VALUES (:term, :count) {tail}", rows)
    if any(row["count"] < 0 for row in rows):
        fewer = [{"term": row["term"]} for row in rows if row["count"] < 0]
        run_many(session, "DELETE FROM lexicon WHERE term = :term AND count <= 0", fewer)
