"""Graceful shutdown: delays a termination signal until running work is drained, then passes it on to uvicorn."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType

# SIGBREAK: on Windows, how to stop a server that runs without a terminal.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGBREAK") if hasattr(signal, name)]

# Set by the first signal of this process.
has_begun = threading.Event()


@contextmanager
def graceful_shutdown(drain: Callable[[asyncio.Event], Coroutine[None, None, None]]) -> Iterator[None]:
    """The first signal starts `drain`, while the sockets stay open and /ready answers 503; a second one sets its event.

    When `drain` ends, or at a third signal, the signal goes to the handler that was there before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python allows signal handlers only in the main thread
        return
    loop = asyncio.get_running_loop()
    before = {int(number): signal.getsignal(number) for number in _SIGNALS}
    draining: list[asyncio.Task[None]] = []
    hurry = asyncio.Event()

    def pass_on(number: int) -> None:
        signal.signal(number, before[number])
        signal.raise_signal(number)

    def handle(number: int, frame: FrameType | None) -> None:
        has_begun.set()
        loop.call_soon_threadsafe(begin, number)

    def begin(number: int) -> None:
        if hurry.is_set():
            pass_on(number)  # without waiting for a drain that hangs
        elif draining:
            hurry.set()
        else:
            draining.append(loop.create_task(drain(hurry)))
            draining[0].add_done_callback(lambda task: pass_on(number))

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
