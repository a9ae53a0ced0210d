"""Settings of the marketplace."""

import re
from email.utils import parseaddr
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


_NumRequests = Annotated[int, Field(ge=0, le=1_000_000)]


class RateSettings(BaseModel):
    """Rate limits of the marketplace: requests per account or client address; 0 = no limit"""

    logins_per_minute: _NumRequests = Field(10, description="logins and changes of passwords")
    mails_per_hour: _NumRequests = Field(20, description="links by e-mail that a client address asks for")
    registrations_per_hour: _NumRequests = Field(20, description="registrations of users and suppliers")
    reservations_per_minute: _NumRequests = Field(30, description="new reservations")
    orders_per_minute: _NumRequests = Field(10, description="new orders")
    reviews_per_hour: _NumRequests = Field(30, description="new reviews")
    pictures_per_hour: _NumRequests = Field(600, description="uploads of pictures, one by one")
    card_checks_per_hour: _NumRequests = Field(10, description="identity cards that suppliers show")
    messages_per_hour: _NumRequests = Field(120, description="messages between buyers and shops")
    payments_per_minute: _NumRequests = Field(30, description="payments that are begun, and refunds")
    payment_callbacks_per_minute: _NumRequests = Field(
        600, description="messages of payment providers that a client address sends"
    )
    alerts_per_hour: _NumRequests = Field(120, description="new alerts on products and saved searches")
    imports_per_hour: _NumRequests = Field(60, description="imports of sheets, dry runs included")
    webhook_tests_per_hour: _NumRequests = Field(
        60, description="pings to webhooks, and repetitions of dead deliveries"
    )
    chats_per_minute: _NumRequests = Field(10, description="questions to the assistant")
    searches_per_minute: _NumRequests = Field(120, description="product searches")
    feeds_per_hour: _NumRequests = Field(240, description="feeds of all goods, and of what changed in them")
    facets_per_minute: _NumRequests = Field(60, description="counts for filters, also those of a search")


class MarketplaceSettings(BaseModel):
    """Marketplace"""

    database_url: SecretStr = Field(
        SecretStr("sqlite:///./marketplace.db"),
        description="where the marketplace lives: sqlite:///path, postgresql://user:password@host/name, "
        "mysql+pymysql://user:password@host/name (MariaDB 10.6 or newer)",
    )
    auto_migrate: bool = Field(True, description="migrate its tables at start; 0 = wait until somebody did")
    marketplace_at_start: bool = Field(
        True,
        description="open it, and run its jobs, at the start; 0 = at the first request that needs it, "
        "for a server of models alone: half the work of a start",
    )
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
        900, ge=1, le=3600, description="how long a reservation lasts if the request sets no time; an hour at most"
    )
    max_products_per_supplier: int = Field(
        100_000, ge=1, le=10_000_000, description="products that a supplier has on sale or hides, deleted ones apart"
    )
    max_branches_per_supplier: int = Field(
        20, ge=0, le=100, description="places of a supplier beside its own address, closed ones included"
    )
    max_unsold_hold_minutes: int = Field(
        120,
        ge=0,
        le=1440,
        description="how long in a day an account may hold units of one product without buying; then it has to wait; "
        "0 = no limit",
    )
    max_reservations_per_account: int = Field(
        20,
        ge=1,
        le=100_000,
        description="reservations, and lines of orders that are not paid, of one account at a time",
    )
    max_reserved_units_per_product: int = Field(
        100,
        ge=1,
        le=1_000_000,
        description="units of one product that one account holds, or has not paid in orders, at a time",
    )
    max_open_orders_per_account: int = Field(
        20, ge=1, le=100_000, description="orders of one account that wait for the shop or for its money at a time"
    )
    order_receipt_days: float = Field(
        7, gt=0, le=365, description="days after which an order that was sent or handed over counts as received"
    )
    max_alerts_per_user: int = Field(100, ge=1, le=10_000, description="alerts of a user on products")
    max_saved_searches_per_user: int = Field(20, ge=1, le=1000, description="searches that a user saves")
    alert_check_seconds: float = Field(
        10, gt=0, le=3600, description="how often changed products are looked at for alerts and saved searches"
    )
    search_news_minutes: float = Field(
        60,
        ge=0,
        le=10_080,
        description="between two notices of a saved search; what it finds meanwhile is told together",
    )
    pictures_url: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="where pictures of products lie: file:///FOLDER or s3://BUCKET/PREFIX?endpoint=URL&region=NAME "
        "with credentials as AWS programs take them; empty: the folder NAME-pictures beside the SQLite file NAME.db, "
        "else ./pictures",
    )
    picture_alt_model: str = Field(
        "auto",
        min_length=1,
        max_length=200,
        description="the chat model that proposes what pictures show: auto = the first one that sees, with weights of "
        "100 MB or more; off = none; or the id of a served model",
    )
    marketplace_embedding_model: str | None = Field(
        None,
        max_length=200,
        description="id of a served embedding model, by which searches with few matches also find goods that are near "
        "in meaning; empty: by words alone",
    )
    marketplace_rerank_model: str | None = Field(
        None, max_length=200, description="id of a served reranker that sorts these goods; empty: none"
    )
    marketplace_min_similarity: float = Field(
        0.5, ge=-1, le=1, description="how near goods must be; models differ: E5 needs 0.83"
    )
    marketplace_meaning_seconds: float = Field(
        1.0, gt=0, le=30, description="how long a search waits for these models; then it goes on by words"
    )


