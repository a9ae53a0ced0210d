"""Codes of the places of suppliers and users; rows that exist get theirs after the start, in the background"""

import sqlalchemy as sa
from alembic import op

revision = "0092"
down_revision = "0091"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("suppliers", "users"):
        op.add_column(table, sa.Column("place_code", sa.String(length=4), nullable=True))


def downgrade() -> None:
    for table in ("suppliers", "users"):
        op.drop_column(table, "place_code")
