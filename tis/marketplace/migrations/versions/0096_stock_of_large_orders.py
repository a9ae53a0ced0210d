"""An index on the stock on hand, for searches with a large `quantity`"""

import sqlalchemy as sa
from alembic import op

revision = "0096"
down_revision = "0095"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_products_on_hand",
        "products",
        ["on_hand"],
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_products_on_hand", table_name="products")
