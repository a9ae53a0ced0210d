"""That somebody behind a shop showed an identity card. Nothing that is printed on it is here."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import Json, now
from tis.marketplace.tables.base import Table, key_of


class SupplierVerification(Table):
    """The latest one of a shop. `card_digest` is keyed, and only tells whether two shops showed the same card."""

    __tablename__ = "supplier_verifications"

    supplier_id: Mapped[int] = key_of("suppliers")
    status: Mapped[str] = mapped_column(String(16))
    method: Mapped[str] = mapped_column(String(16), default="ktp-ocr")
    name_matches: Mapped[bool]
    doubts: Mapped[list[Any]] = mapped_column(Json, default=list)  # why an admin decides
    card_digest: Mapped[str] = mapped_column(String(64), index=True)
    # The digest again, of the one shop that has the badge by this card without an admin: two at once cannot both.
    first_digest: Mapped[str | None] = mapped_column(String(64), unique=True)
    checked_at: Mapped[datetime] = mapped_column(default=now)
    consent_at: Mapped[datetime] = mapped_column(default=now)
    shown_by: Mapped[str | None] = mapped_column(String(32), index=True)
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[str | None] = mapped_column(String(32), index=True)
    decided_reason: Mapped[str | None] = mapped_column(String(500))

    __table_args__ = (
        CheckConstraint("status IN ('verified', 'doubtful', 'refused')", name="status"),
        Index("ix_supplier_verifications_status_supplier_id", "status", "supplier_id"),
    )
