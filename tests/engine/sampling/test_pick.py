"""The sampling of tokens, compared with the processors of Transformers and with arithmetic."""

import math
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

from tis.engine.completion import Completion
from tis.engine.models.echo import CharacterTokenizer
from tis.engine.prepared_request import PreparedRequest
from tis.engine.sampling.adjust import adjust_in_place
from tis.engine.sampling.noise import gumbel
from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.pick import NoCandidates, pick
from tis.engine.sampling.random_stream import noise_key
from tis.engine.sampling.sample import sample_all

pytestmark = pytest.mark.slow

VOCABULARY = 3000


def row(seed: int = 0, spread: float = 2.0) -> Any:
    return torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(seed)) * spread


def completion(prompt: list[int] | None = None, generated: list[int] | None = None, **params: Any) -> Completion:
    made = Completion(
        0, PreparedRequest("m", "r1", CharacterTokenizer(), prompt or [1], SamplingParams(**params), seed=3)
    )
    made.token_ids += generated or []
    return made


def adjust(logits: Any, completion: Completion) -> Any:
    adjusted = logits.clone()
    adjust_in_place(adjusted, completion)
    return adjusted


def drawn(logits: Any, params: SamplingParams, draws: int) -> list[int]:
    """A token for each of so many positions of an answer, from made row or from a row each."""
    rows = logits.expand(draws, VOCABULARY)
    return sample_all(rows, [params] * draws, [noise_key(3, 0, position) for position in range(draws)])


def distribution_of(processors: list[Any], logits: Any) -> Any:
    return torch.softmax(LogitsProcessorList(processors)(torch.tensor([[1]]), logits[None].clone())[0], -1)


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 1.3},
        {"temperature": 0.3},  # most tokens are far from the likeliest
        {"temperature": 0.5, "top_k": 5},
        {"temperature": 0.5, "top_k": 2000},
        {"temperature": 1.0, "top_p": 0.8},
        {"temperature": 2.0, "top_p": 0.999},
        {"temperature": 1.0, "min_p": 0.05},
        {"temperature": 0.9, "top_k": 50, "top_p": 0.7, "min_p": 0.02},
    ],
    ids=str,
)
@pytest.mark.long
def test_samples_follow_the_distribution_of_transformers(params: dict[str, Any]) -> None:
    logits, draws = row(spread=3.0), 4000
    processors: list[Any] = [TemperatureLogitsWarper(params["temperature"])]
    if "top_k" in params:
        processors.append(TopKLogitsWarper(params["top_k"]))
    if "top_p" in params:
        processors.append(TopPLogitsWarper(params["top_p"]))
    if "min_p" in params:
        processors.append(MinPLogitsWarper(params["min_p"]))
    expected = distribution_of(processors, logits)
    counts = torch.bincount(torch.tensor(drawn(logits, SamplingParams(**params), draws)), minlength=VOCABULARY)
    error = (expected * (1 - expected) / draws).sqrt()
    assert bool(((counts / draws - expected).abs() <= 5 * error + 3 / draws).all())
    assert not ((counts > 0) & (expected == 0)).any()


def test_noise_has_the_gumbel_distribution() -> None:
    """Its mean is Euler's constant, its variance pi squared over six; tokens and positions are independent."""
    noise = torch.stack(
        [gumbel(torch.tensor(noise_key(7, 0, position)), torch.arange(1000)) for position in range(300)]
    )
    assert float(noise.mean()) == pytest.approx(0.5772, abs=0.01)
    assert float(noise.var()) == pytest.approx(math.pi**2 / 6, abs=0.03)
    assert abs(float(torch.corrcoef(noise[:2])[0, 1])) < 0.1 and abs(float(torch.corrcoef(noise.T[:2])[0, 1])) < 0.2
    assert torch.isfinite(noise).all()


@pytest.mark.parametrize("params", [{"temperature": 1.0}, {"temperature": 1.0, "top_p": 0.999}], ids=str)
def test_a_rounding_error_of_the_model_changes_no_token(params: dict[str, Any]) -> None:
    """The logits of the same request differ in the last bits in another batch, and after a resume."""
    numbers = torch.Generator().manual_seed(1)
    logits = torch.randn(1000, VOCABULARY, generator=numbers) * 2
    error = torch.randn(1000, VOCABULARY, generator=numbers) * 1e-6
    assert drawn(logits, SamplingParams(**params), 1000) == drawn(logits + error, SamplingParams(**params), 1000)


