"""Promotions of products, and what buyers asked to be told: alerts on products, and saved searches."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, Json, now
from tis.marketplace.tables.base import MAX_RUPIAH, Table, key_of, where_rows


class Promotion(Table):
    """A lower price with a begin and an end. While it is in force, `products.price` is its price, and
    `products.normal_price` what the shop asks otherwise. Written under the lock of the product."""

    __tablename__ = "promotions"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    product_id: Mapped[int] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"))
    supplier_id: Mapped[int] = mapped_column(BigId)  # of the product, which never changes its supplier
    price: Mapped[int] = mapped_column(BigId)
    begins_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    max_units: Mapped[int | None]
    # sold_out: all its units are held or sold, and the normal price is in force until one comes back
    state: Mapped[str] = mapped_column(String(16), default="scheduled")
    end_reason: Mapped[str | None] = mapped_column(String(16))
    # Of the 30 days before it began, from `price_history`; NULL until it begins, or without any earlier price.
    lowest_before: Mapped[int | None] = mapped_column(BigId)
    created_at: Mapped[datetime] = mapped_column(default=now)
    ended_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint(f"price BETWEEN 1 AND {MAX_RUPIAH}", name="price"),
        CheckConstraint("begins_at < ends_at", name="period"),
        CheckConstraint("max_units > 0", name="max_units"),
        CheckConstraint("state IN ('scheduled', 'running', 'sold_out', 'ended')", name="state"),
        CheckConstraint("end_reason IN ('over', 'stopped', 'not_lower', 'deleted')", name="end_reason"),
        Index("ix_promotions_product_id_state", "product_id", "state"),
        Index("ix_promotions_supplier_id_id", "supplier_id", "id"),
        Index("ix_promotions_supplier_id_state_id", "supplier_id", "state", "id"),
        Index("ix_promotions_product_id_id", "product_id", "id"),
        Index("ix_promotions_begins", "begins_at", **where_rows("state = 'scheduled'")),
        Index("ix_promotions_ends", "ends_at", **where_rows("state IN ('running', 'sold_out')")),
    )


class ProductAlert(Table):
    """What a user wants to hear of a product. `last_price`: the last one that could be bought at, as it was looked at;
    news are what differs from it, so looking twice tells nothing twice."""

    __tablename__ = "product_alerts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    product_id: Mapped[int] = mapped_column(ForeignKey("products.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(16))
    max_price: Mapped[int | None] = mapped_column(BigId)  # of `below`
    last_price: Mapped[int | None] = mapped_column(BigId)
    created_at: Mapped[datetime] = mapped_column(default=now)
    told_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("user_id", "product_id", "kind"),
        CheckConstraint("kind IN ('below', 'fall', 'stock')", name="kind"),
        CheckConstraint("(kind = 'below') = (max_price IS NOT NULL)", name="max_price"),
        Index("ix_product_alerts_user_id_id", "user_id", "id"),
        Index("ix_product_alerts_product_id_id", "product_id", "id"),
    )


class SavedSearch(Table):
    """`parameters` are those of `GET /api/products/search` as the user sent them, `query` what they were read as."""

    __tablename__ = "saved_searches"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(100))
    parameters: Mapped[list[Any]] = mapped_column(Json)
    query: Mapped[dict[str, Any]]
    tells: Mapped[bool] = mapped_column(default=True)
    tells_since: Mapped[datetime] = mapped_column(default=now)  # what was there before is no news
    told_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (Index("ix_saved_searches_user_id_id", "user_id", "id"),)


class SearchFind(Table):
    """A product that a saved search has found: told once, and not again."""

    __tablename__ = "search_finds"

    saved_search_id: Mapped[int] = key_of("saved_searches")
    product_id: Mapped[int] = key_of("products", index=True)
    found_at: Mapped[datetime] = mapped_column(default=now)
    told_at: Mapped[datetime | None]

    __table_args__ = (
        Index("ix_search_finds_untold", "saved_search_id", **where_rows("told_at IS NULL")),
        Index("ix_search_finds_saved_search_id_found_at", "saved_search_id", "found_at"),
    )


class UnwatchedChange(Table):
    """A product that buyers may find otherwise than before, until alerts and saved searches have looked at it.

    Written by the transaction that changes it and deleted by the one that tells of it: after a kill there are both or
    neither, and a transaction that commits late is looked at late. A sequence of ids would pass it by.
    """

    __tablename__ = "product_changes"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    product_id: Mapped[int] = mapped_column(BigId)
    # Alerts and saved searches are looked at some at a time, in the order of their ids: where to go on.
    after_alert: Mapped[int] = mapped_column(BigId, default=0)
    after_search: Mapped[int] = mapped_column(BigId, default=0)
