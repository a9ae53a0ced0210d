"""Updates the search index in the transaction that changes products. `supplier_index.py` does so for suppliers."""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from tis.marketplace.kit.fields import key_of
from tis.marketplace.kit.ratings import mean_rating
from tis.marketplace.reading.tokens import (
    category_token,
    head_token,
    indexed_words,
    joined_word,
    tokenize,
)
from tis.marketplace.search.attribute_filter import (
    MAX_ATTRIBUTES,
    IndexedAttributes,
    indexed_attributes,
    put_attributes,
)
from tis.marketplace.search.backends.text_index import IndexEntry, TextIndex
from tis.marketplace.search.geo_filter import cell_token_at
from tis.marketplace.search.sql import id_list, quoted, run, run_many
from tis.marketplace.search.supplier_index import products_of_other_words, shop_words, supplier_tokens
from tis.marketplace.tables import Product, Supplier

_BATCH_SIZE = 1000
_MAX_ATTRIBUTE_CHARS = 200
_HIDDEN = 2  # what `sellable` is less while the supplier is closed or suspended

_PRODUCT_COLUMNS = (
    "price rating rating_rank created_us condition category_key brand_key sellable words_digest attributes".split()
)
_SUPPLIER_COLUMNS = "supplier_id latitude longitude city_key".split()
_COLUMNS = ["product_id", *_PRODUCT_COLUMNS, *_SUPPLIER_COLUMNS]
_INSERT = (
    f"INSERT INTO product_search ({', '.join(map(quoted, _COLUMNS))})"
    f" VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"
)
_ASSIGNED = ", ".join(f"{quoted(column)} = :{column}" for column in _COLUMNS[1:])
_UPDATE = f"UPDATE product_search SET {_ASSIGNED} WHERE product_id = :product_id"


class KnownFacts(NamedTuple):
    """What `product_search` has of a product, and its supplier wrote or the words depend on."""

    product_id: int
    words_digest: int
    sellable: int
    latitude: float
    longitude: float
    city_key: str


def index_products(session: Session, index: TextIndex, product_ids: Iterable[int]) -> None:
    session.flush()
    counts: Counter[str] = Counter()
    ids = iter(sorted(set(product_ids)))
    while batch := list(itertools.islice(ids, _BATCH_SIZE)):
        _index_batch(session, index, batch, counts)
    _update_lexicon(session, counts)


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
        _index_batch(session, index, batch, counts, with_suppliers=True)
        done = batch[-1]
    _update_lexicon(session, counts)
    index.after_rebuild(session)


def _index_batch(
    session: Session, index: TextIndex, ids: Sequence[int], counts: Counter[str], *, with_suppliers: bool = False
) -> None:
    """Updates the entries of the products with these ids, and adds the changes of the lexicon to `counts`.

    An entry keeps the columns of the supplier that it has, or a change of the supplier at the same time would be lost;
    `with_suppliers` writes them, too.
    """
    products = {product.id: product for product in _select_indexable(session, ids)}
    # Read after the products are locked, so that it includes what the previous holders of the locks wrote.
    known = _lock_known(session, ids)
    renamed = products_of_other_words(session, index, products, list(known)) if with_suppliers and known else ()
    removed = [one for one in known if one not in products]
    outdated, entries, attributes = list(removed), list[IndexEntry](), list[IndexedAttributes]()
    inserted, updated = list[dict[str, Any]](), list[dict[str, Any]]()
    for product_id, product in products.items():
        before = known.get(product_id)
        columns = _columns(product, None if with_suppliers else before)
        entry = _entry(product, cell_token_at(columns["latitude"], columns["longitude"]))
        of_product = indexed_attributes(product_id, product.attributes)
        columns |= {"words_digest": _digest(entry, of_product), "attributes": of_product.counted_text}
        is_moved = before is not None and cell_token_at(before.latitude, before.longitude) != entry.cell
        if before is None or before.words_digest != columns["words_digest"] or is_moved or product_id in renamed:
            entries.append(entry)
            attributes.append(of_product)
            outdated += [] if before is None else [product_id]
        (inserted if before is None else updated).append(columns)

    shops = shop_words(session, {products[entry.product_id].supplier_id for entry in entries}) if entries else {}
    entries = [
        replace(entry, tokens=supplier_tokens(entry.tokens, shops[products[entry.product_id].supplier_id]))
        for entry in entries
    ]
    for words in index.indexed_words(session, outdated).values() if outdated else ():
        counts.subtract(words)
    for entry in entries:
        counts.update(entry.words)
    if removed:
        run(session, f"DELETE FROM product_search WHERE product_id IN {id_list(removed)}")
        index.delete(session, removed)
    run_many(session, _UPDATE, updated)
    run_many(session, _INSERT, inserted)
    index.put(session, entries)
    put_attributes(session, attributes, outdated)


