"""Work on large bodies shares the interpreter with the event loop, so few of them are worked on at once."""

import asyncio
import threading
from contextvars import ContextVar

import pytest

from tis.http.event_stream import is_long
from tis.http.scanned_route import in_thread_if

pytestmark = pytest.mark.anyio


async def test_two_large_bodies_are_worked_on_at_once_and_the_others_wait() -> None:
    lock, go = threading.Lock(), threading.Event()
    running, most = 0, 0

    def work() -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go.wait(10)
        with lock:
            running -= 1
        return 1

    works = [asyncio.create_task(in_thread_if(True, work)) for _ in range(10)]
    await asyncio.sleep(0)
    go.set()
    assert sum(await asyncio.gather(*works)) == 10 and most <= 2


async def test_it_knows_the_request() -> None:
    request_id = ContextVar("request_id", default="-")
    request_id.set("r1")
    assert await in_thread_if(True, request_id.get) == "r1"


async def test_few_events_are_long_if_they_are_large() -> None:
    assert is_long([b"x" * 1024] * 257) and is_long([b"x"] * 501)
    assert not is_long([b"x" * 1024] * 256) and not is_long([b"x"] * 500) and not is_long([])


async def test_small_ones_stay_on_the_loop() -> None:
    assert await in_thread_if(False, threading.get_ident) == threading.get_ident()
