"""Units on hand and held, and what buyers say."""

from datetime import datetime
from typing import Any, cast

from sqlalchemy import CheckConstraint, Connection, ForeignKey, Index, String, UniqueConstraint, event, select, text
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, Json, now
from tis.marketplace.tables.base import Table, where_rows
from tis.marketplace.tables.goods import Product


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
    # initial, set, sold, returned, import, correction, transfer; carried: the sum of deleted ones
    kind: Mapped[str] = mapped_column(String(16))
    on_hand: Mapped[int | None]  # of the product after it; NULL in rows from before there was this column
    reason: Mapped[str | None] = mapped_column(String(200))  # of a correction
    reservation_id: Mapped[str | None] = mapped_column(String(36))
    branch_id: Mapped[int] = mapped_column(BigId, default=0, server_default=text("0"))  # 0: the shop's own address
    actor: Mapped[str | None] = mapped_column(String(32), index=True)
    at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        Index("ix_stock_movements_supplier_id_id", "supplier_id", "id"),
        Index("ix_stock_movements_supplier_id_kind_id", "supplier_id", "kind", "id"),
        Index("ix_stock_movements_product_id_id", "product_id", "id"),
        Index("ix_stock_movements_at", "at", **where_rows("kind <> 'carried'")),
    )


class Reservation(Table):
    """Its supplier and price are those of the product when it was inserted: the price stays, whatever the shop does."""

    __tablename__ = "stock_reservations"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    product_id: Mapped[int] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"), index=True)
    supplier_id: Mapped[int] = mapped_column(BigId)
    unit_price: Mapped[int] = mapped_column(BigId)
    promotion_id: Mapped[int | None] = mapped_column(BigId, index=True)  # whose price it is; it may be deleted
    actor: Mapped[str | None] = mapped_column(String(32))
    quantity: Mapped[int]
    branch_id: Mapped[int] = mapped_column(BigId, default=0, server_default=text("0"))  # where the units lie
    status: Mapped[str] = mapped_column(String(16), default="held")  # ordered: its units are those of an order
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(default=now)
    accepted_at: Mapped[datetime | None]  # by the shop, which learns then how to reach the buyer
    reminded_at: Mapped[datetime | None]  # when the buyer was told that it ends soon
    refusal_reason: Mapped[str | None] = mapped_column(String(200))  # what the shop tells the buyer
    ended_at: Mapped[datetime | None] = mapped_column(index=True)

    __table_args__ = (
        CheckConstraint("quantity > 0", name="quantity"),
        CheckConstraint("status IN ('held', 'committed', 'released', 'refused', 'expired', 'ordered')", name="status"),
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
        Index("ix_reviews_unanswered", "supplier_id", "status", "id", **where_rows("answer IS NULL")),
        Index("ix_reviews_supplier_id_created_at", "supplier_id", "created_at"),
        Index("ix_reviews_answer_flagged", "id", **where_rows("answer_flagged_reason IS NOT NULL")),
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
