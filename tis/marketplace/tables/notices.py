"""What accounts are told: the outbox, what of it goes out by mail and to programs of shops, and who wants what."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, Json, now
from tis.marketplace.tables.base import Table


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


class NoticePreferences(Table):
    """Of an account that changed the defaults of `kit/notice_preferences.py`."""

    __tablename__ = "notice_preferences"

    account: Mapped[str] = mapped_column(String(32), primary_key=True)
    mail: Mapped[list[Any]] = mapped_column(Json)  # the groups of news that come by mail
    digest: Mapped[str] = mapped_column(String(8))
    digest_hour: Mapped[int]
    quiet_from: Mapped[str | None] = mapped_column(String(5))  # 22:00, in `time_zone`
    quiet_until: Mapped[str | None] = mapped_column(String(5))
    time_zone: Mapped[str | None] = mapped_column(String(4))  # NULL: of the place of the account
    language: Mapped[str | None] = mapped_column(String(2))  # NULL: Indonesian and English
    low_stock_below: Mapped[int | None]  # of a shop
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)

    __table_args__ = (
        CheckConstraint("digest IN ('now', 'hourly', 'daily')", name="digest"),
        CheckConstraint("digest_hour BETWEEN 0 AND 23", name="digest_hour"),
        CheckConstraint("language IN ('id', 'en')", name="language"),
        CheckConstraint("low_stock_below BETWEEN 1 AND 1000000", name="low_stock_below"),
    )


class Webhook(Table):
    """An address that a shop's program listens at."""

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="CASCADE"), index=True)
    url: Mapped[str] = mapped_column(Text)
    groups: Mapped[list[Any]] = mapped_column(Json)
    # Of the secrets that sign: the secrets are made of these and of the server's key, which is not in the database.
    seed: Mapped[str] = mapped_column(String(64))
    former_seed: Mapped[str | None] = mapped_column(String(64))
    former_until: Mapped[datetime | None]
    status: Mapped[str] = mapped_column(String(8), default="on")
    off_reason: Mapped[str | None] = mapped_column(String(16))
    set_by: Mapped[str | None] = mapped_column(String(32), index=True)  # who named the address, or turned it on last
    secret_by: Mapped[str | None] = mapped_column(String(32), index=True)  # who was shown the secret
    created_at: Mapped[datetime] = mapped_column(default=now)
    failing_since: Mapped[datetime | None]
    num_failures: Mapped[int] = mapped_column(default=0)  # in a row
    paused_until: Mapped[datetime | None]
    taken_until: Mapped[datetime | None]  # by the server that sends now
    last_at: Mapped[datetime | None]
    last_result: Mapped[str | None] = mapped_column(String(32))  # 200, timeout, refused

    __table_args__ = (
        CheckConstraint("status IN ('on', 'off')", name="status"),
        Index("ix_webhooks_status_paused_until", "status", "paused_until"),
    )


class NoticeDelivery(Table):
    """A notice on its way out. It has its own copy of what it says: the outbox forgets sooner."""

    __tablename__ = "notice_deliveries"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    channel: Mapped[str] = mapped_column(String(8))
    account: Mapped[str] = mapped_column(String(32))
    webhook_id: Mapped[int | None] = mapped_column(BigId)  # no foreign key, which would lock the webhook at each sale
    number: Mapped[int]  # of the notice; 0: a ping
    type: Mapped[str] = mapped_column(String(32))
    data: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(default=now)
    status: Mapped[str] = mapped_column(String(8), default="waiting")
    due_at: Mapped[datetime]
    give_up_at: Mapped[datetime]
    tries: Mapped[int] = mapped_column(default=0)
    message_id: Mapped[str | None] = mapped_column(String(32))  # the same in every try; several rows may be one mail
    ended_at: Mapped[datetime | None]
    result: Mapped[str | None] = mapped_column(String(32))

    __table_args__ = (
        CheckConstraint("channel IN ('mail', 'webhook')", name="channel"),
        CheckConstraint("status IN ('waiting', 'sent', 'dead')", name="status"),
        Index("ix_notice_deliveries_channel_status_due_at", "channel", "status", "due_at"),
        Index("ix_notice_deliveries_account_status_id", "account", "status", "id"),
        Index("ix_notice_deliveries_webhook_id_id", "webhook_id", "id"),
        Index("ix_notice_deliveries_webhook_id_status_id", "webhook_id", "status", "id"),
        Index("ix_notice_deliveries_webhook_id_status_due_at", "webhook_id", "status", "due_at"),
        Index("ix_notice_deliveries_give_up_at", "give_up_at"),
    )
