"""Which owner was shown the secret of a webhook: of those that are there, who set it."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("secret_by", sa.String(32), nullable=True))
    op.create_index(op.f("ix_webhooks_secret_by"), "webhooks", ["secret_by"])
    op.execute("UPDATE webhooks SET secret_by = set_by")


def downgrade() -> None:
    op.drop_index(op.f("ix_webhooks_secret_by"), table_name="webhooks")
    op.drop_column("webhooks", "secret_by")
