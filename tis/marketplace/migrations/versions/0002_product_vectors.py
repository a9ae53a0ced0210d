"""Vectors of products, by which a sentence finds goods that do not say its words."""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "product_vectors",
        sa.Column("product_id", BigId, autoincrement=False, nullable=False),
        sa.Column("model", sa.String(300), nullable=False),
        sa.Column("words_digest", BigId, nullable=False),
        sa.Column("renewed_us", BigId, nullable=False),
        sa.Column("numbers", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["product_id"],
            ["product_search.product_id"],
            name=op.f("fk_product_vectors_product_id_product_search"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("product_id", name=op.f("pk_product_vectors")),
    )
    op.create_index("ix_product_vectors_renewed_us_product_id", "product_vectors", ["renewed_us", "product_id"])


def downgrade() -> None:
    op.drop_table("product_vectors")
