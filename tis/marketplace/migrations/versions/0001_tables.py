"""All tables of 1.0.0. The words that they are filled with lie in CSV files, and `load_words` keeps them in step."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import MEDIUMTEXT

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    "audit_log",
    "categories",
    "consents",
    "idempotency_keys",
    "lexicon",
    "one_time_links",
    "refresh_tokens",
    "shipped_words",
    "suppliers",
    "taxonomy_version",
    "users",
    "chat_usage",
    "conversations",
    "products",
    "sheet_imports",
    "supplier_hours",
    "supplier_invitations",
    "supplier_members",
    "supplier_search",
    "supplier_words",
    "synonyms",
    "user_preferences",
    "conversation_messages",
    "price_history",
    "product_attributes",
    "product_search",
    "reviews",
    "sheet_batches",
    "stock_movements",
    "stock_reservations",
    "product_words",
)
_TEXTS = ("name", "labels", "description")
_WORDS = (*_TEXTS, "tokens")


def upgrade() -> None:
    if _dialect() == "mysql":
        # Its default compares "a" and "A" as equal: e-mail addresses, SKUs and words would meet by mistake.
        op.execute("ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    op.create_table(
        "audit_log",
        sa.Column("id", BigId, nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.Column("actor", sa.String(32), nullable=True),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("entity", sa.String(32), nullable=False),
        sa.Column("entity_id", sa.String(100), nullable=False),
        sa.Column("changes", Json, nullable=False),
        sa.Column("request_id", sa.String(128), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_index("ix_audit_log_actor_id", "audit_log", ["actor", "id"])
    op.create_index(op.f("ix_audit_log_at"), "audit_log", ["at"])
    op.create_index("ix_audit_log_entity_id", "audit_log", ["entity", "id"])
    op.create_index("ix_audit_log_entity_id_id", "audit_log", ["entity_id", "id"])
    op.create_table(
        "categories",
        sa.Column("slug", sa.String(100), nullable=False),
        sa.Column("parent", sa.String(100), nullable=True),
        sa.Column("name_id", sa.String(100), nullable=False),
        sa.Column("name_en", sa.String(100), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["categories.slug"], name=op.f("fk_categories_parent_categories")),
        sa.PrimaryKeyConstraint("slug", name=op.f("pk_categories")),
    )
    op.create_table(
        "consents",
        sa.Column("id", BigId, nullable=False),
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("version", sa.String(40), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consents")),
    )
    op.create_index(op.f("ix_consents_account"), "consents", ["account"])
    op.create_table(
        "idempotency_keys",
        sa.Column("actor", sa.String(64), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("answer", Json, nullable=True),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("actor", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(op.f("ix_idempotency_keys_expires_at"), "idempotency_keys", ["expires_at"])
    op.create_table(
        "lexicon",
        sa.Column("term", sa.String(64, collation=_bytewise()), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("term", name=op.f("pk_lexicon")),
    )
    op.create_table(
        "one_time_links",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("email", sa.String(320), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("purpose IN ('reset', 'confirm', 'change')", name=op.f("ck_one_time_links_purpose")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_one_time_links")),
    )
    op.create_index(op.f("ix_one_time_links_account"), "one_time_links", ["account"])
    op.create_index(op.f("ix_one_time_links_expires_at"), "one_time_links", ["expires_at"])
    op.create_table(
        "refresh_tokens",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("chain", sa.String(32), nullable=False),
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("used_at", UTCDateTime(), nullable=True),
        sa.Column("revoked_at", UTCDateTime(), nullable=True),
        sa.Column("signed_out", sa.Boolean(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("signed_in_at", UTCDateTime(), nullable=False),
        sa.Column("agent", sa.String(200), nullable=True),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_refresh_tokens")),
    )
    op.create_index(op.f("ix_refresh_tokens_account"), "refresh_tokens", ["account"])
    op.create_index(op.f("ix_refresh_tokens_chain"), "refresh_tokens", ["chain"])
    op.create_index(op.f("ix_refresh_tokens_expires_at"), "refresh_tokens", ["expires_at"])
    op.create_table(
        "shipped_words",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("key", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("kind", "key", name=op.f("pk_shipped_words")),
    )
    op.create_table(
        "suppliers",
        sa.Column("id", BigId, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("business_name", sa.String(200), nullable=False),
        sa.Column("email", sa.String(320), nullable=False),
        sa.Column("email_key", sa.String(320), nullable=False),
        sa.Column("email_confirmed_at", UTCDateTime(), nullable=True),
        sa.Column("password_hash", sa.String(255), nullable=True),
        sa.Column("phone", sa.String(32), nullable=True),
        sa.Column("address", sa.String(500), nullable=True),
        sa.Column("latitude", sa.Double(), nullable=False),
        sa.Column("longitude", sa.Double(), nullable=False),
        _public("latitude"),
        _public("longitude"),
        sa.Column("city", sa.String(100), nullable=False),
        sa.Column("city_key", sa.String(100), nullable=False),
        sa.Column("province", sa.String(100), nullable=True),
        sa.Column("place_code", sa.String(4), nullable=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("shows_place", sa.Boolean(), nullable=False),
        sa.Column("pickup_enabled", sa.Boolean(), nullable=False),
        sa.Column("courier_enabled", sa.Boolean(), nullable=False),
        sa.Column("delivery_radius_km", sa.Double(), nullable=True),
        sa.Column("opening_hours", Json, nullable=True),
        sa.Column("time_zone", sa.String(4), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("registration_date", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.Column("deleted_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint("status IN ('active', 'suspended')", name=op.f("ck_suppliers_status")),
        sa.CheckConstraint("delivery_radius_km >= 0", name=op.f("ck_suppliers_delivery_radius_km")),
        sa.CheckConstraint("latitude BETWEEN -90 AND 90", name=op.f("ck_suppliers_latitude")),
        sa.CheckConstraint("longitude BETWEEN -180 AND 180", name=op.f("ck_suppliers_longitude")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suppliers")),
        sa.UniqueConstraint("email_key", name=op.f("uq_suppliers_email_key")),
    )
    op.create_index(op.f("ix_suppliers_city_key"), "suppliers", ["city_key"])
    op.create_index(
        "ix_suppliers_public_latitude_public_longitude", "suppliers", ["public_latitude", "public_longitude"]
    )
    op.create_table(
        "taxonomy_version",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_taxonomy_version")),
    )
    op.create_table(
        "users",
        sa.Column("id", BigId, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("email", sa.String(320), nullable=True),
        sa.Column("email_key", sa.String(320), nullable=True),
        sa.Column("email_confirmed_at", UTCDateTime(), nullable=True),
        sa.Column("password_hash", sa.String(255), nullable=True),
        sa.Column("phone", sa.String(32), nullable=True),
        sa.Column("latitude", sa.Double(), nullable=True),
        sa.Column("longitude", sa.Double(), nullable=True),
        sa.Column("city", sa.String(100), nullable=True),
        sa.Column("province", sa.String(100), nullable=True),
        sa.Column("place_code", sa.String(4), nullable=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("ai_access_enabled", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.Column("deleted_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint("role IN ('user', 'admin')", name=op.f("ck_users_role")),
        sa.CheckConstraint("(latitude IS NULL) = (longitude IS NULL)", name=op.f("ck_users_place")),
        sa.CheckConstraint("latitude BETWEEN -90 AND 90", name=op.f("ck_users_latitude")),
        sa.CheckConstraint("longitude BETWEEN -180 AND 180", name=op.f("ck_users_longitude")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("email_key", name=op.f("uq_users_email_key")),
    )
    op.create_table(
        "chat_usage",
        sa.Column("user_id", BigId, autoincrement=False, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("tokens", BigId, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_chat_usage_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "day", name=op.f("pk_chat_usage")),
    )
    op.create_index(op.f("ix_chat_usage_day"), "chat_usage", ["day"])
    op.create_table(
        "conversations",
        sa.Column("id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("title", sa.String(100), nullable=True),
        sa.Column("state", Json, nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_conversations_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversations")),
        sa.UniqueConstraint("session_id", name=op.f("uq_conversations_session_id")),
    )
    op.create_index(op.f("ix_conversations_updated_at"), "conversations", ["updated_at"])
    op.create_index("ix_conversations_user_id_id", "conversations", ["user_id", "id"])
    op.create_index("ix_conversations_user_id_updated_at", "conversations", ["user_id", "updated_at", "id"])
    op.create_table(
        "products",
        sa.Column("id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", _long_text(), nullable=True),
        sa.Column("brand", sa.String(100), nullable=True),
        sa.Column("price", BigId, nullable=False),
        sa.Column("on_hand", sa.Integer(), nullable=False),
        sa.Column("reserved", sa.Integer(), nullable=False),
        sa.Column("category", sa.String(100), nullable=False),
        sa.Column("category_key", sa.String(100), nullable=False),
        sa.Column("tags", sa.String(1000), nullable=True),
        sa.Column("sku", sa.String(100), nullable=True),
        sa.Column("condition", sa.String(8), nullable=False),
        sa.Column("attributes", Json, nullable=False),
        sa.Column("is_available", sa.Boolean(), nullable=False),
        sa.Column("rating_sum", sa.Integer(), nullable=False),
        sa.Column("rating_count", sa.Integer(), nullable=False),
        sa.Column("verified_sum", sa.Integer(), nullable=False),
        sa.Column("verified_count", sa.Integer(), nullable=False),
        sa.Column("granted_rating", sa.Double(), nullable=True),
        sa.Column("rating_rank", sa.Double(), nullable=False),
        sa.Column("flagged_reason", sa.String(100), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.Column("deleted_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint("\"condition\" IN ('new', 'used')", name=op.f("ck_products_condition")),
        sa.CheckConstraint("granted_rating BETWEEN 0 AND 5", name=op.f("ck_products_granted_rating")),
        sa.CheckConstraint("on_hand >= 0 AND reserved >= 0 AND reserved <= on_hand", name=op.f("ck_products_stock")),
        sa.CheckConstraint("price BETWEEN 1 AND 10000000000000", name=op.f("ck_products_price")),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_products_supplier_id_suppliers"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_products")),
    )
    op.create_index(
        "ix_products_category_key_supplier_id",
        "products",
        ["category_key", "supplier_id"],
        **_where("deleted_at IS NULL"),
    )
    op.create_index("ix_products_deleted", "products", ["supplier_id", "id"], **_where("deleted_at IS NOT NULL"))
    op.create_index("ix_products_flagged", "products", ["id"], **_where("flagged_reason IS NOT NULL"))
    op.create_index("ix_products_on_hand", "products", ["on_hand"], **_where("deleted_at IS NULL"))
    op.create_index("ix_products_supplier_id_id", "products", ["supplier_id", "id"])
    _unique_sku()
    op.create_table(
        "sheet_imports",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("actor", sa.String(32), nullable=True),
        sa.Column("request_id", sa.String(128), nullable=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("num_rows", sa.Integer(), nullable=False),
        sa.Column("num_done", sa.Integer(), nullable=False),
        sa.Column("num_created", sa.Integer(), nullable=False),
        sa.Column("num_updated", sa.Integer(), nullable=False),
        sa.Column("num_unchanged", sa.Integer(), nullable=False),
        sa.Column("problems", Json, nullable=False),
        sa.Column("detail", sa.String(500), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("touched_at", UTCDateTime(), nullable=False),
        sa.Column("ended_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint("status IN ('waiting', 'running', 'done', 'failed')", name=op.f("ck_sheet_imports_status")),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_sheet_imports_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sheet_imports")),
    )
    op.create_index("ix_sheet_imports_status_touched_at", "sheet_imports", ["status", "touched_at"])
    op.create_index("ix_sheet_imports_supplier_id_created_at", "sheet_imports", ["supplier_id", "created_at"])
    op.create_table(
        "supplier_hours",
        sa.Column("supplier_id", BigId, autoincrement=False, nullable=False),
        sa.Column("opens", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("closes", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_supplier_hours_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("supplier_id", "opens", name=op.f("pk_supplier_hours")),
    )
    op.create_table(
        "supplier_invitations",
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("role IN ('owner', 'editor')", name=op.f("ck_supplier_invitations_role")),
        sa.ForeignKeyConstraint(
            ["supplier_id"],
            ["suppliers.id"],
            name=op.f("fk_supplier_invitations_supplier_id_suppliers"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_supplier_invitations_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("supplier_id", "user_id", name=op.f("pk_supplier_invitations")),
    )
    op.create_index(op.f("ix_supplier_invitations_user_id"), "supplier_invitations", ["user_id"])
    op.create_table(
        "supplier_members",
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("role IN ('owner', 'editor')", name=op.f("ck_supplier_members_role")),
        sa.ForeignKeyConstraint(
            ["supplier_id"],
            ["suppliers.id"],
            name=op.f("fk_supplier_members_supplier_id_suppliers"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_supplier_members_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("supplier_id", "user_id", name=op.f("pk_supplier_members")),
    )
    op.create_index(op.f("ix_supplier_members_user_id"), "supplier_members", ["user_id"])
    op.create_table(
        "supplier_search",
        sa.Column("supplier_id", BigId, autoincrement=False, nullable=False),
        sa.Column("name_key", sa.String(200), nullable=False),
        sa.Column("stars", sa.Double(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_supplier_search_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("supplier_id", name=op.f("pk_supplier_search")),
    )
    op.create_table(
        "supplier_words",
        sa.Column("word", sa.String(64, collation=_bytewise()), nullable=False),
        sa.Column("supplier_id", BigId, autoincrement=False, nullable=False),
        sa.Column("scope", sa.Integer(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["supplier_id"], ["suppliers.id"], name=op.f("fk_supplier_words_supplier_id_suppliers"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("word", "supplier_id", "scope", name=op.f("pk_supplier_words")),
    )
    op.create_index(op.f("ix_supplier_words_supplier_id"), "supplier_words", ["supplier_id"])
    op.create_table(
        "synonyms",
        sa.Column("term", sa.String(100), nullable=False),
        sa.Column("means", sa.String(200), nullable=False),
        sa.Column("category", sa.String(100), nullable=True),
        sa.Column("is_broader", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["category"], ["categories.slug"], name=op.f("fk_synonyms_category_categories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("term", name=op.f("pk_synonyms")),
    )
    op.create_table(
        "user_preferences",
        sa.Column("user_id", BigId, autoincrement=False, nullable=False),
        sa.Column("brands", Json, nullable=False),
        sa.Column("max_price", BigId, nullable=True),
        sa.Column("city", sa.String(100), nullable=True),
        sa.Column("condition", sa.String(8), nullable=True),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("\"condition\" IN ('new', 'used')", name=op.f("ck_user_preferences_condition")),
        sa.CheckConstraint("max_price BETWEEN 1 AND 10000000000000", name=op.f("ck_user_preferences_max_price")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_user_preferences_user_id_users"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_user_preferences")),
    )
    op.create_table(
        "conversation_messages",
        sa.Column("id", BigId, nullable=False),
        sa.Column("conversation_id", BigId, nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("content", _long_text(), nullable=False),
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
        "price_history",
        sa.Column("id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("price", BigId, nullable=False),
        sa.Column("valid_from", UTCDateTime(), nullable=False),
        sa.Column("actor", sa.String(32), nullable=True),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_price_history_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_price_history")),
    )
    op.create_index(op.f("ix_price_history_actor"), "price_history", ["actor"])
    op.create_index("ix_price_history_product_id_id", "price_history", ["product_id", "id"])
    op.create_index("ix_price_history_product_id_valid_from", "price_history", ["product_id", "valid_from"])
    op.create_table(
        "product_attributes",
        sa.Column("product_id", BigId, autoincrement=False, nullable=False),
        sa.Column("name", sa.String(100, collation=_bytewise()), nullable=False),
        sa.Column("number", sa.Double(), nullable=True),
        sa.Column("text_key", sa.String(100, collation=_bytewise()), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_product_attributes_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("product_id", "name", name=op.f("pk_product_attributes")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_product_attributes_name_number", "product_attributes", ["name", "number", "product_id"])
    op.create_index("ix_product_attributes_name_text_key", "product_attributes", ["name", "text_key", "product_id"])
    op.create_table(
        "product_search",
        sa.Column("product_id", BigId, autoincrement=False, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("sellable", sa.Integer(), nullable=False),
        sa.Column("price", BigId, nullable=False),
        sa.Column("rating", sa.Double(), nullable=True),
        sa.Column("rating_rank", sa.Double(), nullable=False),
        sa.Column("created_us", BigId, nullable=False),
        sa.Column("latitude", sa.Double(), nullable=False),
        sa.Column("longitude", sa.Double(), nullable=False),
        sa.Column("condition", sa.String(8), nullable=False),
        sa.Column("category_key", sa.String(100), nullable=False),
        sa.Column("brand_key", sa.String(100), nullable=True),
        sa.Column("city_key", sa.String(100), nullable=False),
        sa.Column("words_digest", BigId, nullable=False),
        sa.Column("attributes", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_product_search_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("product_id", name=op.f("pk_product_search")),
    )
    op.create_index("ix_product_search_brand", "product_search", ["brand_key", "product_id", "sellable"])
    op.create_index("ix_product_search_category", "product_search", ["category_key", "product_id", "sellable"])
    op.create_index(
        "ix_product_search_category_price", "product_search", ["category_key", "price", "product_id", "sellable"]
    )
    op.create_index("ix_product_search_city", "product_search", ["city_key", "product_id", "sellable"])
    op.create_index("ix_product_search_newest", "product_search", ["created_us", "product_id"])
    op.create_index("ix_product_search_price", "product_search", ["price", "product_id"])
    op.create_index("ix_product_search_rating", "product_search", ["rating_rank", "product_id"])
    op.create_index("ix_product_search_supplier", "product_search", ["supplier_id", "category_key", "price"])
    op.create_table(
        "reviews",
        sa.Column("id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("rating", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(200), nullable=True),
        sa.Column("body", sa.String(5000), nullable=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("verified_purchase", sa.Boolean(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("status IN ('published', 'hidden')", name=op.f("ck_reviews_status")),
        sa.CheckConstraint("rating BETWEEN 1 AND 5", name=op.f("ck_reviews_rating")),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_reviews_product_id_products"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_reviews_user_id_users"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
        sa.UniqueConstraint("product_id", "user_id", name=op.f("uq_reviews_product_id_user_id")),
    )
    op.create_index("ix_reviews_product_id_status_id", "reviews", ["product_id", "status", "id"])
    op.create_index(op.f("ix_reviews_user_id"), "reviews", ["user_id"])
    op.create_table(
        "sheet_batches",
        sa.Column("import_id", sa.String(36), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rows", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["import_id"],
            ["sheet_imports.id"],
            name=op.f("fk_sheet_batches_import_id_sheet_imports"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("import_id", "position", name=op.f("pk_sheet_batches")),
    )
    op.create_table(
        "stock_movements",
        sa.Column("id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("delta", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("reservation_id", sa.String(36), nullable=True),
        sa.Column("actor", sa.String(32), nullable=True),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_stock_movements_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stock_movements")),
    )
    op.create_index(op.f("ix_stock_movements_actor"), "stock_movements", ["actor"])
    op.create_index("ix_stock_movements_at", "stock_movements", ["at"], **_where("kind <> 'carried'"))
    op.create_index("ix_stock_movements_product_id_id", "stock_movements", ["product_id", "id"])
    op.create_index("ix_stock_movements_supplier_id_id", "stock_movements", ["supplier_id", "id"])
    op.create_table(
        "stock_reservations",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("unit_price", BigId, nullable=False),
        sa.Column("actor", sa.String(32), nullable=True),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("accepted_at", UTCDateTime(), nullable=True),
        sa.Column("ended_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint(
            "status IN ('held', 'committed', 'released', 'refused', 'expired')",
            name=op.f("ck_stock_reservations_status"),
        ),
        sa.CheckConstraint("quantity > 0", name=op.f("ck_stock_reservations_quantity")),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_stock_reservations_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stock_reservations")),
    )
    op.create_index("ix_stock_reservations_actor_created_at_id", "stock_reservations", ["actor", "created_at", "id"])
    op.create_index(
        "ix_stock_reservations_actor_status",
        "stock_reservations",
        ["actor", "status", "expires_at", "product_id", "quantity"],
    )
    op.create_index(
        "ix_stock_reservations_actor_status_created_at_id",
        "stock_reservations",
        ["actor", "status", "created_at", "id"],
    )
    op.create_index(op.f("ix_stock_reservations_ended_at"), "stock_reservations", ["ended_at"])
    op.create_index(op.f("ix_stock_reservations_product_id"), "stock_reservations", ["product_id"])
    op.create_index("ix_stock_reservations_status_expires_at", "stock_reservations", ["status", "expires_at"])
    op.create_index(
        "ix_stock_reservations_supplier_id_created_at", "stock_reservations", ["supplier_id", "created_at", "id"]
    )
    op.create_index(
        "ix_stock_reservations_supplier_id_status", "stock_reservations", ["supplier_id", "status", "created_at", "id"]
    )

    op.execute("INSERT INTO taxonomy_version (id, version) VALUES (1, '')")
    if _dialect() == "postgresql":
        op.execute(
            "CREATE TABLE product_words (product_id BIGINT CONSTRAINT pk_product_words PRIMARY KEY CONSTRAINT"
            " fk_product_words_product_id_products REFERENCES products (id) ON DELETE CASCADE, words tsvector NOT NULL)"
        )
        op.execute("CREATE INDEX ix_product_words_words ON product_words USING gin (words)")
        return
    op.create_table(
        "product_words",
        sa.Column("product_id", BigId, nullable=False, autoincrement=False),
        *(sa.Column(column, _long_text(), nullable=False) for column in _WORDS),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_product_words_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("product_id", name=op.f("pk_product_words")),
    )
    if _dialect() == "sqlite" and _has_fts5():
        _create_fts()


def downgrade() -> None:
    if _dialect() == "sqlite":
        op.execute("DROP TABLE IF EXISTS product_fts")
    for table in reversed(_TABLES):
        op.drop_table(table)


def _dialect() -> str:
    return op.get_bind().dialect.name


def _bytewise() -> str | None:
    # Ranges of words ("everything that begins with lap") must not follow the language of the database.
    return {"postgresql": "C", "mysql": "utf8mb4_bin"}.get(_dialect())


def _long_text() -> Any:
    return sa.Text().with_variant(MEDIUMTEXT(), "mysql")  # its TEXT has 64 KiB, and a letter up to four bytes


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _public(column: str) -> sa.Column[float]:
    """A coordinate for everybody: the database computes it, whoever writes the exact one."""
    digits = "CASE WHEN shows_place THEN 3 ELSE 2 END"
    rounded = f"round({column}, {digits}) + 0.0"
    is_postgresql = _dialect() == "postgresql"  # version 15 has no virtual columns
    if is_postgresql:
        rounded = f"round({column}::numeric, {digits})::double precision"
    computed = sa.Computed(rounded, persisted=True if is_postgresql else None)
    # MariaDB knows no NOT NULL beside an expression.
    return sa.Column(f"public_{column}", sa.Double(), computed, nullable=_dialect() == "mysql")


def _unique_sku() -> None:
    """Among the products that are not deleted. MariaDB has no indexes with a condition."""
    columns = ["supplier_id", "sku"]
    if _dialect() == "mysql":
        columns = ["supplier_id", "live_sku"]
        live = sa.Computed("CASE WHEN deleted_at IS NULL THEN sku END")
        op.add_column("products", sa.Column("live_sku", sa.String(100), live))
    op.create_index("uq_products_supplier_id_sku", "products", columns, unique=True, **_where("deleted_at IS NULL"))


def _has_fts5() -> bool:
    found = op.get_bind().exec_driver_sql("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'")
    return found.first() is not None


def _create_fts() -> None:
    # Our own code makes the words, so `ascii` only has to find the spaces. Nobody asks where in a text a word stands
    # or how long the text is: without that the index is half as large.
    op.execute(
        "CREATE VIRTUAL TABLE product_fts USING fts5 (name, labels, description, tokens, content='product_words',"
        " content_rowid='product_id', tokenize='ascii', prefix='2 3', detail=column, columnsize=0)"
    )
    old, new = (", ".join(f"{row}.{column}" for column in _WORDS) for row in ("old", "new"))
    _create_trigger("insert", "INSERT", "", None, new)
    _create_trigger("delete", "DELETE", "", old, None)
    same = " AND ".join(f"new.{column} = old.{column}" for column in _TEXTS)
    _create_trigger("update", "UPDATE", f" WHEN NOT ({same})", old, new)
    # No text contains a token: a supplier that moves writes the tokens of its products alone.
    empty = ", ".join("''" for _ in _TEXTS)
    only_tokens = f" WHEN {same} AND new.tokens <> old.tokens"
    _create_trigger("tokens", "UPDATE", only_tokens, f"{empty}, old.tokens", f"{empty}, new.tokens")


def _create_trigger(name: str, event: str, condition: str, removed: str | None, added: str | None) -> None:
    columns, actions = ", ".join(_WORDS), ""
    if removed is not None:
        values = f"('delete', old.product_id, {removed})"
        actions += f" INSERT INTO product_fts (product_fts, rowid, {columns}) VALUES {values};"
    if added is not None:
        actions += f" INSERT INTO product_fts (rowid, {columns}) VALUES (new.product_id, {added});"
    op.execute(f"CREATE TRIGGER product_words_{name} AFTER {event} ON product_words{condition} BEGIN{actions} END")
