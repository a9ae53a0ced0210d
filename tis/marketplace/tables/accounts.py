"""People and shops, and how they sign in."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Computed, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, PublicPlace, now
from tis.marketplace.tables.base import Table, key_of


class User(Table):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str | None] = mapped_column(String(320))
    email_key: Mapped[str | None] = mapped_column(String(320), unique=True)
    email_confirmed_at: Mapped[datetime | None]
    password_hash: Mapped[str | None] = mapped_column(String(255))
    phone: Mapped[str | None] = mapped_column(String(32))
    latitude: Mapped[float | None]
    longitude: Mapped[float | None]
    city: Mapped[str | None] = mapped_column(String(100))
    province: Mapped[str | None] = mapped_column(String(100))
    place_code: Mapped[str | None] = mapped_column(String(4))
    role: Mapped[str] = mapped_column(String(16), default="user")
    ai_access_enabled: Mapped[bool] = mapped_column(default=False)
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
    deleted_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("role IN ('user', 'admin')", name="role"),
        CheckConstraint("latitude BETWEEN -90 AND 90", name="latitude"),
        CheckConstraint("longitude BETWEEN -180 AND 180", name="longitude"),
        CheckConstraint("(latitude IS NULL) = (longitude IS NULL)", name="place"),
    )


class Supplier(Table):
    """A shop. It can sign in with its own e-mail and password, and users can work for it (`SupplierMember`)."""

    __tablename__ = "suppliers"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    business_name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str] = mapped_column(String(320))
    email_key: Mapped[str] = mapped_column(String(320), unique=True)
    email_confirmed_at: Mapped[datetime | None]
    password_hash: Mapped[str | None] = mapped_column(String(255))
    phone: Mapped[str | None] = mapped_column(String(32))
    address: Mapped[str | None] = mapped_column(String(500))
    latitude: Mapped[float]
    longitude: Mapped[float]
    # The only place that search and distances use. The database computes it, whoever writes the exact one.
    public_latitude: Mapped[float] = mapped_column(Computed(PublicPlace("latitude")))
    public_longitude: Mapped[float] = mapped_column(Computed(PublicPlace("longitude")))
    city: Mapped[str] = mapped_column(String(100))
    city_key: Mapped[str] = mapped_column(String(100), index=True)
    province: Mapped[str | None] = mapped_column(String(100))
    # Of the place that city and province name; see `tis/marketplace/places`. NULL where that is not clear.
    place_code: Mapped[str | None] = mapped_column(String(4))
    status: Mapped[str] = mapped_column(String(16), default="active")
    shows_place: Mapped[bool] = mapped_column(default=False)
    pickup_enabled: Mapped[bool] = mapped_column(default=True)
    courier_enabled: Mapped[bool] = mapped_column(default=True)
    delivery_radius_km: Mapped[float | None]
    opening_hours: Mapped[dict[str, Any] | None]  # by weekday, in local time
    time_zone: Mapped[str | None] = mapped_column(String(4))  # NULL: the one of its longitude
    version: Mapped[int] = mapped_column(default=1)
    verified_at: Mapped[datetime | None]  # since it has the badge: see `SupplierVerification`
    registration_date: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
    deleted_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("status IN ('active', 'suspended')", name="status"),
        CheckConstraint("latitude BETWEEN -90 AND 90", name="latitude"),
        CheckConstraint("longitude BETWEEN -180 AND 180", name="longitude"),
        CheckConstraint("delivery_radius_km >= 0", name="delivery_radius_km"),
        Index("ix_suppliers_public_latitude_public_longitude", "public_latitude", "public_longitude"),
        Index("ix_suppliers_verified_at_id", "verified_at", "id"),
    )

    @property
    def is_active(self) -> bool:
        return self.status == "active" and self.deleted_at is None

    @property
    def is_verified(self) -> bool:
        return self.verified_at is not None


class SupplierMember(Table):
    __tablename__ = "supplier_members"

    supplier_id: Mapped[int] = key_of("suppliers")
    user_id: Mapped[int] = key_of("users", index=True)
    role: Mapped[str] = mapped_column(String(16), default="editor")
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (CheckConstraint("role IN ('owner', 'editor')", name="role"),)


class SupplierInvitation(Table):
    """Offers a user a role in a supplier. Only the user makes a `SupplierMember` of it, until it expires."""

    __tablename__ = "supplier_invitations"

    supplier_id: Mapped[int] = key_of("suppliers")
    user_id: Mapped[int] = key_of("users", index=True)
    role: Mapped[str] = mapped_column(String(16))
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (CheckConstraint("role IN ('owner', 'editor')", name="role"),)


class ShopToken(Table):
    """A program of a shop (a till, a script) sends it. What it may call: `SCOPE_OF_ROUTE` in `policy.py`."""

    __tablename__ = "shop_tokens"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    supplier_id: Mapped[int] = mapped_column(ForeignKey("suppliers.id", ondelete="CASCADE"), index=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(100))
    scopes: Mapped[str] = mapped_column(String(40))  # goods read stock
    created_by: Mapped[str] = mapped_column(String(32), index=True)
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)
    last_used_at: Mapped[datetime | None]


class RefreshToken(Table):
    """A chain of these begins with a login. A token that is used twice was stolen and ends its chain."""

    __tablename__ = "refresh_tokens"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    chain: Mapped[str] = mapped_column(String(32), index=True)
    account: Mapped[str] = mapped_column(String(32), index=True)  # user:7, supplier:3
    expires_at: Mapped[datetime] = mapped_column(index=True)
    used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    signed_out: Mapped[bool] = mapped_column(default=False)  # revoked by the account itself: see `has_session`
    created_at: Mapped[datetime] = mapped_column(default=now)
    signed_in_at: Mapped[datetime] = mapped_column(default=now)  # when the chain began
    agent: Mapped[str | None] = mapped_column(String(200))  # the program that got this token, by its User-Agent


class OneTimeLink(Table):
    """Proves that an account reads the mail of `email`. Deleted when it is used."""

    __tablename__ = "one_time_links"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    account: Mapped[str] = mapped_column(String(32), index=True)
    purpose: Mapped[str] = mapped_column(String(16))
    email: Mapped[str] = mapped_column(String(320))
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)

    __table_args__ = (CheckConstraint("purpose IN ('reset', 'confirm', 'change')", name="purpose"),)


class Consent(Table):
    """Which version of the privacy notice an account agreed to, and when. Append-only: it is a proof."""

    __tablename__ = "consents"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    account: Mapped[str] = mapped_column(String(32), index=True)
    version: Mapped[str] = mapped_column(String(40))
    at: Mapped[datetime] = mapped_column(default=now)


class DataRequest(Table):
    """That a person who cannot sign in wants a copy of the own data, or its end; and how that went on."""

    __tablename__ = "data_requests"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16), default="open")
    reason: Mapped[str] = mapped_column(String(500))  # how the person asked, and how an admin knew who it was
    received_at: Mapped[datetime]
    due_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(default=now)
    created_by: Mapped[str | None] = mapped_column(String(32))
    ended_at: Mapped[datetime | None]
    ended_by: Mapped[str | None] = mapped_column(String(32))
    ended_reason: Mapped[str | None] = mapped_column(String(500))  # why it was refused

    __table_args__ = (
        CheckConstraint("kind IN ('export', 'erase')", name="kind"),
        CheckConstraint("status IN ('open', 'done', 'refused')", name="status"),
        Index("ix_data_requests_status_id", "status", "id"),
    )


class AuditEntry(Table):
    """Who changed what. Append-only; of personal data it has the names of the fields, never the values."""

    __tablename__ = "audit_log"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime] = mapped_column(default=now)
    actor: Mapped[str | None] = mapped_column(String(32))
    action: Mapped[str] = mapped_column(String(64))
    entity: Mapped[str] = mapped_column(String(32))
    entity_id: Mapped[str] = mapped_column(String(100))  # a number, UUID, slug or synonym
    changes: Mapped[dict[str, Any]] = mapped_column(default=dict)
    request_id: Mapped[str | None] = mapped_column(String(128))

    __table_args__ = (
        Index("ix_audit_log_at_id", "at", "id"),
        Index("ix_audit_log_entity_id", "entity", "id"),
        Index("ix_audit_log_entity_id_id", "entity_id", "id"),
        Index("ix_audit_log_actor_id", "actor", "id"),
    )
