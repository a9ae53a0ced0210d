"""Bodies and views of `/auth`, with their examples."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tis.marketplace.auth.consent import ConsentVersion
from tis.marketplace.auth.passwords import Password, TypedPassword
from tis.marketplace.kit.fields import City, Email, Latitude, Longitude, Name, PhoneNumber, TypedEmail
from tis.marketplace.kit.geo import WithPlace
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.policy import HOW_TO_SIGN_IN, ROLE_REFUSED, TOKEN_NEEDED

Role = Annotated[str, Field(max_length=16)]
AI_ACCESS_DESCRIPTION = "granted by admins; ignored from others, unless MARKETPLACE_AUTH=open"

TOKENS_EXAMPLE = {"access_token": "eyJhbGciOi…", "refresh_token": "eyJhbGciOi…", "token_type": "bearer"}
NEW_ACCOUNT_EXAMPLE = {
    "name": "Jane Smith",
    "email": "jane@email.com",
    "password": "a long sentence",
    "city": "Jakarta",
}
LOGIN_EXAMPLE = {"email": "jane@email.com", "password": "a long sentence"}
ACCOUNT_EXAMPLE = {
    "id": 1,
    "name": "Jane Smith",
    "email": "jane@email.com",
    "city": "Jakarta",
    "role": "user",
    "ai_access_enabled": True,
    "created_at": "2026-11-21T03:00:00Z",
    "kind": "user",
    "email_confirmed": True,
    "has_password": True,
    "suppliers": [{"supplier_id": 3, "role": "owner"}],
}
# Errors of routes, for `docs.responses`.
EMAIL_TAKEN = {400: "Email already registered"}
USER_REGISTRATION_ERRORS = {**EMAIL_TAKEN, 403: ROLE_REFUSED}
TOO_MANY_LOGINS = {429: "Too many logins: at most 10 per minute. Try again in 42 s."}
TOO_MANY_REGISTRATIONS = {429: "Too many registrations: at most 20 per hour. Try again in 1200 s."}
TOKEN_REQUIRED = {401: f"{TOKEN_NEEDED} {HOW_TO_SIGN_IN}"}
ADMIN_REQUIRED = {**TOKEN_REQUIRED, 403: "Only an admin may do that."}


class WithConsent(BaseModel):
    consent_version: ConsentVersion | None = Field(
        None, description="the version of `GET /api/auth/consent`, if that names one and the person agrees to it"
    )


class UserRegistration(WithPlace, WithConsent):
    name: Name
    email: Email
    phone: PhoneNumber | None = None
    latitude: Latitude | None = None
    longitude: Longitude | None = None
    city: City | None = None
    province: City | None = None
    ai_access_enabled: bool | None = Field(None, description=AI_ACCESS_DESCRIPTION)
    role: Role | None = Field(None, description="`user`; anything else is refused: admins grant roles afterwards")
    password: Password | None = None


class AccountRegistration(UserRegistration):
    model_config = ConfigDict(extra="forbid")

    password: Password


class Login(StrictBody):
    email: TypedEmail
    password: TypedPassword
    kind: Literal["user", "supplier"] | None = Field(None, description="if both have the same e-mail and password")


class RefreshTokenBody(StrictBody):
    refresh_token: Annotated[str, Field(max_length=4096)]


class PasswordChange(StrictBody):
    password: Password
    old_password: TypedPassword | None = Field(None, description="needed where a password is set")


class MembershipView(BaseModel):
    supplier_id: int
    role: Literal["owner", "editor"]


class AccountView(BaseModel):
    id: int
    name: str
    email: str | None
    city: str | None
    role: Literal["user", "admin", "supplier"]
    ai_access_enabled: bool
    created_at: datetime
    kind: Literal["user", "supplier"]
    email_confirmed: bool
    has_password: bool
    suppliers: list[MembershipView]


class Erasure(StrictBody):
    password: TypedPassword | None = Field(None, description="needed where the account has one")
