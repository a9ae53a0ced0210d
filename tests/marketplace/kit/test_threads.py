"""Threads whose caller gave up keep their slot: there are never more of them than slots."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from tis.marketplace.kit import threads
from tis.marketplace.kit.threads import in_thread


async def given_up(work: Callable[[], object]) -> bool:
    try:
        async with asyncio.timeout(0.02):
            await in_thread(work)
    except TimeoutError:
        return True
    return False


def test_callers_who_give_up_leave_no_more_threads_than_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MAX_THREADS", 3)
    gate, num_begun = threading.Event(), 0

    def work() -> None:
        nonlocal num_begun
        num_begun += 1
        assert gate.wait(10)

    async def crowd() -> int:
        assert all(await asyncio.gather(*(given_up(work) for _ in range(20))))
        assert num_begun == 3  # the others never began
        gate.set()
        return await asyncio.wait_for(in_thread(lambda: 7), 5)  # the slots are back

    assert asyncio.run(crowd()) == 7
    assert num_begun == 3


def test_a_result_and_a_fault_reach_the_caller() -> None:
    def fail() -> None:
        raise KeyError("gone")

    async def both() -> int:
        with pytest.raises(KeyError):
            await in_thread(fail)
        return await in_thread(lambda one, two: one + two, 1, 2)

    assert asyncio.run(both()) == 3
