"""Which products changed in the feed of goods, and in which order its readers are told."""

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId
from tis.marketplace.tables.base import Table, where_rows


class FeedChange(Table):
    """A product that changed since there is a feed. Its writer sets `is_pending`, and whoever reads the feed gives it
    a number once that is committed: so a number that a reader has seen is never followed by a smaller one.

    No foreign key: MariaDB would lock the product for it.
    """

    __tablename__ = "feed_changes"

    product_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(BigId)
    is_pending: Mapped[bool]

    __table_args__ = (
        Index("ix_feed_changes_number_product_id", "number", "product_id"),
        Index("ix_feed_changes_pending", "is_pending", "product_id", **where_rows("is_pending")),
    )


class FeedState(Table):
    """One row. Locked while changes get their numbers."""

    __tablename__ = "feed_state"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    latest: Mapped[int] = mapped_column(BigId)
    changed_at: Mapped[datetime]
