"""The experts of a layer, against torch in float64."""

from typing import Any

import pytest
import torch
from torch.nn.functional import linear, silu

from tis.engine.kernels.experts import ExpertMatrices, NativeExperts
from tis.engine.kernels.integer_product import WeightBits, takes_integers
from tis.engine.kernels.native import NativeKernels, Scratch

NUM_EXPERTS, HIDDEN, INNER = 7, 66, 44
NONE = NUM_EXPERTS  # the number of an expert that adds nothing
WAYS = [
    "silu",
    "biases",
    "another activation",
    "no gate",
    "8 bits",
    "8 bits, another activation",
    "4 bits",
    "4 bits, another activation",
]


def require_integers(kernels: NativeKernels, bits: WeightBits | None) -> None:
    if bits and not takes_integers(kernels, bits, HIDDEN):
        pytest.skip(f"this level has no kernel for weights of {bits} bits")


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(0)
    return request.param


def new_matrices(dtype: Any, *, biases: bool = False, outputs: int = 2 * INNER) -> ExpertMatrices:
    gate_up = (torch.randn(NUM_EXPERTS, outputs, HIDDEN) * HIDDEN**-0.5).to(dtype)
    down = (torch.randn(NUM_EXPERTS, HIDDEN, INNER) * INNER**-0.5).to(dtype)
    if not biases:
        return ExpertMatrices(gate_up, down)
    return ExpertMatrices(gate_up, down, torch.randn(NUM_EXPERTS, outputs).to(dtype), torch.randn(NUM_EXPERTS, HIDDEN))


def clamped(gate_up: Any) -> Any:
    gate, up = gate_up[..., ::2].clamp(max=1), gate_up[..., 1::2].clamp(-1, 1)
    return (up + 1) * gate * torch.sigmoid(1.7 * gate)


def squared(up: Any) -> Any:
    return up.relu().square()


def gated(gate_up: Any) -> Any:
    gate, up = gate_up.chunk(2, -1)
    return silu(gate) * up


def computed_by_torch(matrices: ExpertMatrices, activation: Any, x: Any, chosen: Any, shares: Any) -> Any:
    out = torch.zeros(len(x), HIDDEN, dtype=torch.float64)
    for row, (experts, of_row) in enumerate(zip(chosen.tolist(), shares.double(), strict=True)):
        for expert, share in zip(experts, of_row, strict=True):
            if expert == NONE:
                continue
            biases = (
                one if one is None else one[expert].double() for one in (matrices.gate_up_bias, matrices.down_bias)
            )
            up_bias, down_bias = biases
            up = linear(x[row].double(), matrices.gate_up[expert].double(), up_bias)
            out[row] += share * linear(activation(up), matrices.down[expert].double(), down_bias)
    return out


def choices(tokens: int, each: int = 2) -> Any:
    """Of different experts in a row, the first of which is the likeliest by far."""
    weights = torch.tensor([9.0] + [1.0] * (NUM_EXPERTS - 1)).expand(tokens, -1)
    return torch.multinomial(weights, each), torch.rand(tokens, each)


@pytest.mark.parametrize("tokens", [1, 3, 17, 80])
@pytest.mark.parametrize("way", WAYS)
def test_experts_are_those_of_torch(kernels: NativeKernels, dtype: Any, way: str, tokens: int) -> None:
    bits: WeightBits | None = 8 if way.startswith("8 bits") else 4 if way.startswith("4 bits") else None
    require_integers(kernels, bits)
    other = clamped if way.endswith("another activation") else squared if way == "no gate" else None
    matrices = new_matrices(dtype, biases=way == "biases", outputs=INNER if way == "no gate" else 2 * INNER)
    native = NativeExperts(matrices, kernels, other, Scratch(), bits=bits)
    x, (chosen, shares) = torch.randn(tokens, HIDDEN + 6).to(dtype)[:, 6:], choices(tokens)
    exact = computed_by_torch(matrices, other or gated, x, chosen, shares)
    tolerance = 0.25 if bits == 4 else 0.06 if bits else 0.03 if dtype is torch.bfloat16 else 1e-5
    result = native(x, chosen, shares)
    assert result.dtype is dtype and (result.double() - exact).abs().max() <= tolerance * exact.abs().max()


