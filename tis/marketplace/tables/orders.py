"""What buyers order of a shop: the order with its frozen money, its lines, its history, and where it goes."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, now
from tis.marketplace.tables.base import MAX_RUPIAH, Table, key_of, where_rows

_STATES = (
    "'draft', 'placed', 'accepted', 'paid', 'handed_over', 'shipped', 'received', "
    "'refused', 'cancelled', 'expired', 'returned'"
)


class Order(Table):
    """Its money is frozen when it is placed; a shop that accepts a part lowers it, and it always equals its lines."""

    __tablename__ = "orders"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    number: Mapped[str] = mapped_column(String(16), unique=True)  # drawn at random: it says nothing about volume
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="RESTRICT"))
    branch_id: Mapped[int] = mapped_column(BigId, default=0, server_default=text("0"))  # where all its units lie
    buyer: Mapped[str | None] = mapped_column(String(32))  # an account; NULL in open mode
    state: Mapped[str] = mapped_column(String(16), default="draft")
    shop_name: Mapped[str] = mapped_column(String(200))
    delivery: Mapped[str] = mapped_column(String(16), default="pickup")
    payment_method: Mapped[str] = mapped_column(String(16), default="cash")
    note: Mapped[str | None] = mapped_column(String(500))  # of the buyer to the shop
    items_total: Mapped[int] = mapped_column(BigId)
    delivery_fee: Mapped[int] = mapped_column(BigId, default=0)
    total: Mapped[int] = mapped_column(BigId)
    tax_rate: Mapped[int] = mapped_column(default=0)  # in hundredths of a percent; prices include it
    tax_included: Mapped[int] = mapped_column(BigId, default=0)
    tax_number: Mapped[str | None] = mapped_column(String(32))  # NPWP of the shop, if it names one
    # What the shop said that it got itself; of `payments` there is what providers took.
    paid_by_hand: Mapped[int] = mapped_column(BigId, default=0, server_default=text("0"))
    refund_due: Mapped[int] = mapped_column(BigId, default=0)  # what the shop owes the buyer: see `settle`
    return_days: Mapped[int] = mapped_column(default=0)  # frozen, too, as is all that the buyer agreed to
    return_asked_at: Mapped[datetime | None]
    return_reason: Mapped[str | None] = mapped_column(String(200))  # of the buyer, who asks
    return_refused_at: Mapped[datetime | None]
    return_refusal: Mapped[str | None] = mapped_column(String(200))  # what the shop says to that
    tracking: Mapped[str | None] = mapped_column(String(100))
    carrier: Mapped[str | None] = mapped_column(String(100))
    version: Mapped[int] = mapped_column(default=1)  # every move raises it
    due_at: Mapped[datetime | None]  # when the clock moves it on, or says that the shop is late
    overdue_at: Mapped[datetime | None]  # since when the buyer of a paid order waits too long
    created_at: Mapped[datetime] = mapped_column(default=now)
    placed_at: Mapped[datetime | None]  # until then, the shop knows nothing of it
    accepted_at: Mapped[datetime | None]
    paid_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]  # received, too, though it may still be returned

    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES})", name="state"),
        CheckConstraint("delivery IN ('pickup', 'courier', 'expedition')", name="delivery"),
        CheckConstraint("payment_method IN ('cash', 'transfer', 'qris', 'provider')", name="payment_method"),
        CheckConstraint(f"items_total BETWEEN 0 AND {MAX_RUPIAH}", name="items_total"),
        CheckConstraint(f"delivery_fee BETWEEN 0 AND {MAX_RUPIAH}", name="delivery_fee"),
        CheckConstraint("total = items_total + delivery_fee", name="total"),
        CheckConstraint("refund_due >= 0", name="refund_due"),
        CheckConstraint("tax_included BETWEEN 0 AND total", name="tax_included"),
        Index("ix_orders_buyer_created_at_id", "buyer", "created_at", "id"),
        Index("ix_orders_buyer_state_created_at_id", "buyer", "state", "created_at", "id"),
        Index("ix_orders_supplier_id_placed_at_id", "supplier_id", "placed_at", "id"),
        Index("ix_orders_supplier_id_state_placed_at_id", "supplier_id", "state", "placed_at", "id"),
        Index("ix_orders_due_at", "due_at", **where_rows("due_at IS NOT NULL")),
        Index("ix_orders_ended_at", "ended_at"),
    )


class OrderLine(Table):
    """Units of one product. While the state holds units, they count in `reserved` of the product."""

    __tablename__ = "order_lines"

    order_id: Mapped[str] = key_of("orders")
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    # No foreign key, for which MariaDB would lock the product out of order; products are never deleted for good.
    product_id: Mapped[int] = mapped_column(BigId, index=True)
    reservation_id: Mapped[str | None] = mapped_column(String(36), unique=True)  # what it was made of
    name: Mapped[str] = mapped_column(String(255))
    sku: Mapped[str | None] = mapped_column(String(100))
    unit_price: Mapped[int] = mapped_column(BigId)
    ordered: Mapped[int]
    quantity: Mapped[int]  # what the shop gives of it: `ordered` until it accepts
    returned: Mapped[int] = mapped_column(default=0)
    total: Mapped[int] = mapped_column(BigId)

    __table_args__ = (
        CheckConstraint("ordered > 0 AND quantity BETWEEN 0 AND ordered", name="quantity"),
        CheckConstraint("returned BETWEEN 0 AND quantity", name="returned"),
        CheckConstraint("total = quantity * unit_price", name="total"),
    )


class OrderMove(Table):
    """Append-only: who moved an order to which state, when and why."""

    __tablename__ = "order_moves"

    order_id: Mapped[str] = key_of("orders")
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    state: Mapped[str] = mapped_column(String(16))
    mover: Mapped[str] = mapped_column(String(16))  # buyer, shop, payment, clock
    actor: Mapped[str | None] = mapped_column(String(32), index=True)
    reason: Mapped[str | None] = mapped_column(String(200))
    at: Mapped[datetime] = mapped_column(default=now)


class OrderAddress(Table):
    """Where goods go: personal data, shown to the shop from acceptance on, and deleted by retention."""

    __tablename__ = "order_addresses"

    order_id: Mapped[str] = key_of("orders")
    name: Mapped[str] = mapped_column(String(200))
    phone: Mapped[str] = mapped_column(String(32))
    street: Mapped[str] = mapped_column(String(500))
    city: Mapped[str] = mapped_column(String(100))
    postal_code: Mapped[str | None] = mapped_column(String(10))
    latitude: Mapped[float | None]
    longitude: Mapped[float | None]

    __table_args__ = (
        CheckConstraint("latitude BETWEEN -90 AND 90", name="latitude"),
        CheckConstraint("longitude BETWEEN -180 AND 180", name="longitude"),
    )


class ShopOrderRules(Table):
    """Whether and how a shop takes orders. Without a row it takes none."""

    __tablename__ = "shop_order_rules"

    supplier_id: Mapped[int] = key_of("suppliers")
    takes_orders: Mapped[bool] = mapped_column(default=False)
    accept_hours: Mapped[int] = mapped_column(default=24)  # an order that waits longer expires
    pay_hours: Mapped[int] = mapped_column(default=24)  # from acceptance to the money, or to the pick-up
    handover_hours: Mapped[int] = mapped_column(default=72, server_default=text("72"))  # from the money to the goods
    return_days: Mapped[int] = mapped_column(default=7)
    expedition_fee: Mapped[int | None] = mapped_column(BigId)  # NULL: it sends nothing by expedition
    tax_rate: Mapped[int] = mapped_column(default=0)
    tax_number: Mapped[str | None] = mapped_column(String(32))
    version: Mapped[int] = mapped_column(default=1)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)


class CourierFee(Table):
    """What the shop's courier costs up to a distance."""

    __tablename__ = "courier_fees"

    supplier_id: Mapped[int] = key_of("suppliers")
    up_to_km: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    fee: Mapped[int] = mapped_column(BigId)

    __table_args__ = (CheckConstraint(f"fee BETWEEN 0 AND {MAX_RUPIAH}", name="fee"),)
