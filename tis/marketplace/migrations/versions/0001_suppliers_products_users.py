"""Suppliers, products, users"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "mysql":
        # Its default compares "a" and "A" as equal: e-mail addresses, SKUs and words would meet by mistake.
        op.execute("ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    op.create_table(
        "audit_log",
        sa.Column("id", BigId, nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.Column("actor", sa.String(length=32), nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("entity", sa.String(length=32), nullable=False),
        sa.Column("entity_id", sa.String(length=64), nullable=False),
        sa.Column("changes", Json, nullable=False),
        sa.Column("request_id", sa.String(length=128), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    with op.batch_alter_table("audit_log", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_log_actor"), ["actor"], unique=False)
        batch_op.create_index(batch_op.f("ix_audit_log_at"), ["at"], unique=False)
        batch_op.create_index("ix_audit_log_entity_entity_id", ["entity", "entity_id"], unique=False)

    op.create_table(
        "categories",
        sa.Column("slug", sa.String(length=100), nullable=False),
        sa.Column("parent", sa.String(length=100), nullable=True),
        sa.Column("name_id", sa.String(length=100), nullable=False),
        sa.Column("name_en", sa.String(length=100), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["categories.slug"], name=op.f("fk_categories_parent_categories")),
        sa.PrimaryKeyConstraint("slug", name=op.f("pk_categories")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("request_digest", sa.String(length=64), nullable=False),
        sa.Column("answer", Json, nullable=True),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("actor", "key", name=op.f("pk_idempotency_keys")),
    )
    with op.batch_alter_table("idempotency_keys", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_idempotency_keys_expires_at"), ["expires_at"], unique=False)

    op.create_table(
        "refresh_tokens",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("chain", sa.String(length=32), nullable=False),
        sa.Column("account", sa.String(length=32), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("used_at", UTCDateTime(), nullable=True),
        sa.Column("revoked_at", UTCDateTime(), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_refresh_tokens")),
    )
    with op.batch_alter_table("refresh_tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_refresh_tokens_account"), ["account"], unique=False)
        batch_op.create_index(batch_op.f("ix_refresh_tokens_chain"), ["chain"], unique=False)
        batch_op.create_index(batch_op.f("ix_refresh_tokens_expires_at"), ["expires_at"], unique=False)

    op.create_table(
        "suppliers",
        sa.Column("id", BigId, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("business_name", sa.String(length=200), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("email_key", sa.String(length=320), nullable=False),
        sa.Column("password_hash", sa.String(length=255), nullable=True),
        sa.Column("phone", sa.String(length=32), nullable=True),
        sa.Column("address", sa.String(length=500), nullable=True),
        sa.Column("latitude", sa.Double(), nullable=False),
        sa.Column("longitude", sa.Double(), nullable=False),
        sa.Column("city", sa.String(length=100), nullable=False),
        sa.Column("city_key", sa.String(length=100), nullable=False),
        sa.Column("province", sa.String(length=100), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("shows_place", sa.Boolean(), nullable=False),
        sa.Column("pickup_enabled", sa.Boolean(), nullable=False),
        sa.Column("courier_enabled", sa.Boolean(), nullable=False),
        sa.Column("delivery_radius_km", sa.Double(), nullable=True),
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
    with op.batch_alter_table("suppliers", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_suppliers_city_key"), ["city_key"], unique=False)
        batch_op.create_index("ix_suppliers_latitude_longitude", ["latitude", "longitude"], unique=False)

    op.create_table(
        "users",
        sa.Column("id", BigId, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=True),
        sa.Column("email_key", sa.String(length=320), nullable=True),
        sa.Column("password_hash", sa.String(length=255), nullable=True),
        sa.Column("phone", sa.String(length=32), nullable=True),
        sa.Column("latitude", sa.Double(), nullable=True),
        sa.Column("longitude", sa.Double(), nullable=True),
        sa.Column("city", sa.String(length=100), nullable=True),
        sa.Column("province", sa.String(length=100), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=False),
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
        "products",
        sa.Column("id", BigId, nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("brand", sa.String(length=100), nullable=True),
        sa.Column("price", BigId, nullable=False),
        sa.Column("on_hand", sa.Integer(), nullable=False),
        sa.Column("reserved", sa.Integer(), nullable=False),
        sa.Column("category", sa.String(length=100), nullable=False),
        sa.Column("category_key", sa.String(length=100), nullable=False),
        sa.Column("tags", sa.String(length=1000), nullable=True),
        sa.Column("sku", sa.String(length=100), nullable=True),
        sa.Column("condition", sa.String(length=8), nullable=False),
        sa.Column("attributes", Json, nullable=False),
        sa.Column("is_available", sa.Boolean(), nullable=False),
        sa.Column("rating_sum", sa.Integer(), nullable=False),
        sa.Column("rating_count", sa.Integer(), nullable=False),
        sa.Column("granted_rating", sa.Double(), nullable=True),
        sa.Column("rating_rank", sa.Double(), nullable=False),
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
    with op.batch_alter_table("products", schema=None) as batch_op:
        batch_op.create_index(
            "uq_products_supplier_id_sku",
            ["supplier_id", "sku"],
            unique=True,
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )

    op.create_table(
        "supplier_members",
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
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
    with op.batch_alter_table("supplier_members", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_supplier_members_user_id"), ["user_id"], unique=False)

    op.create_table(
        "synonyms",
        sa.Column("term", sa.String(length=100), nullable=False),
        sa.Column("means", sa.String(length=200), nullable=False),
        sa.Column("category", sa.String(length=100), nullable=True),
        sa.ForeignKeyConstraint(
            ["category"], ["categories.slug"], name=op.f("fk_synonyms_category_categories"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("term", name=op.f("pk_synonyms")),
    )
    op.create_table(
        "price_history",
        sa.Column("id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("price", BigId, nullable=False),
        sa.Column("valid_from", UTCDateTime(), nullable=False),
        sa.Column("actor", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_price_history_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_price_history")),
    )
    with op.batch_alter_table("price_history", schema=None) as batch_op:
        batch_op.create_index("ix_price_history_product_id_valid_from", ["product_id", "valid_from"], unique=False)

    op.create_table(
        "reviews",
        sa.Column("id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("rating", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=True),
        sa.Column("body", sa.String(length=5000), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
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
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reviews_user_id"), ["user_id"], unique=False)

    op.create_table(
        "stock_movements",
        sa.Column("id", BigId, nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("delta", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("reservation_id", sa.String(length=36), nullable=True),
        sa.Column("actor", sa.String(length=32), nullable=True),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_stock_movements_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stock_movements")),
    )
    with op.batch_alter_table("stock_movements", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_stock_movements_product_id"), ["product_id"], unique=False)

    op.create_table(
        "stock_reservations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("actor", sa.String(length=32), nullable=True),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("ended_at", UTCDateTime(), nullable=True),
        sa.CheckConstraint(
            "status IN ('held', 'committed', 'released', 'expired')", name=op.f("ck_stock_reservations_status")
        ),
        sa.CheckConstraint("quantity > 0", name=op.f("ck_stock_reservations_quantity")),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_stock_reservations_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stock_reservations")),
    )
    with op.batch_alter_table("stock_reservations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_stock_reservations_actor"), ["actor"], unique=False)
        batch_op.create_index(batch_op.f("ix_stock_reservations_product_id"), ["product_id"], unique=False)
        batch_op.create_index("ix_stock_reservations_status_expires_at", ["status", "expires_at"], unique=False)


def downgrade() -> None:
    # Their indexes go with them; MariaDB drops no index that a foreign key needs.
    for table in (
        "stock_reservations",
        "stock_movements",
        "reviews",
        "price_history",
        "synonyms",
        "supplier_members",
        "products",
        "users",
        "suppliers",
        "refresh_tokens",
        "idempotency_keys",
        "categories",
        "audit_log",
    ):
        op.drop_table(table)
