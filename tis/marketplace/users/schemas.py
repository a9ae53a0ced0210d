"""Bodies and views of `/users`, with their examples."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from tis.marketplace.auth.schemas import AI_ACCESS_DESCRIPTION, TOKEN_REQUIRED, Role
from tis.marketplace.auth.tokens import TokenPair
from tis.marketplace.kit.fields import (
    PLACE_CODE_DESCRIPTION,
    City,
    Latitude,
    Longitude,
    Name,
    PhoneNumber,
    abbreviated_name,
)
from tis.marketplace.kit.geo import WithPlaceChange
from tis.marketplace.kit.principal import Principal
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.kit.versions import VersionedChange
from tis.marketplace.policy import sees_user
from tis.marketplace.tables import User

USER_EXAMPLE: dict[str, Any] = {
    "id": 1,
    "name": "Jane Smith",
    "email": "jane@email.com",
    "phone": "+62856789012",
    "latitude": -6.209,
    "longitude": 106.846,
    "city": "Jakarta",
    "province": "DKI Jakarta",
    "ai_access_enabled": True,
    "created_at": "2026-11-21T03:00:00Z",
    "role": "user",
    "place_code": "31",
    "version": 1,
}
NEW_USER_EXAMPLE = {
    **{name: USER_EXAMPLE[name] for name in ("name", "email", "phone", "city", "province")},
    "ai_access_enabled": True,
    "latitude": -6.2088,
    "longitude": 106.8456,
}
EXPORT_EXAMPLE = {
    "profile": {**USER_EXAMPLE, "has_password": True},
    "memberships": [{"supplier_id": 3, "user_id": 1, "role": "owner", "business_name": "Tech Store Jakarta"}],
    "invitations": [],
    "reviews": [],
    "conversations": [],
    "preferences": {"user_id": 1, "brands": ["asus"], "max_price": 12_000_000, "city": "Bandung", "condition": None},
    "chat_usage": [{"user_id": 1, "day": "2026-11-23", "tokens": 1830}],
    "data_requests": [],
    "reservations": [],
    "stock_movements": [],
    "price_changes": [],
    "sessions": [{"account": "user:1", "expires_at": "2026-11-28T03:00:00Z", "used_at": None}],
    "one_time_links": [],
    "consents": [{"version": "2026-11", "at": "2026-11-21T03:00:00Z"}],
    "review_answers": [],
    "tokens": [],
    "remembered_answers": [],
    "audit_log": [{"at": "2026-11-21T03:00:00Z", "action": "user.register", "entity": "user", "entity_id": "1"}],
    "incomplete": [],
}
_PRIVATE = ("email", "phone", "latitude", "longitude", "city", "province", "ai_access_enabled", "role", "place_code")
# Errors of routes, for `docs.responses`.
NO_USER = {404: "User not found"}
USER_REQUIRED = {**TOKEN_REQUIRED, 403: "Only a user may do that, not a supplier."}
WRONG_PASSWORD = "The password is missing or not right."
LAST_ADMIN = {409: "This is the last admin: name another one first."}


class UserChange(WithPlaceChange, VersionedChange):
    # Defaults are never used: only the fields that were sent are changed.
    name: Name = ""
    phone: PhoneNumber | None = None
    latitude: Latitude | None = None
    longitude: Longitude | None = None
    city: City | None = None
    province: City | None = None
    ai_access_enabled: bool = Field(False, description=AI_ACCESS_DESCRIPTION)
    role: Role = Field("user", description="changed by admins; another role is refused from others")


class Grants(StrictBody):
    role: Literal["user", "admin"] = "user"
    ai_access_enabled: bool = False


class UserView(BaseModel):
    id: int
    name: str
    email: str | None
    phone: str | None
    latitude: float | None
    longitude: float | None
    city: str | None
    province: str | None
    ai_access_enabled: bool | None
    created_at: datetime
    role: str | None
    place_code: str | None = Field(description=PLACE_CODE_DESCRIPTION)
    version: int


class RegisteredUser(TokenPair, UserView):
    pass


def user_view(user: User, principal: Principal) -> UserView:
    view = UserView.model_validate(user, from_attributes=True)
    if sees_user(principal, user.id):
        return view
    return view.model_copy(update={**dict.fromkeys(_PRIVATE), "name": abbreviated_name(user.name)})
