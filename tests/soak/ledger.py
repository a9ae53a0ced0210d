"""What the clients of a soak saw: answers by status, latencies, and everything that must not be."""

import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

_MAX_NOTES = 200  # of each sort: the counts go on
_MAX_LATENCIES = 5000  # of each kind of request, the newest


@dataclass(frozen=True)
class Note:
    seconds: float  # since the soak began
    kind: str
    text: str


@dataclass
class SoakLedger:
    """Only what a client was shown counts: a block, a 200, a reservation."""

    began: float = field(default_factory=time.monotonic)
    answers: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    latencies: dict[str, deque[float]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_MAX_LATENCIES))
    )
    checks: Counter[str] = field(default_factory=Counter)  # by what was checked: that it holds is known
    faults: Counter[str] = field(default_factory=Counter)
    fault_notes: list[Note] = field(default_factory=list)
    server_errors: Counter[str] = field(default_factory=Counter)
    server_error_notes: list[Note] = field(default_factory=list)

    def answered(self, kind: str, outcome: str, seconds: float | None = None) -> None:
        """By status; `cut` is a connection that a kill has ended."""
        self.answers[kind][outcome] += 1
        if seconds is not None:
            self.latencies[kind].append(seconds)

    @property
    def num_answers(self) -> int:
        return sum(outcomes.total() - outcomes["cut"] for outcomes in self.answers.values())

    def holds(self, what: str, number: int = 1) -> None:
        self.checks[what] += number

    def fault(self, sort: str, kind: str, text: str, number: int = 1) -> None:
        """`lost`, `doubled`, `different`, `stock`, `status`, `connection`, `hangs`."""
        self.faults[sort] += number
        self._note(self.fault_notes, kind, f"{sort}: {text}")

    def server_error(self, kind: str, status: int, text: str, *, is_expected: bool) -> None:
        """Expected are those of a server that was just killed or is starting."""
        self.server_errors["expected" if is_expected else "unexpected"] += 1
        self._note(self.server_error_notes, kind, f"{'' if is_expected else 'UNEXPECTED '}{status} {text}")
        if not is_expected:
            self.fault("status", kind, f"{status} {text}")

    def expect(self, fact: Any, sort: str, kind: str, text: str) -> None:
        if fact:
            self.holds(f"{kind}: {sort}")
        else:
            self.fault(sort, kind, text)

    def _note(self, notes: list[Note], kind: str, text: str) -> None:
        if len(notes) < _MAX_NOTES:
            notes.append(Note(round(time.monotonic() - self.began, 1), kind, text[:600]))
