"""Pictures of products."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pictures",
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("unused_since", UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_pictures")),
    )
    op.create_index(op.f("ix_pictures_unused_since"), "pictures", ["unused_since"])
    op.create_table(
        "product_pictures",
        sa.Column("product_id", BigId, autoincrement=False, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("alt", sa.String(300), nullable=True),
        sa.Column("alt_status", sa.String(16), nullable=True),
        sa.Column("alt_tries", sa.Integer(), nullable=False),
        sa.Column("source_digest", sa.String(64), nullable=True),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.CheckConstraint("alt_status IN ('proposed', 'confirmed')", name=op.f("ck_product_pictures_alt_status")),
        sa.ForeignKeyConstraint(
            ["product_id"],
            ["products.id"],
            name=op.f("fk_product_pictures_product_id_products"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["hash"], ["pictures.hash"], name=op.f("fk_product_pictures_hash_pictures"), ondelete="RESTRICT"
        ),
        sa.PrimaryKeyConstraint("product_id", "hash", name=op.f("pk_product_pictures")),
    )
    op.create_index(op.f("ix_product_pictures_hash"), "product_pictures", ["hash"])
    op.create_index("ix_product_pictures_product_id_position", "product_pictures", ["product_id", "position"])
    undescribed = ["alt_tries", "created_at"]
    op.create_index("ix_product_pictures_undescribed", "product_pictures", undescribed, **_where("alt_status IS NULL"))
    op.create_table(
        "picture_fetches",
        sa.Column("id", BigId, nullable=False),
        sa.Column("import_id", sa.String(36), nullable=False),
        sa.Column("product_id", BigId, nullable=False),
        sa.Column("row_number", sa.Integer(), nullable=False),
        sa.Column("urls", Json, nullable=False),
        sa.Column("num_tries", sa.Integer(), nullable=False),
        sa.Column("due_at", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["import_id"],
            ["sheet_imports.id"],
            name=op.f("fk_picture_fetches_import_id_sheet_imports"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f("fk_picture_fetches_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_picture_fetches")),
    )
    for column in ("due_at", "import_id", "product_id"):
        op.create_index(op.f(f"ix_picture_fetches_{column}"), "picture_fetches", [column])


def downgrade() -> None:
    for table in ("picture_fetches", "product_pictures", "pictures"):
        op.drop_table(table)


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}
