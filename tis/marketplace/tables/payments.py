"""How shops take money, the payments of orders at providers, what providers said, and what was given back."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, now
from tis.marketplace.tables.base import MAX_RUPIAH, Table, key_of, where_rows


class ShopPaymentMethods(Table):
    """Without a row a shop takes cash."""

    __tablename__ = "shop_payment_methods"

    supplier_id: Mapped[int] = key_of("suppliers")
    takes_cash: Mapped[bool] = mapped_column(default=True)
    bank_name: Mapped[str | None] = mapped_column(String(100))
    account_number: Mapped[str | None] = mapped_column(String(34))
    account_holder: Mapped[str | None] = mapped_column(String(200))
    qris_text: Mapped[str | None] = mapped_column(String(512))  # what the shop's static code says
    provider: Mapped[str | None] = mapped_column(String(16))
    environment: Mapped[str | None] = mapped_column(String(16))
    sealed_credentials: Mapped[str | None] = mapped_column(String(1000))  # no route shows them
    credentials_at: Mapped[datetime | None]
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)

    __table_args__ = (
        CheckConstraint("provider IN ('midtrans', 'xendit')", name="provider"),
        CheckConstraint("environment IN ('sandbox', 'production')", name="environment"),
    )


class Payment(Table):
    """What a buyer pays by a provider. Its row is there before the provider is asked, with the name that it gets."""

    __tablename__ = "payments"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)  # the provider's order number, too
    order_id: Mapped[str] = mapped_column(ForeignKey("orders.id", ondelete="CASCADE"))
    supplier_id: Mapped[int] = mapped_column(BigId)
    provider: Mapped[str] = mapped_column(String(16))
    environment: Mapped[str] = mapped_column(String(16))
    amount: Mapped[int] = mapped_column(BigId)
    status: Mapped[str] = mapped_column(String(16), default="creating")
    external_id: Mapped[str | None] = mapped_column(String(64))  # the provider's own name of it
    url: Mapped[str | None] = mapped_column(String(500))  # the provider's page
    problem: Mapped[str | None] = mapped_column(String(200))
    paid_amount: Mapped[int] = mapped_column(BigId, default=0)
    refunded: Mapped[int] = mapped_column(BigId, default=0)
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime]
    paid_at: Mapped[datetime | None]
    check_at: Mapped[datetime | None]  # when the provider is asked how it stands
    num_checks: Mapped[int] = mapped_column(default=0)
    busy_until: Mapped[datetime | None]  # somebody asks the provider to make it, or was killed meanwhile

    __table_args__ = (
        CheckConstraint("status IN ('creating', 'pending', 'paid', 'differs', 'expired', 'failed')", name="status"),
        CheckConstraint(f"amount BETWEEN 1 AND {MAX_RUPIAH}", name="amount"),
        CheckConstraint("refunded BETWEEN 0 AND paid_amount", name="refunded"),
        Index("ix_payments_order_id_created_at", "order_id", "created_at", "id"),
        Index("ix_payments_check_at", "check_at", **where_rows("check_at IS NOT NULL")),
    )


class PaymentCallback(Table):
    """A signed message of a provider, by its digest: one that comes again is known. Deleted after 30 days."""

    __tablename__ = "payment_callbacks"

    payment_id: Mapped[str] = key_of("payments")
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    seen_at: Mapped[datetime] = mapped_column(default=now, index=True)


class PaymentRefund(Table):
    """Money that the shop gives back, by the provider of `payment_id` or, without one, by hand."""

    __tablename__ = "payment_refunds"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)  # the provider's key of it, too
    order_id: Mapped[str] = mapped_column(ForeignKey("orders.id", ondelete="CASCADE"))
    payment_id: Mapped[str | None] = mapped_column(ForeignKey("payments.id", ondelete="CASCADE"), index=True)
    amount: Mapped[int] = mapped_column(BigId)
    reason: Mapped[str] = mapped_column(String(200))
    status: Mapped[str] = mapped_column(String(16), default="asked")
    problem: Mapped[str | None] = mapped_column(String(200))
    created_at: Mapped[datetime] = mapped_column(default=now)
    created_by: Mapped[str | None] = mapped_column(String(32), index=True)
    ended_at: Mapped[datetime | None]
    check_at: Mapped[datetime | None]
    num_checks: Mapped[int] = mapped_column(default=0)

    __table_args__ = (
        CheckConstraint("status IN ('asked', 'done', 'failed')", name="status"),
        CheckConstraint(f"amount BETWEEN 1 AND {MAX_RUPIAH}", name="amount"),
        Index("ix_payment_refunds_order_id_created_at", "order_id", "created_at", "id"),
        Index("ix_payment_refunds_check_at", "check_at", **where_rows("check_at IS NOT NULL")),
    )
