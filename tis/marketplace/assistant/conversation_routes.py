"""The own conversations and preferences: read, change and delete. No AI access is needed for that."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from tis.http.dependencies import SessionsDep
from tis.marketplace.assistant import conversations, viewers
from tis.marketplace.assistant.chat_schemas import EXAMPLES, ActingFor, SessionId
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import body_example, responses
from tis.marketplace.kit.fields import City, Price, ShortName, key_of
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute, StrictBody
from tis.marketplace.places.gazetteer import gazetteer
from tis.marketplace.tables import UserPreferences
from tis.marketplace.users.chat_streams import delete_all_streams, delete_streams
from tis.marketplace.users.schemas import USER_REQUIRED
from tis.marketplace.users.service import acting_user

router = APIRouter(tags=["assistant"], route_class=CheckedRoute)
_NO_STORE = {"Cache-Control": "no-store"}
_PREFERENCES_EXAMPLE = {**EXAMPLES["preferences"], "updated_at": "2026-11-23T03:00:00Z"}
# Errors of routes, for `docs.responses`.
_OWN_CONVERSATION = {**USER_REQUIRED, 404: conversations.NO_CONVERSATION}
_OTHER_USER = {404: "User not found"}


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
    model_config = ConfigDict(from_attributes=True)

    brands: list[str] = Field(default_factory=list)
    max_price: int | None = None
    city: str | None = None
    condition: str | None = None
    updated_at: datetime | None = Field(None, description="null as long as none were saved")


class ConversationView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    conversation_id: int = Field(validation_alias="id")
    session_id: str
    title: str | None = Field(description="how the first question begins")
    created_at: datetime
    updated_at: datetime = Field(description="when the last message was added")


class MessageView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: int
    turn_id: str
    role: Literal["user", "assistant"]
    content: str
    details: dict[str, Any] = Field(description="of an answer: the products, citations and filters, as of then")
    created_at: datetime


@router.get(
    "/chat/conversations",
    response_model=list[ConversationView],
    responses=responses([EXAMPLES["conversation"]], USER_REQUIRED, _OTHER_USER),
)
def list_own_conversations(
    context: ContextDep, request: Request, user_id: ActingFor = None, before: Before = None, limit: Limit = 50
) -> JSONResponse:
    """List your conversations with the assistant, newest first."""
    with context.reading() as (session, principal):
        owner = acting_user(session, principal, user_id)
        rows = conversations.list_conversations(session, owner, before, limit + 1)
        response = page_response(request, rows, limit, ConversationView.model_validate, lambda row: row.id)
    response.headers.update(_NO_STORE)
    return response


@router.delete(
    "/chat/conversations", responses=responses({"detail": "Deleted 3 conversations."}, USER_REQUIRED, _OTHER_USER)
)
async def delete_own_conversations(context: ContextDep, sessions: SessionsDep, user_id: ActingFor = None) -> Message:
    """Delete all your conversations with the assistant, and their recorded streams."""

    def delete() -> tuple[int, Sequence[str]]:
        with context.writing() as (session, principal):
            owner = acting_user(session, principal, user_id)
            return owner, conversations.delete_conversations(session, principal, owner)

    owner, deleted = await run_in_threadpool(delete)
    await delete_all_streams(sessions, owner, deleted)
    return Message(detail=f"Deleted {len(deleted)} conversations.")


@router.get(
    "/chat/conversations/{session_id}",
    response_model=list[MessageView],
    responses=responses([EXAMPLES["message"]], _OWN_CONVERSATION),
)
def list_own_messages(
    session_id: SessionId,
    context: ContextDep,
    request: Request,
    user_id: ActingFor = None,
    before: Before = None,
    limit: Limit = 50,
) -> JSONResponse:
    """List the messages of one of your conversations, newest first."""
    with context.reading() as (session, principal):
        owner = acting_user(session, principal, user_id)
        conversation = conversations.find_conversation(session, owner, session_id)
        rows = conversations.newest_messages(session, conversation, limit + 1, before)
        response = page_response(request, rows, limit, MessageView.model_validate, lambda row: row.id)
    response.headers.update(_NO_STORE)
    return response


@router.delete("/chat/conversations/{session_id}", responses=responses({"detail": "Deleted."}, _OWN_CONVERSATION))
async def delete_own_conversation(
    session_id: SessionId, context: ContextDep, sessions: SessionsDep, user_id: ActingFor = None
) -> Message:
    """Delete one of your conversations, and its recorded stream."""

    def delete() -> int:
        with context.writing() as (session, principal):
            owner = acting_user(session, principal, user_id)
            conversations.delete_conversation(session, principal, owner, session_id)
            return owner

    await delete_streams(sessions, await run_in_threadpool(delete), [session_id])
    return Message(detail="Deleted.")


@router.get(
    "/users/me/preferences",
    dependencies=[Depends(no_store)],
    responses=responses(_PREFERENCES_EXAMPLE, USER_REQUIRED, _OTHER_USER),
)
def get_own_preferences(context: ContextDep, user_id: ActingFor = None) -> PreferencesView:
    """Read what you told the assistant to prefer; empty if nothing."""
    with context.reading() as (session, principal):
        owner = acting_user(session, principal, user_id)
        row = session.get(UserPreferences, owner)
        return PreferencesView() if row is None else PreferencesView.model_validate(row)


@router.put("/users/me/preferences", responses=responses(_PREFERENCES_EXAMPLE, USER_REQUIRED, _OTHER_USER))
def replace_own_preferences(
    context: ContextDep,
    body: Annotated[PreferencesForm, Body(openapi_examples=body_example(EXAMPLES["preferences"]))],
    user_id: ActingFor = None,
) -> PreferencesView:
    """Say what you prefer; a field that is left out is cleared. Preferences break ties, they never hide a product."""
    with context.writing() as (session, principal):
        owner = acting_user(session, principal, user_id)
        row = viewers.save_preferences(session, principal, owner, body.model_dump())
        return PreferencesView.model_validate(row)


@router.delete("/users/me/preferences", responses=responses({"detail": "Deleted."}, USER_REQUIRED, _OTHER_USER))
def delete_own_preferences(context: ContextDep, user_id: ActingFor = None) -> Message:
    """Delete your preferences. Idempotent."""
    with context.writing() as (session, principal):
        owner = acting_user(session, principal, user_id)
        viewers.delete_preferences(session, principal, owner)
    return Message(detail="Deleted.")
