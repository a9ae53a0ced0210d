from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import new_request, new_runner, prompt, run, tokens
from tis.engine.weights.int8 import Int8Linear
from tis.engine.weights.packed import pack_weights


def _linear(bias: bool = True, width: int = 128) -> Any:
    torch.manual_seed(3)
    return torch.nn.Linear(width, 96, bias=bias)


@pytest.mark.parametrize("rows", [1, 8, 9, 40, 600])
@pytest.mark.parametrize("width", [128, 160])
def test_few_and_many_rows_give_nearly_the_results_of_the_full_weights(rows: int, width: int) -> None:
    linear, x = _linear(width=width), torch.randn(1, rows, width)
    with torch.inference_mode():
        ours, full = Int8Linear(linear)(x), linear(x)
    assert ours.shape == full.shape and ours.dtype == torch.float32
    assert float((ours - full).norm() / full.norm()) < 0.015


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(0, 128), (1, 0, 128), (1, 1, 128), (1, 600, 128)])
def test_any_number_of_rows_keeps_shape_and_type(dtype: Any, shape: tuple[int, ...]) -> None:
    with torch.inference_mode():
        out = Int8Linear(_linear().to(dtype))(torch.randn(shape).to(dtype))
    assert out.shape == (*shape[:-1], 96) and out.dtype == dtype


def test_a_model_that_cannot_be_quantised_says_so(qwen3: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert pack_weights(qwen3.double(), "int8") == 0
    assert "QUANTIZE=int8 does not apply: its weights are torch.float64" in caplog.text


def test_few_and_many_rows_use_the_same_weights() -> None:
    layer, x = Int8Linear(_linear(bias=False)), torch.randn(9, 128).bfloat16().float()
    with torch.inference_mode():
        together = layer(x)
        one_by_one = torch.cat([layer(row[None]) for row in x])
    assert torch.allclose(together, one_by_one, atol=0.02, rtol=0.02)


def test_a_quantised_model_answers(qwen3: Any) -> None:
    assert pack_weights(qwen3, "int8") == 15
    requests = [new_request(prompt(9, seed)) for seed in range(3)]
    run(new_runner(qwen3), requests)
    assert all(len(tokens(request)) == 12 for request in requests)


def test_a_quantised_model_answers_a_prompt_that_takes_several_steps(qwen3: Any) -> None:
    pack_weights(qwen3, "int8")
    request = new_request(prompt(40, 1))
    readers = run(new_runner(qwen3, tokens_per_step=16), [request])
    assert not readers.errors and len(tokens(request)) == 12
