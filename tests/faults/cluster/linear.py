"""Whether what concurrent clients were told about one session could have happened one step after the other.

A small linearizability checker (Wing and Gong): it looks for an order of the operations in which each takes effect
between its call and its answer, and in which a sequential session gives every answer. An operation that nobody has
answered may have taken effect at any time after its call, or never. Between two operations the running answer may
end by itself.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

EndStatus = Literal["cancelled", "finished", "failed"]
Told = Literal["answer", "conflict", "unknown", "cancelled", "finished", "failed"]
UNANSWERED = float("inf")
_MAX_OPERATIONS = 24


@dataclass(frozen=True, slots=True)
class SessionOperation:
    verb: Literal["begin", "cancel"]
    called_at: float
    answered_at: float = UNANSWERED
    told: Told | None = None  # None: nobody has answered
    request: str = ""  # what is asked, of `begin`
    answer_id: str = ""  # of the answer that `begin` was shown


@dataclass(frozen=True, slots=True)
class SequentialSession:
    """A session that serves one operation after the other."""

    answers: tuple[tuple[str, str], ...] = ()  # the request and the id of each, the latest last
    status: EndStatus | Literal["running", "ending"] | None = None  # of the latest; ending: told that it is cancelled

    def after(self, operation: SessionOperation, failed: Collection[str]) -> Iterator["SequentialSession"]:
        """Nothing, where the operation cannot be answered so."""
        if operation.verb == "cancel":
            yield from self._after_cancel(operation.told)
        else:
            yield from self._after_begin(operation, failed)

    def by_itself(self, failed: Collection[str]) -> Iterator["SequentialSession"]:
        if self.status == "running":
            yield replace(self, status="finished")
            if self.answers[-1][1] in ("", *failed):
                yield replace(self, status="failed")
        elif self.status == "ending":
            yield replace(self, status="cancelled")

    def _after_cancel(self, told: Told | None) -> Iterator["SequentialSession"]:
        if self.status == "running":
            if told in (None, "cancelled"):
                yield replace(self, status="cancelled")
                yield replace(self, status="ending")  # its server has not stopped it yet
        elif told in (None, "unknown" if self.status is None else self._shown_status):
            yield self

    @property
    def _shown_status(self) -> str | None:
        return "cancelled" if self.status == "ending" else self.status

    def _after_begin(self, operation: SessionOperation, failed: Collection[str]) -> Iterator["SequentialSession"]:
        known = next((answer for request, answer in reversed(self.answers) if request == operation.request), None)
        is_latest = bool(self.answers) and self.answers[-1][0] == operation.request
        has_failed = self.status == "failed" if is_latest else known in failed
        if known is not None and not has_failed:
            if operation.told is None or (operation.told == "answer" and known in ("", operation.answer_id)):
                answers = tuple(
                    (request, operation.answer_id or answer) if answer == known == "" else (request, answer)
                    for request, answer in self.answers
                )
                yield replace(self, answers=answers)
        elif self.status in ("running", "ending"):
            if operation.told in (None, "conflict"):
                yield self
        elif operation.told in (None, "answer"):
            is_new = operation.answer_id not in (answer for _, answer in self.answers) or not operation.answer_id
            if is_new:
                before = self.answers[:-1] if self.status == "failed" else self.answers  # it may be begun again
                yield SequentialSession((*before, (operation.request, operation.answer_id)), "running")


@dataclass(slots=True)
class _OrderSearch:
    operations: Sequence[SessionOperation]
    failed: Collection[str]
    seen: set[tuple[int, SequentialSession]] = field(default_factory=set)

    def finds_order(self, done: int, state: SequentialSession) -> bool:
        left = [number for number in range(len(self.operations)) if not done >> number & 1]
        if all(self.operations[number].told is None for number in left):
            return True
        if (done, state) in self.seen:
            return False
        self.seen.add((done, state))
        steps: list[tuple[int, SequentialSession]] = []
        for number in self._next_ones(left):
            for following in state.after(self.operations[number], self.failed):
                if following == state and self.operations[number].told:  # to take it now can be no mistake
                    return self.finds_order(done | 1 << number, state)
                steps.append((done | 1 << number, following))
        steps += [(done, following) for following in state.by_itself(self.failed)]
        return any(self.finds_order(*step) for step in steps)

    def _next_ones(self, left: Sequence[int]) -> Iterator[int]:
        """Those that were called before any other was answered; of several that are alike, the one answered first."""
        first_answer = min(self.operations[number].answered_at for number in left)
        alike: set[tuple[str, ...]] = set()
        for number in sorted(left, key=lambda one: self.operations[one].answered_at):
            operation = self.operations[number]
            kind = (operation.verb, operation.told or "", operation.request, operation.answer_id)
            if operation.called_at <= first_answer and kind not in alike:
                alike.add(kind)
                yield number


def is_linear(operations: Sequence[SessionOperation], failed: Collection[str] = ()) -> bool:
    """`failed`: the ids of answers that are known to have failed. Others end by themselves only as finished."""
    if len(operations) > _MAX_OPERATIONS:
        raise ValueError(f"{len(operations)} operations of one session take too long to be checked")
    return _OrderSearch(operations, failed).finds_order(0, SequentialSession())
