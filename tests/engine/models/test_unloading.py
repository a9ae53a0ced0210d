"""Several models on a small machine: who is unloaded and when, and that no request is lost by it."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tis.admission.admission import Admission
from tis.engine.errors import ModelInUse, ModelLoading, ModelMemoryFull, ModelTooLarge
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import EchoOptions, EchoRunner, load_echo
from tis.engine.models.load_progress import Report
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.model_memory import MemoryNeed
from tis.engine.prompt import ChatPrompt
from tis.engine.runner import Runner

pytestmark = pytest.mark.anyio

MIB = 2**20
SLOW = "echo?tokens_per_second=20"


class Machine:
    """Counts the models that are loaded on it at the same time, by the runners that are alive."""

    def __init__(self) -> None:
        self.loads: list[str] = []
        self.load_seconds = 0.0

    def load(self, entry: CatalogueEntry, report: Report) -> LoadedModel:
        self.loads.append(entry.id)
        time.sleep(self.load_seconds)
        return load_echo(entry.repo)

    def fetch(self, entry: CatalogueEntry, report: Report) -> MemoryNeed:
        return MemoryNeed(entry.memory_mb * MIB, 100 * MIB)


def model(name: str, memory_mb: int, repo: str = "echo") -> CatalogueEntry:
    return CatalogueEntry(name, repo, memory_mb=memory_mb)


@asynccontextmanager
async def engine_of(
    machine: Machine, *models: CatalogueEntry, eager: bool = False, **limits: Any
) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(models, machine.load, EngineLimits(**limits), fetch=machine.fetch)
    await engine.open(eager=eager)
    try:
        yield engine
    finally:
        await engine.close()


async def ask(engine: LocalEngine, name: str, text: str = "Halo") -> str:
    """As an HTTP request does, with a ticket."""
    ticket = Admission().ticket("somebody")
    try:
        prepared = await engine.prepare(name, ChatPrompt([{"role": "user", "content": text}]), {}, ticket=ticket)
        await asyncio.sleep(0)
        return "".join([piece.text async for piece in engine.submit(prepared, ticket=ticket)])
    finally:
        ticket.end_request()


def states(engine: LocalEngine) -> dict[str, str]:
    return {status.id: status.state for status in engine.statuses}


async def until(fact: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not fact():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_model_is_unloaded_when_nobody_has_used_it_for_a_while_and_loaded_again() -> None:
    machine = Machine()
    async with engine_of(machine, model("m", 60), idle_seconds=0.2) as engine:
        assert await ask(engine, "m") == "Halo"
        assert states(engine) == {"m": "ready"} and engine.statuses[0].held_bytes == 60 * MIB
        await until(lambda: states(engine) == {"m": "unloaded"})
        assert engine.statuses[0].held_bytes == 0
        assert await ask(engine, "m") == "Halo"
        assert machine.loads == ["m", "m"]


async def test_the_idle_time_begins_with_the_end_of_the_last_answer() -> None:
    async with engine_of(Machine(), model("m", 60, SLOW), idle_seconds=0.3) as engine:
        assert await ask(engine, "m", "an answer that takes a second") == "an answer that takes a second"
        assert states(engine) == {"m": "ready"}
        idle = engine.statuses[0].idle_seconds
        assert idle is not None and idle < 0.3
        await until(lambda: states(engine) == {"m": "unloaded"})


async def test_a_model_is_not_unloaded_while_it_answers_or_a_request_is_between_two_rounds() -> None:
    async with engine_of(Machine(), model("m", 60, SLOW)) as engine:
        asking = asyncio.create_task(ask(engine, "m", "a slow answer"))
        await until(lambda: engine.statuses[0].num_running == 1)
        with pytest.raises(ModelInUse):
            await engine.unload("m")
        assert await asking == "a slow answer"
        ticket = Admission().ticket("somebody")
        await engine.prepare("m", ChatPrompt([{"role": "user", "content": "x"}]), {}, ticket=ticket)
        with pytest.raises(ModelInUse):
            await engine.unload("m")
        ticket.end_request()
        assert (await engine.unload("m")).state == "unloaded"
        assert (await engine.unload("m")).state == "unloaded"


async def test_the_model_that_was_idle_longest_makes_room() -> None:
    machine = Machine()
    async with engine_of(machine, model("a", 40), model("b", 40), model("c", 40)) as engine:
        for name in ("a", "b", "a", "c"):
            assert await ask(engine, name) == "Halo"
        assert states(engine) == {"a": "ready", "b": "unloaded", "c": "ready"}
        assert await ask(engine, "b") == "Halo"
        assert states(engine) == {"a": "unloaded", "b": "ready", "c": "ready"}


async def test_two_small_ones_go_for_a_large_one_and_none_goes_in_vain() -> None:
    async with engine_of(Machine(), model("a", 40), model("b", 40, SLOW), model("c", 90)) as engine:
        await ask(engine, "a")
        asking = asyncio.create_task(ask(engine, "b", "a slow answer"))
        await until(lambda: engine.statuses[1].num_running == 1)
        with pytest.raises(ModelMemoryFull, match=r"c needs 90 MiB .* of 100 MiB .* In use: a \(40 MiB\), b") as full:
            await ask(engine, "c")
        assert full.value.status == 503 and full.value.headers["Retry-After"] == "10"
        assert states(engine) == {"a": "ready", "b": "ready", "c": "unloaded"}
        assert await asking == "a slow answer"
        assert await ask(engine, "c") == "Halo"
        assert states(engine) == {"a": "unloaded", "b": "unloaded", "c": "ready"}


async def test_what_can_never_fit_is_refused_by_name_before_it_is_loaded() -> None:
    machine = Machine()
    async with engine_of(machine, model("small", 40), model("huge", 101)) as engine:
        await ask(engine, "small")
        with pytest.raises(ModelTooLarge, match="huge needs 101 MiB of memory, and models may have 100 MiB"):
            await ask(engine, "huge")
        assert machine.loads == ["small"] and states(engine) == {"small": "ready", "huge": "failed"}


async def test_at_start_models_are_loaded_in_order_as_far_as_there_is_room() -> None:
    machine = Machine()
    models = [model("a", 60), model("b", 60), model("c", 40)]
    async with engine_of(machine, *models, eager=True) as engine:
        await until(lambda: not engine.is_starting)
        assert states(engine) == {"a": "ready", "b": "unloaded", "c": "ready"} and machine.loads == ["a", "c"]
        assert await ask(engine, "b") == "Halo"


async def test_a_request_during_an_unload_waits_for_it_and_loads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    frees = threading.Event()
    monkeypatch.setattr("tis.engine.models.model_slot.free_memory_of_model", lambda weights: frees.wait(20))
    machine = Machine()
    async with engine_of(machine, model("m", 60)) as engine:
        await ask(engine, "m")
        unloading = asyncio.create_task(engine.unload("m"))
        await until(lambda: states(engine) == {"m": "unloading"})
        asking = [asyncio.create_task(ask(engine, "m", f"text {number}")) for number in range(3)]
        await asyncio.sleep(0.1)
        assert machine.loads == ["m"] and not any(task.done() for task in asking)
        frees.set()
        await unloading
        assert await asyncio.gather(*asking) == ["text 0", "text 1", "text 2"]
        assert machine.loads == ["m", "m"]


@pytest.mark.slow
async def test_no_request_is_lost_while_models_come_and_go() -> None:
    """Eight clients, two models that exclude each other, an idle time of next to nothing, and somebody who unloads."""
    machine = Machine()
    answers: list[str] = []

    async def client(engine: LocalEngine, number: int) -> None:
        for turn in range(25):
            name, text = ("a", "b")[(number + turn) % 2], f"{number}-{turn}"
            while True:
                try:
                    answers.append(await ask(engine, name, text))
                    assert answers[-1] == text
                    break
                except (ModelMemoryFull, ModelLoading):  # a 503 that says when to come again
                    await asyncio.sleep(0.005)
            await asyncio.sleep((number * 7 + turn * 3) % 5 / 500)

    async def unload(engine: LocalEngine) -> None:
        while True:
            for name in ("a", "b"):
                try:
                    await engine.unload(name)
                except ModelInUse:
                    pass
                await asyncio.sleep(0.003)

    async with engine_of(machine, model("a", 60), model("b", 60), idle_seconds=0.02) as engine:
        unloading = asyncio.create_task(unload(engine))
        async with asyncio.timeout(120):
            await asyncio.gather(*(client(engine, number) for number in range(8)))
        unloading.cancel()
        assert len(answers) == 200 and len(machine.loads) > 4
        await until(lambda: states(engine) == {"a": "unloaded", "b": "unloaded"})


class WarmEcho(EchoRunner):
    num_warm = 0


async def test_a_model_is_warm_before_its_first_request_and_a_failing_warm_up_is_no_failure() -> None:
    runner = WarmEcho(EchoOptions())

    def warm_up(given: Runner) -> None:
        assert given is runner and threading.current_thread().name == "model:m"
        runner.num_warm += 1
        raise RuntimeError("no")

    loaded = replace(load_echo("echo"), new_runner=lambda: runner, warm_up=warm_up)
    engine = LocalEngine([model("m", 1)], lambda entry, report: loaded, EngineLimits(warms_up=True))
    await engine.open()
    try:
        assert await ask(engine, "m") == "Halo" and runner.num_warm == 1
        assert states(engine) == {"m": "ready"}
    finally:
        await engine.close()
