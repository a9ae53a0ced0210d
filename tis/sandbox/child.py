"""The side of the sandboxed program: it connects to the server, reports that it is ready, and limits its own resources.

Limits are set where the system has them (docs/decisions/0021-media-and-sandboxes.md); the server's deadline works
everywhere.
"""

import faulthandler
import math
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import connection

try:
    import resource
except ImportError:  # Windows
    _HAS_LIMITS = False
else:
    _HAS_LIMITS = True

READY = b"ready"
_NUM_STANDARD_FILES = 3
_MAX_START_SECONDS = 60  # in case the server dies before it could kill this process


def connect_to_server() -> "connection.Connection":
    """Removes the handle of the connection from `sys.argv`."""
    exit_after(_MAX_START_SECONDS)
    handle = int(sys.argv.pop(1))
    if sys.platform == "win32":
        return connection.PipeConnection(handle)
    os.set_inheritable(handle, False)
    return connection.Connection(handle)


def say_ready(server: "connection.Connection") -> None:
    """A failure before this means that the program cannot start, and not that its input is bad."""
    server.send_bytes(READY)


def exit_after(seconds: float | None) -> None:
    """None cancels the previous call."""
    if hasattr(signal, "alarm"):
        signal.alarm(math.ceil(seconds or 0))
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def limit_memory(num_bytes: int) -> None:
    # On macOS a process has mapped more than any sensible limit before it begins, and setting one fails.
    if _HAS_LIMITS and sys.platform != "darwin":
        _limit(resource.RLIMIT_AS, num_bytes)


def limit_cpu(seconds: int) -> None:
    if _HAS_LIMITS:
        # The soft limit is lower, so that the process dies of SIGXCPU, which shows the reason.
        _limit(resource.RLIMIT_CPU, seconds, seconds + 1)


def limit_files(num_bytes: int) -> None:
    """Limits the size of each file written, and turns core dumps off."""
    if _HAS_LIMITS:
        _limit(resource.RLIMIT_FSIZE, num_bytes)
        _limit(resource.RLIMIT_CORE, 0)


@contextmanager
def no_new_files() -> Iterator[None]:
    """Within the block, no file or socket can be opened."""
    if not _HAS_LIMITS:
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_NUM_STANDARD_FILES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    """Keeps a lower limit of the operator."""
    highest = resource.getrlimit(kind)[1]
    allowed = [value if highest == resource.RLIM_INFINITY else min(value, highest) for value in (soft, hard or soft)]
    resource.setrlimit(kind, (allowed[0], allowed[1]))
