"""Bodies and views of `/suppliers`, with their examples."""

from datetime import datetime
from typing import Annotated, Literal, cast

from fastapi import Query
from pydantic import BaseModel, Field

from tis.errors import Unprocessable
from tis.marketplace.auth.passwords import Password
from tis.marketplace.auth.schemas import TOKEN_REQUIRED, WithConsent
from tis.marketplace.auth.tokens import TokenPair
from tis.marketplace.columns import now
from tis.marketplace.kit.fields import (
    MAX_ID,
    PLACE_CODE_DESCRIPTION,
    Address,
    City,
    Email,
    Latitude,
    Longitude,
    Name,
    PhoneNumber,
    ReasonText,
    abbreviated_name,
)
from tis.marketplace.kit.geo import WithPlaceChange
from tis.marketplace.kit.opening_hours import (
    OpeningHours,
    TimeZone,
    hours_in_order,
    is_open_now,
    zone_of,
)
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.kit.versions import VersionedChange
from tis.marketplace.policy import sees_supplier
from tis.marketplace.tables import Supplier, SupplierInvitation, SupplierMember

_Hours = Annotated[
    OpeningHours,
    Field(
        description="by day, in the local time of the shop: when it opens and closes, `02:00` being the next morning. "
        "Without a day it is closed, without any table nobody knows"
    ),
]
_Zone = Annotated[TimeZone, Field(description="if it is not the one of its longitude")]
_Kilometres = Annotated[float, Field(ge=0, le=20_100, allow_inf_nan=False)]

NEW_SUPPLIER_EXAMPLE = {
    "name": "John Doe",
    "business_name": "Tech Store Jakarta",
    "email": "john@techstore.com",
    "phone": "+62812345678",
    "address": "Jl. Sudirman No. 123",
    "latitude": -6.2088,
    "longitude": 106.8456,
    "city": "Jakarta",
    "province": "DKI Jakarta",
    "opening_hours": {"monday": [["09:00", "12:00"], ["13:00", "17:30"]], "saturday": [["18:00", "02:00"]]},
}
SUPPLIER_EXAMPLE = {
    "id": 1,
    **NEW_SUPPLIER_EXAMPLE,
    "is_active": True,
    "registration_date": "2026-11-21T03:00:00Z",
    "verified_at": None,
    "pickup_enabled": True,
    "courier_enabled": True,
    "delivery_radius_km": None,
    "place_code": "31",
    "time_zone": "WIB",
    "open_now": False,
    "version": 1,
}
FOUND_SUPPLIER_EXAMPLE = {**SUPPLIER_EXAMPLE, "rating": 4.63, "distance_km": 3.0}
MEMBER_EXAMPLE = {
    "user_id": 1,
    "name": "Jane S.",
    "role": "owner",
    "status": "member",
    "created_at": "2026-11-21T03:00:00Z",
    "expires_at": None,
}
INVITED_EXAMPLE = {
    **MEMBER_EXAMPLE,
    "name": None,
    "role": "editor",
    "status": "invited",
    "expires_at": "2026-12-05T03:00:00Z",
}
EXPORT_OF_SUPPLIER = {
    "profile": {**SUPPLIER_EXAMPLE, "has_password": True},
    "members": [MEMBER_EXAMPLE],
    "product_count": 3,
    "reservations": [],
    "stock_movements": [],
    "price_changes": [],
    "sessions": [{"account": "supplier:1", "agent": "curl/8.14.1", "expires_at": "2026-11-28T03:00:00Z"}],
    "one_time_links": [],
    "consents": [{"version": "2026-11", "at": "2026-11-21T03:00:00Z"}],
    "review_answers": [],
    "verification": [],
    "branches": [],
    "tokens": [{"name": "Till 1", "scopes": "read stock", "expires_at": "2027-02-19T03:00:00Z"}],
    "remembered_answers": [],
    "audit_log": [
        {"at": "2026-11-21T03:00:00Z", "action": "supplier.register", "entity": "supplier", "entity_id": "1"}
    ],
    "incomplete": [],
}
# Errors of routes, for `docs.responses`.
NO_SUPPLIER = {404: "Supplier not found"}
OWNER_REQUIRED = {**TOKEN_REQUIRED, 403: "Only an owner of this supplier may do that.", **NO_SUPPLIER}
EMAIL_BY_LINK = {409: "The e-mail changes by a link: ask for one with `POST /api/auth/email`."}
LAST_LOGIN = {
    409: "This supplier has neither a password nor an owner: nobody could sign in to it any more. "
    "If that is what you want, send `?confirm=1`."
}
LAST_OWNER = {
    409: "This is the last owner of supplier 3. Name another one, give the supplier a password, or delete it first."
}


