"""How many long answers are under way at once, in all and for one caller."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tis.errors import QueueFull


class AnswerSlots:
    """On the event loop."""

    def __init__(self, name: str, max_answers: int, max_of_caller: int) -> None:
        self._name, self._max_answers, self._max_of_caller = name, max_answers, max_of_caller
        self._taken: Counter[str] = Counter()

    def require_room(self, caller: str) -> None:
        if self._taken[caller] >= self._max_of_caller or self._taken.total() >= self._max_answers:
            raise QueueFull(f"Too many {self._name} are read at this moment. Retry later.", retry_after=30)

    @contextmanager
    def slot(self, caller: str) -> Iterator[None]:
        self.require_room(caller)
        self._taken[caller] += 1
        try:
            yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]
