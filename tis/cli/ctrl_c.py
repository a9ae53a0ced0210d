"""Ctrl-C ends the command with one line and exit code 130.

While modules are imported the process exits from the signal handler itself: native modules, such as that of pydantic,
turn a KeyboardInterrupt during their import into a crash. There is nothing to close by then.
"""

import os
import signal
import sys
from collections.abc import Callable

_EXIT_CODE = 130


def until_ctrl_c(run: Callable[[], None]) -> None:
    """`run` calls `raise_keyboard_interrupt` after its imports."""
    signal.signal(signal.SIGINT, _exit_at_once)
    try:
        run()
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)  # noqa: T201
        sys.exit(_EXIT_CODE)


def raise_keyboard_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_at_once_after(clean_up: Callable[[], None]) -> None:
    """For work in threads that an exception in the main thread would wait for."""

    def exit_now(number: int, frame: object) -> None:
        clean_up()
        _exit_at_once(number, frame)

    signal.signal(signal.SIGINT, exit_now)


def _exit_at_once(number: int, frame: object) -> None:
    os.write(2, b"Stopped.\n")
    os._exit(_EXIT_CODE)
