"""An answer that another process began is resumed with the pieces that the uninterrupted answer has."""

import random
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.resuming import assert_same, emitted_tokens, through_json
from tis.engine.answer import Piece
from tis.engine.completion import Completion
from tis.engine.errors import GenerationInterrupted, LoadFailed, ModelLoading, WorkerDied
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import CharacterTokenizer, load_echo
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.model_slot import Load
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.engine.sampling.params import SamplingParams
from tis.engine.text.detokenizer import ByteDetokenizer, Detokenizer, WindowDetokenizer
from tis.errors import Draining, QueueFull, ServiceError, Unavailable

TEXT = "Halo \U0001f600 dunia, é\U0001f468\u200d\U0001f469 — selesai!"


@asynccontextmanager
async def open_engine(repo: str = "echo", load: Load | None = None, **rules: Any) -> AsyncIterator[LocalEngine]:
    opened = LocalEngine(
        [CatalogueEntry("m", repo)], load or (lambda entry, report: load_echo(entry.repo)), EngineLimits(**rules)
    )
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


async def answered(opened: LocalEngine, text: str = TEXT, **sampling: Any) -> tuple[ResumableRequest, list[Piece]]:
    """A request as it is saved, and all pieces of its answer."""
    prepared = await opened.prepare("m", ChatPrompt([{"role": "user", "content": text}]), sampling)
    return prepared.resumable, [piece async for piece in opened.submit(prepared)]


def saved_request(**changes: Any) -> ResumableRequest:
    return replace(ResumableRequest("m", "echo", [ord(c) for c in "Halo"], SamplingParams(), seed=1), **changes)


class ByteTokenizer(CharacterTokenizer):
    """One token per byte, so that a character may take several."""

    vocabulary_size = 256

    def new_detokenizer(self) -> Detokenizer:  # type: ignore[override]
        return ByteDetokenizer({byte: bytes([byte]) for byte in range(256)})


class WindowedTokenizer(ByteTokenizer):
    def new_detokenizer(self) -> Detokenizer:  # type: ignore[override]
        return WindowDetokenizer(lambda ids: bytes(ids).decode("utf-8", "replace"))


def fed(completion: Completion, token_ids: Sequence[int]) -> list[Piece]:
    pieces = []
    for token_id in token_ids:
        if not completion.is_finished and (piece := completion.accept(token_id)):
            pieces.append(piece)
    return pieces


@pytest.mark.parametrize("tokenizer", [ByteTokenizer, WindowedTokenizer])
def test_a_completion_replayed_to_any_piece_makes_the_remaining_pieces(tokenizer: type[ByteTokenizer]) -> None:
    """Stop strings are parts of the text itself, so that most cuts lie within or right before one."""
    rng = random.Random(4)
    cut_within_a_stop = 0
    for _ in range(150):
        text = "".join(rng.choice("ab\U0001f600é") for _ in range(rng.randrange(2, 25)))
        at = rng.randrange(len(text))
        stops = (text[at : at + 4] + rng.choice(["", "x"]), "bbb")
        params = SamplingParams(stop=stops, min_tokens=rng.choice([0, 6]), max_tokens=rng.choice([30, 200]))
        prepared = PreparedRequest("m", "r1", tokenizer(), [1], params, seed=1)
        token_ids = list(text.encode())
        whole = fed(Completion(0, prepared), token_ids)
        for cut in range(len(whole)):
            [emitted] = emitted_tokens(whole[:cut])
            completion = Completion(0, prepared)
            completion.replay(emitted)
            cut_within_a_stop += bool(completion._stops._held)
            assert fed(completion, token_ids[len(emitted.token_ids) :]) == whole[cut:]
    assert cut_within_a_stop


@pytest.mark.anyio
@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"stop": ["ia, X", "\u200d\U0001f469 — s"]},
        {"max_tokens": 11, "min_tokens": 3},
        {"n": 3},
        {"ignore_eos": True, "max_tokens": 60},
        {"top_logprobs": 0},
    ],
)
async def test_echo_resumes_after_every_piece(sampling: dict[str, Any]) -> None:
    async with open_engine() as first, open_engine("echo?tokens_per_second=10000") as second:
        request, whole = await answered(first, **sampling)
        for cut in range(len(whole) + 1):
            n = request.params.n
            rest = [piece async for piece in await second.resume(through_json(request), emitted_tokens(whole[:cut], n))]
            assert_same([*whole[:cut], *rest], whole, n)


@pytest.mark.anyio
async def test_a_finished_answer_has_no_more_pieces() -> None:
    async with open_engine() as opened:
        answer = await opened.resume(saved_request(), [EmittedTokens([72], "cancelled")])
        assert [piece async for piece in answer] == []


