"""How Alembic reaches the tables: on the connection that `Database.migrate` hands over, in its transaction.

Its note of the version has a name of its own: the marketplace may live in the same database.
"""

from alembic import context

from tis.streaming.archive.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table="stored_sessions_version",
    render_as_batch=True,
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
