"""Linear layers with 8-bit weights: by the native kernel, at each level that this CPU has, and by torch without it."""

from typing import Any

import pytest
import torch

from tests.engine.batching.tiny import new_request, new_runner, prompt, run, tokens
from tis.engine.kernels.integer_product import Int8Product
from tis.engine.kernels.native import load_kernels
from tis.engine.weights.cpu_dtype import suit_to_cpu
from tis.engine.weights.int8 import Int8Linear
from tis.engine.weights.packed import quantise_weights, weight_bytes_of

KERNELS = [None, "avx2", "avx512"]  # by torch; by 16-bit products; by VNNI, where the CPU has it


@pytest.fixture(params=KERNELS, ids=str)
def kernels(request: pytest.FixtureRequest) -> Any:
    return request.param and _kernels(request)


@pytest.fixture(params=KERNELS[1:])
def native(request: pytest.FixtureRequest) -> Any:
    return _kernels(request)


def _kernels(request: pytest.FixtureRequest) -> Any:
    try:
        return load_kernels(request.getfixturevalue("library"), request.param)
    except OSError as error:
        pytest.skip(str(error))


def _linear(inputs: int = 128, outputs: int = 96, bias: bool = True) -> Any:
    torch.manual_seed(3)
    return torch.nn.Linear(inputs, outputs, bias=bias).requires_grad_(False)


def _error(ours: Any, full: Any) -> float:
    return float((ours.double() - full.double()).norm() / full.double().norm())


@pytest.mark.parametrize("rows", [1, 8, 9, 40, 600])
@pytest.mark.parametrize("width", [128, 160, 37])
def test_few_and_many_rows_give_nearly_the_results_of_the_full_weights(kernels: Any, rows: int, width: int) -> None:
    linear, x = _linear(width), torch.randn(1, rows, width)
    with torch.inference_mode():
        ours, full = Int8Linear(linear, kernels)(x), linear(x)
    assert ours.shape == full.shape and ours.dtype == torch.float32
    assert _error(ours, full) < 0.015


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(0, 128), (1, 0, 128), (1, 1, 128), (1, 600, 128)])
def test_any_number_of_rows_keeps_shape_and_type(kernels: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    with torch.inference_mode():
        out = Int8Linear(_linear().to(dtype), kernels)(torch.randn(shape).to(dtype))
    assert out.shape == (*shape[:-1], 96) and out.dtype == dtype


def test_the_kernel_multiplies_what_it_was_given(native: Any) -> None:
    """Random sizes, with and without bias, against the product in float64 with the same rounded weights."""
    numbers = torch.Generator().manual_seed(5)
    for _ in range(40):
        inputs, outputs, rows = (int(torch.randint(1, top, (1,), generator=numbers)) for top in (700, 300, 40))
        linear = _linear(inputs, outputs, bias=bool(rows % 2))
        product = Int8Product(linear.weight, linear.bias, native)
        wide = torch.randn(rows, inputs + 9, generator=numbers)
        for x, bound in ((wide[:, 4:-5], 1e-4), (wide[:, 4:-5].bfloat16(), 4e-3)):
            expected = x.double() @ product.weights.double().T + (0 if linear.bias is None else linear.bias.double())
            assert _error(product(x), expected) < bound
            assert _error(product(x, bits=8), expected) < 0.03


def test_long_rows_of_the_largest_numbers_do_not_overflow(native: Any) -> None:
    product = Int8Product(torch.full((64, 60_000), -3.0), None, native)
    x = torch.full((2, 60_000), 5.0)
    assert torch.allclose(product(x), torch.full((2, 64), -900_000.0), rtol=1e-4)
    assert torch.allclose(product(-x, bits=8), torch.full((2, 64), 900_000.0), rtol=1e-4)


def test_a_row_has_the_same_result_beside_any_others(native: Any) -> None:
    product, x = Int8Product(_linear(300, 200).weight, None, native), torch.randn(33, 300)
    for bits in (16, 8):
        alone = torch.cat([product(row[None], bits=bits) for row in x])
        assert torch.equal(product(x, bits=bits), alone)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_numbers_that_are_none_stay_none(native: Any, dtype: Any, value: float) -> None:
    x = torch.randn(3, 128)
    x[1, 7] = value
    for bits in (16, 8):
        out = Int8Product(_linear().weight, None, native)(x.to(dtype), bits=bits)
        assert out[1].isnan().all() and out[[0, 2]].isfinite().all()


def test_a_row_of_zeros_is_the_bias(native: Any) -> None:
    linear = _linear()
    assert torch.equal(Int8Product(linear.weight, linear.bias, native)(torch.zeros(1, 128))[0], linear.bias)


def test_a_model_that_cannot_be_quantised_says_so(qwen3: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert quantise_weights(qwen3.double(), None) == 0
    assert "QUANTIZE=int8 does not apply: its weights are torch.float64" in caplog.text


def test_few_and_many_rows_use_the_same_weights(kernels: Any) -> None:
    layer, x = Int8Linear(_linear(bias=False), kernels), torch.randn(9, 128).bfloat16().float()
    with torch.inference_mode():
        together = layer(x)
        one_by_one = torch.cat([layer(row[None]) for row in x])
    assert torch.allclose(together, one_by_one, atol=0.02, rtol=0.02)


def test_a_quantised_model_answers(qwen3: Any, kernels: Any) -> None:
    assert quantise_weights(qwen3, kernels) == 15
    requests = [new_request(prompt(9, seed)) for seed in range(3)]
    run(new_runner(qwen3), requests)
    assert all(len(tokens(request)) == 12 for request in requests)


def test_a_quantised_model_answers_a_prompt_that_takes_several_steps(qwen3: Any, kernels: Any) -> None:
    quantise_weights(qwen3, kernels)
    request = new_request(prompt(40, 1))
    readers = run(new_runner(qwen3, tokens_per_step=16), [request])
    assert not readers.errors and len(tokens(request)) == 12


@pytest.mark.parametrize("saved", [torch.bfloat16, torch.float16])
def test_a_quantised_model_is_never_copied_to_float32(
    qwen3: Any, kernels: Any, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU that does not compute in 16 bits, all that becomes float32 is what stays of the model."""
    monkeypatch.setattr("tis.engine.weights.cpu_dtype.computes_in_bfloat16", lambda: False)
    model, linears = qwen3.to(saved), [one for one in qwen3.modules() if type(one) is torch.nn.Linear]
    in_linears = sum(one.weight.numel() for one in linears)
    rest = sum(parameter.numel() for parameter in model.parameters()) - in_linears
    assert quantise_weights(model, kernels) == len(linears)
    assert all(one.weight.dtype is saved for one in linears)  # the last references are those of this test
    suit_to_cpu(model)
    assert weight_bytes_of(model) < 4 * rest + 1.7 * in_linears
    request = new_request(prompt(9, 1))
    run(new_runner(model), [request])
    assert len(tokens(request)) == 12
