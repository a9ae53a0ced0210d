"""Shares the places of the batch among owners. A place is for one sequence.

An owner who is alone has all places. When another owner comes, the youngest sequences of the owner who has most are
suspended until every owner has an equal part or wants no more. A suspended sequence continues when there is room: its
tokens are computed again, mostly from the prefix cache, and the next one is the one that would have come.
"""

from collections import Counter

from tis.engine.batching.scheduler import Scheduler
from tis.engine.batching.sequence import Sequence


class Places:
    def __init__(self, scheduler: Scheduler, max_running: int) -> None:
        self._scheduler = scheduler
        self._max_running = max_running
        self.suspended: list[Sequence] = []

    @property
    def sequences(self) -> list[Sequence]:
        """The suspended ones included."""
        return self._scheduler.sequences + self.suspended

    @property
    def has_room(self) -> bool:
        """For a new request of any owner: suspended sequences come first."""
        return not self._is_full and not self.suspended

    def owes(self, owner: str) -> bool:
        """Whether this owner has less than its part, and there is a free place or somebody who has more than theirs."""
        places, part = self._places(), self._part(owner)
        return places[owner] < part and (not self._is_full or max(places.values()) > part)

    def make_room(self, owner: str) -> None:
        """For a request of an owner who is owed a place: suspends sequences of those who have more than their part."""
        part = self._part(owner)
        while self._is_full:
            places = self._places()
            largest = max(places, key=lambda name: places[name])
            if places[largest] <= part or largest == owner:
                return
            # The youngest: others of its request may wait for the prompt of the oldest.
            victim = max(
                (one for one in self._scheduler.sequences if one.request.owner == largest), key=lambda one: one.arrival
            )
            self._scheduler.take_out(victim)
            self.suspended.append(victim)

    def bring_back(self) -> None:
        """Lets suspended sequences continue while there is room: first of the owner who has the fewest places."""
        while self.suspended and not self._is_full:
            places = self._places()
            first = min(self.suspended, key=lambda one: (places[one.request.owner], one.arrival))
            self.suspended.remove(first)
            self._scheduler.add(first)

    def drop(self, sequence: Sequence) -> None:
        if sequence in self.suspended:
            sequence.is_dropped = True
            self.suspended.remove(sequence)
        else:
            self._scheduler.drop(sequence)

    @property
    def _is_full(self) -> bool:
        return len(self._scheduler.sequences) >= self._max_running

    def _places(self) -> Counter[str]:
        return Counter(sequence.request.owner for sequence in self._scheduler.sequences)

    def _part(self, owner: str) -> int:
        owners = {sequence.request.owner for sequence in self.sequences} | {owner}
        return max(1, self._max_running // len(owners))