@pytest.mark.long
def test_a_flat_row_is_sorted_whole_when_the_likeliest_do_not_suffice() -> None:
    tokens = set(drawn(row(spread=0.01), SamplingParams(temperature=1.0, top_p=0.9), 4000))
    assert len(tokens) > 2000


def test_greedy_takes_the_likeliest() -> None:
    assert pick(row(), completion(temperature=0)).token_id == int(row().argmax())


def test_a_tiny_top_p_is_greedy_whatever_is_drawn() -> None:
    assert set(drawn(row(), SamplingParams(top_p=1e-9), 100)) == {int(row().argmax())}


def test_repetition_is_penalised_as_transformers_does() -> None:
    prompt, generated = [5, 6], [7, 7, 8]
    ours = adjust(row(), completion(prompt, generated, repetition_penalty=1.4))
    theirs = RepetitionPenaltyLogitsProcessor(1.4)(torch.tensor([prompt + generated]), row()[None])[0]
    assert torch.equal(ours, theirs)


def test_presence_and_frequency_count_the_answer_only() -> None:
    ours = adjust(row(), completion([9], [7, 7, 8], presence_penalty=0.5, frequency_penalty=0.25))
    change = ours - row()
    assert change[7] == pytest.approx(-1.0) and change[8] == pytest.approx(-0.75, abs=1e-6)
    assert change[9] == 0 and int((change != 0).sum()) == 2


def test_penalties_follow_an_answer_that_grows() -> None:
    """Their indices are kept with the completion: each step adds the tokens that came since."""
    params: dict[str, Any] = {
        "repetition_penalty": 1.3,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.25,
        "logit_bias": {3: 2.0},
    }
    growing, numbers = completion([5, 6, 5], **params), torch.Generator().manual_seed(2)
    for _ in range(200):
        growing.token_ids += torch.randint(0, 90, (int(torch.randint(1, 3, (1,), generator=numbers)),)).tolist()
        fresh = completion([5, 6, 5], growing.token_ids, **params)
        assert torch.equal(adjust(row(), growing), adjust(row(), fresh))
    ids, counts = torch.unique(torch.tensor(growing.token_ids), return_counts=True)
    seen = torch.tensor(sorted({5, 6, *growing.token_ids}))
    expected = row()
    expected[seen] = torch.where(expected[seen] < 0, expected[seen] * 1.3, expected[seen] / 1.3)
    expected[ids] -= 0.5 + 0.25 * counts
    expected[3] += 2
    assert torch.allclose(adjust(row(), growing), expected, atol=1e-6)


def test_a_bias_of_100_forces_the_token() -> None:
    assert pick(row(), completion(temperature=0, logit_bias={42: 100})).token_id == 42


def test_no_end_before_min_tokens() -> None:
    ended = row()
    ended[10] = 50
    assert pick(ended, completion(temperature=0, min_tokens=1, stop_token_ids=(10,))).token_id != 10
    assert pick(ended, completion(generated=[3], temperature=0, min_tokens=1, stop_token_ids=(10,))).token_id == 10


def test_logprobs_are_those_of_the_model_before_penalties_and_biases() -> None:
    picked = pick(row(), completion(temperature=0, top_logprobs=3, logit_bias={42: 100}))
    expected = torch.log_softmax(row(), -1)
    assert picked.logprob == pytest.approx(float(expected[42]))
    assert [token for token, _ in picked.top] == expected.topk(3).indices.tolist()


def test_the_logits_are_not_changed() -> None:
    logits = row()
    pick(logits, completion(logit_bias={1: 5}, repetition_penalty=1.2, temperature=0.8, top_p=0.9))
    assert torch.equal(logits, row())


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("temperature", [0, 1])
def test_a_row_without_numbers_is_a_named_failure(value: float, temperature: float) -> None:
    with pytest.raises(NoCandidates):
        pick(torch.full((10,), value), completion(temperature=temperature))
