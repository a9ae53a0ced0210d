"""Clients of the simulation, and the check of what they saw."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scripts.simulated_cluster.simulated_redis import StoredEvent, StoredSession


@dataclass(slots=True, eq=False)
class SimulatedReader:
    """Reads one answer, at whichever server it is connected to; its cursor is the index of the last event it saw."""

    number: int  # of the session
    num_tokens: int
    cursor: int = -1
    seen: list[StoredEvent] = field(default_factory=list)
    is_done: bool = False
    connection: object = None

    def take(self, events: Sequence[StoredEvent], sender: object) -> None:
        for event in events:
            if self.is_done or self.connection is not sender:
                return
            if event.index > self.cursor:
                self.cursor = event.index
                self.seen.append(event)
                self.is_done = event.token == self.num_tokens - 1


@dataclass(slots=True)
class Findings:
    lost: int = 0  # tokens that a reader never saw
    doubled: int = 0  # tokens that it saw again
    mixed: int = 0  # events that are other ones in Redis


def check(readers: Iterable[SimulatedReader], sessions: Mapping[int, StoredSession]) -> Findings:
    findings = Findings()
    for reader in readers:
        tokens = {event.token for event in reader.seen}
        findings.lost += reader.num_tokens - len(tokens)
        findings.doubled += len(reader.seen) - len(tokens)
        stored = {event.index: event for event in sessions[reader.number].events}
        findings.mixed += sum(stored.get(event.index) != event for event in reader.seen)
    return findings
