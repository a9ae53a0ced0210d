"""A supplier that moves writes one word per product into SQLite's full-text index; caches learn of new categories"""

import sqlalchemy as sa
from alembic import op

revision = "0087"
down_revision = "0086"
branch_labels = None
depends_on = None

_TEXTS = ("name", "labels", "description")
_COLUMNS = ", ".join((*_TEXTS, "tokens"))
_SAME_TEXTS = " AND ".join(f"new.{column} = old.{column}" for column in _TEXTS)


def upgrade() -> None:
    version = op.create_table(
        "taxonomy_version",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_taxonomy_version")),
    )
    op.bulk_insert(version, [{"id": 1, "version": ""}])
    if _has_fts():
        op.execute("DROP TRIGGER product_words_update")
        _create_trigger("product_words_update", f"WHEN NOT ({_SAME_TEXTS})", _values("old"), _values("new"))
        # No text contains a token, so the words of the texts can stay as they are.
        empty = ", ".join("''" for _ in _TEXTS)
        tokens = f"{empty}, old.tokens", f"{empty}, new.tokens"
        _create_trigger("product_words_tokens", f"WHEN {_SAME_TEXTS} AND new.tokens <> old.tokens", *tokens)


def downgrade() -> None:
    op.drop_table("taxonomy_version")
    if _has_fts():
        op.execute("DROP TRIGGER product_words_tokens")
        op.execute("DROP TRIGGER product_words_update")
        _create_trigger("product_words_update", "", _values("old"), _values("new"))


def _has_fts() -> bool:
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return False
    found = "SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = 'product_words_update'"
    return connection.exec_driver_sql(found).first() is not None


def _values(row: str) -> str:
    return ", ".join(f"{row}.{column}" for column in (*_TEXTS, "tokens"))


def _create_trigger(name: str, condition: str, removed: str, added: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name} AFTER UPDATE ON product_words {condition} BEGIN"
        f" INSERT INTO product_fts (product_fts, rowid, {_COLUMNS}) VALUES ('delete', old.product_id, {removed});"
        f" INSERT INTO product_fts (rowid, {_COLUMNS}) VALUES (new.product_id, {added}); END"
    )
