"""Opening hours of suppliers"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import Json

revision = "0091"
down_revision = "0090"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("suppliers", sa.Column("opening_hours", Json, nullable=True))
    op.add_column("suppliers", sa.Column("time_zone", sa.String(4), nullable=True))


def downgrade() -> None:
    op.drop_column("suppliers", "time_zone")
    op.drop_column("suppliers", "opening_hours")
