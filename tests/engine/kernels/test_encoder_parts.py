"""What encoders need of the kernels: attention in both directions, and products with GELU or a residual behind them."""

from typing import Any

import pytest
import torch
from torch.nn.functional import gelu, linear

from tis.engine.kernels.native import NativeKernels
from tis.engine.kernels.product import BlockFormat, NativeProduct

LENGTHS = (3, 1, 8, 9, 70, 130, 33)


@pytest.mark.parametrize("window", [None, 5, 64])
@pytest.mark.parametrize(("heads", "key_heads", "size"), [(12, 12, 32), (4, 2, 16), (3, 1, 80)])
def test_tokens_see_those_behind_them(
    kernels: NativeKernels, heads: int, key_heads: int, size: int, window: int | None
) -> None:
    torch.manual_seed(0)
    both = torch.randn(sum(LENGTHS), heads + 2 * key_heads, size)
    query, key, value = both.transpose(0, 1).split((heads, key_heads, key_heads))
    begins = [sum(LENGTHS[:number]) for number in range(len(LENGTHS))]
    runs = torch.tensor([(begin, length, begin, 0) for begin, length in zip(begins, LENGTHS, strict=True)])
    out = kernels.attend(query, key, value, runs, size**-0.5, window, is_bidirectional=True)
    for begin, length in zip(begins, LENGTHS, strict=True):
        one, keys, values = (part[:, begin : begin + length].double() for part in (query, key, value))
        keys, values = (part.repeat_interleave(heads // key_heads, 0) for part in (keys, values))
        scores = one @ keys.transpose(1, 2) * size**-0.5
        place = torch.arange(length)
        if window:
            scores[:, (place[:, None] - place).abs() >= window] = -torch.inf
        exact = (scores.softmax(-1) @ values).transpose(0, 1).float()
        torch.testing.assert_close(out[begin : begin + length], exact, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "outputs", "inputs"), [(1, 64, 32), (7, 100, 64), (130, 33, 96)])
def test_what_comes_behind_a_product(kernels: NativeKernels, dtype: Any, rows: int, outputs: int, inputs: int) -> None:
    torch.manual_seed(0)
    if not BlockFormat(kernels, dtype).takes(inputs):
        pytest.skip("this level takes other numbers of inputs")
    x, weight = torch.randn(rows, inputs).to(dtype), (torch.randn(outputs, inputs) / 4).to(dtype)
    bias, residual = torch.randn(outputs).to(dtype), torch.randn(rows, outputs + 3).to(dtype)[:, 3:]
    exact = linear(x.double(), weight.double(), bias.double())
    tolerance: Any = {"atol": 1e-5, "rtol": 1e-5} if dtype is torch.float32 else {"atol": 0.05, "rtol": 2**-6}
    ours = NativeProduct(weight, bias, kernels, gelu=True)(x)
    torch.testing.assert_close(ours.double(), gelu(exact), **tolerance)
    ours = NativeProduct(weight, bias, kernels)(x, residual)
    torch.testing.assert_close(ours.double(), exact + residual.double(), **tolerance)


def test_gelu_is_exact_from_end_to_end(kernels: NativeKernels) -> None:
    x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([0.0, 1e-20, -1e-20, 60.0, -60.0])])
    weight = torch.eye(16)
    ours = NativeProduct(weight, None, kernels, gelu=True)(torch.nn.functional.pad(x[:, None], (0, 15)))[:, 0]
    torch.testing.assert_close(ours, gelu(x.double()).float(), atol=2e-6, rtol=1e-6)
