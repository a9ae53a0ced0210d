"""Charger, power bank and phone case become subcategories of accessories, unless an admin has changed them"""

import sqlalchemy as sa
from alembic import op

revision = "0099"
down_revision = "0097"
branch_labels = None
depends_on = None

_CATEGORIES = sa.table("categories", *map(sa.column, ("slug", "parent")))
_AUDIT = sa.table("audit_log", *map(sa.column, ("entity", "entity_id")))
# The other first categories stay as they are: a parent is a filter, too, and nobody looks for a mouse in "accessories".
_PARENT = "accessories"
_CHILDREN = ("charger", "phone-case", "power-bank")


def upgrade() -> None:
    connection = op.get_bind()
    changed = set(connection.scalars(sa.select(_AUDIT.c.entity_id).where(_AUDIT.c.entity == "category")))
    parents = {row.slug: row.parent for row in connection.execute(sa.select(_CATEGORIES.c.slug, _CATEGORIES.c.parent))}
    # One that has a parent, or stands below one of these, is an admin's doing.
    if parents.get(_PARENT, "") is not None or _PARENT in changed:
        return
    new = [slug for slug in _CHILDREN if parents.get(slug, "") is None and slug not in changed]
    op.execute(_CATEGORIES.update().where(_CATEGORIES.c.slug.in_(new)).values(parent=_PARENT))
    op.execute(sa.text("UPDATE taxonomy_version SET version = '0099'"))


def downgrade() -> None:
    ours = _CATEGORIES.c.slug.in_(_CHILDREN) & (_CATEGORIES.c.parent == _PARENT)
    op.execute(_CATEGORIES.update().where(ours).values(parent=None))
    op.execute(sa.text("UPDATE taxonomy_version SET version = '0095'"))
