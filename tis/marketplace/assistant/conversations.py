"""Conversations of users with the assistant: found by their `session_id`, by their own user only.

Every function works in the caller's transaction. Those that write lock the account first, then the conversation, so
that no two transactions deadlock and nothing is written for an account that is being deleted.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from tis.errors import Conflict, NotFound, Unprocessable
from tis.marketplace.auth.accounts import lock_account, user_account
from tis.marketplace.columns import now
from tis.marketplace.kit import audit
from tis.marketplace.kit.principal import Principal
from tis.marketplace.reading.structured_query import MAX_SHOWN, StructuredQuery
from tis.marketplace.tables import Conversation, ConversationMessage

MAX_CONVERSATIONS = 200  # of a user
MAX_MESSAGES = 500  # of a conversation
MAX_MESSAGE_CHARS = 16_000  # TEXT of MariaDB has 64 KiB, and a letter up to four bytes
MAX_DETAILS_CHARS = 64_000  # as JSON
MAX_TITLE_CHARS = 80
MAX_SEEN = 200
NO_CONVERSATION = "Conversation not found"
FULL_CONVERSATION = f"This conversation is full ({MAX_MESSAGES} messages): send no `session_id` to begin another one."

Role = Literal["user", "assistant"]


@dataclass(frozen=True)
class ConversationState:
    """What the next sentence may refer to: the query of the last turn, and the products that it showed, in order."""

    query: StructuredQuery | None = None
    shown_ids: Sequence[int] = ()
    seen_ids: Sequence[int] = ()  # named by the last turn, and by those before it that looked for the same


def open_conversation(
    session: Session,
    user_id: int,
    session_id: str | None,
    conversation_id: int | None = None,
    *,
    new_id: str | None = None,
) -> Conversation:
    """The one that is named by `session_id`, `conversation_id` or both; else a new one, for which the one that was not
    used for longest goes if there are too many.

    `new_id`: the name of the new one; the one that has it already is no other.
    """
    if conversation_id is not None:
        conversation = session.get(Conversation, conversation_id)
        if conversation is None or conversation.user_id != user_id:
            raise NotFound(NO_CONVERSATION)
        if session_id not in (None, conversation.session_id):
            raise Unprocessable("session_id and conversation_id name different conversations.")
        return conversation
    if session_id is not None:
        return find_conversation(session, user_id, session_id)
    lock_account(session, user_account(user_id))
    own = select(Conversation).where(Conversation.session_id == new_id, Conversation.user_id == user_id)
    if new_id is not None and (existing := session.scalar(own)) is not None:
        return existing
    _make_room(session, user_id)
    conversation = Conversation(user_id=user_id, session_id=new_id or f"chat_{secrets.token_hex(16)}", state={})
    session.add(conversation)
    session.flush()
    return conversation


def find_conversation(session: Session, user_id: int, session_id: str) -> Conversation:
    own = select(Conversation).where(Conversation.session_id == session_id, Conversation.user_id == user_id)
    conversation = session.scalar(own)
    if conversation is None:
        raise NotFound(NO_CONVERSATION)
    return conversation


def add_message(
    session: Session, conversation: Conversation, turn_id: str, role: Role, content: str, details: Mapping[str, Any]
) -> ConversationMessage:
    """The message that is there, if the turn has one of this role already. `content` is cut at MAX_MESSAGE_CHARS.

    Of details longer than MAX_DETAILS_CHARS it stores only that they are left out.
    """
    _lock(session, conversation)
    of_conversation = ConversationMessage.conversation_id == conversation.id
    same = select(ConversationMessage).where(
        of_conversation, ConversationMessage.turn_id == turn_id, ConversationMessage.role == role
    )
    if (existing := session.scalar(same)) is not None:
        return existing
    num_messages = session.scalar(select(func.count()).select_from(ConversationMessage).where(of_conversation)) or 0
    # The answer to a question that was accepted has room, too.
    if num_messages >= (MAX_MESSAGES - 1 if role == "user" else MAX_MESSAGES):
        raise Conflict(FULL_CONVERSATION, code="conversation_full")
    text, stored = storable_text(content), storable_json(details)
    message = ConversationMessage(
        conversation_id=conversation.id,
        turn_id=turn_id,
        role=role,
        content=text[:MAX_MESSAGE_CHARS],
        details=stored if len(json.dumps(stored)) <= MAX_DETAILS_CHARS else {"omitted": True},
    )
    session.add(message)
    if role == "user" and conversation.title is None:
        conversation.title = " ".join(text.split())[:MAX_TITLE_CHARS] or None
    conversation.updated_at = now()
    session.flush()
    return message


def is_question_of(session: Session, conversation: Conversation, turn_id: str, text: str) -> bool:
    """Also if the turn has none yet."""
    asked = select(ConversationMessage.content).where(
        ConversationMessage.conversation_id == conversation.id,
        ConversationMessage.turn_id == turn_id,
        ConversationMessage.role == "user",
    )
    return session.scalar(asked) in (None, storable_text(text)[:MAX_MESSAGE_CHARS])


def remove_question(session: Session, conversation: Conversation, turn_id: str) -> None:
    """Of a turn that never began."""
    _lock(session, conversation)
    turn = ConversationMessage.conversation_id == conversation.id, ConversationMessage.turn_id == turn_id
    session.execute(delete(ConversationMessage).where(*turn, ConversationMessage.role == "user"))


def last_answer_id(session: Session, conversation: Conversation) -> int:
    """0 if there is none."""
    answers = select(func.max(ConversationMessage.id)).where(
        ConversationMessage.conversation_id == conversation.id, ConversationMessage.role == "assistant"
    )
    return session.scalar(answers) or 0


def state_of(conversation: Conversation) -> ConversationState:
    """Empty if another version of the server wrote a query that this one does not know."""
    try:
        query = conversation.state.get("query")
        known = None if query is None else StructuredQuery.model_validate(query)
    except ValidationError:
        return ConversationState()
    shown, seen = conversation.state.get("shown_ids", ()), conversation.state.get("seen_ids", ())
    return ConversationState(known, tuple(shown), tuple(seen))


def save_state(
    session: Session,
    conversation: Conversation,
    query: StructuredQuery,
    shown_ids: Sequence[int],
    seen_ids: Sequence[int] = (),
) -> None:
    """Keeps the first MAX_SHOWN of the ids that are shown, and the last MAX_SEEN of those that were named."""
    _lock(session, conversation)
    stated = storable_json(query.model_dump(mode="json", exclude_defaults=True))
    conversation.state = {"query": stated, "shown_ids": list(shown_ids[:MAX_SHOWN])}
    if seen_ids:
        conversation.state = {**conversation.state, "seen_ids": list(seen_ids[-MAX_SEEN:])}
    session.flush()


def list_conversations(session: Session, user_id: int, before: int | None, limit: int) -> Sequence[Conversation]:
    """Newest first."""
    own = select(Conversation).where(Conversation.user_id == user_id)
    if before is not None:
        own = own.where(Conversation.id < before)
    return session.scalars(own.order_by(Conversation.id.desc()).limit(limit)).all()


def newest_messages(
    session: Session, conversation: Conversation, limit: int, before: int | None = None
) -> Sequence[ConversationMessage]:
    """Newest first."""
    messages = select(ConversationMessage).where(ConversationMessage.conversation_id == conversation.id)
    if before is not None:
        messages = messages.where(ConversationMessage.id < before)
    return session.scalars(messages.order_by(ConversationMessage.id.desc()).limit(limit)).all()


def delete_conversation(session: Session, principal: Principal, user_id: int, session_id: str) -> None:
    lock_account(session, user_account(user_id))
    conversation = find_conversation(session, user_id, session_id)
    session.execute(delete(Conversation).where(Conversation.id == conversation.id))
    audit.note(session, principal, "delete", "conversation", conversation.id)


def delete_conversations(session: Session, principal: Principal, user_id: int) -> Sequence[str]:
    """All of the user; returns the ids of their sessions."""
    lock_account(session, user_account(user_id))
    own = session.scalars(select(Conversation).where(Conversation.user_id == user_id)).all()
    session.execute(delete(Conversation).where(Conversation.id.in_([one.id for one in own])))
    if own:
        audit.note(session, principal, "conversations.delete", "user", user_id, conversations=[len(own), 0])
    return [one.session_id for one in own]


def storable_text(text: str) -> str:
    """PostgreSQL refuses NUL, and every database half a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def storable_json(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable_text(str(name)): storable_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(one) for one in value]
    return value


def _lock(session: Session, conversation: Conversation) -> None:
    lock_account(session, user_account(conversation.user_id))
    locked = select(Conversation.id).where(Conversation.id == conversation.id).with_for_update()
    if session.scalar(locked) is None:
        raise NotFound(NO_CONVERSATION)


def _make_room(session: Session, user_id: int) -> None:
    own = select(Conversation.id).where(Conversation.user_id == user_id)
    latest = own.order_by(Conversation.updated_at.desc(), Conversation.id.desc())
    if too_many := session.scalars(latest.offset(MAX_CONVERSATIONS - 1)).all():
        session.execute(delete(Conversation).where(Conversation.id.in_(too_many)))
