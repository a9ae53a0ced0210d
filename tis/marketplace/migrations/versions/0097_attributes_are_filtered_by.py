"""Attributes of products, by which they are filtered; products that have any are indexed again after the start"""

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId

revision = "0097"
down_revision = "0096"
branch_labels = None
depends_on = None


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    # Values are compared as they are, in no language of the database.
    collation = {"postgresql": "C", "mysql": "utf8mb4_bin"}.get(dialect)
    table = "product_attributes"
    op.create_table(
        table,
        sa.Column("product_id", BigId, nullable=False, autoincrement=False),
        sa.Column("name", sa.String(100, collation=collation), nullable=False),
        sa.Column("number", sa.Double(), nullable=True),
        sa.Column("text_key", sa.String(100, collation=collation), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.ForeignKeyConstraint(
            ["product_id"], ["products.id"], name=op.f(f"fk_{table}_product_id_products"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("product_id", "name", name=op.f(f"pk_{table}")),
        sqlite_with_rowid=False,
    )
    op.create_index(f"ix_{table}_name_number", table, ["name", "number", "product_id"])
    op.create_index(f"ix_{table}_name_text_key", table, ["name", "text_key", "product_id"])
    empty = "'{}'::jsonb" if dialect == "postgresql" else "'{}'"
    with_attributes = f"SELECT id FROM products WHERE attributes <> {empty}"
    op.execute(f"UPDATE product_search SET words_digest = 0 WHERE product_id IN ({with_attributes})")


def downgrade() -> None:
    op.drop_table("product_attributes")
