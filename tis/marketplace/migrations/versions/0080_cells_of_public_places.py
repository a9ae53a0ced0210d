"""Grid cells in the text index are those of public places, as 0050 made all others"""

import math
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0080"
down_revision = "0070"
branch_labels = None
depends_on = None

_CELLS_PER_DEGREE = 4


def upgrade() -> None:
    connection = op.get_bind()
    places = sa.text("SELECT id, latitude, longitude, public_latitude, public_longitude FROM suppliers")
    for supplier in connection.execute(places).all():
        old = _cell(supplier.latitude, supplier.longitude)
        new = _cell(supplier.public_latitude, supplier.public_longitude)
        if old != new:
            _replace(connection, supplier.id, old, new)


def downgrade() -> None:
    """The code before this migration works with both."""


def _cell(latitude: float, longitude: float) -> str:
    row = math.floor((latitude + 90) * _CELLS_PER_DEGREE)
    column = math.floor((longitude + 180) * _CELLS_PER_DEGREE) % (360 * _CELLS_PER_DEGREE)
    return f"¤{row}x{column}"


def _replace(connection: sa.Connection, supplier_id: int, old: str, new: str) -> None:
    values: dict[str, Any] = {"supplier": supplier_id, "old": old, "new": new}
    own = "product_id IN (SELECT product_id FROM product_search WHERE supplier_id = :supplier)"
    if connection.dialect.name == "postgresql":
        # D is the weight of tokens.
        connection.execute(
            sa.text(
                "UPDATE product_words SET words = ts_delete(words, CAST(:old AS text))"
                " || setweight(array_to_tsvector(ARRAY[CAST(:new AS text)]), 'D')"
                f" WHERE {own} AND CAST(:old AS text) = ANY (tsvector_to_array(words))"
            ),
            values,
        )
    else:
        rows = connection.execute(sa.text(f"SELECT product_id, tokens FROM product_words WHERE {own}"), values).all()
        changed = [
            {"product": product_id, "tokens": " ".join(new if token == old else token for token in tokens.split(" "))}
            for product_id, tokens in rows
            if old in tokens.split(" ")
        ]
        if changed:
            connection.execute(
                sa.text("UPDATE product_words SET tokens = :tokens WHERE product_id = :product"), changed
            )
    # Not the digest of any words: the next change of a product indexes it anew.
    connection.execute(sa.text(f"UPDATE product_search SET words_digest = 0 WHERE {own}"), values)
