"""The demo model through both runners, in a batch and in turns, compared with Transformers itself."""

from typing import Any

import pytest
import torch
from transformers import AutoModelForImageTextToText

from tests.engine.batching.tiny import new_turn_runner
from tests.engine.conftest import DEMO
from tis.engine.answer import Piece
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.request import Request
from tis.engine.runner import Runner
from tis.engine.sampling.params import SamplingParams

pytestmark = pytest.mark.model
QUESTIONS = ["Halo", "What is 12 + 7?", "Ceritakan sebuah cerita pendek.", "zzz 你好"]


def prompt_ids(demo: LoadedModel, text: str) -> list[int]:
    return demo.tokenizer.encode_chat(ChatPrompt([{"role": "user", "content": text}]))


def request(demo: LoadedModel, text: str, seed: int = 1, **params: Any) -> Request:
    sampling = SamplingParams(**{"temperature": 0, "max_tokens": 40, **params})
    return Request(PreparedRequest("demo", "r1", demo.tokenizer, prompt_ids(demo, text), sampling, seed))


@pytest.fixture(scope="module")
def unbatched() -> Any:
    """Weights of its own, as a SteppedModel takes the model's generation_config away."""
    return AutoModelForImageTextToText.from_pretrained(DEMO).eval()


@pytest.fixture(params=["batched", "in turns"])
def runner(request: pytest.FixtureRequest, demo: LoadedModel, unbatched: Any) -> Runner:
    chosen = demo.new_runner() if request.param == "batched" else new_turn_runner(unbatched, demo.tokenizer)
    assert isinstance(chosen, BatchRunner if request.param == "batched" else TurnRunner)
    return chosen


def run(runner: Runner, one: Request) -> list[Piece]:
    pieces: list[Piece] = []
    runner.admit(one)
    while runner.running:
        runner.step(lambda deliveries: pieces.extend(item for _, item in deliveries if isinstance(item, Piece)))
    return pieces


def text_of(pieces: list[Piece], choice: int = 0) -> str:
    return "".join(piece.text for piece in pieces if piece.choice == choice)


@pytest.mark.parametrize("question", QUESTIONS)
def test_greedy_tokens_equal_those_of_generate(
    runner: Runner, demo: LoadedModel, demo_weights: Any, question: str
) -> None:
    one = request(demo, question)
    pieces = run(runner, one)
    prompt = torch.tensor([one.prompt_ids])
    expected = demo_weights.generate(prompt, max_new_tokens=40, do_sample=False, use_cache=True)[0, prompt.shape[1] :]
    ended = [token for token in expected.tolist() if token not in demo.tokenizer.eos_ids]
    assert one.completions[0].token_ids == ended
    library: Any = demo.tokenizer
    assert text_of(pieces) == library._tokenizer.decode(ended, skip_special_tokens=True)


def test_logprobs_equal_those_of_a_plain_forward(runner: Runner, demo: LoadedModel, demo_weights: Any) -> None:
    one = request(demo, "Halo", top_logprobs=2)
    logprobs = [entry for piece in run(runner, one) for entry in piece.logprobs]
    everything = torch.tensor([one.prompt_ids + one.completions[0].token_ids])
    with torch.inference_mode():
        rows = torch.log_softmax(demo_weights(input_ids=everything).logits[0].float(), -1)[len(one.prompt_ids) - 1 :]
    assert len(logprobs) == len(one.completions[0].token_ids)
    for entry, expected in zip(logprobs, rows, strict=False):
        assert entry.logprob == pytest.approx(float(expected[entry.token_id]), abs=1e-4)
        assert entry.top[0].logprob == pytest.approx(float(expected.max()), abs=1e-4)


def test_the_same_seed_gives_the_same_answer_and_another_seed_another(runner: Runner, demo: LoadedModel) -> None:
    wild = {"temperature": 2.0, "max_tokens": 30}
    first, same, other = (text_of(run(runner, request(demo, "Halo", seed=seed, **wild))) for seed in (5, 5, 6))
    assert first == same != other


def test_choices_differ_and_each_ends(runner: Runner, demo: LoadedModel) -> None:
    pieces = run(runner, request(demo, "Halo", n=3, temperature=2.0, max_tokens=20))
    assert len({text_of(pieces, choice) for choice in range(3)}) == 3
    assert sorted(piece.choice for piece in pieces if piece.finish) == [0, 1, 2]


def test_a_stop_string_ends_generation_where_it_stands(runner: Runner, demo: LoadedModel) -> None:
    whole = text_of(run(runner, request(demo, "Halo")))
    stop = whole[4:9]
    one = request(demo, "Halo", stop=(stop,))
    pieces = run(runner, one)
    assert text_of(pieces) == whole[: whole.index(stop)] and pieces[-1].finish == "stop"
    assert len(one.completions[0].token_ids) < 40


def test_ignore_eos_generates_max_tokens(runner: Runner, demo: LoadedModel) -> None:
    one = request(demo, "Halo", ignore_eos=True, max_tokens=60)
    assert run(runner, one)[-1].finish == "length" and len(one.completions[0].token_ids) == 60


def test_cancelling_ends_it_within_a_token(runner: Runner, demo: LoadedModel) -> None:
    one = request(demo, "Halo", ignore_eos=True, max_tokens=500)
    runner.admit(one)
    pieces: list[Piece] = []

    def cancel_after_three(deliveries: Any) -> None:
        pieces.extend(item for _, item in deliveries)
        if len(pieces) == 3:
            one.cancel()

    while runner.running:
        runner.step(cancel_after_three)
    assert pieces[-1].finish == "cancelled" and len(one.completions[0].token_ids) <= 6
