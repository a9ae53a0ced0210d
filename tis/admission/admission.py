"""Makes tickets, and counts what all of them hold."""

from collections.abc import Callable, Mapping
from typing import get_args

from tis.admission.budget import Budget
from tis.admission.limits import AdmissionLimits, Resource, Stage
from tis.admission.ticket import StageCounts, Ticket, TokenMeter

RESUMED = "resumed"  # the owner of runs that another process began, whoever began them


class Admission:
    def __init__(
        self,
        limits: AdmissionLimits | None = None,
        share_of: Callable[[str], float | None] = lambda owner: None,
        meter_of: Callable[[str], TokenMeter | None] = lambda caller: None,
    ) -> None:
        """`share_of`: of the owners who have another share than the limits give to all.

        `meter_of`: of a caller whose answer another process began; None if there is no such key any more.
        """
        self.limits = limits or AdmissionLimits()
        self._share_of = share_of
        self._meter_of = meter_of
        self.budgets: Mapping[Resource, Budget] = {
            resource: Budget(resource, self.limits, share_of) for resource in get_args(Resource)
        }
        self._stages = StageCounts()

    def ticket(self, owner: str, meter: TokenMeter | None = None) -> Ticket:
        share = self._share_of(owner) or self.limits.owner_share
        return Ticket(owner, share, self.budgets, self._stages, is_resumed=False, meter=meter)

    def resumed_ticket(self) -> Ticket:
        """Of a run that was accepted before: it waits for room, and is never refused."""
        return Ticket(RESUMED, 1.0, self.budgets, self._stages, is_resumed=True)

    def meter_resumed(self, ticket: Ticket, caller: str) -> None:
        """From where a resumed run goes on: what it makes again was counted before. Others count from their start."""
        if ticket.is_resumed:
            ticket.count_for(self._meter_of(caller))

    def num_in(self, stage: Stage, owner: str | None = None) -> int:
        """Requests of the server, or of one owner."""
        counts = self._stages.of_server if owner is None else self._stages.of_owner(owner)
        return counts.get(stage, 0)

    def used(self, resource: Resource, owner: str | None = None) -> int:
        budget = self.budgets[resource]
        return budget.used if owner is None else budget.used_by(owner)

    def drain(self) -> None:
        """Refuses the requests that wait for room."""
        for budget in self.budgets.values():
            budget.drain()
