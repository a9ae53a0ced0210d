"""Invitations to work for a supplier"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, UTCDateTime

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "supplier_invitations",
        sa.Column("supplier_id", BigId, nullable=False),
        sa.Column("user_id", BigId, nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
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
    op.create_index("ix_supplier_invitations_user_id", "supplier_invitations", ["user_id"])


def downgrade() -> None:
    op.drop_table("supplier_invitations")
