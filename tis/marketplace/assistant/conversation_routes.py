"""The own conversations and preferences: read, change and delete. No AI access is needed for that."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from tis.http.dependencies import SessionsDep
from tis.marketplace.assistant import conversations, preferences
from tis.marketplace.assistant.conversation_schemas import (
    CONVERSATION_EXAMPLE,
    MESSAGE_EXAMPLE,
    OTHER_USER,
    OWN_CONVERSATION,
    PREFERENCES_BODY_EXAMPLE,
    PREFERENCES_EXAMPLE,
    ActingFor,
    ConversationView,
    MessageView,
    PreferencesForm,
    PreferencesView,
    SessionId,
    conversation_view,
    message_view,
    preferences_view,
)
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.docs import body_example, responses
from tis.marketplace.kit.paging import Before, Limit, page_response
from tis.marketplace.kit.responses import Message, no_store
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.users.chat_streams import delete_streams
from tis.marketplace.users.schemas import USER_REQUIRED
from tis.marketplace.users.service import acting_user

router = APIRouter(tags=["assistant"], route_class=CheckedRoute)
_NO_STORE = {"Cache-Control": "no-store"}


@router.get(
    "/chat/conversations",
    response_model=list[ConversationView],
    responses=responses([CONVERSATION_EXAMPLE], USER_REQUIRED, OTHER_USER),
)
def list_own_conversations(
    context: ContextDep, request: Request, user_id: ActingFor = None, before: Before = None, limit: Limit = 50
) -> JSONResponse:
    """List your conversations with the assistant, newest first."""
    with context.reading() as (session, principal):
        owner = acting_user(session, principal, user_id)
        rows = conversations.list_conversations(session, owner, before, limit + 1)
        response = page_response(request, rows, limit, conversation_view, lambda row: row.id)
    response.headers.update(_NO_STORE)
    return response


@router.delete(
    "/chat/conversations", responses=responses({"detail": "Deleted 3 conversations."}, USER_REQUIRED, OTHER_USER)
)
async def delete_own_conversations(context: ContextDep, sessions: SessionsDep, user_id: ActingFor = None) -> Message:
    """Delete all your conversations with the assistant, and their recorded streams."""

    def delete() -> tuple[int, int]:
        with context.writing() as (session, principal):
            owner = acting_user(session, principal, user_id)
            return owner, conversations.delete_conversations(session, principal, owner)

    owner, num_deleted = await run_in_threadpool(delete)
    await delete_streams(sessions, owner)
    return Message(detail=f"Deleted {num_deleted} conversations.")


@router.get(
    "/chat/conversations/{session_id}",
    response_model=list[MessageView],
    responses=responses([MESSAGE_EXAMPLE], OWN_CONVERSATION),
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
        rows = conversations.list_messages(session, owner, session_id, before, limit + 1)
        response = page_response(request, rows, limit, message_view, lambda row: row.id)
    response.headers.update(_NO_STORE)
    return response


@router.delete("/chat/conversations/{session_id}", responses=responses({"detail": "Deleted."}, OWN_CONVERSATION))
async def delete_own_conversation(
    session_id: SessionId, context: ContextDep, sessions: SessionsDep, user_id: ActingFor = None
) -> Message:
    """Delete one of your conversations, and its recorded stream."""

    def delete() -> int:
        with context.writing() as (session, principal):
            owner = acting_user(session, principal, user_id)
            conversations.delete_conversation(session, principal, owner, session_id)
            return owner

    await delete_streams(sessions, await run_in_threadpool(delete), session_id)
    return Message(detail="Deleted.")


@router.get(
    "/users/me/preferences",
    dependencies=[Depends(no_store)],
    responses=responses(PREFERENCES_EXAMPLE, USER_REQUIRED, OTHER_USER),
)
def get_own_preferences(context: ContextDep, user_id: ActingFor = None) -> PreferencesView:
    """Read what you told the assistant to prefer; empty if nothing."""
    with context.reading() as (session, principal):
        owner = acting_user(session, principal, user_id)
        return preferences_view(preferences.find_preferences(session, owner))


@router.put("/users/me/preferences", responses=responses(PREFERENCES_EXAMPLE, USER_REQUIRED, OTHER_USER))
def replace_own_preferences(
    context: ContextDep,
    body: Annotated[PreferencesForm, Body(openapi_examples=body_example(PREFERENCES_BODY_EXAMPLE))],
    user_id: ActingFor = None,
) -> PreferencesView:
    """Say what you prefer; a field that is left out is cleared. Preferences break ties, they never hide a product."""
    with context.writing() as (session, principal):
        owner = acting_user(session, principal, user_id)
        return preferences_view(preferences.save_preferences(session, principal, owner, body.model_dump()))


@router.delete("/users/me/preferences", responses=responses({"detail": "Deleted."}, USER_REQUIRED, OTHER_USER))
def delete_own_preferences(context: ContextDep, user_id: ActingFor = None) -> Message:
    """Delete your preferences. Idempotent."""
    with context.writing() as (session, principal):
        owner = acting_user(session, principal, user_id)
        preferences.delete_preferences(session, principal, owner)
    return Message(detail="Deleted.")
