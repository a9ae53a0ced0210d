"""The events of `/notices/stream`, preferences, webhooks, and their examples for /docs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tis.marketplace.auth.schemas import TOKEN_REQUIRED
from tis.marketplace.kit.docs import Responses, json_example, schema_example
from tis.marketplace.kit.fields import MAX_ID
from tis.marketplace.kit.news import NewsGroup
from tis.marketplace.kit.notice_preferences import NEWS_GROUPS, Digest
from tis.marketplace.kit.opening_hours import TimeZone
from tis.marketplace.kit.unknown_fields import StrictBody

_EXAMPLE = (
    'id: notices:41\nevent: connected\ndata: {"type":"connected"}\n\n'
    'id: notices:42\nevent: hold.accepted\ndata: {"type":"hold.accepted","reservation_id":'
    '"3f0e1c52-9c0b-4a5e-8f0c-0d1f6f2a7b11","product_id":7,"supplier_id":2,"quantity":1,"role":"buyer",'
    '"at":"2026-11-28T09:00:00Z"}\n\n'
)
STREAM_RESPONSES: Responses = {
    200: {
        "description": "OK",
        "content": {"text/event-stream": {"example": _EXAMPLE}},
    },
    400: json_example("Bad cursor", {"detail": "There is no notice 99 yet: the latest is 42."}),
    401: json_example("No token", {"detail": TOKEN_REQUIRED[401]}),
    410: json_example("Gone", {"detail": "Notices before 12 are no longer kept: read your reservations anew."}),
    429: json_example("Too many", {"detail": "Too many streams of notices of this account are open."}),
}

PREFERENCES_EXAMPLE = {
    "mail": ["account", "messages", "orders", "prices", "stock"],
    "digest": "now",
    "digest_hour": 7,
    "quiet_hours": {"from": "22:00", "until": "06:00"},
    "time_zone": None,
    "language": None,
    "low_stock_below": None,
}
SHOWN_PREFERENCES_EXAMPLE = {**PREFERENCES_EXAMPLE, "time_zone_in_use": "WIB", "email_confirmed": True}
WEBHOOK_EXAMPLE = {
    "id": 3,
    "url": "https://till.example.com/news",
    "groups": ["orders", "stock"],
    "status": "on",
    "off_reason": None,
    "created_at": "2026-11-28T03:00:00Z",
    "former_secret_until": None,
    "failing_since": None,
    "last_at": "2026-11-28T04:00:00Z",
    "last_result": "200",
}
CREATED_WEBHOOK_EXAMPLE = {**WEBHOOK_EXAMPLE, "secret": "whsec_Gm3..."}
DELIVERY_EXAMPLE = {
    "id": 812,
    "event_id": "msg_5f2b6c0c6a3c4d0f8b0f5f0d7c1e2a34",
    "type": "order.placed",
    "number": 42,
    "data": {"order_id": "3f0e1c52-9c0b-4a5e-8f0c-0d1f6f2a7b11", "supplier_id": 2, "role": "shop"},
    "status": "dead",
    "created_at": "2026-11-28T03:00:00Z",
    "due_at": "2026-11-29T02:00:00Z",
    "tries": 9,
    "ended_at": "2026-11-29T03:00:00Z",
    "result": "timeout",
}
_Time = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
_Groups = Annotated[list[NewsGroup], Field(max_length=len(NEWS_GROUPS))]
_Url = Annotated[str, Field(min_length=1, max_length=1000)]


class QuietHours(StrictBody):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)

    begin: _Time = Field(alias="from")
    until: _Time


class PreferencesBody(StrictBody):
    model_config = schema_example(PREFERENCES_EXAMPLE)

    mail: _Groups = Field(description="what comes by mail, to a confirmed e-mail; the stream has everything")
    digest: Digest = Field("now", description="mails at once, each hour, or each day at `digest_hour`")
    digest_hour: int = Field(7, ge=0, le=23, strict=True)
    quiet_hours: QuietHours | None = Field(None, description="no mails then; they come together at the end")
    time_zone: TimeZone | None = Field(None, description="null: of the place of the account, else WIB (Asia/Jakarta)")
    language: Literal["id", "en"] | None = Field(None, description="of mails; null: both")
    low_stock_below: int | None = Field(
        None, ge=1, le=1_000_000, strict=True, description="of a shop: `stock.low` when fewer units are available"
    )


class PreferencesShown(BaseModel):
    mail: list[str]
    digest: Digest
    digest_hour: int
    quiet_hours: QuietHours | None
    time_zone: TimeZone | None
    language: str | None
    low_stock_below: int | None
    time_zone_in_use: TimeZone
    email_confirmed: bool  # no mail comes without


class NewWebhook(StrictBody):
    model_config = schema_example({"url": "https://till.example.com/news", "groups": ["orders", "stock"]})

    url: _Url = Field(description="begins with https://; redirects are not followed")
    groups: _Groups = Field(min_length=1)


class WebhookChange(StrictBody):
    model_config = schema_example({"groups": ["orders"], "is_on": True})

    url: _Url | None = None
    groups: _Groups | None = Field(None, min_length=1)
    is_on: bool | None = Field(None, strict=True)


class WebhookView(BaseModel):
    id: int
    url: str
    groups: list[str]
    status: Literal["on", "off"]
    off_reason: Literal["owner", "owner_left", "gone", "failing"] | None
    created_at: datetime
    former_secret_until: datetime | None
    failing_since: datetime | None
    last_at: datetime | None
    last_result: str | None = Field(description="a status, or in a word why there was none: `timeout`")


class WebhookWithSecret(WebhookView):
    secret: str  # shown this once


class DeliveryView(BaseModel):
    id: int
    event_id: str
    type: str
    number: int
    data: dict[str, Any]
    status: Literal["waiting", "sent", "dead"]
    created_at: datetime
    due_at: datetime
    tries: int
    ended_at: datetime | None
    result: str | None


class DeliveriesToRepeat(StrictBody):
    model_config = schema_example({"ids": [812, 813]})

    ids: list[Annotated[int, Field(ge=1, le=MAX_ID)]] | None = Field(
        None, min_length=1, max_length=100, description="of the dead list; null: its 500 oldest"
    )


class SentAgain(BaseModel):
    num_waiting: int
