"""Sampling on a CPU draws the tokens of the plain implementation, which sorts; that one runs on other devices."""

import math
import random
from typing import Any

import pytest
import torch

from tis.engine.sampling.noise import gumbel
from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.random_stream import noise_key
from tis.engine.sampling.sample import sample_on_device
from tis.engine.sampling.sample_on_cpu import sample_on_cpu

VOCABULARY = 12_000


def _rows(number: int, numbers: random.Random) -> Any:
    """Flat, peaked, and cut by a grammar to a few tokens."""
    generator = torch.Generator().manual_seed(numbers.randrange(2**31))
    spreads = torch.tensor([numbers.choice([0.01, 1.0, 3.0, 8.0]) for _ in range(number)])
    logits = torch.randn(number, VOCABULARY, generator=generator) * spreads[:, None]
    for row in logits:
        if numbers.random() < 0.3:
            row[torch.randperm(VOCABULARY, generator=generator)[numbers.choice([1, 7, 3000]) :]] = -math.inf
    return logits


def _params(numbers: random.Random) -> SamplingParams:
    return SamplingParams(
        temperature=numbers.choice([0.01, 0.3, 0.7, 1.0, 2.0]),
        top_k=numbers.choice([0, 0, 0, 1, 5, 40, 1024, 3000, VOCABULARY, VOCABULARY + 1]),
        top_p=numbers.choice([1.0, 1.0, 1e-9, 0.3, 0.9, 0.999]),
        min_p=numbers.choice([0.0, 0.0, 1e-4, 0.05, 1.0]),
    )


def _keys(number: int, numbers: random.Random) -> list[int]:
    return [noise_key(numbers.randrange(2**63), 0, position) for position in range(number)]


@pytest.mark.parametrize("seed", range(4))
def test_all_parameters_draw_the_tokens_of_the_plain_implementation(seed: int) -> None:
    numbers = random.Random(seed)
    logits, keys = _rows(60, numbers), _keys(60, numbers)
    params = [_params(numbers) for _ in keys]
    assert sample_on_cpu(logits, params, keys) == sample_on_device(logits, params, keys)


@pytest.mark.parametrize("spread", [0.5, 1.2, 2.0])
def test_unlikely_tokens_win_as_often_as_in_the_plain_implementation(spread: float) -> None:
    """A likeliest token far above all others: now and then the rest wins together, and one of it is drawn."""
    numbers = random.Random(7)
    logits = torch.randn(1, VOCABULARY, generator=torch.Generator().manual_seed(1)) * spread
    logits[0, 5] = 11.0 + 2 * spread
    rows, params, keys = logits.expand(150, -1), [SamplingParams(temperature=1.0)] * 150, _keys(150, numbers)
    drawn = sample_on_cpu(rows, params, keys)
    assert drawn == sample_on_device(rows, params, keys) and len(set(drawn)) >= 3


def test_equal_logits_are_cut_by_their_ids() -> None:
    logits = torch.zeros(1, VOCABULARY)
    logits[0, [9000, 40, 700]] = 1.0
    numbers = random.Random(3)
    rows, keys = logits.expand(200, -1), _keys(200, numbers)
    assert set(sample_on_cpu(rows, [SamplingParams(temperature=1.0, top_k=5)] * 200, keys)) <= {9000, 40, 700, 0, 1}
    assert set(sample_on_cpu(rows, [SamplingParams(temperature=1.0, top_k=2)] * 200, keys)) == {40, 700}
    many = set(sample_on_cpu(rows, [SamplingParams(temperature=1.0, top_p=0.5)] * 200, keys))
    assert len(many) > 100 and max(many - {9000}) < 0.51 * VOCABULARY


def test_the_noise_is_what_it_was_in_earlier_versions() -> None:
    """Recorded answers go on with it: these numbers never change."""
    noise = gumbel(torch.tensor(noise_key(42, 0, 7)), torch.tensor([0, 1, 151_935]))
    assert noise.tolist() == pytest.approx([0.903960166913069, 2.4330267445338447, -0.279294385940264], rel=1e-12)
