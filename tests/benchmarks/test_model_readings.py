"""How far a model with rounded weights thinks otherwise: on logits that are written down here."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks.model_readings import Text, agreement, readings

EVEN, LIKELY = [0.0, 0.0, 0.0, 0.0], [0.0, math.log(5), 0.0, 0.0]  # the second: 5/8 for token 1


def test_a_model_agrees_with_itself() -> None:
    texts = [Text([3, 1, 1])]
    logits = [torch.tensor([LIKELY, LIKELY])]
    found = agreement(texts, logits, logits)
    assert found.perplexity == pytest.approx(8 / 5) and (found.same, found.divergence) == (1.0, 0.0)


def test_perplexity_is_that_of_the_text_and_the_rest_that_of_the_exact_model() -> None:
    texts = [Text([3, 1]), Text([0, 0, 2], begin=2)]
    exact = [torch.tensor([LIKELY]), torch.tensor([LIKELY])]
    found = agreement(texts, [torch.tensor([EVEN]), torch.tensor([LIKELY])], exact)
    assert found.perplexity == pytest.approx(math.sqrt(4 * 8))
    assert found.same == 0.5  # of equal ones the first is the likeliest
    divergence = 5 / 8 * math.log(5 / 8 / (1 / 4)) + 3 * 1 / 8 * math.log(1 / 8 / (1 / 4))
    assert found.divergence == pytest.approx(divergence / 2, rel=1e-5)


def test_only_tokens_from_the_beginning_on_are_counted() -> None:
    def model(input_ids: Any, use_cache: bool) -> Any:
        return SimpleNamespace(logits=torch.nn.functional.one_hot(input_ids, 9).float())

    [rows] = readings(model, [Text([4, 7, 2, 8], begin=2)])
    assert rows.argmax(-1).tolist() == [7, 2]  # what stands before tokens 2 and 8
