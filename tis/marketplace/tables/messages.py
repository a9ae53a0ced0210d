"""What a buyer and a shop write to each other, about a product or about an order."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, now
from tis.marketplace.tables.base import Table, key_of, where_rows


class ShopTalk(Table):
    """Of one buyer and one shop, about one product or one order. Who writes locks it: numbers have no holes."""

    __tablename__ = "shop_talks"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="CASCADE"))
    buyer: Mapped[str | None] = mapped_column(String(32))  # an account; NULL in open mode
    product_id: Mapped[int | None] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"))
    order_id: Mapped[str | None] = mapped_column(ForeignKey("orders.id", ondelete="CASCADE"), unique=True)
    num_messages: Mapped[int] = mapped_column(default=0)
    buyer_read: Mapped[int] = mapped_column(default=0)  # the number of the last message that each side has read
    shop_read: Mapped[int] = mapped_column(default=0)
    waits_for: Mapped[str] = mapped_column(String(8), default="shop")  # whose answer is due
    created_at: Mapped[datetime] = mapped_column(default=now)
    last_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        UniqueConstraint("product_id", "buyer"),
        CheckConstraint("(product_id IS NULL) <> (order_id IS NULL)", name="subject"),
        CheckConstraint("waits_for IN ('buyer', 'shop')", name="waits_for"),
        Index("ix_shop_talks_buyer_last_at_id", "buyer", "last_at", "id"),
        Index("ix_shop_talks_supplier_id_last_at_id", "supplier_id", "last_at", "id"),
        Index("ix_shop_talks_supplier_id_waits_for_last_at_id", "supplier_id", "waits_for", "last_at", "id"),
        Index("ix_shop_talks_last_at", "last_at"),
    )


class ShopMessage(Table):
    __tablename__ = "shop_messages"

    talk_id: Mapped[int] = key_of("shop_talks")
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    side: Mapped[str] = mapped_column(String(8))
    author: Mapped[str | None] = mapped_column(String(32), index=True)
    body: Mapped[str | None] = mapped_column(String(2000))
    picture_hash: Mapped[str | None] = mapped_column(ForeignKey("pictures.hash", ondelete="RESTRICT"), index=True)
    is_drafted: Mapped[bool] = mapped_column(default=False)  # the assistant proposed it, and a person sent it
    flagged_reason: Mapped[str | None] = mapped_column(String(100))  # as of a product: it is not shown to a model
    created_at: Mapped[datetime] = mapped_column(default=now)
    reported_at: Mapped[datetime | None]
    report_reason: Mapped[str | None] = mapped_column(String(200))
    hidden_at: Mapped[datetime | None]  # by an admin: nobody reads it any more
    decided_by: Mapped[str | None] = mapped_column(String(32), index=True)

    __table_args__ = (
        CheckConstraint("side IN ('buyer', 'shop')", name="side"),
        CheckConstraint("(body IS NULL) <> (picture_hash IS NULL)", name="content"),
        Index("ix_shop_messages_reported", "talk_id", "number", **where_rows("reported_at IS NOT NULL")),
    )
