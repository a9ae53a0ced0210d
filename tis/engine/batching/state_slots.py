"""Gives a slot of the states to each sequence that runs. Plain Python, no tensors."""

import heapq


class StateSlots:
    def __init__(self, number: int) -> None:
        self._free = list(range(number))

    @property
    def num_free(self) -> int:
        return len(self._free)

    def take(self) -> int:
        """The lowest: states that lie side by side are read without being gathered."""
        return heapq.heappop(self._free)

    def give_back(self, slot: int) -> None:
        heapq.heappush(self._free, slot)
