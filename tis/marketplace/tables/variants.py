"""Variants: products that are one thing in several sizes, colours and the like."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, Json, now
from tis.marketplace.tables.base import Table


class ProductGroup(Table):
    """What several products, its variants, have in common. Each has a value of every axis among its attributes.

    The counters are the sums of those of its variants, written under the locks of these.
    """

    __tablename__ = "product_groups"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="RESTRICT"))
    name: Mapped[str] = mapped_column(String(255))
    name_key: Mapped[str] = mapped_column(String(255))
    axes: Mapped[list[Any]] = mapped_column(Json)  # names of attributes, in the order in which they are chosen
    rating_sum: Mapped[int] = mapped_column(default=0)
    rating_count: Mapped[int] = mapped_column(default=0)
    verified_sum: Mapped[int] = mapped_column(default=0)
    verified_count: Mapped[int] = mapped_column(default=0)
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        Index("ix_product_groups_supplier_id_id", "supplier_id", "id"),
        Index("uq_product_groups_supplier_id_name_key", "supplier_id", "name_key", unique=True),
    )
