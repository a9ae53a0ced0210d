"""Bodies and views of `/auth`, with their examples."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path
from pydantic import BaseModel, Field

from tis.marketplace.auth.passwords import Password, TypedPassword
from tis.marketplace.kit.fields import MAX_ID, City, Email, Latitude, Longitude, Name, PhoneNumber, TypedEmail
from tis.marketplace.kit.geo import WithPlace
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.policy import HOW_TO_SIGN_IN, ROLE_REFUSED, TOKEN_NEEDED

Role = Annotated[str, Field(max_length=16)]
ConsentVersion = Annotated[str, Field(max_length=40)]
SessionId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
_Secret = Annotated[str, Field(max_length=100, description="what stands behind `=` in the link")]
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
SESSION_EXAMPLE = {
    "id": "9f2c4a7be0d14c55a1b3c8d7e6f50412",
    "is_current": True,
    "agent": "Mozilla/5.0 (Android 16; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0",
    "signed_in_at": "2026-11-21T03:00:00Z",
    "refreshed_at": "2026-11-22T03:00:00Z",
    "expires_at": "2026-11-29T03:00:00Z",
}
CONSENT_EXAMPLE = {
    "version": "2026-11",
    "url": "https://example.com/privacy",
    "agreed_version": "2026-11",
    "agreed_at": "2026-11-21T03:00:00Z",
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


class AccountRegistration(UserRegistration, StrictBody):
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


class ForgottenPassword(StrictBody):
    email: TypedEmail
    kind: Literal["user", "supplier"] | None = Field(None, description="if both have this e-mail; else both get a link")


class PasswordReset(StrictBody):
    token: _Secret
    password: Password


class NewEmail(StrictBody):
    email: Email
    password: TypedPassword | None = Field(None, description="of the caller; needed where one is set")
    supplier_id: Annotated[int, Field(ge=1, le=MAX_ID)] | None = Field(
        None, description="change the e-mail of this supplier, for its owners; the caller's own if omitted"
    )


class LinkSecret(StrictBody):
    token: _Secret


class NewConsent(StrictBody):
    consent_version: ConsentVersion


class ConsentView(BaseModel):
    """`version` is what registrations must agree to, or null. `agreed_*` are of the caller, null without a token."""

    version: str | None
    url: str | None
    agreed_version: str | None
    agreed_at: datetime | None


class SessionView(BaseModel):
    id: str
    is_current: bool
    agent: str | None
    signed_in_at: datetime
    refreshed_at: datetime
    expires_at: datetime