def _lock_known(session: Session, ids: Sequence[int]) -> dict[int, KnownFacts]:
    """In the order of the ids, as `index_supplier` locks them."""
    sql = f"SELECT {', '.join(KnownFacts._fields)} FROM product_search WHERE product_id IN {id_list(ids)}"
    for_update = "" if session.get_bind().dialect.name == "sqlite" else " FOR UPDATE"
    rows = run(session, f"{sql} ORDER BY product_id{for_update}")
    return {row[0]: KnownFacts._make(row) for row in rows}


def _select_indexable(session: Session, ids: Sequence[int]) -> Sequence[Row[Any]]:
    """Only products that are not deleted."""
    supplier = Supplier.__table__.c
    rows = (
        select(
            Product.id,
            Product.supplier_id,
            Product.name,
            Product.description,
            Product.brand,
            Product.tags,
            Product.sku,
            Product.attributes,
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
            supplier.status,
            supplier.deleted_at,
        )
        .join(Supplier, Supplier.id == Product.supplier_id)
        .where(Product.id.in_(ids), Product.deleted_at.is_(None))
        .order_by(Product.id)
    )
    if session.get_bind().dialect.name == "postgresql":
        # Waits for concurrent changes of the products, so the last of them indexes the final state. Not the supplier:
        # whoever adds products has locked it already.
        rows = rows.with_for_update(read=True, of=Product)
    return session.execute(rows).all()


def _entry(product: Row[Any], cell: str) -> IndexEntry:
    """Without the words of its shop."""
    head = head_word(product.name, product.brand)
    tokens = (category_token(product.category_key), head and head_token(head), cell)
    labels = (product.brand, product.tags, product.category)
    return IndexEntry(
        product_id=product.id,
        name=indexed_words(product.name),
        labels=" ".join([*map(indexed_words, filter(None, labels)), *_sku_words(product.sku)]),
        description=" ".join([indexed_words(product.description), *attribute_words(product.attributes)]),
        tokens=" ".join(token for token in tokens if token),
    )


def head_word(name: str, brand: str | None) -> str | None:
    brands = tokenize(brand)
    return next((word for word in tokenize(name) if word not in brands and not word.isdecimal()), None)


def _sku_words(sku: str | None) -> list[str]:
    """Its parts, and all of them as one word: sellers and buyers put points and hyphens where they like."""
    parts = tokenize(sku)
    return [*parts, joined_word(parts)] if len(parts) > 1 else parts


def attribute_words(attributes: Mapping[str, Any] | None) -> Iterator[str]:
    """`{"ram_gb": 16, "gpu": "RTX 4050"}` is `ram 16gb gpu rtx 4050`."""
    for name, value in itertools.islice((attributes or {}).items(), MAX_ATTRIBUTES):
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            label, _, unit = name.rpartition("_")
            said = repr(value).removesuffix(".0") if isinstance(value, float) else str(value)[:_MAX_ATTRIBUTE_CHARS]
            measured = f"{said} {unit}" if label and not isinstance(value, str) else said
            yield from filter(None, (indexed_words(label or name), indexed_words(measured)))


def _digest(entry: IndexEntry, attributes: IndexedAttributes) -> int:
    """Without the tokens of the supplier, which a change of the supplier replaces in the index."""
    own_tokens = entry.tokens.partition(entry.cell)[0]
    text = "\n".join([entry.name, entry.labels, entry.description, own_tokens, *attributes.digest_lines])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


def _columns(product: Row[Any], known: KnownFacts | None) -> dict[str, Any]:
    """All columns but those of words and attributes. Those of the supplier are the known ones, if there are any."""
    is_hidden = known.sellable < 0 if known else product.status != "active" or product.deleted_at is not None
    sellable = int(product.is_available and product.on_hand > product.reserved)
    return {
        "product_id": product.id,
        "supplier_id": product.supplier_id,
        "sellable": sellable - _HIDDEN * is_hidden,
        "price": product.price,
        "rating": mean_rating(product),
        "rating_rank": product.rating_rank,
        "created_us": round(product.created_at.timestamp() * 1_000_000),
        "latitude": known.latitude if known else product.public_latitude,
        "longitude": known.longitude if known else product.public_longitude,
        "condition": product.condition,
        "category_key": product.category_key,
        "brand_key": key_of(product.brand)[:100] if product.brand else None,
        "city_key": known.city_key if known else product.city_key,
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
