"""Conversations with the assistant, preferences, used tokens; products whose texts give orders are flagged.

Products that exist are checked when their texts are next written.
"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None

_MAX_RUPIAH = 10_000_000_000_000
_FLAGGED = sa.text("flagged_reason IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("title", sa.String(100), nullable=True),
        sa.Column("state", Json, nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        _of_a_user("conversations"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversations")),
        sa.UniqueConstraint("session_id", name=op.f("uq_conversations_session_id")),
    )
    op.create_index("ix_conversations_user_id_id", "conversations", ["user_id", "id"])
    op.create_index("ix_conversations_user_id_updated_at", "conversations", ["user_id", "updated_at", "id"])
    op.create_index("ix_conversations_updated_at", "conversations", ["updated_at"])
    op.create_table(
        "conversation_messages",
        sa.Column("id", BigId, nullable=False),
        sa.Column("conversation_id", BigId, nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("details", Json, nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("role IN ('user', 'assistant')", name=op.f("ck_conversation_messages_role")),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name=op.f("fk_conversation_messages_conversation_id_conversations"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversation_messages")),
        sa.UniqueConstraint(
            "conversation_id", "turn_id", "role", name=op.f("uq_conversation_messages_conversation_id_turn_id_role")
        ),
    )
    op.create_index("ix_conversation_messages_conversation_id_id", "conversation_messages", ["conversation_id", "id"])
    op.create_table(
        "user_preferences",
        sa.Column("user_id", BigId, nullable=False, autoincrement=False),
        sa.Column("brands", Json, nullable=False),
        sa.Column("max_price", BigId, nullable=True),
        sa.Column("city", sa.String(100), nullable=True),
        sa.Column("condition", sa.String(8), nullable=True),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint(f"max_price BETWEEN 1 AND {_MAX_RUPIAH}", name=op.f("ck_user_preferences_max_price")),
        sa.CheckConstraint("\"condition\" IN ('new', 'used')", name=op.f("ck_user_preferences_condition")),
        _of_a_user("user_preferences"),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_user_preferences")),
    )
    op.create_table(
        "chat_usage",
        sa.Column("user_id", BigId, nullable=False, autoincrement=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("tokens", BigId, nullable=False),
        _of_a_user("chat_usage"),
        sa.PrimaryKeyConstraint("user_id", "day", name=op.f("pk_chat_usage")),
    )
    op.create_index("ix_chat_usage_day", "chat_usage", ["day"])
    op.add_column("products", sa.Column("flagged_reason", sa.String(100), nullable=True))
    op.create_index("ix_products_flagged", "products", ["id"], sqlite_where=_FLAGGED, postgresql_where=_FLAGGED)


def downgrade() -> None:
    op.drop_index("ix_products_flagged", "products")
    op.drop_column("products", "flagged_reason")
    for table in ("chat_usage", "user_preferences", "conversation_messages", "conversations"):
        op.drop_table(table)


def _of_a_user(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_user_id_users")
    return sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=name, ondelete="CASCADE")