def test_each_row_has_its_own_experts(kernels: NativeKernels, dtype: Any) -> None:
    """One that nobody else chose, one that all did, the same twice, none at all, and experts without rows."""
    matrices, x = new_matrices(dtype), torch.randn(5, HIDDEN).to(dtype)
    native = NativeExperts(matrices, kernels, None, Scratch())
    chosen = torch.tensor([[0, 6], [0, 0], [3, 0], [NONE, 0], [NONE, NONE]])
    shares = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.25, 0.75], [1.0, 1.0], [1.0, 1.0]])
    exact = computed_by_torch(matrices, gated, x, chosen, shares)
    result = native(x, chosen, shares)
    tolerance = 0.03 if dtype is torch.bfloat16 else 1e-5
    assert (result.double() - exact).abs().max() <= tolerance * exact.abs().max()
    assert (result[4] == 0).all()


def test_a_row_has_the_same_result_beside_any_others(kernels: NativeKernels, dtype: Any) -> None:
    native = NativeExperts(new_matrices(dtype, biases=True), kernels, None, Scratch())
    x, (chosen, shares) = torch.randn(90, HIDDEN).to(dtype), choices(90, 3)
    together = native(x, chosen, shares)
    for rows in (slice(0, 1), slice(5, 12), slice(40, 90), slice(89, 90)):
        assert torch.equal(native(x[rows], chosen[rows], shares[rows]), together[rows])


@pytest.mark.parametrize("bits", [None, 8, 4])
def test_threads_change_no_bit(kernels: NativeKernels, dtype: Any, bits: WeightBits | None) -> None:
    require_integers(kernels, bits)
    native = NativeExperts(new_matrices(dtype), kernels, None, Scratch(), bits=bits)
    x, (chosen, shares) = torch.randn(40, HIDDEN).to(dtype), choices(40)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(native(x, chosen, shares))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results)


def test_numbers_that_are_none_stay_in_their_row(kernels: NativeKernels, dtype: Any) -> None:
    native = NativeExperts(new_matrices(dtype), kernels, None, Scratch())
    x, (chosen, shares) = torch.randn(9, HIDDEN).to(dtype), choices(9)
    x[3, 5] = torch.nan
    assert native(x, chosen, shares).isnan().all(1).tolist() == [row == 3 for row in range(9)]


def test_layers_of_a_model_share_their_memory(kernels: NativeKernels, dtype: Any) -> None:
    scratch = Scratch()
    x, (chosen, shares) = torch.randn(30, HIDDEN).to(dtype), choices(30)
    layers = [new_matrices(dtype) for _ in range(2)]
    apart = [NativeExperts(one, kernels, None, Scratch())(x, chosen, shares) for one in layers]
    shared = [NativeExperts(one, kernels, None, scratch) for one in layers]
    for _ in range(2):
        assert all(torch.equal(one(x, chosen, shares), expected) for one, expected in zip(shared, apart, strict=True))


def test_float32_experts_from_bfloat16_are_kept_in_half_the_bytes(kernels: NativeKernels) -> None:
    torch.manual_seed(0)
    rounded = new_matrices(torch.bfloat16)
    matrices = ExpertMatrices(rounded.gate_up.float(), rounded.down.float())
    narrow = NativeExperts(matrices, kernels, None, Scratch())
    matrices.gate_up[6, -1, -1] += 2**-20
    matrices.down[6, -1, -1] += 2**-20  # only a row that chooses the last expert sees it
    wide = NativeExperts(matrices, kernels, None, Scratch())
    assert 2 * narrow.num_bytes == wide.num_bytes
    x, chosen, shares = torch.randn(9, HIDDEN), torch.arange(9)[:, None] % 6, torch.rand(9, 1)
    assert torch.equal(narrow(x, chosen, shares), wide(x, chosen, shares))


def test_no_rows_have_no_result(kernels: NativeKernels, dtype: Any) -> None:
    native = NativeExperts(new_matrices(dtype), kernels, None, Scratch())
    result = native(torch.randn(0, HIDDEN).to(dtype), torch.zeros(0, 2, dtype=torch.long), torch.zeros(0, 2))
    assert result.shape == (0, HIDDEN)


@pytest.mark.parametrize("expert", [-1, NUM_EXPERTS + 1])
def test_an_expert_that_is_not_there_is_refused(kernels: NativeKernels, dtype: Any, expert: int) -> None:
    native = NativeExperts(new_matrices(dtype), kernels, None, Scratch())
    with pytest.raises(IndexError):
        native(torch.randn(2, HIDDEN).to(dtype), torch.tensor([[0, 1], [expert, 2]]), torch.ones(2, 2))
    with pytest.raises(ValueError, match="chosen experts"):
        native(torch.randn(2, HIDDEN).to(dtype), torch.tensor([[0, 1]]), torch.ones(1, 2))
