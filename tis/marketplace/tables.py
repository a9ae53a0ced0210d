"""The tables. Money is whole rupiah, time is UTC; constraints refuse invalid states."""

from datetime import date, datetime
from typing import Any, cast

from sqlalchemy import (
    CheckConstraint,
    Computed,
    Connection,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    event,
    false,
    select,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedColumn, mapped_column, relationship

from tis.marketplace.columns import BigId, Json, PublicPlace, UTCDateTime, now

UNRATED = 3.5  # the rating by which products without a rating are sorted
MAX_RUPIAH = 10_000_000_000_000  # below 2**53, so JavaScript reads it exactly
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


def _where(condition: str) -> dict[str, Any]:
    """Of an index on some rows, which MariaDB does not have: see the migration."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def _key_of(table: str, *, index: bool = False) -> MappedColumn[Any]:
    """A primary key, or a part of one, that is the id of a row in another table and goes with it."""
    parent = ForeignKey(f"{table}.id", ondelete="CASCADE")
    return mapped_column(parent, primary_key=True, autoincrement=False, index=index or None)


class Table(DeclarativeBase):
    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {datetime: UTCDateTime(), dict[str, Any]: Json}


class User(Table):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str | None] = mapped_column(String(320))
    email_key: Mapped[str | None] = mapped_column(String(320), unique=True)
    email_confirmed_at: Mapped[datetime | None]
    password_hash: Mapped[str | None] = mapped_column(String(255))
    phone: Mapped[str | None] = mapped_column(String(32))
    latitude: Mapped[float | None]
    longitude: Mapped[float | None]
    city: Mapped[str | None] = mapped_column(String(100))
    province: Mapped[str | None] = mapped_column(String(100))
    place_code: Mapped[str | None] = mapped_column(String(4))
    role: Mapped[str] = mapped_column(String(16), default="user")
    ai_access_enabled: Mapped[bool] = mapped_column(default=False)
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
    deleted_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("role IN ('user', 'admin')", name="role"),
        CheckConstraint("latitude BETWEEN -90 AND 90", name="latitude"),
        CheckConstraint("longitude BETWEEN -180 AND 180", name="longitude"),
        CheckConstraint("(latitude IS NULL) = (longitude IS NULL)", name="place"),
    )


class Supplier(Table):
    """A shop. It can sign in with its own e-mail and password, and users can work for it (`SupplierMember`)."""

    __tablename__ = "suppliers"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    business_name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str] = mapped_column(String(320))
    email_key: Mapped[str] = mapped_column(String(320), unique=True)
    email_confirmed_at: Mapped[datetime | None]
    password_hash: Mapped[str | None] = mapped_column(String(255))
    phone: Mapped[str | None] = mapped_column(String(32))
    address: Mapped[str | None] = mapped_column(String(500))
    latitude: Mapped[float]
    longitude: Mapped[float]
    # The only place that search and distances use. The database computes it, whoever writes the exact one.
    public_latitude: Mapped[float] = mapped_column(Computed(PublicPlace("latitude")))
    public_longitude: Mapped[float] = mapped_column(Computed(PublicPlace("longitude")))
    city: Mapped[str] = mapped_column(String(100))
    city_key: Mapped[str] = mapped_column(String(100), index=True)
    province: Mapped[str | None] = mapped_column(String(100))
    # Of the place that city and province name; see `tis/marketplace/places`. NULL where that is not clear.
    place_code: Mapped[str | None] = mapped_column(String(4))
    status: Mapped[str] = mapped_column(String(16), default="active")
    shows_place: Mapped[bool] = mapped_column(default=False)
    pickup_enabled: Mapped[bool] = mapped_column(default=True)
    courier_enabled: Mapped[bool] = mapped_column(default=True)
    delivery_radius_km: Mapped[float | None]
    opening_hours: Mapped[dict[str, Any] | None]  # by weekday, in local time
    time_zone: Mapped[str | None] = mapped_column(String(4))  # NULL: the one of its longitude
    version: Mapped[int] = mapped_column(default=1)
    registration_date: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
    deleted_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("status IN ('active', 'suspended')", name="status"),
        CheckConstraint("latitude BETWEEN -90 AND 90", name="latitude"),
        CheckConstraint("longitude BETWEEN -180 AND 180", name="longitude"),
        CheckConstraint("delivery_radius_km >= 0", name="delivery_radius_km"),
        Index("ix_suppliers_public_latitude_public_longitude", "public_latitude", "public_longitude"),
    )

    @property
    def is_active(self) -> bool:
        return self.status == "active" and self.deleted_at is None


class SupplierMember(Table):
    __tablename__ = "supplier_members"

    supplier_id: Mapped[int] = _key_of("suppliers")
    user_id: Mapped[int] = _key_of("users", index=True)
    role: Mapped[str] = mapped_column(String(16), default="editor")
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (CheckConstraint("role IN ('owner', 'editor')", name="role"),)


class SupplierInvitation(Table):
    """Offers a user a role in a supplier. Only the user makes a `SupplierMember` of it, until it expires."""

    __tablename__ = "supplier_invitations"

    supplier_id: Mapped[int] = _key_of("suppliers")
    user_id: Mapped[int] = _key_of("users", index=True)
    role: Mapped[str] = mapped_column(String(16))
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (CheckConstraint("role IN ('owner', 'editor')", name="role"),)


class ShopToken(Table):
    """A program of a shop (a till, a script) sends it. What it may call: `SCOPE_OF_ROUTE` in `policy.py`."""

    __tablename__ = "shop_tokens"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="CASCADE"), index=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(100))
    scopes: Mapped[str] = mapped_column(String(40))  # goods read stock
    created_by: Mapped[str] = mapped_column(String(32), index=True)
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)
    last_used_at: Mapped[datetime | None]


class RefreshToken(Table):
    """A chain of these begins with a login. A token that is used twice was stolen and ends its chain."""

    __tablename__ = "refresh_tokens"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    chain: Mapped[str] = mapped_column(String(32), index=True)
    account: Mapped[str] = mapped_column(String(32), index=True)  # user:7, supplier:3
    expires_at: Mapped[datetime] = mapped_column(index=True)
    used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    signed_out: Mapped[bool] = mapped_column(default=False)  # revoked by the account itself: see `has_session`
    created_at: Mapped[datetime] = mapped_column(default=now)
    signed_in_at: Mapped[datetime] = mapped_column(default=now)  # when the chain began
    agent: Mapped[str | None] = mapped_column(String(200))  # the program that got this token, by its User-Agent


class OneTimeLink(Table):
    """Proves that an account reads the mail of `email`. Deleted when it is used."""

    __tablename__ = "one_time_links"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    account: Mapped[str] = mapped_column(String(32), index=True)
    purpose: Mapped[str] = mapped_column(String(16))
    email: Mapped[str] = mapped_column(String(320))
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)

    __table_args__ = (CheckConstraint("purpose IN ('reset', 'confirm', 'change')", name="purpose"),)


class Consent(Table):
    """Which version of the privacy notice an account agreed to, and when. Append-only: it is a proof."""

    __tablename__ = "consents"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account: Mapped[str] = mapped_column(String(32), index=True)
    version: Mapped[str] = mapped_column(String(40))
    at: Mapped[datetime] = mapped_column(default=now)


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
    price: Mapped[int] = mapped_column(BigId)
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

    supplier: Mapped[Supplier] = relationship(lazy="raise")

    __table_args__ = (
        CheckConstraint(f"price BETWEEN 1 AND {MAX_RUPIAH}", name="price"),
        CheckConstraint("on_hand >= 0 AND reserved >= 0 AND reserved <= on_hand", name="stock"),
        CheckConstraint("\"condition\" IN ('new', 'used')", name="condition"),
        CheckConstraint("granted_rating BETWEEN 0 AND 5", name="granted_rating"),
        Index("uq_products_supplier_id_sku", "supplier_id", "sku", unique=True, **_where("deleted_at IS NULL")),
        # Counts the products of each category in 0.2 s instead of 1 s, with a million products.
        Index("ix_products_category_key_supplier_id", "category_key", "supplier_id", **_where("deleted_at IS NULL")),
        Index("ix_products_supplier_id_id", "supplier_id", "id"),
        # For a quantity that few products have. A reservation does not change `on_hand`, so it does not write it.
        Index("ix_products_on_hand", "on_hand", **_where("deleted_at IS NULL")),
        Index("ix_products_deleted", "supplier_id", "id", **_where("deleted_at IS NOT NULL")),
        Index("ix_products_flagged", "id", **_where("flagged_reason IS NOT NULL")),
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


def _supplier_of_product(context: Any) -> int | None:
    """For an insert that names the product alone."""
    product_id = context.get_current_parameters()["product_id"]
    supplier_id = select(Product.supplier_id).where(Product.id == product_id)
    return cast(Connection, context.connection).scalar(supplier_id)


class StockMovement(Table):
    """Append-only: `on_hand` is the sum of the deltas, also after retention has put old ones together."""

    __tablename__ = "stock_movements"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    product_id: Mapped[int] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"))
    # The ledger of a supplier is read by this; a product never changes its supplier.
    supplier_id: Mapped[int] = mapped_column(BigId, default=_supplier_of_product)
    delta: Mapped[int]
    # initial, set, sold, import, correction; carried: the sum of deleted ones
    kind: Mapped[str] = mapped_column(String(16))
    on_hand: Mapped[int | None]  # of the product after it; NULL in rows from before there was this column
    reason: Mapped[str | None] = mapped_column(String(200))  # of a correction
    reservation_id: Mapped[str | None] = mapped_column(String(36))
    actor: Mapped[str | None] = mapped_column(String(32), index=True)
    at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        Index("ix_stock_movements_supplier_id_id", "supplier_id", "id"),
        Index("ix_stock_movements_supplier_id_kind_id", "supplier_id", "kind", "id"),
        Index("ix_stock_movements_product_id_id", "product_id", "id"),
        Index("ix_stock_movements_at", "at", **_where("kind <> 'carried'")),
    )


class Reservation(Table):
    """Its supplier and price are those of the product when it was inserted: the price stays, whatever the shop does."""

    __tablename__ = "stock_reservations"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    product_id: Mapped[int] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"), index=True)
    supplier_id: Mapped[int] = mapped_column(BigId)
    unit_price: Mapped[int] = mapped_column(BigId)
    actor: Mapped[str | None] = mapped_column(String(32))
    quantity: Mapped[int]
    status: Mapped[str] = mapped_column(String(16), default="held")
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(default=now)
    accepted_at: Mapped[datetime | None]  # by the shop, which learns then how to reach the buyer
    refusal_reason: Mapped[str | None] = mapped_column(String(200))  # what the shop tells the buyer
    ended_at: Mapped[datetime | None] = mapped_column(index=True)

    __table_args__ = (
        CheckConstraint("quantity > 0", name="quantity"),
        CheckConstraint("status IN ('held', 'committed', 'released', 'refused', 'expired')", name="status"),
        Index("ix_stock_reservations_status_expires_at", "status", "expires_at"),
        Index("ix_stock_reservations_supplier_id_created_at", "supplier_id", "created_at", "id"),
        Index("ix_stock_reservations_supplier_id_status", "supplier_id", "status", "created_at", "id"),
        Index("ix_stock_reservations_supplier_id_status_ended_at", "supplier_id", "status", "ended_at"),
        Index("ix_stock_reservations_actor_status", "actor", "status", "expires_at", "product_id", "quantity"),
        Index("ix_stock_reservations_actor_created_at_id", "actor", "created_at", "id"),
        Index("ix_stock_reservations_actor_status_created_at_id", "actor", "status", "created_at", "id"),
    )


@event.listens_for(Reservation, "before_insert")
def _copy_from_product(mapper: object, connection: object, reservation: Reservation) -> None:
    """Read by the INSERT itself, so that no price can come in between."""
    for name, column in (("supplier_id", Product.supplier_id), ("unit_price", Product.price)):
        if getattr(reservation, name) is None:
            of_product = select(column).where(Product.id == reservation.product_id)
            setattr(reservation, name, of_product.scalar_subquery())


class NoticeCounter(Table):
    """Whoever writes a notice locks it: the numbers of an account have no holes, and become visible in their order."""

    __tablename__ = "notice_counters"

    account: Mapped[str] = mapped_column(String(32), primary_key=True)
    latest: Mapped[int]


class Notice(Table):
    """What an account is told: the outbox of `GET /api/notices/stream`."""

    __tablename__ = "notices"

    account: Mapped[str] = mapped_column(String(32), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    type: Mapped[str] = mapped_column(String(32))
    data: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)


class Review(Table):
    """Of a product; the shop may answer it."""

    __tablename__ = "reviews"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    product_id: Mapped[int] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"))
    # Of the product, which never changes its supplier: a shop lists its reviews by this.
    supplier_id: Mapped[int] = mapped_column(BigId, default=_supplier_of_product, server_default=text("0"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    rating: Mapped[int]
    title: Mapped[str | None] = mapped_column(String(200))
    body: Mapped[str | None] = mapped_column(String(5000))
    status: Mapped[str] = mapped_column(String(16), default="published")
    verified_purchase: Mapped[bool] = mapped_column(default=False)  # its author bought the product
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
    answer: Mapped[str | None] = mapped_column(String(2000))  # of the shop
    answered_at: Mapped[datetime | None]
    answer_changed_at: Mapped[datetime | None]
    answered_by: Mapped[str | None] = mapped_column(String(32), index=True)
    answer_flagged_reason: Mapped[str | None] = mapped_column(String(100))  # as `flagged_reason` of a product

    __table_args__ = (
        UniqueConstraint("product_id", "user_id"),
        CheckConstraint("rating BETWEEN 1 AND 5", name="rating"),
        CheckConstraint("status IN ('published', 'hidden')", name="status"),
        Index("ix_reviews_product_id_status_id", "product_id", "status", "id"),
        Index("ix_reviews_supplier_id_status_id", "supplier_id", "status", "id"),
        Index("ix_reviews_unanswered", "supplier_id", "status", "id", **_where("answer IS NULL")),
        Index("ix_reviews_supplier_id_created_at", "supplier_id", "created_at"),
        Index("ix_reviews_answer_flagged", "id", **_where("answer_flagged_reason IS NOT NULL")),
        Index("ix_reviews_status_id", "status", "id"),
    )


class IdempotentRequest(Table):
    """The response to a request with an `Idempotency-Key`, for a retry."""

    __tablename__ = "idempotency_keys"

    actor: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    request_digest: Mapped[str] = mapped_column(String(64))
    answer: Mapped[dict[str, Any] | None] = mapped_column(Json)
    expires_at: Mapped[datetime] = mapped_column(index=True)
    created_at: Mapped[datetime] = mapped_column(default=now)


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

    import_id: Mapped[str] = _key_of("sheet_imports")
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    rows: Mapped[list[Any]] = mapped_column(Json)


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

    product_id: Mapped[int] = _key_of("products")
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
        Index("ix_product_pictures_undescribed", "alt_tries", "created_at", **_where("alt_status IS NULL")),
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


class Conversation(Table):
    """What a user and the assistant wrote. `state` is what the next sentence may refer to (`ConversationState`)."""

    __tablename__ = "conversations"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    session_id: Mapped[str] = mapped_column(String(64), unique=True)
    title: Mapped[str | None] = mapped_column(String(100))
    state: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, index=True)  # when the last message was added

    __table_args__ = (
        Index("ix_conversations_user_id_id", "user_id", "id"),
        Index("ix_conversations_user_id_updated_at", "user_id", "updated_at", "id"),
    )


class ConversationMessage(Table):
    """A turn of a conversation has one message of the user and one of the assistant."""

    __tablename__ = "conversation_messages"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))
    turn_id: Mapped[str] = mapped_column(String(64))
    role: Mapped[str] = mapped_column(String(16))
    content: Mapped[str] = mapped_column(Text)
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        UniqueConstraint("conversation_id", "turn_id", "role"),
        CheckConstraint("role IN ('user', 'assistant')", name="role"),
        Index("ix_conversation_messages_conversation_id_id", "conversation_id", "id"),
    )


class UserPreferences(Table):
    """What a user told the assistant to prefer."""

    __tablename__ = "user_preferences"

    user_id: Mapped[int] = _key_of("users")
    brands: Mapped[list[Any]] = mapped_column(Json, default=list)
    max_price: Mapped[int | None] = mapped_column(BigId)
    city: Mapped[str | None] = mapped_column(String(100))
    condition: Mapped[str | None] = mapped_column(String(8))
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)

    __table_args__ = (
        CheckConstraint(f"max_price BETWEEN 1 AND {MAX_RUPIAH}", name="max_price"),
        CheckConstraint("\"condition\" IN ('new', 'used')", name="condition"),
    )


class ChatUsage(Table):
    """How many tokens of language models the assistant used for a user on a day (UTC)."""

    __tablename__ = "chat_usage"

    user_id: Mapped[int] = _key_of("users")
    day: Mapped[date] = mapped_column(primary_key=True, index=True)
    tokens: Mapped[int] = mapped_column(BigId)


class AuditEntry(Table):
    """Who changed what. Append-only; of personal data it has the names of the fields, never the values."""

    __tablename__ = "audit_log"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime] = mapped_column(default=now)
    actor: Mapped[str | None] = mapped_column(String(32))
    action: Mapped[str] = mapped_column(String(64))
    entity: Mapped[str] = mapped_column(String(32))
    entity_id: Mapped[str] = mapped_column(String(100))  # a number, UUID, slug or synonym
    changes: Mapped[dict[str, Any]] = mapped_column(default=dict)
    request_id: Mapped[str | None] = mapped_column(String(128))

    __table_args__ = (
        Index("ix_audit_log_at_id", "at", "id"),
        Index("ix_audit_log_entity_id", "entity", "id"),
        Index("ix_audit_log_entity_id_id", "entity_id", "id"),
        Index("ix_audit_log_actor_id", "actor", "id"),
    )


class DataRequest(Table):
    """That a person who cannot sign in wants a copy of the own data, or its end; and how that went on."""

    __tablename__ = "data_requests"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16), default="open")
    reason: Mapped[str] = mapped_column(String(500))  # how the person asked, and how an admin knew who it was
    received_at: Mapped[datetime]
    due_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(default=now)
    created_by: Mapped[str | None] = mapped_column(String(32))
    ended_at: Mapped[datetime | None]
    ended_by: Mapped[str | None] = mapped_column(String(32))
    ended_reason: Mapped[str | None] = mapped_column(String(500))  # why it was refused

    __table_args__ = (
        CheckConstraint("kind IN ('export', 'erase')", name="kind"),
        CheckConstraint("status IN ('open', 'done', 'refused')", name="status"),
        Index("ix_data_requests_status_id", "status", "id"),
    )


class ProductFacts(Table):
    """What products are filtered and sorted by, one narrow row per product that is not deleted.

    Written by `index.py` and `supplier_index.py` of the search alone: a change of a product writes the columns of the
    product, a change of its supplier place, city and the sign of `sellable`. So neither locks the rows of the other.
    """

    __tablename__ = "product_search"

    product_id: Mapped[int] = _key_of("products")
    supplier_id: Mapped[int] = mapped_column(BigId)
    # 1: can be bought now, 0: cannot. Less 2 while the supplier is closed or suspended, and then nobody finds it.
    sellable: Mapped[int]
    price: Mapped[int] = mapped_column(BigId)
    rating: Mapped[float | None]
    rating_rank: Mapped[float]
    created_us: Mapped[int] = mapped_column(BigId)  # microseconds since 1970
    latitude: Mapped[float]
    longitude: Mapped[float]
    condition: Mapped[str] = mapped_column(String(8))
    category_key: Mapped[str] = mapped_column(String(100))
    brand_key: Mapped[str | None] = mapped_column(String(100))
    city_key: Mapped[str] = mapped_column(String(100))
    words_digest: Mapped[int] = mapped_column(BigId)  # tells whether the words must be indexed again
    # Its rows of `product_attributes` as one text, which facets count: of ten thousand products these would be many.
    attributes: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        Index("ix_product_search_category_price", "category_key", "price", "product_id", "sellable"),
        Index("ix_product_search_category", "category_key", "product_id", "sellable"),
        Index("ix_product_search_price", "price", "product_id"),
        Index("ix_product_search_newest", "created_us", "product_id"),
        Index("ix_product_search_rating", "rating_rank", "product_id"),
        Index("ix_product_search_supplier", "supplier_id", "category_key", "price"),
        Index("ix_product_search_brand", "brand_key", "product_id", "sellable"),
        Index("ix_product_search_city", "city_key", "product_id", "sellable"),
    )


class ProductVector(Table):
    """What the embedding model makes of the words with this digest. Written by `VectorRenewal` alone."""

    __tablename__ = "product_vectors"

    product_id: Mapped[int] = mapped_column(
        ForeignKey("product_search.product_id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    model: Mapped[str] = mapped_column(String(300))  # its id and revision
    words_digest: Mapped[int] = mapped_column(BigId)
    renewed_us: Mapped[int] = mapped_column(BigId)  # microseconds since 1970
    numbers: Mapped[bytes] = mapped_column(LargeBinary)  # float16, of length 1 together

    __table_args__ = (Index("ix_product_vectors_renewed_us_product_id", "renewed_us", "product_id"),)


class ProductAttribute(Table):
    """An attribute of a product as it is filtered and counted by. Written by `search/index.py` alone."""

    __tablename__ = "product_attributes"

    product_id: Mapped[int] = _key_of("products")
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[float | None]
    text_key: Mapped[str] = mapped_column(String(100))  # of a number, too
    label: Mapped[str] = mapped_column(String(100))

    __table_args__ = (
        Index("ix_product_attributes_name_number", "name", "number", "product_id"),
        Index("ix_product_attributes_name_text_key", "name", "text_key", "product_id"),
        {"sqlite_with_rowid": False},
    )


class SupplierFacts(Table):
    """What suppliers are found and sorted by. A review adds to `stars` and `weight`, a change of the supplier writes
    the rest, which `search/supplier_index.py` does alone."""

    __tablename__ = "supplier_search"

    supplier_id: Mapped[int] = _key_of("suppliers")
    name_key: Mapped[str] = mapped_column(String(200))  # the words of its business name, sorted
    # Of the published reviews of all its products, also of deleted ones, weighted as in `ratings.py`.
    stars: Mapped[float]
    weight: Mapped[float]


class SupplierWord(Table):
    """A word of the business name (`scope` 0), or of the city or province (1), of a supplier."""

    __tablename__ = "supplier_words"

    word: Mapped[str] = mapped_column(String(64), primary_key=True)
    supplier_id: Mapped[int] = _key_of("suppliers", index=True)
    scope: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class SupplierHours(Table):
    """The `opening_hours` of a supplier in minutes of a week in UTC, of which `closes` may lie in the next week."""

    __tablename__ = "supplier_hours"

    supplier_id: Mapped[int] = _key_of("suppliers")
    opens: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    closes: Mapped[int]


class Lexeme(Table):
    """A word of the catalogue and the number of products with it, to correct misspelt words."""

    __tablename__ = "lexicon"

    term: Mapped[str] = mapped_column(String(64), primary_key=True)
    count: Mapped[int]
