"""The index has measures, SKUs, attributes and first words of names; products are indexed again after the start"""

from alembic import op

revision = "0094"
down_revision = "0093"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE product_search SET words_digest = 0")


def downgrade() -> None:
    """Words too many do no harm."""
