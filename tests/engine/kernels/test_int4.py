"""4-bit weights: every level gives the bits of the same sums in plain torch; packing; embeddings."""

from typing import Any

import pytest
import torch

from tis.engine.kernels.integer_product import Int4Product, Int8Product, takes_integers
from tis.engine.kernels.native import NativeKernels
from tis.engine.weights.int4 import Int8Embedding

GROUP = 32
SHAPES = [(1, 16, 32), (1, 200, 1024), (2, 70, 100), (3, 17, 31), (4, 64, 64), (5, 5, 1), (9, 33, 1000), (71, 130, 96)]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def computed_by_torch(product: Int4Product, x: Any) -> Any:
    """Group by group: integers of rows times those of weights, exactly, times the group's power; then offsets."""
    groups = -(-product.inputs // GROUP)
    padding = (0, groups * GROUP - product.inputs)
    rows = torch.nn.functional.pad(x.float(), padding).unflatten(1, (groups, GROUP))
    numbers, offsets = (
        torch.nn.functional.pad(one.double(), padding).unflatten(1, (groups, GROUP)) for one in product.parts
    )
    powers = torch.frexp(rows.abs().amax(-1))[1] - 7
    powers += torch.ldexp(rows, -powers[..., None]).round().abs().amax(-1) > 127
    integers = torch.ldexp(rows, -powers[..., None]).round()
    totals = torch.zeros(len(x), product.outputs)
    for group in range(groups):
        for weights, sign in ((numbers, 1), (offsets, -1)):
            sums = sign * (integers[:, group].double() @ weights[:, group].T).float()  # at most 24 bits
            totals += torch.ldexp(sums, powers[:, group, None])
    return totals * product.scales[: product.outputs]


@pytest.mark.parametrize(("rows", "outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_product_has_the_bits_of_torch(
    kernels: NativeKernels, dtype: Any, rows: int, outputs: int, inputs: int
) -> None:
    product = Int4Product(torch.randn(outputs, inputs) + 0.1, None, kernels)
    x = (torch.randn(rows, inputs + 8) * torch.rand(inputs + 8).exp() * 3).to(dtype)[:, 8:]
    expected = computed_by_torch(product, x)
    assert torch.equal(product(x), expected.to(dtype))
    bias = torch.randn(outputs)
    beside_bias = Int4Product(torch.randn(outputs, inputs), bias, kernels)
    right = computed_by_torch(beside_bias, x).double() + bias.double()
    assert torch.allclose(beside_bias(x).double(), right, rtol=2**-8 if dtype is torch.bfloat16 else 1e-6, atol=1e-6)


def test_rows_are_rounded_by_less_than_weights_are(kernels: NativeKernels) -> None:
    weight, x = torch.randn(256, 1024), torch.randn(40, 1024)
    product = Int4Product(weight, None, kernels)
    exact = x.double() @ weight.double().T
    by_weights = float((x.double() @ product.weights.double().T - exact).norm() / exact.norm())
    by_all = float((product(x).double() - exact).norm() / exact.norm())
    assert 0.05 < by_weights < 0.075 and by_all < 1.02 * by_weights


@pytest.mark.parametrize("shift", [0.0, 3.0, -3.0])
def test_weights_are_nearer_than_those_of_the_range_of_a_group(kernels: NativeKernels, shift: float) -> None:
    weight = torch.randn(48, 256) + shift
    groups = weight.unflatten(1, (-1, GROUP))
    least, most = groups.amin(-1, keepdim=True).clamp(max=0), groups.amax(-1, keepdim=True).clamp(min=0)
    scale = (most - least) / 15
    simple = ((groups - least) / scale).round() * scale + least
    error = (Int4Product(weight, None, kernels).weights - weight).norm()
    assert error < 0.97 * (simple - groups).norm()


def test_a_group_far_below_the_others_of_its_output_is_kept(kernels: NativeKernels) -> None:
    weight = torch.randn(16, 128)
    weight[:, 32:64] *= 0.05
    small = Int4Product(weight, None, kernels).weights[:, 32:64]
    assert float((small - weight[:, 32:64]).norm() / weight[:, 32:64].norm()) < 0.12


@pytest.mark.parametrize("value", [0.0, 2.5, -2.5, 1e-38, 1e-30, -1e30, 3e38])
def test_weights_that_are_all_the_same(kernels: NativeKernels, value: float) -> None:
    weights = Int4Product(torch.full((20, 70), value), None, kernels).weights
    assert torch.allclose(weights, torch.full((20, 70), value), rtol=0.01, atol=0)


@pytest.mark.parametrize("power", [-110, -30, 100, 120])
def test_the_size_of_weights_does_not_matter(kernels: NativeKernels, power: int) -> None:
    weight = torch.randn(20, 70)
    one, other = (Int4Product(tensor, None, kernels) for tensor in (weight, weight * 2.0**power))
    assert torch.equal(one.blocks, other.blocks)
    assert torch.equal(other.weights, one.weights * 2.0**power)


def test_rows_of_another_type_are_refused(kernels: NativeKernels) -> None:
    with pytest.raises(KeyError):
        Int4Product(torch.randn(20, 32), None, kernels)(torch.randn(3, 32).half())


def test_a_row_has_the_same_result_beside_any_others(kernels: NativeKernels) -> None:
    product, x = Int4Product(torch.randn(200, 300), None, kernels), torch.randn(83, 300)
    together = product(x)
    assert torch.equal(together, torch.cat([product(row[None]) for row in x]))
    for begin, end in ((0, 3), (5, 12), (40, 83)):
        assert torch.equal(product(x[begin:end]), together[begin:end])


def test_threads_change_no_bit(kernels: NativeKernels) -> None:
    weight, x = torch.randn(192, 512), torch.randn(40, 512)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            product = Int4Product(weight, None, kernels)
            results.append((product(x), product.blocks))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for result in results for one, other in zip(result, results[0], strict=True))


def test_the_largest_numbers_do_not_overflow(kernels: NativeKernels) -> None:
    weight = torch.full((16, 60_000), -3.0)
    weight[:, ::32] = 0.0
    product, x = Int4Product(weight, None, kernels), torch.full((2, 60_000), 5.0)
    x[1] = -3.0e30
    assert torch.equal(product(x), computed_by_torch(product, x))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_numbers_that_are_none_stay_in_their_row(kernels: NativeKernels, dtype: Any, value: float) -> None:
    x = torch.randn(3, 128)
    x[1, 77] = value
    out = Int4Product(torch.randn(40, 128), None, kernels)(x.to(dtype))
    assert out[1].isnan().all() and out[[0, 2]].isfinite().all()


def test_a_weight_that_is_none_stays_in_its_output(kernels: NativeKernels) -> None:
    weight = torch.randn(40, 128)
    weight[7, 3] = torch.nan
    out = Int4Product(weight, None, kernels)(torch.randn(2, 128))
    assert out.isnan().any(0).nonzero().flatten().tolist() == [7]


@pytest.mark.parametrize("x", [torch.zeros(1, 128), torch.full((1, 128), 1e-38)])
def test_a_row_of_nothing_is_the_bias(kernels: NativeKernels, x: Any) -> None:
    bias = torch.randn(40)
    assert torch.equal(Int4Product(torch.randn(40, 128), bias, kernels)(x)[0], bias)


def test_no_rows_and_rows_in_steps(kernels: NativeKernels) -> None:
    product, x = Int4Product(torch.randn(20, 32), None, kernels), torch.randn(5, 32, 2)
    assert product(torch.randn(0, 32)).shape == (0, 20)
    assert torch.equal(product(x[..., 0]), product(x[..., 0].contiguous()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_embedding_reads_the_rows_of_the_head(kernels: NativeKernels, dtype: Any) -> None:
    if not takes_integers(kernels, 8, 30):
        pytest.skip("this level has no kernel for 8-bit weights")
    embedding = torch.nn.Embedding(1100, 30).to(dtype)
    ids = torch.tensor([[0, 1099, 17], [64, 63, 17]])
    alone = Int8Embedding(embedding)
    tied = Int8Embedding(embedding, Int8Product(embedding.weight.detach(), None, kernels))
    assert torch.equal(alone(ids), tied(ids)) and alone(ids).dtype is dtype
    assert float((alone(ids) - embedding(ids)).detach().norm() / embedding(ids).detach().norm()) < 0.01
    assert (tied.num_bytes, alone.num_bytes) == (0, 1100 * (30 + 4))
    assert alone(torch.zeros(1, 0, dtype=torch.int64)).shape == (1, 0, 30)


@pytest.mark.slow  # it compiles
@pytest.mark.long
def test_vnni_has_the_same_bits_where_its_vector_is_plain_c(software_vnni: NativeKernels) -> None:
    for rows, outputs, inputs in SHAPES:
        weight, x = torch.randn(outputs, inputs), torch.randn(rows, inputs)
        product = Int4Product(weight, None, software_vnni)
        assert torch.equal(product(x), computed_by_torch(product, x))
        assert float((product.weights - weight).norm() / weight.norm()) < 0.12
