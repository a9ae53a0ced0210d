"""Imports of sheets that are too large for one transaction"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0090"
down_revision = "0088"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sheet_imports",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("actor", sa.String(length=32), nullable=True),
        sa.Column("request_id", sa.String(length=128), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("num_rows", sa.Integer(), nullable=False),
        sa.Column("num_done", sa.Integer(), nullable=False),
        sa.Column("num_created", sa.Integer(), nullable=False),
        sa.Column("num_updated", sa.Integer(), nullable=False),
        sa.Column("num_unchanged", sa.Integer(), nullable=False),
        sa.Column("problems", Json, nullable=False),
        sa.Column("detail", sa.String(length=500), nullable=True),
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
        "sheet_batches",
        sa.Column("import_id", sa.String(length=36), nullable=False),
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


def downgrade() -> None:
    op.drop_table("sheet_batches")
    op.drop_table("sheet_imports")
