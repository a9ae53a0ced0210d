"""Updates the search index in the transaction that changes products or suppliers."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.ratings import mean_rating
from tis.marketplace.search.backends.text_index import IndexEntry, TextIndex
from tis.marketplace.search.geo_filter import cell_token_at
from tis.marketplace.search.sql import id_list, run, run_many
from tis.marketplace.search.tokens import category_token, normalize
from tis.marketplace.tables import Product, Supplier

_BATCH_SIZE = 1000

_COLUMNS = (
    "product_id supplier_id sellable price rating rating_rank created_us latitude longitude condition category_key"
    " brand_key city_key words_digest"
).split()
_INSERT = (
    f"INSERT INTO product_search ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"
)


def index_products(session: Session, index: TextIndex, product_ids: Iterable[int]) -> None:
    session.flush()
    counts: Counter[str] = Counter()
    ids = iter(sorted(set(product_ids)))
    while batch := list(itertools.islice(ids, _BATCH_SIZE)):
        _index_batch(session, index, batch, counts)
    _update_lexicon(session, counts)


def index_supplier(session: Session, index: TextIndex, supplier_id: int) -> None:
    """Locks the products first: a concurrent change of one is either indexed already or will see this supplier."""
    product_ids = select(Product.id).where(Product.supplier_id == supplier_id).order_by(Product.id)
    index_products(session, index, session.scalars(product_ids.with_for_update(read=True)).all())


def rebuild_index(session: Session, index: TextIndex) -> None:
    """Compares every product with its entry and repairs what differs."""
    session.flush()
    index.before_rebuild(session)
    counts: Counter[str] = Counter()
    orphans = run(session, "SELECT product_id FROM product_search WHERE product_id NOT IN (SELECT id FROM products)")
    for batch in _batches([product_id for [product_id] in orphans]):
        _index_batch(session, index, batch, counts)
    max_id = session.scalar(select(func.max(Product.id))) or 0
    done = 0
    while done < max_id:
        next_ids = select(Product.id).where(Product.id > done).order_by(Product.id).limit(_BATCH_SIZE)
        batch = list(session.scalars(next_ids))
        _index_batch(session, index, batch, counts)
        done = batch[-1]
    _update_lexicon(session, counts)
    index.after_rebuild(session)


def _index_batch(session: Session, index: TextIndex, ids: Sequence[int], counts: Counter[str]) -> None:
    """Updates the entries of the products with these ids, and adds the changes of the lexicon to `counts`."""
    products = {product.id: product for product in _select_indexable(session, ids)}
    entries = {product_id: _entry(product) for product_id, product in products.items()}
    # Read after the products are locked, so that it includes what the previous holders of the locks wrote.
    sql = f"SELECT product_id, words_digest FROM product_search WHERE product_id IN {id_list(ids)}"
    known_digests: dict[int, int] = dict(run(session, sql))
    digests = {product_id: _digest(entry) for product_id, entry in entries.items()}
    removed = [product_id for product_id in known_digests if product_id not in entries]
    changed = [entry for product_id, entry in entries.items() if known_digests.get(product_id) != digests[product_id]]

    outdated = [entry.product_id for entry in changed if entry.product_id in known_digests] + removed
    for words in index.indexed_words(session, outdated).values() if outdated else ():
        counts.subtract(words)
    for entry in changed:
        counts.update(entry.words)
    if known_digests:
        run(session, f"DELETE FROM product_search WHERE product_id IN {id_list(list(known_digests))}")
    if removed:
        index.delete(session, removed)
    run_many(session, _INSERT, [_columns(product, digests[product.id]) for product in products.values()])
    index.put(session, changed)


def _select_indexable(session: Session, ids: Sequence[int]) -> Sequence[Row[Any]]:
    """Only products that are not deleted, of active suppliers."""
    supplier = Supplier.__table__.c
    rows = (
        select(
            Product.id,
            Product.supplier_id,
            Product.name,
            Product.description,
            Product.brand,
            Product.tags,
            Product.category,
            Product.category_key,
            Product.price,
            Product.on_hand,
            Product.reserved,
            Product.is_available,
            Product.condition,
            Product.rating_sum,
            Product.rating_count,
            Product.verified_sum,
            Product.verified_count,
            Product.granted_rating,
            Product.rating_rank,
            Product.created_at,
            supplier.city_key,
            supplier.public_latitude,
            supplier.public_longitude,
        )
        .join(Supplier, Supplier.id == Product.supplier_id)
        .where(
            Product.id.in_(ids),
            Product.deleted_at.is_(None),
            supplier.status == "active",
            supplier.deleted_at.is_(None),
        )
        .order_by(Product.id)
    )
    if session.get_bind().dialect.name != "sqlite":
        # Waits for concurrent changes of the products, so the last of them indexes the final state. Does not lock the
        # supplier: its change locks its products in `index_supplier`, and the two would deadlock.
        rows = rows.with_for_update(read=True, of=Product)
    return cast(Sequence[Row[Any]], session.execute(rows).all())


def _entry(product: Row[Any]) -> IndexEntry:
    tokens = (category_token(product.category_key), cell_token_at(product.public_latitude, product.public_longitude))
    return IndexEntry(
        product_id=product.id,
        name=normalize(product.name),
        labels=normalize(" ".join(part for part in (product.brand, product.tags, product.category) if part)),
        description=normalize(product.description),
        tokens=" ".join(token for token in tokens if token),
    )


def _digest(entry: IndexEntry) -> int:
    text = "\n".join((entry.name, entry.labels, entry.description, entry.tokens))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


def _columns(product: Row[Any], digest: int) -> dict[str, Any]:
    return {
        "product_id": product.id,
        "supplier_id": product.supplier_id,
        "sellable": int(product.is_available and product.on_hand > product.reserved),
        "price": product.price,
        "rating": mean_rating(product),
        "rating_rank": product.rating_rank,
        "created_us": round(product.created_at.timestamp() * 1_000_000),
        "latitude": product.public_latitude,
        "longitude": product.public_longitude,
        "condition": product.condition,
        "category_key": product.category_key,
        "brand_key": key_of(product.brand)[:100] if product.brand else None,
        "city_key": product.city_key,
        "words_digest": digest,
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
        run_many(
            session,
            "DELETE FROM lexicon WHERE term = :term AND count <= 0",
            [{"term": row["term"]} for row in rows if row["count"] < 0],
        )


def _batches(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), _BATCH_SIZE):
        yield ids[start : start + _BATCH_SIZE]
