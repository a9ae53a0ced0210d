"""Descriptors: how many files and connections this process may have open, and how many of them are kept free.

A descriptor that cannot be had fails whatever asks for it: a database, a file, a fetch. So some are kept from clients.
"""

_MAX_RAISED = 65_536
_MIN_BACKLOG, _MAX_BACKLOG = 16, 1024
_BACKLOG_SHARE = 8
_FOR_FILES = 16


def descriptor_limit() -> int | None:
    """None: there is no limit, or Windows."""
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Most systems give a process 1,024 unless it asks for more."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_RAISED if hard == resource.RLIM_INFINITY else min(hard, _MAX_RAISED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def backlog_within(limit: int | None) -> int:
    """How many clients may wait for their connection to be accepted. All of them are accepted at once."""
    return _MAX_BACKLOG if limit is None else max(_MIN_BACKLOG, min(_MAX_BACKLOG, limit // _BACKLOG_SHARE))


def first_reserved(limit: int | None) -> int | None:
    """The descriptor from which on they run short.

    Between it and the limit is room for the backlog, twice: a connection that is closed for another gives its
    descriptor back only after the next ones are accepted.
    """
    return None if limit is None else max(1, limit - 2 * backlog_within(limit) - _FOR_FILES)