def _mail_address(value: str) -> str:
    address = parseaddr(value)[1]
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", address) or not value.isprintable():
        raise ValueError("no e-mail address")
    return value


def _web_address(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", value):
        raise ValueError("no address that begins with https:// or http://")
    return value.rstrip("/")


MailAddress = Annotated[str, AfterValidator(_mail_address)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
Days = Annotated[int, Field(ge=0, le=36_500)]


class AccountSettings(BaseModel):
    """Accounts of the marketplace"""

    mail_folder: str | None = Field(
        None, description="write mails as files into this folder instead of sending them, for development"
    )
    smtp_host: str | None = Field(
        None, description="mail server for password resets and e-mail confirmations; empty: no mails"
    )
    smtp_port: int = Field(587, ge=1, le=65535, description="its port, usually 587 for starttls, 465 for tls")
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="encryption: starttls, tls, or none, which also sends the password in the clear"
    )
    smtp_user: str | None = Field(None, description="name to sign in there; empty: without signing in")
    smtp_password: SecretStr | None = Field(None, description="password to sign in there")
    mail_from: MailAddress = Field(
        "noreply@localhost", description="sender of mails, such as Shop <noreply@example.com>"
    )
    public_url: WebAddress | None = Field(
        None, description="address of this server for links in mails; empty: http://127.0.0.1:PORT"
    )
    consent_version: str | None = Field(
        None,
        max_length=40,
        description="version of your privacy notice that registrations must agree to; empty: none",
    )
    consent_url: str | None = Field(None, max_length=500, description="where that notice is to be read")
    audit_retention_days: Days = Field(365, description="delete older lines of the audit log; 0 = never")
    movement_retention_days: Days = Field(
        730, description="put older stock movements together, without names, per product; 0 = never"
    )
    reservation_retention_days: Days = Field(365, description="delete reservations that ended longer ago; 0 = never")
    order_address_retention_days: Days = Field(
        60, description="delete addresses and notes of orders that ended longer ago; 0 = never"
    )
    message_retention_days: Days = Field(
        730, description="delete talks between buyers and shops without a message for longer; 0 = never"
    )
    order_retention_days: Days = Field(3650, description="delete orders that ended longer ago; 0 = never")


class PaymentSettings(BaseModel):
    """Payment providers of shops; each shop names its own and stores its keys"""

    midtrans_snap_url: WebAddress = Field("https://app.midtrans.com", description="where Midtrans makes payment pages")
    midtrans_api_url: WebAddress = Field(
        "https://api.midtrans.com", description="where Midtrans says how a payment stands"
    )
    midtrans_sandbox_snap_url: WebAddress = Field(
        "https://app.sandbox.midtrans.com", description="the same for shops that try it out"
    )
    midtrans_sandbox_api_url: WebAddress = Field(
        "https://api.sandbox.midtrans.com", description="the same for shops that try it out"
    )
    xendit_url: WebAddress = Field(
        "https://api.xendit.co", description="where Xendit is asked, with keys for trying out, too"
    )
    payment_provider_seconds: float = Field(10.0, gt=0, le=60, description="how long a provider may take for an answer")


class NoticeSettings(BaseModel):
    """Notices by mail and webhook"""

    hold_reminder_minutes: int = Field(
        5, ge=0, le=30, description="tell buyers so long before a reservation ends, if it lasts twice that; 0 = never"
    )
    webhook_seconds: float = Field(10, ge=0.1, le=30, description="how long a call of a webhook may take in all")
    webhook_off_after_hours: float = Field(
        72, ge=1, le=720, description="turn a webhook off that has failed for so long; owners are told"
    )
    webhook_allow_http: bool = Field(False, description="1 = also addresses without encryption; never private ones")
    max_webhooks_per_supplier: int = Field(5, ge=1, le=100, description="webhooks of a shop")
    max_waiting_per_webhook: int = Field(
        10_000, ge=10, le=1_000_000, description="deliveries that wait for one webhook; older ones go to its dead list"
    )
    delivery_retention_days: Annotated[int, Field(ge=1, le=3650)] = Field(
        14, description="delete what was sent by mail or webhook, or could not be, after so long"
    )


class AssistantSettings(BaseModel):
    """Shopping assistant"""

    assistant_model: str = Field(
        "auto",
        min_length=1,
        max_length=200,
        description="the chat model that the assistant asks: auto = the first one with weights of 100 MB or more, "
        "off = rules and templates alone, or the id of a served model",
    )
    assistant_extraction_seconds: float = Field(
        3.0, gt=0, le=60, description="how long the model may take to understand a question; then the rules stand alone"
    )
    assistant_answer_seconds: float = Field(
        20.0, gt=0, le=600, description="how long the model may take to choose products; then a template answers"
    )
    chat_tokens_per_day: int = Field(
        200_000,
        ge=0,
        le=1_000_000_000,
        description="tokens of the model that the assistant uses for a user on a day (UTC), prompts included; beyond, "
        "it answers by rules alone; 0 = no limit",
    )
    chat_retention_days: Days = Field(90, description="delete conversations that were not used for longer; 0 = never")
