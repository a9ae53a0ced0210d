"""Settings of the marketplace."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr

# From examples that people copy and forget.
_WELL_KNOWN = ("change-in-production", "changeme", "change-me", "change_me", "your-secret", "your_secret", "secret-key")


def _worth_signing_with(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value()
    if len(value.encode("utf-8", "surrogateescape")) < 32:
        raise ValueError("too short to sign with")
    if any(word in value.lower() for word in _WELL_KNOWN) or len(set(value)) < 8:
        raise ValueError("everybody can guess it")
    return secret


SigningSecret = Annotated[SecretStr, AfterValidator(_worth_signing_with)]


def _no_longer_auto(value: object) -> object:
    if value == "auto":
        raise ValueError("`auto` is gone. Set `open` on your own computer, `required` everywhere else")
    return value


MarketplaceAuth = Annotated[Literal["open", "required"], BeforeValidator(_no_longer_auto)]


class MarketplaceSettings(BaseModel):
    """Marketplace"""

    database_url: SecretStr = Field(
        SecretStr("sqlite:///./marketplace.db"),
        description="where the marketplace lives: sqlite:///path, postgresql://user:password@host/name, "
        "mysql+pymysql://user:password@host/name (MariaDB 10.6 or newer)",
    )
    auto_migrate: bool = Field(True, description="migrate its tables at start; 0 = wait until somebody did")
    marketplace_auth: MarketplaceAuth = Field(
        "required",
        description="tokens on /api/*: required, or open = none needed and everything shown, "
        "for your own computer only (HOST must be 127.0.0.1, ::1 or localhost)",
    )
    jwt_secret_key: SigningSecret | None = Field(
        None,
        description="signs access tokens, 32 bytes or more; empty: made once and kept beside a SQLite database",
    )
    access_token_expire_minutes: float = Field(30, gt=0, le=1440, description="how long an access token is valid")
    refresh_token_expire_days: float = Field(7, gt=0, le=365, description="how long a refresh token is valid")
    reservation_seconds: float = Field(
        900, ge=1, le=86_400, description="how long a reservation lasts if the request sets no time"
    )
