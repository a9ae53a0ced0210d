"""A cache of 8 bits: its rows are rounded as torch does, to the bit, and attention reads them as torch would."""

import math
import random
from typing import Any

import pytest
import torch

from tests.engine.kernels.test_native import DTYPES, MAX_FEW_ROWS, RULES, assert_rounded, plain_attention
from tis.engine.batching.kv_cache import round_rows, widen_rows
from tis.engine.kernels.native import NativeKernels

SPAN_KEYS = 512  # as in kernels.h


@pytest.fixture(params=DTYPES, ids=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    random.seed(request.node.name)
    return request.param


class RoundedCache:
    """Rows at random slots are written; what was never written must not be read."""

    def __init__(self, heads: int, slots: int, size: int, value_size: int) -> None:
        self.keys, self.values = (
            torch.full((heads, slots, width), 99, dtype=torch.int8) for width in (size, value_size)
        )
        of_keys, of_values = (torch.full((heads, slots), math.nan) for _ in range(2))
        self.scales = of_keys, of_values

    def write(self, kernels: NativeKernels, key: Any, value: Any, first_slot: int, *, step: int = 1000) -> None:
        """[heads, tokens, size], some tokens at a time."""
        for begin in range(0, key.shape[1], step):
            part = slice(begin, begin + step)
            slots = torch.arange(key.shape[1])[part] + first_slot
            kernels.write_cache(self.keys, self.values, key[:, part], value[:, part], slots, self.scales)

    @property
    def wide(self) -> tuple[Any, Any]:
        return widen_rows(self.keys, self.scales[0]), widen_rows(self.values, self.scales[1])


def written(
    kernels: NativeKernels, shapes: list[tuple[int, int]], heads: int, sizes: tuple[int, int], dtype: Any
) -> tuple[RoundedCache, Any, Any, Any]:
    """Returns the cache, the runs, and keys and values as they were before."""
    slots = sum(length + before + 7 for length, before in shapes)
    cache = RoundedCache(heads, slots, *sizes)
    keys, values = (torch.zeros(heads, slots, size, dtype=dtype) for size in sizes)
    runs, begin, slot = [], 0, 0
    for length, before in shapes:
        runs.append([begin, length, slot, before])
        seen = slice(slot, slot + before + length)
        for tensor in (keys, values):
            tensor[:, seen] = torch.randn(heads, before + length, tensor.shape[2])
        cache.write(kernels, keys[:, seen], values[:, seen], slot)
        begin, slot = begin + length, slot + before + length + random.randint(0, 7)
    return cache, torch.tensor(runs), keys, values


def test_rows_are_rounded_as_torch_does(kernels: NativeKernels, dtype: Any) -> None:
    for heads, tokens, *sizes in ((2, 40, 16, 48), (1, 300, 128, 576), (3, 1, 80, 80)):
        of_tokens = torch.logspace(-30, 30, tokens)[:, None]
        key, value = ((torch.randn(heads, tokens, size) * of_tokens).to(dtype) for size in sizes)
        cache, slots = RoundedCache(heads, 320, *sizes), torch.randperm(320)[:tokens]
        kernels.write_cache(cache.keys, cache.values, key, value, slots, cache.scales)
        for rows, integers, scales in zip((key, value), (cache.keys, cache.values), cache.scales, strict=True):
            expected = round_rows(rows)
            assert torch.equal(integers[:, slots], expected[0]) and torch.equal(scales[:, slots], expected[1])
            assert scales.isnan().sum() == heads * (320 - tokens)
            # The largest number is 127, and none is further away than half a step.
            assert (expected[0].abs().amax(-1) == 127).all()
            error = (rows.float() - widen_rows(*expected)).abs()
            assert (error <= 0.5001 * expected[1][..., None]).all()


def test_rows_that_have_no_scale(kernels: NativeKernels, dtype: Any) -> None:
    rows = torch.zeros(1, 6, 32)
    rows[0, 1, 5], rows[0, 2, 31], rows[0, 3, 0] = math.nan, math.inf, -math.inf
    rows[0, 4, 7] = 1e-38  # a scale would be smaller than normal numbers are
    rows[0, 5, 1], rows[0, 5, 2] = 3e38, -1e38
    rows = rows.to(dtype)
    cache = RoundedCache(1, 6, 32, 32)
    cache.write(kernels, rows, rows, 0)
    assert cache.scales[0][0].isnan().tolist() == [False, True, True, True, False, False]
    assert (cache.keys[0, [0, 4]] == 0).all() and (cache.scales[0][0, [0, 4]] == 0).all()
    assert cache.keys[0, 5, 1:3].tolist() == [127, -42]
    integers, scales = round_rows(rows)
    assert torch.equal(integers, cache.keys) and torch.equal(scales.nan_to_num(-1), cache.scales[0].nan_to_num(-1))


@pytest.mark.parametrize(("window", "softcap", "chunk", "has_sinks"), RULES)
def test_attention(
    kernels: NativeKernels, dtype: Any, window: int | None, softcap: float | None, chunk: int | None, has_sinks: bool
) -> None:
    sizes = random.sample([16, 32, 48, 64, 80, 96, 128, 256, 576], 2)
    for size, groups in zip(sizes, random.sample([1, 2, 3, 4, 5, 6, 7, 8, 12], 2), strict=True):
        # One token, several, a whole prompt, the middle of one; keys of one span and of several.
        shapes = [
            (1, random.randint(0, 300)),
            (3, 61),
            (70, 0),
            (random.randint(2, 40), random.randint(0, 150)),
            (1, 0),
        ]
        shapes += [(1, SPAN_KEYS + random.randint(0, 700)), (2, SPAN_KEYS - 1)]
        random.shuffle(shapes)
        value_size = size if random.random() < 0.5 else random.choice([16, 32, 48, 128, 512])
        cache, table, *_ = written(kernels, shapes, 2, (size, value_size), dtype)
        query = torch.randn(int(table[-1, :2].sum()), 2 * groups, size).to(dtype).transpose(0, 1)
        sinks = 3 * torch.randn(2 * groups).to(dtype) if has_sinks else None
        rules = (size**-0.5, window, softcap, chunk, sinks)
        keys, values = cache.wide
        exact, largest = plain_attention(query, keys, values, table, *rules)
        result = kernels.attend(query, cache.keys, cache.values, table, *rules, scales=cache.scales)
        error = torch.full((len(result), 1, 1), 1e-5)
        if dtype is torch.bfloat16 and kernels.isa in ("avx512_bf16", "amx"):
            for first, length, _, _ in table.tolist():  # many rows: their weights are rounded, too
                if length > 1 and length * groups > MAX_FEW_ROWS:
                    error[first : first + length] += 2**-8
        assert_rounded(result, exact, of=largest, error=error)


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("size", [16, 48, 64, 112, 128, 576])
def test_few_rows_of_any_number_share_a_key(kernels: NativeKernels, dtype: Any, groups: int, size: int) -> None:
    cache, table, *_ = written(kernels, [(1, 90)], 1, (size, 32), dtype)
    query = torch.randn(groups, 1, size).to(dtype)
    keys, values = cache.wide
    exact, largest = plain_attention(query, keys, values, table, size**-0.5)
    result = kernels.attend(query, cache.keys, cache.values, table, size**-0.5, scales=cache.scales)
    assert_rounded(result, exact, of=largest)


def test_keys_whose_values_are_a_part_of_them(kernels: NativeKernels, dtype: Any) -> None:
    """As latents are: one row for both, with one scale."""
    for shape in ((1, 700), (30, 20)):
        cache, table, *_ = written(kernels, [shape], 1, (96, 16), dtype)
        query = torch.randn(4, shape[0], 96).to(dtype)
        keys, values = cache.wide[0], cache.wide[0][..., :64]
        exact, largest = plain_attention(query, keys, values, table, 0.1)
        both = cache.scales[0], cache.scales[0]
        result = kernels.attend(query, cache.keys, cache.keys[..., :64], table, 0.1, scales=both)
        error = 2**-8 if kernels.isa in ("avx512_bf16", "amx") and dtype is torch.bfloat16 else 1e-5
        assert_rounded(result, exact, of=largest, error=error)


def test_the_way_a_prompt_is_cut_changes_no_byte(kernels: NativeKernels, dtype: Any) -> None:
    key, value = torch.randn(2, 50, 64).to(dtype), torch.randn(2, 50, 80).to(dtype)
    whole = RoundedCache(2, 50, 64, 80)
    whole.write(kernels, key, value, 0)
    for step in (1, 7, 16, 49):
        cut = RoundedCache(2, 50, 64, 80)
        cut.write(kernels, key, value, 0, step=step)
        for one, other in zip(
            (cut.keys, cut.values, *cut.scales), (whole.keys, whole.values, *whole.scales), strict=True
        ):
            assert torch.equal(one, other)


def test_neither_threads_nor_company_change_a_bit(kernels: NativeKernels, dtype: Any) -> None:
    shapes = [(1, SPAN_KEYS), (1, 3000), (3, SPAN_KEYS - 2), (40, 30), (1, 40)]
    cache, runs, *_ = written(kernels, shapes, 2, (64, 64), dtype)
    query = torch.randn(4, int(runs[-1, :2].sum()), 64).to(dtype)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(kernels.attend(query, cache.keys, cache.values, runs, 0.125, scales=cache.scales))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results)
    for run in runs:
        mine = slice(int(run[0]), int(run[0] + run[1]))
        alone = kernels.attend(query, cache.keys, cache.values, run[None], 0.125, scales=cache.scales)
        assert torch.equal(alone[mine], results[0][mine])