@pytest.mark.anyio
async def test_a_resumed_answer_can_be_cancelled() -> None:
    async with open_engine("echo?tokens_per_second=20") as opened:
        answer = await opened.resume(saved_request(), [EmittedTokens([72])])
        answer.cancel()
        assert [piece.finish async for piece in answer][-1] == "cancelled"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("saved", "emitted", "reason"),
    [
        (saved_request(model_id="gone"), [EmittedTokens()], "gone is not served any more"),
        (saved_request(revision="echo2"), [EmittedTokens()], "another model"),
        (saved_request(params=SamplingParams(max_tokens=40_000)), [EmittedTokens()], "32768 tokens"),
        (saved_request(), [], "0 choices are recorded"),
        (saved_request(params=SamplingParams(max_tokens=2)), [EmittedTokens([72, 97])], "behind its end"),
        (saved_request(params=SamplingParams(stop=("al",))), [EmittedTokens([72, 97, 108])], "behind its end"),
        (
            saved_request(params=SamplingParams(stop_token_ids=(97,))),
            [EmittedTokens([72, 97])],
            "behind its end",
        ),
        (saved_request(params=SamplingParams(stop=("al",))), [EmittedTokens([72, 97])], "inside a piece"),
        (saved_request(), [EmittedTokens([-1])], "no tokens"),
        (saved_request(), [EmittedTokens([0x110000])], "no tokens"),
        (saved_request(prompt_ids=[]), [EmittedTokens()], "no tokens"),
        (saved_request(params=SamplingParams(logit_bias={0x110000: 1})), [EmittedTokens()], "no tokens"),
    ],
)
async def test_the_error_says_why_an_answer_cannot_be_resumed(
    saved: ResumableRequest, emitted: list[EmittedTokens], reason: str
) -> None:
    async with open_engine() as opened:
        with pytest.raises(GenerationInterrupted, match=reason):
            await opened.resume(saved, emitted)


@pytest.mark.anyio
async def test_the_revision_of_echo_depends_on_its_option_alone() -> None:
    async with open_engine("echo?revision=2&tokens_per_second=9000") as opened:
        request, _ = await answered(opened)
        assert request.revision == "echo2"
    assert load_echo("echo?tokens_per_second=5&die_after=9").revision == "echo"


@pytest.mark.anyio
async def test_a_full_queue_refuses_new_requests_but_not_resumed_ones() -> None:
    async with open_engine(queue_size=0) as opened:
        with pytest.raises(QueueFull):
            await answered(opened)
        answer = await opened.resume(saved_request(), [EmittedTokens([72])])
        assert "".join([piece.text async for piece in answer]) == "alo"


@pytest.mark.anyio
async def test_a_temporary_failure_to_resume_raises_unavailable() -> None:
    async def refusal(opened: LocalEngine) -> type[ServiceError]:
        with pytest.raises(Unavailable) as refused:
            await opened.resume(saved_request(), [EmittedTokens()])
        return type(refused.value)

    may_load = threading.Event()
    async with open_engine(load=_loading(may_load.wait), load_wait_seconds=0.01) as opened:
        assert await refusal(opened) is ModelLoading
        may_load.set()
    async with open_engine(load=_loading(_fail)) as opened:
        assert await refusal(opened) is LoadFailed
    async with open_engine() as opened:
        opened.drain()
        assert await refusal(opened) is Draining
    async with open_engine("echo?die_after=1") as opened:
        with pytest.raises(WorkerDied):
            await answered(opened)
        assert await refusal(opened) is WorkerDied


def _loading(first: Callable[[], object]) -> Load:
    def load(entry: CatalogueEntry, report: Any) -> LoadedModel:
        first()
        return load_echo("echo")

    return load


def _fail() -> None:
    raise OSError("no weights")


@pytest.mark.model
@pytest.mark.anyio
@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 0},
        {"temperature": 1.0, "seed": 3, "presence_penalty": 0.5, "repetition_penalty": 1.2, "top_p": 0.9},
        {"temperature": 2.0, "seed": 5, "ignore_eos": True, "top_logprobs": 2},
        {"temperature": 1.5, "seed": 6, "n": 3},
        {"temperature": 0, "min_tokens": 30, "stop": ["a"]},
    ],
)
async def test_another_engine_resumes_the_demo_model(demo: LoadedModel, sampling: dict[str, Any]) -> None:
    async with open_engine(load=lambda entry, report: demo) as opened:
        request, whole = await answered(opened, "Ceritakan sebuah cerita pendek \U0001f600", max_tokens=40, **sampling)
    n = request.params.n
    async with open_engine(load=lambda entry, report: demo) as opened:
        for cut in {0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1}:
            answer = await opened.resume(through_json(request), emitted_tokens(whole[:cut], n))
            rest = [piece async for piece in answer]
            assert_same([*whole[:cut], *rest], whole, n)
            assert answer.cached_tokens <= len(request.prompt_ids)
