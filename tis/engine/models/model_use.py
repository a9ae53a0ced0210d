"""Who uses a model now, and since when nobody does."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tis.admission.ticket import Ticket


class ModelUse:
    """On the event loop. What waits and runs in its worker, the worker knows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._num_preparing = 0
        self._tickets: set[Ticket] = set()
        self._last_used_at = clock()

    @property
    def is_used(self) -> bool:
        return bool(self._num_preparing or self._tickets)

    @property
    def idle_seconds(self) -> float:
        return 0.0 if self.is_used else self._clock() - self._last_used_at

    @contextmanager
    def preparing(self, ticket: Ticket | None = None) -> Iterator[None]:
        """A request is being prepared, which may wait for the load. With a ticket it is used until the answer is made:

        between the rounds of an answer, too, while it calls tools.
        """
        if ticket is not None and ticket not in self._tickets:
            self._tickets.add(ticket)
            ticket.when_computed(lambda: self._let_go(ticket))
        self._num_preparing += 1
        try:
            yield
        finally:
            self._num_preparing -= 1
            self.touch()

    def touch(self) -> None:
        self._last_used_at = self._clock()

    def _let_go(self, ticket: Ticket) -> None:
        self._tickets.discard(ticket)
        self.touch()
