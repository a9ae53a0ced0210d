"""Conversations with the assistant."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from tis.marketplace.columns import BigId, Json, now
from tis.marketplace.tables.base import MAX_RUPIAH, Table, key_of


class Conversation(Table):
    """What a user and the assistant wrote. `state` is what the next sentence may refer to (`ConversationState`)."""

    __tablename__ = "conversations"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    session_id: Mapped[str] = mapped_column(String(64), unique=True)
    title: Mapped[str | None] = mapped_column(String(100))
    state: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, index=True)  # when the last message was added

    __table_args__ = (
        Index("ix_conversations_user_id_id", "user_id", "id"),
        Index("ix_conversations_user_id_updated_at", "user_id", "updated_at", "id"),
    )


class ConversationMessage(Table):
    """A turn of a conversation has one message of the user and one of the assistant."""

    __tablename__ = "conversation_messages"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    conversation_id: Mapped[int] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))
    turn_id: Mapped[str] = mapped_column(String(64))
    role: Mapped[str] = mapped_column(String(16))
    content: Mapped[str] = mapped_column(Text)
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime] = mapped_column(default=now)

    __table_args__ = (
        UniqueConstraint("conversation_id", "turn_id", "role"),
        CheckConstraint("role IN ('user', 'assistant')", name="role"),
        Index("ix_conversation_messages_conversation_id_id", "conversation_id", "id"),
    )


class UserPreferences(Table):
    """What a user told the assistant to prefer."""

    __tablename__ = "user_preferences"

    user_id: Mapped[int] = key_of("users")
    brands: Mapped[list[Any]] = mapped_column(Json, default=list)
    max_price: Mapped[int | None] = mapped_column(BigId)
    city: Mapped[str | None] = mapped_column(String(100))
    condition: Mapped[str | None] = mapped_column(String(8))
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)

    __table_args__ = (
        CheckConstraint(f"max_price BETWEEN 1 AND {MAX_RUPIAH}", name="max_price"),
        CheckConstraint("\"condition\" IN ('new', 'used')", name="condition"),
    )


class ChatUsage(Table):
    """How many tokens of language models the assistant used for a user on a day (UTC)."""

    __tablename__ = "chat_usage"

    user_id: Mapped[int] = key_of("users")
    day: Mapped[date] = mapped_column(primary_key=True, index=True)
    tokens: Mapped[int] = mapped_column(BigId)
