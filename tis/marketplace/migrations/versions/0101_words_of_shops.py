"""Products are found by the words of their shop's name, city and province: they are indexed again after the start"""

from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE product_search SET words_digest = 0")


def downgrade() -> None:
    """Tokens too many do no harm."""
