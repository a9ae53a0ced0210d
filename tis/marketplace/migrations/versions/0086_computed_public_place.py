"""The database computes where suppliers are for everybody, whoever writes the exact place"""

import sqlalchemy as sa
from alembic import op

revision = "0086"
down_revision = "0085"
branch_labels = None
depends_on = None

_INDEX = "ix_suppliers_public_latitude_public_longitude"
_COLUMNS = ("latitude", "longitude")
_DIGITS = "CASE WHEN shows_place THEN 3 ELSE 2 END"


def upgrade() -> None:
    op.drop_index(_INDEX, "suppliers")
    dialect = op.get_bind().dialect.name
    is_postgresql = dialect == "postgresql"
    for column in _COLUMNS:
        op.drop_column("suppliers", f"public_{column}")
        rounded = f"round({column}, {_DIGITS}) + 0.0"
        if is_postgresql:
            rounded = f"round({column}::numeric, {_DIGITS})::double precision"
        # SQLite adds no stored column to a table, PostgreSQL 15 has no other.
        computed = sa.Computed(rounded, persisted=True if is_postgresql else None)
        # MariaDB knows no NOT NULL beside an expression.
        new: sa.Column[float] = sa.Column(f"public_{column}", sa.Double(), computed, nullable=dialect == "mysql")
        op.add_column("suppliers", new)
    op.create_index(_INDEX, "suppliers", [f"public_{column}" for column in _COLUMNS])


def downgrade() -> None:
    op.drop_index(_INDEX, "suppliers")
    for column in _COLUMNS:
        op.drop_column("suppliers", f"public_{column}")
        op.add_column("suppliers", sa.Column(f"public_{column}", sa.Double(), nullable=False, server_default="0"))
        op.execute(f"UPDATE suppliers SET public_{column} = round(CAST({column} AS DECIMAL(20, 15)), {_DIGITS})")
    op.create_index(_INDEX, "suppliers", [f"public_{column}" for column in _COLUMNS])
