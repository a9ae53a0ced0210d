"""Several prompts with one answer: a few requests at a time, choices in one row, an end for each."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from tis.engine.answer import Answer
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import load_echo
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import RawPrompt
from tis.engine.prompt_list import MAX_QUEUED
from tis.engine.resumable_request import EmittedTokens
from tis.errors import BadRequest, GenerationFailed, QueueFull

pytestmark = pytest.mark.anyio
Open = Callable[..., Any]


@pytest.fixture
async def open_engine() -> AsyncIterator[Open]:
    opened: list[LocalEngine] = []

    async def new(repo: str = "echo", **limits: Any) -> LocalEngine:
        engine = LocalEngine(
            [CatalogueEntry("m", repo)], lambda entry, _: load_echo(entry.repo), EngineLimits(**limits)
        )
        await engine.open()
        opened.append(engine)
        return engine

    yield new
    for engine in opened:
        await engine.close()


async def prepared(engine: LocalEngine, texts: list[str], **sampling: Any) -> list[PreparedRequest]:
    prompts = [RawPrompt(text) for text in texts]
    return await engine.prepare_raw("m", prompts, {"max_tokens": 100, "seed": 1, **sampling})


async def read(answer: Answer) -> tuple[dict[int, str], dict[int, str]]:
    texts: dict[int, str] = defaultdict(str)
    finishes: dict[int, str] = {}
    async for piece in answer:
        texts[piece.choice] += piece.text
        if piece.finish:
            assert piece.choice not in finishes
            finishes[piece.choice] = piece.finish
    return texts, finishes


async def test_a_list_longer_than_the_queue_is_answered(open_engine: Open) -> None:
    engine = await open_engine(queue_size=2)
    words = [f"prompt {number}" for number in range(100)]
    texts, finishes = await read(engine.submit_list(await prepared(engine, words, n=2)))
    assert texts == {2 * number + choice: word for number, word in enumerate(words) for choice in range(2)}
    assert finishes == dict.fromkeys(range(200), "stop")


async def test_a_cancelled_list_ends_every_choice_once(open_engine: Open) -> None:
    engine = await open_engine("echo?tokens_per_second=50")
    answer = engine.submit_list(await prepared(engine, ["abcdefghij" * 4] * 80))
    async for _ in answer.batches():
        answer.cancel()
        break
    finishes: dict[int, str | None] = {}
    async for piece in answer:
        finishes[piece.choice] = piece.finish or finishes.get(piece.choice)
    assert finishes == dict.fromkeys(range(80), "cancelled")


async def test_a_prompt_that_fails_ends_the_list(open_engine: Open) -> None:
    engine = await open_engine("echo?fail_after=3")
    with pytest.raises(GenerationFailed):
        await read(engine.submit_list(await prepared(engine, ["ab", "abcdef", *["abcdef"] * 60])))


@pytest.mark.long
async def test_a_full_queue_refuses_a_list_as_a_whole(open_engine: Open) -> None:
    engine = await open_engine("echo?hang_after=1", queue_size=1, stall_seconds=0)
    waiting = [engine.submit(one) for one in (await prepared(engine, ["abc"]))[:1]]
    while engine.statuses[0].num_waiting:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    waiting += [engine.submit(one) for one in await prepared(engine, ["abc"])]
    with pytest.raises(QueueFull):
        engine.submit_list(await prepared(engine, ["abc", "def"]))
    assert len(waiting) == 2


@pytest.mark.long
async def test_lists_leave_room_in_the_queue(open_engine: Open) -> None:
    engine = await open_engine("echo?hang_after=1", queue_size=64, stall_seconds=0)
    engine.submit((await prepared(engine, ["abc"]))[0])
    while not engine.statuses[0].num_running:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    for number in range(1, 4):
        engine.submit_list(await prepared(engine, ["abc"] * 60))
        assert engine.statuses[0].num_waiting == number * MAX_QUEUED


async def test_a_resumed_list_goes_on_in_each_prompt(open_engine: Open) -> None:
    engine = await open_engine()
    requests = await prepared(engine, ["abc", "defg", "hi"])
    emitted = [EmittedTokens([97, 98, 99], "stop"), EmittedTokens([100]), EmittedTokens()]
    texts, finishes = await read(await engine.resume_list([one.resumable for one in requests], emitted))
    assert texts == {1: "efg", 2: "hi"} and finishes == {1: "stop", 2: "stop"}


async def test_echoed_log_probabilities_have_a_bound(open_engine: Open) -> None:
    engine = await open_engine()

    async def scored(texts: list[str], logprobs: int, n: int = 1) -> list[PreparedRequest]:
        prompts = [RawPrompt(text) for text in texts]
        sampling = {"max_tokens": 1, "n": n}
        made: list[PreparedRequest] = await engine.prepare_raw("m", prompts, sampling, prompt_logprobs=logprobs)
        return made

    for texts, logprobs, n in ((["a" * 30_000], 16, 2), (["a" * 30_000] * 2, 16, 1), (["a" * 2000], 20, 16)):
        with pytest.raises(BadRequest, match="524,288") as refused:
            await scored(texts, logprobs, n)
        assert refused.value.param == "logprobs"
    assert len(await scored(["a" * 30_000] * 8, 1)) == 8
    assert len(await prepared(engine, ["a" * 2000], n=16, top_logprobs=20)) == 1


async def test_a_prompt_that_is_computed_whole_has_few_log_probabilities() -> None:
    engine = LocalEngine(
        [CatalogueEntry("m", "echo")],
        lambda entry, _: replace(load_echo(entry.repo), starts_whole=True),
        EngineLimits(),
    )
    await engine.open()
    sampling = {"max_tokens": 1}
    assert await engine.prepare_raw("m", [RawPrompt("a" * 512)], sampling, prompt_logprobs=0)
    with pytest.raises(BadRequest, match="512") as refused:
        await engine.prepare_raw("m", [RawPrompt("a"), RawPrompt("a" * 513)], sampling, prompt_logprobs=0)
    assert refused.value.param == "prompt.1"
    assert await engine.prepare_raw("m", [RawPrompt("a" * 513)], sampling)
    await engine.close()


async def test_prompts_of_a_list_have_a_bound_together(open_engine: Open) -> None:
    engine = await open_engine()
    with pytest.raises(BadRequest, match="262,144"):
        await prepared(engine, ["a" * 30_000] * 10)
    assert len(await prepared(engine, ["a" * 30_000] * 8)) == 8
