"""Layers with states, on every instruction set of this CPU, against plain recurrences in float64."""

from typing import Any

import pytest
import torch

from tis.engine.kernels.native import NativeKernels
from tis.engine.kernels.states import NativeStates


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def assert_close(ours: Any, exact: Any, error: float = 1e-5) -> None:
    assert ours.shape == exact.shape
    assert float((ours.double() - exact).abs().max()) <= error * float(exact.abs().max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("sequences", "channels", "size"), [(1, 5, 2), (3, 64, 3), (8, 100, 4), (2, 16, 7)])
def test_a_convolution_of_one_more_token(
    kernels: NativeKernels, sequences: int, channels: int, size: int, dtype: Any
) -> None:
    # Inputs are a part of a product, and the states some slots of a pool.
    x = torch.randn(sequences, 3 * channels).to(dtype)[:, channels : 2 * channels]
    pool = torch.randn(sequences + 2, channels, size).to(dtype)
    weight, bias = torch.randn(channels, size).to(dtype), torch.randn(channels).to(dtype)
    before = pool.clone()
    for of in (None, bias):
        pool.copy_(before)
        out = NativeStates(kernels).convolve(x, pool[1:-1], weight, of)
        inputs = torch.cat([before[1:-1, :, 1:], x[..., None]], -1)
        assert torch.equal(pool[1:-1], inputs) and torch.equal(pool[[0, -1]], before[[0, -1]])
        exact = (inputs.double() * weight.double()).sum(-1) + (0 if of is None else of.double())
        assert_close(out, exact, 1e-5 if dtype is torch.float32 else 2**-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("tokens", "channels", "size"), [(1, 5, 4), (3, 64, 4), (40, 200, 3), (0, 8, 2), (9, 130, 7)])
def test_a_convolution_of_a_text(kernels: NativeKernels, tokens: int, channels: int, size: int, dtype: Any) -> None:
    x = torch.randn(tokens, 3 * channels).to(dtype)[:, channels : 2 * channels]
    weight, bias = torch.randn(channels, size).to(dtype), torch.randn(channels).to(dtype)
    padded = torch.cat([torch.zeros(size - 1, channels), x.float()]).double()
    for of in (None, bias):
        for laid_out in (x, x.t().contiguous().t()):
            out = NativeStates(kernels).convolve_text(laid_out, weight, of)
            exact = torch.zeros(tokens, channels).double() + (0 if of is None else of.double())
            for at in range(size):
                exact += padded[at : at + tokens] * weight[:, at].double()
            assert out.dtype is dtype
            if tokens:
                assert_close(out, exact, 1e-5 if dtype is torch.float32 else 2**-8)


@pytest.mark.parametrize(
    ("sequences", "tokens", "key_heads", "heads", "size", "value_size"),
    [(1, 1, 1, 1, 4, 4), (3, 1, 2, 4, 16, 40), (1, 9, 2, 2, 33, 64), (2, 5, 1, 3, 128, 128), (1, 0, 1, 1, 8, 8)],
)
def test_the_gated_delta_rule(
    kernels: NativeKernels, sequences: int, tokens: int, key_heads: int, heads: int, size: int, value_size: int
) -> None:
    query, key = (torch.randn(sequences, tokens, key_heads, size) / size**0.5 for _ in range(2))
    value, beta = torch.randn(sequences, tokens, heads, value_size), torch.rand(sequences, tokens, heads)
    decay, pool = torch.rand(sequences, tokens, heads), torch.randn(sequences + 1, heads, size, value_size)
    exact, state = torch.zeros_like(value).double(), pool[1:].double()
    for at in range(tokens):
        k, q = (one[:, at].double().repeat_interleave(heads // key_heads, 1) for one in (key, query))
        state = state * decay[:, at, :, None, None]
        new = (value[:, at] - (state * k[..., None]).sum(-2)) * beta[:, at, :, None]
        state = state + k[..., None] * new[..., None, :]
        exact[:, at] = (state * q[..., None]).sum(-2)
    out = NativeStates(kernels).delta_rule(query, key, value, decay, beta, pool[1:])
    assert_close(pool[1:], state)
    if tokens:
        assert_close(out, exact)


@pytest.mark.parametrize(
    ("sequences", "tokens", "groups", "heads", "size", "state_size"),
    [(1, 1, 1, 1, 1, 1), (3, 1, 1, 4, 16, 40), (1, 9, 2, 4, 20, 64), (2, 5, 3, 3, 64, 128), (1, 3, 1, 2, 33, 7)],
)
def test_state_spaces(
    kernels: NativeKernels, sequences: int, tokens: int, groups: int, heads: int, size: int, state_size: int
) -> None:
    x, decay = torch.randn(sequences, tokens, heads, size), torch.rand(sequences, tokens, heads)
    added, read = (torch.randn(sequences, tokens, groups, state_size) for _ in range(2))
    pool = torch.randn(sequences + 1, heads, size, state_size)
    exact, state = torch.zeros_like(x).double(), pool[1:].double()
    for at in range(tokens):
        b, c = (one[:, at].double().repeat_interleave(heads // groups, 1) for one in (added, read))
        state = state * decay[:, at, :, None, None] + x[:, at, :, :, None] * b[:, :, None]
        exact[:, at] = (state * c[:, :, None]).sum(-1)
    out = NativeStates(kernels).state_space(x, decay, added, read, pool[1:])
    assert_close(pool[1:], state)
    assert_close(out, exact)


def test_results_do_not_depend_on_the_threads(kernels: NativeKernels) -> None:
    before, states = torch.get_num_threads(), torch.randn(2, 16, 64, 64)
    query, key, value = (torch.randn(2, 20, 16, 64) / 8 for _ in range(3))
    decay, beta = torch.rand(2, 20, 16), torch.rand(2, 20, 16)
    results = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            state = states.clone()
            results.append((NativeStates(kernels).delta_rule(query, key, value, decay, beta, state), state))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_states_of_other_types_and_layouts_are_refused(kernels: NativeKernels) -> None:
    native, one = NativeStates(kernels), torch.ones(1, 1, 2, 4)
    state = torch.zeros(1, 2, 4, 4)
    for wrong in (state.double(), state.transpose(2, 3)[:, :, ::2]):
        with pytest.raises(TypeError):
            native.delta_rule(one, one, one, torch.ones(1, 1, 2), torch.ones(1, 1, 2), wrong)
    with pytest.raises(TypeError):
        native.convolve(torch.ones(1, 4), torch.zeros(1, 4, 3).bfloat16(), torch.ones(4, 3), None)
