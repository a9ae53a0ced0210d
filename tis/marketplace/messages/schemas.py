"""Bodies and views of messages, with their examples."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from tis.marketplace.auth.schemas import ADMIN_REQUIRED, TOKEN_REQUIRED
from tis.marketplace.kit.docs import KEY_USED, responses, schema_example
from tis.marketplace.kit.fields import ClosedReason, Reason, text_up_to
from tis.marketplace.kit.picture_links import PictureView
from tis.marketplace.kit.unknown_fields import StrictBody

Side = Literal["buyer", "shop"]
MAX_MESSAGES = 1000  # of a talk
NO_TALK, NO_MESSAGE = "Talk not found", "Message not found"
MessageText = text_up_to(2000)


class MessageForm(StrictBody):
    model_config = schema_example({"body": "Apakah masih ada yang warna hitam?"})

    body: MessageText  # type: ignore[valid-type]
    is_drafted: bool = Field(False, description="for the shop: the assistant proposed the text")


class ReadMark(StrictBody):
    model_config = schema_example({"number": 4})

    number: Annotated[int, Field(ge=1, le=MAX_MESSAGES, strict=True)]


class MessageReport(StrictBody):
    model_config = schema_example({"reason": "He asks for money outside of the market."})

    reason: Reason


class ReportDecision(StrictBody):
    model_config = schema_example({"status": "hidden"})

    status: Literal["hidden", "kept"]


class ShopMessageView(BaseModel):
    number: int
    side: Side
    body: str | None = Field(description="null of a picture, and of what an admin has hidden")
    picture: PictureView | None
    is_drafted: bool = Field(description="the assistant proposed it, and the shop sent it")
    is_hidden: bool
    is_reported: bool = Field(description="by the caller's side")
    created_at: datetime


class TalkView(BaseModel):
    id: int
    supplier_id: int
    shop_name: str
    buyer_name: str | None = Field(description="abbreviated, for the shop")
    product_id: int | None
    order_id: str | None
    about: str = Field(description="the name of the product, or the number of the order")
    side: Side = Field(description="of the caller")
    num_messages: int
    num_unread: int
    read_by_other: int = Field(description="the number of the last message that the other side has read")
    waits_for: Side
    last_at: datetime
    closed_reason: ClosedReason | None = Field(
        description="why nobody writes any more; null: the talk goes on, as do those about open orders"
    )


class TalkDetail(TalkView):
    messages: list[ShopMessageView] = Field(description="the newest last")


class AnswerDraftView(BaseModel):
    """Nothing is sent: a person of the shop reads, changes and sends it."""

    is_draft: Literal[True] = True
    body: str | None = Field(description="null: no fact of the product answers the question")
    facts: list[str] = Field(description="what of the product stands in it")


class ReportedMessage(BaseModel):
    talk_id: int
    number: int
    side: Side
    author: str | None
    body: str | None
    picture: PictureView | None
    flagged_reason: str | None
    report_reason: str | None
    reported_at: datetime
    hidden_at: datetime | None
    decided_by: str | None


_MESSAGE = {
    "number": 1,
    "side": "buyer",
    "body": "Apakah masih ada yang warna hitam?",
    "picture": None,
    "is_drafted": False,
    "is_hidden": False,
    "is_reported": False,
    "created_at": "2026-11-28T03:00:00Z",
}
_TALK: dict[str, Any] = {
    "id": 5,
    "supplier_id": 1,
    "shop_name": "Tech Store Jakarta",
    "buyer_name": None,
    "product_id": 1,
    "order_id": None,
    "about": "Laptop ASUS ROG Strix G15",
    "side": "buyer",
    "num_messages": 1,
    "num_unread": 0,
    "read_by_other": 0,
    "waits_for": "shop",
    "last_at": "2026-11-28T03:00:00Z",
    "closed_reason": None,
}
_REPORTED = {
    "talk_id": 5,
    "number": 2,
    "side": "shop",
    "author": "user:3",
    "body": "Transfer ke rekening saya saja.",
    "picture": None,
    "flagged_reason": None,
    "report_reason": "He asks for money outside of the market.",
    "reported_at": "2026-11-28T03:05:00Z",
    "hidden_at": None,
    "decided_by": None,
}
_FULL = {409: f"A talk has at most {MAX_MESSAGES} messages."}
_DETAIL = {**_TALK, "messages": [_MESSAGE]}
ASKED = responses(
    _DETAIL,
    TOKEN_REQUIRED,
    {403: "This is your own shop."},
    {404: "Product not found"},
    _FULL,
    KEY_USED,
)
_CLOSED = {409: "These goods are not offered any more: this talk can be read, not continued."}
WRITTEN = responses(_DETAIL, TOKEN_REQUIRED, {404: NO_TALK}, _CLOSED, KEY_USED)
TALKS_LISTED = responses([_TALK], TOKEN_REQUIRED)
SHOP_TALKS_LISTED = responses(
    [{**_TALK, "side": "shop", "buyer_name": "Dewi S."}], TOKEN_REQUIRED, {403: "This belongs to another supplier."}
)
TALK_SEEN = responses(_DETAIL, TOKEN_REQUIRED, {404: NO_TALK})
REPORTED = responses({**_MESSAGE, "is_reported": True}, TOKEN_REQUIRED, {404: NO_MESSAGE})
DRAFTED = responses(
    {"is_draft": True, "body": "Halo! Stok saat ini: 3.", "facts": ["stock"]},
    TOKEN_REQUIRED,
    {403: "Only the shop may do that.", 404: NO_TALK},
)
REPORTS_LISTED = responses([_REPORTED], ADMIN_REQUIRED)
REPORT_DECIDED = responses(
    {**_REPORTED, "hidden_at": "2026-11-28T04:00:00Z", "decided_by": "user:1"}, {**ADMIN_REQUIRED, 404: NO_MESSAGE}
)
