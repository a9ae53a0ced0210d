"""The ticket of one request: its stage, and what it holds of each resource."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from tis.admission.budget import Budget
from tis.admission.limits import Resource, Stage


class StageCounts:
    """Requests in each stage, of the server and of each owner who has any."""

    def __init__(self) -> None:
        self.of_server: Counter[Stage] = Counter()
        self._of_owner: dict[str, Counter[Stage]] = {}

    def of_owner(self, owner: str) -> Mapping[Stage, int]:
        return self._of_owner.get(owner, Counter())

    def move(self, owner: str, before: Stage | None, after: Stage | None) -> None:
        of_owner = self._of_owner.setdefault(owner, Counter())
        for counter in (self.of_server, of_owner):
            if before:
                counter[before] -= 1
            if after:
                counter[after] += 1
        if after is None and not any(of_owner.values()):
            del self._of_owner[owner]


class TokenMeter(Protocol):
    """Counts the tokens of a caller."""

    @property
    def name(self) -> str:
        """Of the caller's key, never the key."""
        ...

    def count_tokens(self, *, prompt: int = 0, generated: int = 0) -> None: ...

    def go_on(self) -> None:
        """A call of the caller, which another process accepted, runs here until `end`."""
        ...

    def end(self) -> None: ...


class Ticket:
    """Held by the HTTP request, and by the run that it begins. What is still held goes back at the end of both."""

    def __init__(
        self,
        owner: str,
        owner_share: float,
        budgets: Mapping[Resource, Budget],
        stages: StageCounts,
        *,
        is_resumed: bool,
        meter: TokenMeter | None = None,
    ) -> None:
        self.owner = owner
        self.owner_share = owner_share
        self.began_at = time.monotonic()
        self.waited_seconds = 0.0
        self.is_resumed = is_resumed  # accepted by another process: it may wait, but is never refused
        self.stage: Stage | None = None
        self.has_answered = False  # it has a first token
        self._budgets = budgets
        self._meter = meter
        self._stages = stages
        self._held: dict[Resource, int] = {}
        self._has_request = not is_resumed
        self._has_run = False
        self._when_over: list[Callable[[], None]] = []
        self._when_computed: list[Callable[[], None]] = []

    @property
    def caller(self) -> str:
        """The name of the key whose tokens are counted; empty if nobody's are."""
        return self._meter.name if self._meter else ""

    @property
    def is_over(self) -> bool:
        """Both the HTTP request and its run have ended."""
        return not (self._has_request or self._has_run)

    def when_over(self, callback: Callable[[], None]) -> None:
        """Called once, at once if it is over already."""
        if self.is_over:
            callback()
        else:
            self._when_over.append(callback)

    def when_computed(self, callback: Callable[[], None]) -> None:
        """Called once: when nothing is computed for it any more, though its answer may be read for long."""
        if self.is_over:
            callback()
        else:
            self._when_computed.append(callback)

    def held(self, resource: Resource) -> int:
        return self._held.get(resource, 0)

    def enter(self, stage: Stage) -> None:
        if stage != self.stage and not self.is_over:
            self._stages.move(self.owner, self.stage, stage)
            self.stage = stage

    async def take(self, resource: Resource, amount: int) -> None:
        """Waits until there is room. Raises QueueFull after a while, or at once if too many wait."""
        self.waited_seconds += await self._budgets[resource].take(self.owner, amount, is_resumed=self.is_resumed)
        self._held[resource] = self.held(resource) + amount

    def take_now(self, resource: Resource, amount: int, *, is_resumed: bool = False) -> None:
        """Raises QueueFull if there is no room."""
        budget = self._budgets[resource]
        (budget.take_anyway if self.is_resumed or is_resumed else budget.take_now)(self.owner, amount)
        self._held[resource] = self.held(resource) + amount

    def keep(self, resource: Resource, amount: int) -> None:
        """Gives back what it holds beyond this amount."""
        surplus = self.held(resource) - amount
        if surplus > 0:
            self._held[resource] = amount
            self._budgets[resource].give_back(self.owner, surplus)

    @asynccontextmanager
    async def one_of(self, resource: Resource) -> AsyncIterator[None]:
        """One unit of the resource for the length of the block."""
        await self.take(resource, 1)
        try:
            yield
        finally:
            self.keep(resource, self.held(resource) - 1)

    def queue(self, num_prompt_tokens: int, *, is_resumed: bool = False) -> None:
        """It waits for the model from here on, with this prompt in place of that of the round before.

        `is_resumed`: part of an answer that was accepted before, which is not refused.
        """
        self.keep("prompt_tokens", 0)
        self.take_now("prompt_tokens", num_prompt_tokens, is_resumed=is_resumed)
        if self._meter:
            self._meter.count_tokens(prompt=num_prompt_tokens)
        self.keep("requests", 0)
        self.enter("queued")

    def count_for(self, meter: TokenMeter | None) -> None:
        """From here on its tokens are those of this caller, and it is one of his running calls."""
        if meter and self._meter is None:
            meter.go_on()
            self.when_over(meter.end)
        self._meter = meter

    def count_prompt(self, num_tokens: int) -> None:
        """What the prompt has beyond what it was queued with, which was an estimate."""
        if self._meter:
            self._meter.count_tokens(prompt=num_tokens)

    def count_generated(self, num_tokens: int) -> None:
        if self._meter:
            self._meter.count_tokens(generated=num_tokens)

    def generate(self) -> None:
        """The model has made a first token."""
        self.has_answered = True
        self.enter("generating")

    def answer(self) -> None:
        """The request is prepared, and has begun no run of its own."""
        self.keep("requests", 0)
        if not self._has_run:
            self.enter("answering")

    def begin_run(self) -> None:
        """The run gives the ticket back, with `end_run`."""
        self._has_run = True
        self.keep("requests", 0)
        if self.stage is None:
            self.enter("preparing")

    def end_computing(self) -> None:
        """Its answer is made. A run ends it itself."""
        self.keep("prompt_tokens", 0)
        if self._has_request and not self._has_run:
            self.enter("answering")
        callbacks, self._when_computed = self._when_computed, []
        for callback in callbacks:
            callback()

    def end_run(self) -> None:
        if self._has_run:
            self._has_run = False
            self.end_computing()
            self._end(["prompt_tokens", "media_bytes", "decoded_bytes", "sound_seconds"])

    def end_request(self) -> None:
        if self._has_request:
            self._has_request = False
            self._end(["requests", "body_bytes"])

    def _end(self, resources: list[Resource]) -> None:
        for resource in list(self._held) if self.is_over else resources:
            self.keep(resource, 0)
        if self.is_over:
            if self.stage:
                self._stages.move(self.owner, self.stage, None)
                self.stage = None
            self.end_computing()
            callbacks, self._when_over = self._when_over, []
            for callback in callbacks:
                callback()
        elif self._has_request:
            self.enter("answering")