NameParameter = Annotated[
    str | None, Query(min_length=1, max_length=500, description="words of the name, city or province")
]


def validate_name(text: str | None) -> str | None:
    if text is not None and not text.strip():
        raise Unprocessable("q must not be empty.")
    return text


class SupplierRegistration(WithConsent):
    name: Name
    business_name: Name
    email: Email
    phone: PhoneNumber | None = None
    address: Address | None = None
    latitude: Latitude
    longitude: Longitude
    city: City
    province: City | None = None
    password: Password | None = None
    pickup_enabled: bool = True
    courier_enabled: bool = True
    delivery_radius_km: _Kilometres | None = None
    opening_hours: _Hours | None = None
    time_zone: _Zone | None = None
    shows_place: bool = Field(False, description="show strangers where it is, to about 100 m")


class SupplierChange(WithPlaceChange, VersionedChange):
    # Defaults are never used: only the fields that were sent are changed.
    name: Name = ""
    business_name: Name = ""
    email: Email = ""
    phone: PhoneNumber | None = None
    address: Address | None = None
    latitude: Latitude = 0
    longitude: Longitude = 0
    city: City = ""
    province: City | None = None
    pickup_enabled: bool = True
    courier_enabled: bool = True
    delivery_radius_km: _Kilometres | None = None
    opening_hours: _Hours | None = None
    time_zone: _Zone | None = None
    shows_place: bool = False


class SupplierStatus(StrictBody):
    status: Literal["active", "suspended"]
    reason: ReasonText | None = Field(None, description="for the audit log")


class NewMember(StrictBody):
    user_id: Annotated[int, Field(ge=1, le=MAX_ID)]
    role: Literal["owner", "editor"] = "editor"


class SupplierView(BaseModel):
    id: int
    name: str
    business_name: str
    email: str | None
    phone: str | None
    address: str | None
    latitude: float | None
    longitude: float | None
    city: str
    province: str | None
    is_active: bool
    registration_date: datetime
    verified_at: datetime | None = Field(description="since when its badge says that its person showed a card")
    pickup_enabled: bool
    courier_enabled: bool
    delivery_radius_km: float | None
    place_code: str | None = Field(description=PLACE_CODE_DESCRIPTION)
    opening_hours: dict[str, list[list[str]]] | None
    time_zone: TimeZone
    open_now: bool | None  # null if it has no opening hours
    version: int


class FoundSupplier(SupplierView):
    rating: float | None  # of all its products
    distance_km: float | None = Field(description="to 1 km if the supplier hides its place")


_PRIVATE = ("email", "phone", "address", "latitude", "longitude")
_SHOWN = SupplierView.model_fields.keys() - {"opening_hours", "time_zone", "open_now"}


class RegisteredSupplier(TokenPair, SupplierView):
    pass


class MemberView(BaseModel):
    user_id: int
    name: str | None  # null until the user accepts
    role: Literal["owner", "editor"]
    status: Literal["member", "invited"]
    created_at: datetime
    expires_at: datetime | None  # of an invitation


def supplier_view(supplier: Supplier, principal: Principal) -> SupplierView:
    """Everybody sees the shop. Its person, contact data and exact place are visible to its owners and admins."""
    shown = {name: getattr(supplier, name) for name in _SHOWN}
    hours, zone = supplier.opening_hours, time_zone_of(supplier)
    if not sees_supplier(principal, supplier.id):
        shown |= {**dict.fromkeys(_PRIVATE), "name": supplier.business_name}
        if supplier.shows_place:
            shown |= {"latitude": supplier.public_latitude, "longitude": supplier.public_longitude}
    return SupplierView(
        **shown,
        opening_hours=hours_in_order(hours),
        time_zone=zone,
        open_now=is_open_now(hours, zone, now()),
    )


def time_zone_of(supplier: Supplier) -> TimeZone:
    return cast(TimeZone | None, supplier.time_zone) or zone_of(supplier.longitude)


def member_view(member: SupplierMember, name: str) -> MemberView:
    """The name is abbreviated: owners need to tell members apart, not to know their full names."""
    return MemberView(
        user_id=member.user_id,
        name=abbreviated_name(name),
        role=member.role,
        status="member",
        created_at=member.created_at,
        expires_at=None,
    )


def invitation_view(invitation: SupplierInvitation) -> MemberView:
    """Without a name: nobody learns names by inviting."""
    return MemberView(
        user_id=invitation.user_id,
        name=None,
        role=invitation.role,
        status="invited",
        created_at=invitation.created_at,
        expires_at=invitation.expires_at,
    )