def test_what_is_no_number_reaches_the_tokens_that_see_it(kernels: NativeKernels, dtype: Any) -> None:
    """The batch fails the request whose numbers are broken, and no other."""
    for broken in (0, 511, 512, 1024):
        cache, runs, key, value = written(kernels, [(1, 1024), (1, 1024)], 1, (32, 32), dtype)
        slot = int(runs[0, 2]) + broken
        key[0, slot, 9] = math.nan
        cache.write(kernels, key[:, slot : slot + 1], value[:, slot : slot + 1], slot)
        result = kernels.attend(
            torch.randn(2, 2, 32).to(dtype), cache.keys, cache.values, runs, 1.0, scales=cache.scales
        )
        assert result[0].isnan().all() and not result[1].isnan().any()


@pytest.mark.parametrize("shape", [(1, 1500), (120, 300)], ids=["one row", "a prompt"])
@pytest.mark.parametrize("size", [64, 128])
def test_what_rounding_costs(kernels: NativeKernels, dtype: Any, shape: tuple[int, int], size: int) -> None:
    """Of random keys and values, as much as the bounds of 8 bits say: steps of 1/127 of the largest number of a row."""
    cache, runs, key, value = written(kernels, [shape], 2, (size, size), dtype)
    query = torch.randn(4, shape[0], size).to(dtype)
    exact, _ = plain_attention(query, key, value, runs, size**-0.5)
    result = kernels.attend(query, cache.keys, cache.values, runs, size**-0.5, scales=cache.scales).float()
    lost = (result - exact).pow(2).mean().sqrt() / exact.pow(2).mean().sqrt()
    assert 1e-4 < lost < 0.015


@pytest.mark.parametrize("slot", [-1, 16])
def test_a_slot_outside_of_the_cache_is_refused(kernels: NativeKernels, slot: int) -> None:
    cache, row = RoundedCache(2, 16, 32, 32), torch.ones(2, 1, 32)
    with pytest.raises(IndexError):
        kernels.write_cache(cache.keys, cache.values, row, row, torch.tensor([slot]), cache.scales)
    assert (cache.keys == 99).all() and cache.scales[0].isnan().all()
