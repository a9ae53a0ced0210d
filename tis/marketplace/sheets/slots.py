"""How many sheets are read and imported at once: each may take 200 MB."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tis.errors import QueueFull

_RETRY_SECONDS = 2


class SheetSlots:
    """Sheets wait for their turn in the order in which they came; of one supplier, one is read at a time.

    So a supplier that sends sheet after sheet delays the others, and keeps nobody out. Who waits occupies a thread
    of the server, so few wait, and not for long.
    """

    def __init__(
        self, num_slots: int, *, max_waiting: int = 8, max_of_supplier: int = 3, wait_seconds: float = 10.0
    ) -> None:
        self._max_waiting, self._max_of_supplier = max_waiting, max_of_supplier
        self._wait_seconds = wait_seconds
        self._free = num_slots
        self._waiting: list[tuple[int, object]] = []
        self._reading: set[int] = set()
        self._changed = threading.Condition()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @contextmanager
    def slot(self, supplier_id: int) -> Iterator[None]:
        self._take(supplier_id)
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._reading.remove(supplier_id)
                self._changed.notify_all()

    def _take(self, supplier_id: int) -> None:
        me = (supplier_id, object())
        with self._changed:
            self._require_room(supplier_id)
            self._waiting.append(me)
            is_my_turn = self._changed.wait_for(lambda: self._next() is me, self._wait_seconds)
            self._waiting.remove(me)
            if is_my_turn:
                self._free -= 1
                self._reading.add(supplier_id)
            self._changed.notify_all()
        if not is_my_turn:
            raise _busy()

    def _require_room(self, supplier_id: int) -> None:
        num_of_supplier = sum(one == supplier_id for one, _ in self._waiting) + (supplier_id in self._reading)
        if num_of_supplier >= self._max_of_supplier:
            raise QueueFull(
                "Other sheets of this supplier are being imported. Retry shortly.", retry_after=_RETRY_SECONDS
            )
        if len(self._waiting) >= self._max_waiting:
            raise _busy()

    def _next(self) -> tuple[int, object] | None:
        if self._free == 0:
            return None
        return next((one for one in self._waiting if one[0] not in self._reading), None)


def _busy() -> QueueFull:
    return QueueFull("Other sheets are being imported. Retry shortly.", retry_after=_RETRY_SECONDS)
