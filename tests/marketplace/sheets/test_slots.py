"""Suppliers take turns with their sheets."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tis.errors import QueueFull
from tis.marketplace.sheets.slots import SheetSlots

GREEDY, OTHER = 1, 2


def test_a_supplier_that_sends_sheet_after_sheet_keeps_nobody_out() -> None:
    slots, order = SheetSlots(3), list[int]()
    with ThreadPoolExecutor() as threads, ExitStack() as reading:
        reading.enter_context(slots.slot(GREEDY))
        waiting = [begin(threads, slots, GREEDY, order.append) for _ in range(2)]
        with pytest.raises(QueueFull, match="of this supplier"), slots.slot(GREEDY):
            pass
        with slots.slot(OTHER):
            order.append(OTHER)
        assert order == [OTHER]
        reading.close()
        for one in waiting:
            one.result()
    assert order == [OTHER, GREEDY, GREEDY]


def test_who_waits_too_long_is_told_to_retry() -> None:
    slots = SheetSlots(1, wait_seconds=0.01)
    with slots.slot(GREEDY), pytest.raises(QueueFull) as refused, slots.slot(OTHER):
        pass
    assert refused.value.retry_after == 2
    with slots.slot(OTHER):
        assert slots.num_waiting == 0


def test_a_slot_is_free_again_after_a_failure() -> None:
    slots = SheetSlots(1)
    with pytest.raises(ValueError), slots.slot(GREEDY):
        raise ValueError
    with slots.slot(GREEDY):
        pass


def begin(threads: ThreadPoolExecutor, slots: SheetSlots, supplier: int, note: Callable[[int], None]) -> Future[None]:
    """Returns when the thread waits for its slot."""
    before, started = slots.num_waiting, threading.Event()

    def read() -> None:
        started.set()
        with slots.slot(supplier):
            note(supplier)

    future = threads.submit(read)
    started.wait()
    while slots.num_waiting == before and not future.done():
        pass
    return future
