"""What shops sell, how it is named and priced, and its pictures."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, false
from sqlalchemy.orm import Mapped, foreign, mapped_column, relationship

from tis.marketplace.columns import BigId, Json, now
from tis.marketplace.tables.accounts import Supplier
from tis.marketplace.tables.base import MAX_RUPIAH, UNRATED, Table, key_of, where_rows
from tis.marketplace.tables.variants import ProductGroup


class Category(Table):
    """Products may name categories without a row; a row adds the names for display and for search."""

    __tablename__ = "categories"

    slug: Mapped[str] = mapped_column(String(100), primary_key=True)
    parent: Mapped[str | None] = mapped_column(ForeignKey("categories.slug"))
    name_id: Mapped[str] = mapped_column(String(100))
    name_en: Mapped[str] = mapped_column(String(100))


class Synonym(Table):
    """Maps a word of buyers to words of the catalogue, or to a category.

    With `is_broader`, only in this direction: `sembako` is rice and oil, and rice is neither of these.
    """

    __tablename__ = "synonyms"

    term: Mapped[str] = mapped_column(String(100), primary_key=True)
    means: Mapped[str] = mapped_column(String(200))
    category: Mapped[str | None] = mapped_column(ForeignKey("categories.slug", ondelete="CASCADE"))
    is_broader: Mapped[bool] = mapped_column(default=False, server_default=false())


class TaxonomyVersion(Table):
    """One row. Every change of categories and synonyms sets another version, which tells caches of them to reload."""

    __tablename__ = "taxonomy_version"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    version: Mapped[str] = mapped_column(String(32))


class ShippedWord(Table):
    """A row of `taxonomy/*.csv` that was given to a table: one that an admin has changed or deleted since differs."""

    __tablename__ = "shipped_words"

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)  # category, synonym
    key: Mapped[str] = mapped_column(String(100), primary_key=True)
    digest: Mapped[str] = mapped_column(String(16))


class Product(Table):
    __tablename__ = "products"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="RESTRICT"))
    name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str | None] = mapped_column(Text)
    brand: Mapped[str | None] = mapped_column(String(100))
    price: Mapped[int] = mapped_column(BigId)  # in force now
    normal_price: Mapped[int | None] = mapped_column(BigId)  # while a promotion is in force: what is asked otherwise
    on_hand: Mapped[int] = mapped_column(default=0)
    reserved: Mapped[int] = mapped_column(default=0)
    category: Mapped[str] = mapped_column(String(100))
    category_key: Mapped[str] = mapped_column(String(100))
    tags: Mapped[str | None] = mapped_column(String(1000))
    sku: Mapped[str | None] = mapped_column(String(100))
    condition: Mapped[str] = mapped_column(String(8), default="new")
    attributes: Mapped[dict[str, Any]] = mapped_column(default=dict)
    is_available: Mapped[bool] = mapped_column(default=True)
    rating_sum: Mapped[int] = mapped_column(default=0)
    rating_count: Mapped[int] = mapped_column(default=0)
    # Of these, the reviews by buyers of a completed sale: they weigh more (`tis/marketplace/kit/ratings.py`).
    verified_sum: Mapped[int] = mapped_column(default=0)
    verified_count: Mapped[int] = mapped_column(default=0)
    granted_rating: Mapped[float | None]
    rating_rank: Mapped[float] = mapped_column(default=UNRATED)
    # Why its texts look as if they gave orders to a language model, for admins; see `kit/suspicious_texts.py`.
    flagged_reason: Mapped[str | None] = mapped_column(String(100))
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
    deleted_at: Mapped[datetime | None]
    # Of a variant: its group, and a digest of its values. A deleted product is in no group.
    group_id: Mapped[int | None] = mapped_column(BigId)
    variant_key: Mapped[str | None] = mapped_column(String(32))

    supplier: Mapped[Supplier] = relationship(lazy="raise")
    group: Mapped[ProductGroup | None] = relationship(
        lazy="selectin", viewonly=True, primaryjoin=lambda: foreign(Product.group_id) == ProductGroup.id
    )

    __table_args__ = (
        CheckConstraint(f"price BETWEEN 1 AND {MAX_RUPIAH}", name="price"),
        CheckConstraint(f"normal_price BETWEEN 1 AND {MAX_RUPIAH}", name="normal_price"),
        CheckConstraint("on_hand >= 0 AND reserved >= 0 AND reserved <= on_hand", name="stock"),
        CheckConstraint("\"condition\" IN ('new', 'used')", name="condition"),
        CheckConstraint("granted_rating BETWEEN 0 AND 5", name="granted_rating"),
        Index("uq_products_supplier_id_sku", "supplier_id", "sku", unique=True, **where_rows("deleted_at IS NULL")),
        # Counts the products of each category in 0.2 s instead of 1 s, with a million products.
        Index(
            "ix_products_category_key_supplier_id", "category_key", "supplier_id", **where_rows("deleted_at IS NULL")
        ),
        Index("ix_products_supplier_id_id", "supplier_id", "id"),
        # For a quantity that few products have. A reservation does not change `on_hand`, so it does not write it.
        Index("ix_products_on_hand", "on_hand", **where_rows("deleted_at IS NULL")),
        Index("ix_products_deleted", "supplier_id", "id", **where_rows("deleted_at IS NOT NULL")),
        Index("ix_products_flagged", "id", **where_rows("flagged_reason IS NOT NULL")),
        Index("uq_products_group_id_variant_key", "group_id", "variant_key", unique=True),
    )


class PriceChange(Table):
    """Append-only."""

    __tablename__ = "price_history"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    product_id: Mapped[int] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"))
    price: Mapped[int] = mapped_column(BigId)
    valid_from: Mapped[datetime] = mapped_column(default=now)
    actor: Mapped[str | None] = mapped_column(String(32), index=True)

    __table_args__ = (
        Index("ix_price_history_product_id_valid_from", "product_id", "valid_from"),
        Index("ix_price_history_product_id_id", "product_id", "id"),
    )


class StoredPicture(Table):
    """What the store of pictures has under a hash. Written before its files, and deleted after them.

    So every file has a row, whenever a server is killed.
    """

    __tablename__ = "pictures"

    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    width: Mapped[int]  # of the largest size
    height: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(default=now)
    # NULL while a product has it. Else when it may have lost the last one: whoever removes it looks again.
    unused_since: Mapped[datetime | None] = mapped_column(index=True)


class ProductPicture(Table):
    """A picture of a product, at `position` 0, 1, ... without holes. Written under the lock of the product."""

    __tablename__ = "product_pictures"

    product_id: Mapped[int] = key_of("products")
    hash: Mapped[str] = mapped_column(ForeignKey("pictures.hash", ondelete="RESTRICT"), primary_key=True, index=True)
    position: Mapped[int]
    alt: Mapped[str | None] = mapped_column(String(300))
    alt_status: Mapped[str | None] = mapped_column(String(16))  # NULL: nobody has described it
    alt_tries: Mapped[int] = mapped_column(default=0)  # by a model
    source_digest: Mapped[str | None] = mapped_column(String(64))  # of the URL that a sheet named
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        CheckConstraint("alt_status IN ('proposed', 'confirmed')", name="alt_status"),
        Index("ix_product_pictures_product_id_position", "product_id", "position"),
        Index("ix_product_pictures_undescribed", "alt_tries", "created_at", **where_rows("alt_status IS NULL")),
    )


class PictureFetch(Table):
    """The pictures that a row of a sheet names, until they are fetched. Whoever takes it moves `due_at` ahead."""

    __tablename__ = "picture_fetches"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    import_id: Mapped[str] = mapped_column(ForeignKey("sheet_imports.id", ondelete="CASCADE"), index=True)
    product_id: Mapped[int] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"), index=True)
    row_number: Mapped[int]
    urls: Mapped[list[Any]] = mapped_column(Json)
    num_tries: Mapped[int] = mapped_column(default=0)
    due_at: Mapped[datetime] = mapped_column(default=now, index=True)


class SheetImport(Table):
    """A sheet too large for one transaction: a worker imports its batches one by one, each exactly once."""

    __tablename__ = "sheet_imports"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="CASCADE"))
    actor: Mapped[str | None] = mapped_column(String(32))
    request_id: Mapped[str | None] = mapped_column(String(128))
    status: Mapped[str] = mapped_column(String(16), default="waiting")
    num_rows: Mapped[int]
    num_done: Mapped[int] = mapped_column(default=0)  # with those that were refused
    num_created: Mapped[int] = mapped_column(default=0)
    num_updated: Mapped[int] = mapped_column(default=0)
    num_unchanged: Mapped[int] = mapped_column(default=0)
    problems: Mapped[list[Any]] = mapped_column(Json, default=list)
    detail: Mapped[str | None] = mapped_column(String(500))
    created_at: Mapped[datetime] = mapped_column(default=now)
    touched_at: Mapped[datetime] = mapped_column(default=now)  # the longest untouched is next
    ended_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("status IN ('waiting', 'running', 'done', 'failed')", name="status"),
        Index("ix_sheet_imports_status_touched_at", "status", "touched_at"),
        Index("ix_sheet_imports_supplier_id_created_at", "supplier_id", "created_at"),
    )


class SheetBatch(Table):
    """Rows of a `SheetImport` that are not imported yet; the transaction that imports them deletes it."""

    __tablename__ = "sheet_batches"

    import_id: Mapped[str] = key_of("sheet_imports")
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    rows: Mapped[list[Any]] = mapped_column(Json)
