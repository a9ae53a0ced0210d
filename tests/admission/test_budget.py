"""What does not fit waits in turn, for a while, or is refused."""

import asyncio
from dataclasses import replace

import pytest

from tis.admission.budget import Budget
from tis.admission.limits import AdmissionLimits
from tis.errors import Draining, QueueFull

pytestmark = pytest.mark.anyio
LIMITS = AdmissionLimits(max_body_bytes=100, max_waiting=4, owner_share=0.5, wait_seconds=20)


def budget_of(limits: AdmissionLimits = LIMITS) -> Budget:
    return Budget("body_bytes", limits)


class Crowd:
    """Requests that take something of a budget, and the order in which they got it."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.served: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, name: str, amount: int, *, is_resumed: bool = False) -> None:
        """The first letter of the name is the owner."""

        async def take() -> None:
            await self.budget.take(name[0], amount, is_resumed=is_resumed)
            self.served.append(name)

        self.tasks[name] = asyncio.create_task(take())
        for _ in range(5):
            await asyncio.sleep(0)

    async def give_back(self, name: str, amount: int) -> None:
        self.budget.give_back(name[0], amount)
        for _ in range(5):
            await asyncio.sleep(0)

    async def leave(self, name: str) -> None:
        self.tasks[name].cancel()
        await asyncio.gather(self.tasks[name], return_exceptions=True)
        await asyncio.sleep(0)

    async def __aexit__(self, *_: object) -> None:
        for name in self.tasks:
            await self.leave(name)

    async def __aenter__(self) -> "Crowd":
        return self


async def test_what_fits_is_granted_at_once() -> None:
    budget = budget_of()
    assert await budget.take("a", 50) == 0 and await budget.take("b", 50) == 0
    assert (budget.used, budget.used_by("a"), budget.used_by("c")) == (100, 50, 0)
    budget.give_back("a", 50)
    assert (budget.used, budget.used_by("a"), budget.max_used) == (50, 0, 100)


async def test_an_owner_at_the_bound_waits_and_others_do_not() -> None:
    async with Crowd(budget_of()) as crowd:
        for name in ("a1", "a2", "b1"):
            await crowd.ask(name, 40)
        assert crowd.served == ["a1", "b1"]
        await crowd.give_back("a1", 40)
        assert crowd.served == ["a1", "b1", "a2"]


async def test_owners_have_their_turn() -> None:
    async with Crowd(budget_of(replace(LIMITS, max_body_bytes=10, owner_share=1))) as crowd:
        for name in ("a1", "a2", "a3", "b1"):
            await crowd.ask(name, 10)
        for name in ("a1", "a2", "b1"):
            await crowd.give_back(name, 10)
        assert crowd.served == ["a1", "a2", "b1", "a3"]


async def test_a_large_request_does_not_starve_behind_small_ones() -> None:
    async with Crowd(budget_of(replace(LIMITS, owner_share=1))) as crowd:
        await crowd.ask("a1", 60)
        await crowd.ask("b1", 90)
        await crowd.ask("c1", 10)
        assert crowd.served == ["a1"]
        await crowd.give_back("a1", 60)
        assert crowd.served == ["a1", "b1", "c1"]


async def test_more_than_the_bound_is_granted_to_one_alone() -> None:
    async with Crowd(budget_of()) as crowd:
        for name in ("a1", "b1"):
            await crowd.ask(name, 500)
        assert crowd.served == ["a1"]
        await crowd.give_back("a1", 500)
        assert crowd.served == ["a1", "b1"]


async def test_a_client_that_leaves_makes_way() -> None:
    async with Crowd(budget_of(replace(LIMITS, owner_share=1))) as crowd:
        for name, amount in (("a1", 60), ("b1", 90), ("c1", 10)):
            await crowd.ask(name, amount)
        await crowd.leave("b1")
        assert crowd.served == ["a1", "c1"] and crowd.budget.used == 70
        for name in ("a1", "c1"):
            await crowd.leave(name)
        assert crowd.budget.num_waiting == 0


async def test_one_that_leaves_at_the_moment_of_its_turn_gives_it_back() -> None:
    async with Crowd(budget_of()) as crowd:
        await crowd.ask("a1", 50)
        await crowd.ask("a2", 50)
        crowd.budget.give_back("a", 50)
        await crowd.leave("a2")
        assert (crowd.served, crowd.budget.used) == (["a1"], 0)


async def test_too_many_waiting_are_refused_with_a_time_to_retry() -> None:
    async with Crowd(budget_of()) as crowd:
        for name in ("a1", "a2", "a3"):
            await crowd.ask(name, 50)
        with pytest.raises(QueueFull) as refused:  # of one owner, half of the queue
            await crowd.budget.take("a", 50)
        assert refused.value.status == 429 and float(refused.value.headers["Retry-After"]) > 0
        await crowd.ask("b1", 50)
        assert crowd.served == ["a1", "b1"]
        for name in ("b2", "b3"):
            await crowd.ask(name, 50)
        with pytest.raises(QueueFull):
            await crowd.budget.take("c", 50)


async def test_a_wait_ends_with_a_refusal() -> None:
    budget = budget_of(replace(LIMITS, wait_seconds=0.001))
    await budget.take("a", 100)
    with pytest.raises(QueueFull):
        await budget.take("a", 1)
    assert (budget.num_waiting, budget.used) == (0, 100)


async def test_a_resumed_request_waits_and_is_never_refused() -> None:
    async with Crowd(budget_of(replace(LIMITS, max_waiting=1, wait_seconds=0.001))) as crowd:
        for name in ("r1", "r2", "r3", "r4"):
            await crowd.ask(name, 50, is_resumed=True)
        assert crowd.served == ["r1"] and crowd.budget.num_waiting == 3
        await crowd.give_back("r1", 50)
        assert crowd.served == ["r1", "r2"]


async def test_a_server_that_drains_refuses_who_waits() -> None:
    async with Crowd(budget_of()) as crowd:
        for name in ("a1", "a2", "a3"):
            await crowd.ask(name, 50)
        crowd.budget.drain()
        for name in ("a2", "a3"):
            with pytest.raises(Draining):
                await crowd.tasks[name]
        assert (crowd.budget.num_waiting, crowd.budget.used) == (0, 50)


async def test_without_a_wait_there_is_room_or_a_refusal() -> None:
    budget = budget_of()
    budget.take_now("a", 50)
    with pytest.raises(QueueFull):
        budget.take_now("a", 1)
    budget.take_anyway("a", 1)
    assert budget.used == 51


async def test_nothing_is_remembered_of_an_owner_who_holds_nothing() -> None:
    budget = budget_of()
    for amount in (0, 5):
        await budget.take("a", amount)
        budget.give_back("a", amount)
    budget.take_anyway("b", 0)
    assert not budget._used_by
