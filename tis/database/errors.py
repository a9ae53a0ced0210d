"""Errors of the database package."""

from tis.errors import Unavailable


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"


class UnknownTables(DatabaseUnavailable):
    """A later version of the server has made or changed the tables."""


class DatabaseUrlError(Exception):
    """Stops the server at its start. The message does not contain the URL, which may contain a password."""
