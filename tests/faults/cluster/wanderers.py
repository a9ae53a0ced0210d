"""Clients that read one answer at whatever server, leave at random and come back with `Last-Event-ID`."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.faults.checker import Reference, Violation, check
from tests.faults.cluster.calm import Calm
from tests.faults.cluster.chaos_proxy import ChaosProxy
from tests.faults.history import Client, connections_of
from tests.openai_api.test_chat import said

_SILENT_SECONDS = 4.0  # then a client takes its connection for dead, as one behind a black hole is
_PAUSE_SECONDS = 0.1
_AGAIN_SECONDS = 60.0
# 503: a server that drains, or cannot ask Redis; 429: its queue is full.
_COME_AGAIN = (0, 200, 429, 503)
_TALE = "The ferry to island {0} left at {1} with {1} goats, a judge and 你好 😀 on board; nobody slept. "
_WORST: dict[str, str] = {
    **dict.fromkeys(("I1", "I4"), "lost"),
    "I3": "doubled",
    **dict.fromkeys(("I2", "I6", "I8", "I9", "I10"), "mixed"),
    "I5": "without a proper end",
}


def tale(number: int, length: int) -> str:
    """Unlike any other, from its first letters on."""
    return (f"#{number} " + _TALE.format(number, number % 24) * (length // 80 + 1))[:length]


class Wanderer:
    def __init__(self, number: int, fronts: Sequence[ChaosProxy], calm: Calm, chance: Random, length: int) -> None:
        more: dict[str, object] = {}
        text = tale(number, length)
        if number % 4 == 1:  # blanks that are counted twice, when an upstream goes on behind one, would spoil the sum
            text, more = text.replace(" ", "-"), {"stream_options": {"include_usage": True}}
        self.client = Client(fronts[number % 2].url, said(text, session_id=f"wanders-{number}", **more))
        self.num_left = 0
        self.statuses: Counter[int] = Counter()
        self.refusals: list[str] = []
        self._fronts, self._calm, self._chance = fronts, calm, chance

    @property
    def reference(self) -> Reference:
        return Reference(self.client.body["messages"][-1]["content"], ("finished", "failed"))

    @property
    def error(self) -> str:
        """Of an answer that ended with one, which is no silence, and nothing is lost of what was shown."""
        blocks = self.client.blocks
        return str(blocks[-1].chunk["error"]) if self.client.is_over and blocks[-1].is_error else ""

    async def wander(self, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                while not self.client.is_over:
                    if self.client.cursor is None:
                        async with self._calm.needed():
                            await self._visit(self._chance.choice(self._fronts), 1)
                    else:
                        await self._visit(self._chance.choice(self._fronts), self._chance.randrange(1, 60))
        except TimeoutError:
            pass  # the check says that it has no end
        self.client.leave()

    async def _visit(self, front: ChaosProxy, num_blocks: int) -> None:
        client = self.client
        client.move_to(front.url)
        await client.connect("POST" if client.cursor is None else self._chance.choice(["POST", "GET"]))
        await self._read(num_blocks)
        self.statuses[client.last.status] += 1
        if client.last.status not in _COME_AGAIN:
            self.refusals.append(f"{client.last.status} after {client.last.after}: {client.last.body[:200]!r}")
            await asyncio.sleep(1)
        if not client.is_over:
            self.num_left += 1
            client.leave(rudely=self._chance.random() < 0.5)
            await asyncio.sleep(self._chance.uniform(0, 2 * _PAUSE_SECONDS))

    async def _read(self, num_blocks: int) -> None:
        client, seen = self.client, -1
        wanted = len(client.last.blocks) + num_blocks
        while client.last.end == "open" and seen < wanted:
            try:
                async with asyncio.timeout(_SILENT_SECONDS):
                    await client.read(blocks=1)
            except TimeoutError:
                return
            seen = len(client.last.blocks)


async def read_again(wanderers: Sequence[Wanderer], front: ChaosProxy, at_once: int = 16) -> list[Client]:
    """Fresh readers, which have seen nothing yet."""
    places = asyncio.Semaphore(at_once)

    async def read(wanderer: Wanderer) -> Client:
        fresh = Client(front.url, wanderer.client.body)
        async with places:
            try:
                async with asyncio.timeout(_AGAIN_SECONDS):
                    while not fresh.is_over and (not fresh.history or fresh.last.status in _COME_AGAIN):
                        await fresh.connect("GET")
                        await fresh.read()
            except TimeoutError:
                pass  # what is missing is missed by the check
        fresh.leave()
        return fresh

    return list(await asyncio.gather(*(read(wanderer) for wanderer in wanderers)))


def violations_of(wanderers: Sequence[Wanderer], again: Sequence[Client]) -> tuple[Counter[str], list[str]]:
    """How many sessions are lost, doubled, mixed or without an end, and why."""
    counted: Counter[str] = Counter()
    notes: list[str] = []
    by_session: dict[str, list[Client]] = {}
    for client in again:
        by_session.setdefault(client.session, []).append(client)
    for wanderer in wanderers:
        client = wanderer.client
        try:
            connections = connections_of([client, *by_session.get(client.session, ())])
            check(connections, {(client.session, 0): wanderer.reference})
            _require_found(by_session.get(client.session, ()))
        except Violation as violation:
            counted[_WORST[str(violation).partition(":")[0]]] += 1
            notes.append(str(violation)[:600])
        if wanderer.error:
            counted["ended with an error"] += 1
            notes.append(f"{client.session}: {wanderer.error[:400]}")
        if wanderer.refusals:
            counted["refused"] += 1
            notes.append(f"{client.session}: {wanderer.refusals[:2]}")
    return counted, notes


def _require_found(again: Sequence[Client]) -> None:
    for client in again:
        if not client.is_over:
            raise Violation(f"I4: {client.session} was there, and is not found again: {client.last}")


def blocks_seen(wanderers: Sequence[Wanderer]) -> int:
    return sum(len(wanderer.client.blocks) for wanderer in wanderers)
