"""Places of a shop beside its own address, and the units of its products that lie there.

What no row names lies at the shop's own address, whose number is 0: the share of that place is what is left of the
counters of the product.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Computed, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, PublicPlace, now
from tis.marketplace.tables.base import Table, key_of


class Branch(Table):
    """Never deleted: ledger and orders name it. A closed one has no units."""

    __tablename__ = "branches"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(200))
    address: Mapped[str | None] = mapped_column(String(500))
    city: Mapped[str] = mapped_column(String(100))
    province: Mapped[str | None] = mapped_column(String(100))
    place_code: Mapped[str | None] = mapped_column(String(4))
    latitude: Mapped[float]
    longitude: Mapped[float]
    # As those of the supplier: what search and distances use.
    public_latitude: Mapped[float] = mapped_column(Computed(PublicPlace("latitude")))
    public_longitude: Mapped[float] = mapped_column(Computed(PublicPlace("longitude")))
    shows_place: Mapped[bool] = mapped_column(default=False)
    opening_hours: Mapped[dict[str, Any] | None]
    time_zone: Mapped[str | None] = mapped_column(String(4))
    is_active: Mapped[bool] = mapped_column(default=True)
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)

    __table_args__ = (
        CheckConstraint("latitude BETWEEN -90 AND 90", name="latitude"),
        CheckConstraint("longitude BETWEEN -180 AND 180", name="longitude"),
        Index("ix_branches_supplier_id_id", "supplier_id", "id"),
        Index("ix_branches_public_latitude_public_longitude", "public_latitude", "public_longitude"),
    )


class BranchStock(Table):
    """The share of a branch in the counters of a product. Written under the lock of the product alone."""

    __tablename__ = "branch_stock"

    product_id: Mapped[int] = key_of("products")
    branch_id: Mapped[int] = key_of("branches")
    on_hand: Mapped[int] = mapped_column(default=0)
    reserved: Mapped[int] = mapped_column(default=0)

    __table_args__ = (
        CheckConstraint("on_hand >= 0 AND reserved >= 0 AND reserved <= on_hand", name="stock"),
        Index("ix_branch_stock_branch_id_on_hand", "branch_id", "on_hand"),
    )


class GoodsPlace(Table):
    """From where the distance of a product counts that lies at several places: those with units that can be bought, or
    all if none has. Written by the search alone, behind the lock of the product's row in `product_search`."""

    __tablename__ = "goods_places"

    product_id: Mapped[int] = key_of("products")
    branch_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)  # 0: the shop's own address
    supplier_id: Mapped[int] = mapped_column(BigId, index=True)
    latitude: Mapped[float]
    longitude: Mapped[float]
