"""Suppliers that showed an identity card: the badge, and what is kept of the card."""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json, UTCDateTime

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_TABLE = "supplier_verifications"


def upgrade() -> None:
    op.add_column("suppliers", sa.Column("verified_at", UTCDateTime(), nullable=True))
    op.create_index("ix_suppliers_verified_at_id", "suppliers", ["verified_at", "id"])
    op.create_table(
        _TABLE,
        sa.Column("supplier_id", BigId, autoincrement=False, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("name_matches", sa.Boolean(), nullable=False),
        sa.Column("doubts", Json, nullable=False),
        sa.Column("card_digest", sa.String(64), nullable=False),
        sa.Column("first_digest", sa.String(64), nullable=True),
        sa.Column("checked_at", UTCDateTime(), nullable=False),
        sa.Column("consent_at", UTCDateTime(), nullable=False),
        sa.Column("shown_by", sa.String(32), nullable=True),
        sa.Column("decided_at", UTCDateTime(), nullable=True),
        sa.Column("decided_by", sa.String(32), nullable=True),
        sa.Column("decided_reason", sa.String(500), nullable=True),
        sa.CheckConstraint(
            "status IN ('verified', 'doubtful', 'refused')", name=op.f("ck_supplier_verifications_status")
        ),
        sa.ForeignKeyConstraint(
            ["supplier_id"],
            ["suppliers.id"],
            name=op.f("fk_supplier_verifications_supplier_id_suppliers"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("supplier_id", name=op.f("pk_supplier_verifications")),
        sa.UniqueConstraint("first_digest", name=op.f("uq_supplier_verifications_first_digest")),
    )
    for column in ("card_digest", "decided_by", "shown_by"):
        op.create_index(op.f(f"ix_supplier_verifications_{column}"), _TABLE, [column])
    op.create_index("ix_supplier_verifications_status_supplier_id", _TABLE, ["status", "supplier_id"])


def downgrade() -> None:
    op.drop_table(_TABLE)
    op.drop_index("ix_suppliers_verified_at_id", table_name="suppliers")
    op.drop_column("suppliers", "verified_at")
