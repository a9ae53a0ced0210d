"""Few rows over many keys: threads share the keys of one row, and the result does not tell which of them did."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.engine.kernels.test_native import DTYPES, assert_rounded, plain_attention
from tis.engine.kernels.native import NativeKernels

SPAN_KEYS = 512  # as in kernels.h
# Tokens and keys before them: one span and the begin of another, whole spans, many, few tokens at a border.
SHAPES = [(1, SPAN_KEYS), (1, 2 * SPAN_KEYS - 1), (1, 5000), (3, SPAN_KEYS - 2), (2, 1700), (1, 40)]


@pytest.fixture(params=DTYPES, ids=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    return request.param


@pytest.fixture
def set_threads() -> Iterator[Any]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def cache_of(shapes: list[tuple[int, int]], key_heads: int, size: int, value_size: int, dtype: Any) -> Any:
    """Keys, values and runs. What was never written must not be read."""
    slots = sum(length + before + 7 for length, before in shapes)
    keys, values = (torch.full((key_heads, slots, width), math.nan).to(dtype) for width in (size, value_size))
    runs, begin, slot = [], 0, 0
    for length, before in shapes:
        runs.append([begin, length, slot, before])
        for tensor in (keys, values):
            tensor[:, slot : slot + before + length] = torch.randn(key_heads, before + length, tensor.shape[2])
        begin, slot = begin + length, slot + before + length + 7
    return keys, values, torch.tensor(runs)


@pytest.mark.parametrize(
    ("window", "softcap", "chunk", "has_sinks"),
    [
        (None, None, None, False),
        (None, 30.0, None, True),
        (100, None, None, True),
        (SPAN_KEYS + 1, None, None, False),
        (None, None, 700, True),
    ],
)
def test_attention_over_spans_is_that_of_all_keys(
    kernels: NativeKernels, dtype: Any, window: int | None, softcap: float | None, chunk: int | None, has_sinks: bool
) -> None:
    for heads, key_heads, size, value_size in ((4, 2, 64, 64), (16, 1, 80, 48), (2, 2, 128, 128)):
        keys, values, runs = cache_of(SHAPES, key_heads, size, value_size, dtype)
        query = torch.randn(heads, int(runs[-1, :2].sum()), size).to(dtype)
        sinks = 3 * torch.randn(heads).to(dtype) if has_sinks else None
        rules = (size**-0.5, window, softcap, chunk, sinks)
        exact, largest = plain_attention(query, keys, values, runs, *rules)
        result = kernels.attend(query, keys, values, runs, *rules)
        # Rows of tiles have rounded weights on CPUs that multiply pairs of bfloat16.
        error = 1e-5 if dtype is torch.float32 or kernels.isa not in ("avx512_bf16", "amx") else 1e-5 + 2**-8
        assert_rounded(result, exact, of=largest, error=error)


def test_neither_threads_nor_company_change_a_bit(kernels: NativeKernels, dtype: Any, set_threads: Any) -> None:
    keys, values, runs = cache_of(SHAPES, 1, 64, 64, dtype)
    query = torch.randn(4, int(runs[-1, :2].sum()), 64).to(dtype)
    results = []
    for threads in (1, 2, 5, 33):
        set_threads(threads)
        results.append(kernels.attend(query, keys, values, runs, 0.125))
    assert all(torch.equal(result, results[0]) for result in results)
    for run in runs:
        mine = slice(int(run[0]), int(run[0] + run[1]))
        alone = kernels.attend(query, keys, values, run[None], 0.125)
        assert torch.equal(alone[mine], results[0][mine])


def test_what_is_no_number_is_not_lost_between_spans(kernels: NativeKernels, dtype: Any) -> None:
    for broken in (0, SPAN_KEYS - 1, SPAN_KEYS, 2 * SPAN_KEYS):
        keys, values, runs = cache_of([(1, 2 * SPAN_KEYS)], 1, 32, 32, dtype)
        keys[:, broken] = math.nan
        assert kernels.attend(torch.randn(2, 1, 32).to(dtype), keys, values, runs, 1.0).isnan().all()
