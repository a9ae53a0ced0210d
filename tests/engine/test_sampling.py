"""Our choice of a token, against the processors of Transformers and against arithmetic."""

from typing import Any

import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from server.engine.choice import Choice
from server.engine.echo import CharacterTokenizer
from server.engine.prepared import Prepared
from server.engine.sampling import NoCandidates, adjust, pick, sample_all
from server.engine.sampling_params import SamplingParams

pytestmark = pytest.mark.slow

VOCABULARY = 3000


def row(seed: int = 0, spread: float = 2.0) -> Any:
    return torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(seed)) * spread


def choice(prompt: list[int] | None = None, said: list[int] | None = None, **params: Any) -> Choice:
    one = Choice(0, Prepared("m", "r1", CharacterTokenizer(), prompt or [1], SamplingParams(**params), seed=3))
    one.token_ids += said or []
    return one


def sample(logits: Any, params: SamplingParams, draw: float) -> int:
    return sample_all(logits[None], [params], [draw])[0]


def distribution_of(processors: list[Any], logits: Any) -> Any:
    return torch.softmax(LogitsProcessorList(processors)(torch.tensor([[1]]), logits[None].clone())[0], -1)


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 1.3},
        {"temperature": 0.5, "top_k": 5},
        {"temperature": 0.5, "top_k": 2000},
        {"temperature": 1.0, "top_p": 0.8},
        {"temperature": 2.0, "top_p": 0.999},
        {"temperature": 1.0, "min_p": 0.05},
        {"temperature": 0.9, "top_k": 50, "top_p": 0.7, "min_p": 0.02},
    ],
    ids=str,
)
def test_draws_spread_as_the_distribution_of_transformers(params: dict[str, Any]) -> None:
    """Evenly spaced draws give each token its share, so counting them gives the distribution."""
    logits, draws = row(), 1000
    processors: list[Any] = [TemperatureLogitsWarper(params["temperature"])]
    if "top_k" in params:
        processors.append(TopKLogitsWarper(params["top_k"]))
    if "top_p" in params:
        processors.append(TopPLogitsWarper(params["top_p"]))
    if "min_p" in params:
        processors.append(MinPLogitsWarper(params["min_p"]))
    expected = distribution_of(processors, logits)
    counts = torch.zeros(VOCABULARY)
    for n in range(draws):
        counts[sample(logits, SamplingParams(**params), (n + 0.5) / draws)] += 1
    assert float((counts / draws - expected).abs().max()) <= 1.5 / draws
    assert not ((counts > 0) & (expected == 0)).any()


def test_a_flat_row_is_sorted_whole_when_the_likeliest_do_not_suffice() -> None:
    flat = row(spread=0.01)
    tokens = {sample(flat, SamplingParams(temperature=1.0, top_p=0.9), n / 1500) for n in range(1500)}
    assert len(tokens) > 1400


def test_greedy_takes_the_likeliest() -> None:
    assert pick(row(), choice(temperature=0)).token_id == int(row().argmax())


def test_a_tiny_top_p_is_greedy_whatever_is_drawn() -> None:
    assert {sample(row(), SamplingParams(top_p=1e-9), draw) for draw in (0.0, 0.5, 1 - 2**-53)} == {int(row().argmax())}


def test_repetition_is_penalised_as_transformers_does() -> None:
    prompt, said = [5, 6], [7, 7, 8]
    ours = adjust(row(), choice(prompt, said, repetition_penalty=1.4))
    theirs = RepetitionPenaltyLogitsProcessor(1.4)(torch.tensor([prompt + said]), row()[None])[0]
    assert torch.equal(ours, theirs)


def test_presence_and_frequency_count_the_answer_only() -> None:
    ours = adjust(row(), choice([9], [7, 7, 8], presence_penalty=0.5, frequency_penalty=0.25))
    change = ours - row()
    assert change[7] == pytest.approx(-1.0) and change[8] == pytest.approx(-0.75, abs=1e-6)
    assert change[9] == 0 and int((change != 0).sum()) == 2


def test_a_bias_of_100_decides() -> None:
    assert pick(row(), choice(temperature=0, logit_bias={42: 100})).token_id == 42


def test_no_end_before_min_tokens() -> None:
    ended = row()
    ended[10] = 50
    assert pick(ended, choice(temperature=0, min_tokens=1, stop_token_ids=(10,))).token_id != 10
    assert pick(ended, choice(said=[3], temperature=0, min_tokens=1, stop_token_ids=(10,))).token_id == 10


def test_logprobs_are_those_of_the_model_not_of_what_was_done_to_them() -> None:
    picked = pick(row(), choice(temperature=0, top_logprobs=3, logit_bias={42: 100}))
    expected = torch.log_softmax(row(), -1)
    assert picked.logprob == pytest.approx(float(expected[42]))
    assert [token for token, _ in picked.top] == expected.topk(3).indices.tolist()


def test_the_row_is_left_as_it_was() -> None:
    logits = row()
    pick(logits, choice(logit_bias={1: 5}, repetition_penalty=1.2, temperature=0.8, top_p=0.9))
    assert torch.equal(logits, row())


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("temperature", [0, 1])
def test_a_row_without_numbers_is_a_named_failure(value: float, temperature: float) -> None:
    with pytest.raises(NoCandidates):
        pick(torch.full((10,), value), choice(temperature=temperature))
