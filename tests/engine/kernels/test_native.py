"""Every operation, on every instruction set of this CPU, against torch in float32 on random shapes."""

import ast
import logging
import math
import os
import platform
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import silu

from tests.serving import REPOSITORY
from tis.engine.kernels import native
from tis.engine.kernels.build import has_compiler
from tis.engine.kernels.native import NativeKernels, load_kernels

DTYPES = [torch.float32, torch.bfloat16]
MAX_FEW_ROWS = 8  # as in kernels.h


@pytest.fixture(params=DTYPES, ids=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    random.seed(request.node.name)  # each case has shapes of its own
    return request.param


def assert_rounded(result: Any, exact: Any, of: Any = None, error: Any = 1e-5) -> None:
    """In bfloat16 a rounding of `exact`; all within `error` of it, or of the values `of` that it is a sum of."""
    assert result.shape == exact.shape
    size = exact.abs() if of is None else torch.maximum(exact.abs(), of.abs())
    tolerance = 2**-8 * exact.abs() + error * size if result.dtype is torch.bfloat16 else error * size
    assert ((result.float() - exact).abs() <= tolerance + 1e-30).all()


def laid_out(rows: int, heads: int, size: int, dtype: Any, way: str) -> Any:
    if way == "contiguous":
        return torch.randn(1, rows, heads, size).to(dtype)
    if way == "part of a product":
        return torch.randn(1, rows, heads * size + 32).to(dtype)[..., 32:].unflatten(-1, (heads, size))
    if way == "heads first":
        return torch.randn(1, heads, rows, size).to(dtype).transpose(1, 2)
    return torch.randn(1, rows, heads, size, 2).to(dtype)[..., 0]


@pytest.mark.parametrize("way", ["contiguous", "part of a product", "heads first", "last axis in steps"])
def test_rms_norm(kernels: NativeKernels, dtype: Any, way: str) -> None:
    for rows, heads, size in ((1, 1, 1024), (5, 3, 128), (0, 2, 16), (3, 1, 100), (2, 4, 7), (40, 16, 128)):
        x, weight = laid_out(rows, heads, size, dtype, way), torch.randn(size).to(dtype)
        wide = x.float()
        normalised = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        if dtype is torch.bfloat16:  # a value in the middle of two may be rounded either way before the weight comes
            assert torch.allclose(kernels.rms_norm(x, weight, 1e-6).float(), normalised * weight.float(), rtol=2**-7)
        else:
            assert_rounded(kernels.rms_norm(x, weight, 1e-6), normalised * weight)


def test_silu_and_multiply(kernels: NativeKernels, dtype: Any) -> None:
    for rows, size in ((1, 3072), (7, 100), (0, 16), (40, 2048), (2, 5)):
        both = (10 * torch.randn(1, rows, 2 * size)).to(dtype)
        for gate, up in (both.split(size, -1), (both[..., :size].contiguous(), both[..., size:].contiguous())):
            exact = silu(gate.float()).to(dtype).float() * up.float()
            result = kernels.silu_mul(gate, up)
            assert result.is_contiguous() and result.dtype is dtype
            assert torch.allclose(result.float(), exact, rtol=2**-7 if dtype is torch.bfloat16 else 1e-5, atol=1e-30)


def test_silu_of_extreme_values_is_that_of_torch(kernels: NativeKernels, dtype: Any) -> None:
    gate = torch.tensor([[0.0, -0.0, 88.0, -88.0, 1e30, -1e30, math.inf, -math.inf, math.nan, -110.0]]).to(dtype)
    result = kernels.silu_mul(gate, torch.ones_like(gate))
    assert torch.allclose(result.float(), silu(gate.float()), rtol=2**-8, atol=1e-36, equal_nan=True)


@pytest.mark.parametrize("first_axis", ["heads", "tokens"])
def test_rotary(kernels: NativeKernels, dtype: Any, first_axis: str) -> None:
    for heads, tokens, size in ((4, 7, 128), (3, 1, 48), (2, 0, 16), (1, 5, 10), (16, 40, 128)):
        x = torch.randn(heads, tokens, size).to(dtype)
        if first_axis == "tokens":
            x = torch.randn(tokens, heads, size).to(dtype).transpose(0, 1)
        angles = torch.randn(tokens, size // 2).repeat(1, 2)
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
        turned = torch.cat((-x[..., size // 2 :], x[..., : size // 2]), -1).float()
        parts = x.float() * cos.float(), turned * sin.float()
        kernels.rotary_(x, cos, sin)
        assert_rounded(x, parts[0] + parts[1], of=parts[0].abs() + parts[1].abs())


def test_the_front_of_heads_can_be_turned_alone(kernels: NativeKernels, dtype: Any) -> None:
    """As models with a partial rotary embedding do."""
    x = torch.randn(3, 5, 64).to(dtype)
    before = x.clone()
    angles = torch.randn(5, 16).repeat(1, 2)
    kernels.rotary_(x[..., :32], angles.cos().to(dtype), angles.sin().to(dtype))
    assert (x[..., 32:] == before[..., 32:]).all() and (x[..., :32] != before[..., :32]).any()


def test_cache_write(kernels: NativeKernels, dtype: Any) -> None:
    for heads, tokens, *sizes in ((2, 3, 16, 16), (8, 1, 128, 128), (3, 0, 16, 16), (8, 90, 192, 128), (2, 5, 16, 80)):
        keys, values = (torch.zeros(heads, 128, size, dtype=dtype) for size in sizes)
        expected = keys.clone(), values.clone()
        key, value = (torch.randn(tokens, heads, size).to(dtype).transpose(0, 1) for size in sizes)
        slots = torch.randperm(128)[:tokens]
        kernels.write_cache(keys, values, key, value, slots)
        for tensor, some, written in zip(expected, (key, value), (keys, values), strict=True):
            tensor.index_copy_(1, slots, some)
            assert (written == tensor).all()


def plain_attention(
    query: Any,
    keys: Any,
    values: Any,
    runs: Any,
    scale: float,
    window: int | None = None,
    softcap: float | None = None,
    chunk: int | None = None,
    sinks: Any | None = None,
) -> tuple[Any, Any]:
    """In float32, with a mask. Returns the result and the largest value that each of its numbers is a mean of."""
    query, keys, values = query.float(), keys.float(), values.float()
    groups = len(query) // len(keys)
    out = torch.zeros(query.shape[1], len(query), values.shape[2])
    largest = out.clone()
    for begin, length, first_slot, num_before in runs.tolist():
        seen = slice(first_slot, first_slot + num_before + length)
        key, value = (tensor[:, seen].repeat_interleave(groups, 0) for tensor in (keys, values))
        scores = query[:, begin : begin + length] @ key.transpose(1, 2) * scale
        if softcap:
            scores = torch.tanh(scores / softcap) * softcap
        position, other = torch.arange(num_before, num_before + length)[:, None], torch.arange(num_before + length)
        visible = (other <= position) & (other > position - (window or len(other) + 1))
        if chunk:
            visible &= other // chunk == position // chunk
        scores = scores.masked_fill(~visible, -math.inf)
        if sinks is None:
            weights = scores.softmax(-1)
        else:
            beside = sinks.float()[:, None, None].expand(-1, length, 1)
            weights = torch.cat((scores, beside), -1).softmax(-1)[..., :-1]
        out[begin : begin + length] = (weights @ value).transpose(0, 1)
        largest[begin : begin + length] = (weights @ value.abs()).transpose(0, 1)
    return out, largest


RULES = [
    (None, None, None, False),
    (12, None, None, True),
    (70, 5.0, None, False),
    (None, 30.0, None, True),
    (None, None, 7, False),
    (90, None, 75, True),
]


@pytest.mark.parametrize(("window", "softcap", "chunk", "has_sinks"), RULES)
def test_attention(
    kernels: NativeKernels, dtype: Any, window: int | None, softcap: float | None, chunk: int | None, has_sinks: bool
) -> None:
    sizes = random.sample([16, 32, 48, 64, 80, 96, 128, 256, 576], 2)
    for size, groups in zip(sizes, random.sample([1, 2, 3, 4, 5, 6, 7, 8, 12], 2), strict=True):
        # One token, several, a whole prompt, the middle of one; in no order.
        shapes = [
            (1, random.randint(0, 300)),
            (3, 61),
            (70, 0),
            (random.randint(2, 40), random.randint(0, 150)),
            (1, 0),
        ]
        random.shuffle(shapes)
        runs, begin, slot = [], 0, 0
        value_size = size if random.random() < 0.5 else random.choice([16, 32, 48, 128, 512])
        # What was never written must not be read.
        keys, values = (torch.full((2, 1000, width), math.nan).to(dtype) for width in (size, value_size))
        for length, before in shapes:
            slot += random.randint(0, 20)
            runs.append([begin, length, slot, before])
            for tensor in (keys, values):
                tensor[:, slot : slot + before + length] = torch.randn(2, before + length, tensor.shape[2])
            begin, slot = begin + length, slot + before + length
        query = torch.randn(begin, 2 * groups, size).to(dtype).transpose(0, 1)
        if random.random() < 0.5:
            query = query.contiguous()
        table = torch.tensor(runs)
        sinks = 3 * torch.randn(2 * groups).to(dtype) if has_sinks else None
        rules = (size**-0.5, window, softcap, chunk, sinks)
        exact, largest = plain_attention(query, keys, values, table, *rules)
        result = kernels.attend(query, keys, values, table, *rules)
        error = torch.full((begin, 1, 1), 1e-5)
        if dtype is torch.bfloat16 and kernels.isa in ("avx512_bf16", "amx"):
            for first, length, _, _ in runs:  # many rows: their weights are rounded, too
                if length > 1 and length * groups > MAX_FEW_ROWS:
                    error[first : first + length] += 2**-8
        assert_rounded(result, exact, of=largest, error=error)


def test_attention_of_nothing(kernels: NativeKernels, dtype: Any) -> None:
    keys = torch.zeros(2, 16, 32, dtype=dtype)
    nothing = torch.zeros(0, 4, dtype=torch.int64)
    assert kernels.attend(torch.zeros(4, 0, 32, dtype=dtype), keys, keys, nothing, 1.0).shape == (0, 4, 32)


def test_scores_beyond_the_range_of_exp(kernels: NativeKernels, dtype: Any) -> None:
    keys, values = torch.randn(2, 1, 200, 32).to(dtype)
    for length in (1, 100):
        query = (1000 * torch.randn(2, length, 32)).to(dtype)
        runs = torch.tensor([[0, length, 0, 200 - length]])
        exact, largest = plain_attention(query, keys, values, runs, 1.0)
        # Differences of such scores have few digits left, so only the range is looked at.
        result = kernels.attend(query, keys, values, runs, 1.0).float()
        assert torch.isfinite(result).all() and (result - exact).abs().mean() < 0.1 * largest.mean()


def test_what_is_no_number_stays_with_its_token(kernels: NativeKernels, dtype: Any) -> None:
    """The batch fails the request whose numbers are broken, and no other."""
    keys, values = torch.randn(2, 1, 100, 32).to(dtype)
    query = torch.randn(2, 80, 32).to(dtype)
    query[:, 40] = math.nan
    for runs in ([[0, 80, 0, 0]], [[40, 1, 0, 9], [41, 1, 0, 9]]):
        result = kernels.attend(query, keys, values, torch.tensor(runs), 1.0)
        assert result[40].isnan().all() and not result[41].isnan().any()


def test_more_keys_than_a_tile_can_hold_many_times_over(kernels: NativeKernels) -> None:
    keys, values = torch.randn(2, 1, 70_000, 16)
    query = torch.randn(2, 1, 16)
    runs = torch.tensor([[0, 1, 0, 69_999]])
    exact, largest = plain_attention(query, keys, values, runs, 0.25)
    assert_rounded(kernels.attend(query, keys, values, runs, 0.25), exact, of=largest)


@pytest.mark.parametrize(
    "run", [[0, 5, 0, 0], [3, 2, 0, 0], [0, 1, 0, 16], [-1, 1, 0, 0], [0, 1, -1, 3], [0, 1, 0, -1]]
)
def test_a_run_outside_of_the_cache_is_refused(kernels: NativeKernels, run: list[int]) -> None:
    keys = torch.zeros(2, 16, 32)
    with pytest.raises(IndexError):
        kernels.attend(torch.zeros(4, 4, 32), keys, keys, torch.tensor([run]), 1.0)


@pytest.mark.parametrize("slot", [-1, 16])
def test_a_slot_outside_of_the_cache_is_refused(kernels: NativeKernels, slot: int) -> None:
    keys = torch.zeros(2, 16, 32)
    with pytest.raises(IndexError):
        kernels.write_cache(keys, keys, torch.ones(2, 1, 32), torch.ones(2, 1, 32), torch.tensor([slot]))
    assert not keys.any()


def test_several_threads_compute_the_same(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = load_kernels(library)
    x, weight = torch.randn(200, 1024), torch.randn(1024)
    query, keys, values = torch.randn(4, 300, 64), torch.randn(2, 512, 64), torch.randn(2, 512, 64)
    runs = torch.tensor([[0, 250, 0, 12], [250, 1, 300, 100]])

    def compute() -> list[Any]:
        return [
            kernels.rms_norm(x, weight, 1e-6),
            kernels.silu_mul(x, x),
            kernels.attend(query, keys, values, runs, 0.125)[:251],
        ]

    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    alone = compute()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    results: list[list[Any]] = []
    # Two models of one server compute at the same time.
    threads = [threading.Thread(target=lambda: results.append(compute())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    for result in results:
        assert all((one == other).all() for one, other in zip(alone, result, strict=True))


def test_heads_that_are_taken(library: Path) -> None:
    kernels = load_kernels(library)
    taken = [size for size in (0, 8, 16, 24, 80, 128, 576, 592) if kernels.takes(torch.bfloat16, size)]
    assert taken == [16, 80, 128, 576] and not kernels.takes(torch.float16, 128)


def test_the_library_brings_no_second_openmp(library: Path) -> None:
    """Two runtimes in a process would have twice the threads, and they would wait for each other."""
    # In a process of its own: libraries that only tests import bring one.
    program = (
        "import sys, torch\nfrom pathlib import Path\nfrom tis.engine.kernels.native import load_kernels\n"
        "load_kernels(Path(sys.argv[1]))\n"
        "print({line.split()[-1] for line in open('/proc/self/maps') if 'gomp' in line})"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(library)], capture_output=True, text=True, cwd=REPOSITORY)
    loaded = ast.literal_eval(ran.stdout)
    assert len(loaded) == 1 and "torch" in loaded.pop(), ran.stderr


def test_a_server_without_the_library_says_so_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "library_path", lambda: tmp_path / "missing.so")
    (tmp_path / "broken.so").write_text("not a library")
    with caplog.at_level(logging.INFO, logger="tis.engine"):
        assert native.native_kernels.__wrapped__() is None
        monkeypatch.setattr(native, "library_path", lambda: tmp_path / "broken.so")
        assert native.native_kernels.__wrapped__() is None
    first, second = caplog.messages
    assert "`make setup` builds them" in first and "broken.so" in second
    # Somebody built them and goes on without: that is a fault to look at.
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]


def test_another_machine_has_none(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(OSError, match="this is linux on aarch64"):
        load_kernels(library)


def test_ci_has_a_compiler() -> None:
    """The tests above are skipped without one: where CI runs, that is a failure."""
    if os.environ.get("SERVICES") != "required":
        pytest.skip("only where CI runs")
    assert has_compiler()
