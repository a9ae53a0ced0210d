"""Opening hours of suppliers; their words, hours and ratings, by which they are found"""

from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from alembic import op

from tis.marketplace.columns import BigId, Json
from tis.marketplace.search.tokens import tokenize

revision = "0095"
down_revision = "0094"
branch_labels = None
depends_on = None

_BATCH_ROWS = 1000
_PUBLISHED_STARS = (
    "SELECT p.supplier_id, sum(p.rating_sum + 2 * p.verified_sum), sum(p.rating_count + 2 * p.verified_count)"
    " FROM products p WHERE p.rating_count > 0 GROUP BY p.supplier_id"
)


def upgrade() -> None:
    op.add_column("suppliers", sa.Column("opening_hours", Json, nullable=True))
    op.add_column("suppliers", sa.Column("time_zone", sa.String(4), nullable=True))
    # As in the lexicon: ranges of words must not follow the language of the database.
    collation = {"postgresql": "C", "mysql": "utf8mb4_bin"}.get(op.get_bind().dialect.name)
    facts = op.create_table(
        "supplier_search",
        sa.Column("supplier_id", BigId, nullable=False, autoincrement=False),
        sa.Column("name_key", sa.String(200), nullable=False),
        sa.Column("stars", sa.Double(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        _of_a_supplier("supplier_search"),
        sa.PrimaryKeyConstraint("supplier_id", name=op.f("pk_supplier_search")),
    )
    words = op.create_table(
        "supplier_words",
        sa.Column("word", sa.String(64, collation=collation), nullable=False),
        sa.Column("supplier_id", BigId, nullable=False, autoincrement=False),
        sa.Column("scope", sa.Integer(), nullable=False, autoincrement=False),
        _of_a_supplier("supplier_words"),
        sa.PrimaryKeyConstraint("word", "supplier_id", "scope", name=op.f("pk_supplier_words")),
    )
    op.create_index("ix_supplier_words_supplier_id", "supplier_words", ["supplier_id"])
    op.create_table(
        "supplier_hours",
        sa.Column("supplier_id", BigId, nullable=False, autoincrement=False),
        sa.Column("opens", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("closes", sa.Integer(), nullable=False),
        _of_a_supplier("supplier_hours"),
        sa.PrimaryKeyConstraint("supplier_id", "opens", name=op.f("pk_supplier_hours")),
    )
    _fill(facts, words)


def downgrade() -> None:
    for table in ("supplier_hours", "supplier_words", "supplier_search"):
        op.drop_table(table)
    op.drop_column("suppliers", "time_zone")
    op.drop_column("suppliers", "opening_hours")


def _of_a_supplier(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_supplier_id_suppliers")
    return sa.ForeignKeyConstraint(["supplier_id"], ["suppliers.id"], name=name, ondelete="CASCADE")


def _fill(facts: sa.Table, words: sa.Table) -> None:
    connection = op.get_bind()
    rated = {supplier: (stars, weight) for supplier, stars, weight in connection.execute(sa.text(_PUBLISHED_STARS))}
    rows: dict[sa.Table, list[dict[str, Any]]] = defaultdict(list)
    suppliers = sa.text("SELECT id, business_name, city, province FROM suppliers")
    for supplier, name, city, province in connection.execute(suppliers).all():
        name_words = tokenize(name)
        stars, weight = rated.get(supplier, (0, 0))
        rows[facts].append(
            {
                "supplier_id": supplier,
                "name_key": " ".join(sorted(set(name_words)))[:200],
                "stars": stars,
                "weight": weight,
            }
        )
        scoped = {(word, 0) for word in name_words} | {(word, 1) for word in tokenize(f"{city} {province or ''}")}
        rows[words] += [{"word": word, "supplier_id": supplier, "scope": scope} for word, scope in sorted(scoped)]
    for table, of_table in rows.items():
        for start in range(0, len(of_table), _BATCH_ROWS):
            connection.execute(sa.insert(table), of_table[start : start + _BATCH_ROWS])
