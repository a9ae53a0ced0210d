"""A queue that serves owners in turn, and the items of one owner in the order of their arrival."""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Not locked: one thread uses it, or those who share it have a lock."""

    def __init__(self) -> None:
        self._by_owner: dict[str, deque[T]] = {}  # the owner whose turn it is comes first; none is empty
        self._num_items = 0

    def __len__(self) -> int:
        return self._num_items

    def __iter__(self) -> Iterator[T]:
        """In the order in which `pop` returns them if nobody else arrives."""
        queues = [list(queue) for queue in self._by_owner.values()]
        for position in range(max(map(len, queues), default=0)):
            for queue in queues:
                if position < len(queue):
                    yield queue[position]

    def num_of(self, owner: str) -> int:
        return len(self._by_owner.get(owner, ()))

    def append(self, owner: str, item: T) -> None:
        self._by_owner.setdefault(owner, deque()).append(item)
        self._num_items += 1

    def heads(self) -> list[tuple[str, T]]:
        """The oldest item of each owner, in turn."""
        return [(owner, queue[0]) for owner, queue in self._by_owner.items()]

    def pop(self, owner: str | None = None) -> T:
        """Takes the oldest item of this owner, or of the owner whose turn it is, who then comes last."""
        owner = next(iter(self._by_owner)) if owner is None else owner
        queue = self._by_owner.pop(owner)
        item = queue.popleft()
        if queue:
            self._by_owner[owner] = queue
        self._num_items -= 1
        return item

    def remove(self, owner: str, item: T) -> None:
        """Raises ValueError if the item is not in the queue."""
        queue = self._by_owner.get(owner)
        if queue is None:
            raise ValueError("the owner has nothing in the queue")
        queue.remove(item)
        self._num_items -= 1
        if not queue:
            del self._by_owner[owner]
