"""Errors of the database package."""

from tis.errors import Unavailable


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"


class DatabaseUrlError(Exception):
    """Stops the server at its start. The message does not contain the URL, which may contain a password."""
