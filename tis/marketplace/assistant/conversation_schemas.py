"""Bodies and views of conversations and preferences, with their examples."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, Field

from tis.marketplace.assistant.conversations import NO_CONVERSATION
from tis.marketplace.kit.fields import MAX_ID, City, Price, ShortName, key_of
from tis.marketplace.kit.unknown_fields import StrictBody
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.tables import Conversation, ConversationMessage, UserPreferences
from tis.marketplace.users.schemas import USER_REQUIRED

_SESSION_ID = "chat_5f0c8d8e2b0f4e7c9d0a1b2c3d4e5f60"
CONVERSATION_EXAMPLE: dict[str, Any] = {
    "conversation_id": 12,
    "session_id": _SESSION_ID,
    "title": "Saya butuh laptop gaming di Jakarta, budget 12 juta",
    "created_at": "2026-11-23T03:00:00Z",
    "updated_at": "2026-11-23T03:00:02Z",
}
MESSAGE_EXAMPLE: dict[str, Any] = {
    "id": 41,
    "turn_id": "turn_1",
    "role": "user",
    "content": "Saya butuh laptop gaming di Jakarta, budget 12 juta",
    "details": {},
    "created_at": "2026-11-23T03:00:00Z",
}
PREFERENCES_BODY_EXAMPLE: dict[str, Any] = {
    "brands": ["asus", "lenovo"],
    "max_price": 12_000_000,
    "city": "Bandung",
    "condition": "new",
}
PREFERENCES_EXAMPLE = {**PREFERENCES_BODY_EXAMPLE, "updated_at": "2026-11-23T03:00:00Z"}
# Errors of routes, for `docs.responses`.
OWN_CONVERSATION = {**USER_REQUIRED, 404: NO_CONVERSATION}
OTHER_USER = {404: "User not found"}

SessionId = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[\x21-\x7e]+$")]
ActingFor = Annotated[
    int | None,
    Query(ge=1, le=MAX_ID, description="the user, with MARKETPLACE_AUTH=open and without a token; else leave it out"),
]


def _without_repetition(brands: list[str]) -> list[str]:
    return list(dict.fromkeys(map(key_of, brands)))


def _known_city(city: str) -> str:
    """By its official name, where that says the same."""
    meaning = gazetteer().meaning(city)
    if not meaning:
        raise ValueError("not a city, regency or province of Indonesia")
    official = meaning[0].name.removeprefix("DKI ")
    return official if gazetteer().meaning(official) == meaning else city


class PreferencesForm(StrictBody):
    """All fields are replaced: one that is left out is cleared."""

    brands: Annotated[list[ShortName], AfterValidator(_without_repetition)] = Field(
        default_factory=list, max_length=10, description="stored in lower case"
    )
    max_price: Price | None = None
    city: Annotated[City, AfterValidator(_known_city)] | None = None
    condition: Literal["new", "used"] | None = None


class PreferencesView(BaseModel):
    brands: list[str] = Field(default_factory=list)
    max_price: int | None = None
    city: str | None = None
    condition: str | None = None
    updated_at: datetime | None = Field(None, description="null as long as none were saved")


class ConversationView(BaseModel):
    conversation_id: int
    session_id: str
    title: str | None = Field(description="how the first question begins")
    created_at: datetime
    updated_at: datetime = Field(description="when the last message was added")


class MessageView(BaseModel):
    id: int
    turn_id: str
    role: Literal["user", "assistant"]
    content: str
    details: dict[str, Any] = Field(description="of an answer: the products, citations and filters, as of then")
    created_at: datetime


def conversation_view(conversation: Conversation) -> ConversationView:
    return ConversationView(
        conversation_id=conversation.id,
        session_id=conversation.session_id,
        title=conversation.title,
        created_at=conversation.created_at,
        updated_at=conversation.updated_at,
    )


def message_view(message: ConversationMessage) -> MessageView:
    return MessageView.model_validate(message, from_attributes=True)


def preferences_view(row: UserPreferences | None) -> PreferencesView:
    return PreferencesView() if row is None else PreferencesView.model_validate(row, from_attributes=True)
