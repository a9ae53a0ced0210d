"""4-bit weights that keep their scales: every level gives the bits of the same sums in plain torch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tis.engine.kernels.grouped_product import GroupedProduct
from tis.engine.kernels.grouped_rows import GroupedRows, may_be_grouped
from tis.engine.kernels.native import NativeKernels

STEP = 32
# rows, outputs, inputs, inputs of a group
SHAPES = [(1, 16, 32, 32), (1, 200, 1024, 128), (2, 70, 96, 64), (4, 64, 64, 64), (9, 33, 1024, 256), (71, 130, 96, 96)]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def random_rows(outputs: int, inputs: int, group: int, *, in_order: bool = True) -> GroupedRows:
    groups = -(-inputs // group)
    return GroupedRows(
        torch.randint(0, 256, (outputs, inputs // 2), dtype=torch.uint8),
        torch.randn(outputs, groups).half().float() * 0.02,
        group,
        inputs,
        torch.randint(0, 17, (outputs, groups), dtype=torch.uint8),
        None if in_order else torch.randperm(inputs, dtype=torch.int32),
        has_four_bits=True,
    )


def computed_by_torch(rows: GroupedRows, x: Any) -> Any:
    """32 inputs at a time: integers of rows times numbers less zeros, exactly; then times the scale of the group."""
    x = x.float()
    if rows.order is not None:
        x = x[:, rows.order.long()]
    x = x.unflatten(1, (-1, STEP))
    powers = torch.frexp(x.abs().amax(-1))[1] - 7
    powers += torch.ldexp(x, -powers[..., None]).round().abs().amax(-1) > 127
    integers = torch.ldexp(x, -powers[..., None]).round()
    assert rows.zeros is not None
    numbers = rows.integers().double().unflatten(1, (-1, STEP))
    totals = np.zeros((len(x), len(rows)), np.longdouble)
    for group in range(rows.scales.shape[1]):
        some = torch.zeros(len(x), len(rows))
        for step in range(group * rows.group // STEP, min((group + 1) * rows.group // STEP, numbers.shape[1])):
            products = (integers[:, step].double() @ numbers[:, step].T).float()
            zeros = rows.zeros[:, group].double() * integers[:, step].sum(-1, keepdim=True).double()
            some += torch.ldexp(products, powers[:, step, None])
            some -= torch.ldexp(zeros.float(), powers[:, step, None])
        # One rounding of the product and the sum.
        added = some.numpy().astype(np.longdouble) * rows.scales[:, group].numpy().astype(np.longdouble)
        totals = (totals + added).astype(np.float32).astype(np.longdouble)
    return torch.from_numpy(totals.astype(np.float32))


@pytest.mark.parametrize(("count", "outputs", "inputs", "group"), SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("in_order", [True, False])
def test_a_product_has_the_bits_of_torch(
    kernels: NativeKernels, dtype: Any, count: int, outputs: int, inputs: int, group: int, in_order: bool
) -> None:
    rows = random_rows(outputs, inputs, group, in_order=in_order)
    product = GroupedProduct([rows], None, kernels)
    x = (torch.randn(count, inputs + 8) * torch.rand(inputs + 8).exp() * 3).to(dtype)[:, 8:]
    expected = computed_by_torch(rows, x)
    assert torch.equal(product(x), expected.to(dtype))
    bias = torch.randn(outputs)
    assert torch.equal(GroupedProduct([rows], bias, kernels)(x), (expected + bias).to(dtype))


@pytest.mark.parametrize(("count", "outputs", "inputs", "group"), [*SHAPES, (3, 17, 80, 32), (2, 40, 100, 100)])
@pytest.mark.parametrize("in_order", [True, False])
def test_weights_are_those_of_the_file(
    kernels: NativeKernels, count: int, outputs: int, inputs: int, group: int, in_order: bool
) -> None:
    rows = random_rows(outputs, inputs, group, in_order=in_order)
    product = GroupedProduct([rows], None, kernels)
    assert torch.equal(product.weights, rows.floats())
    x = torch.randint(-64, 65, (count, inputs)).float()  # integers, which rows keep as they are
    exact = x.double() @ rows.floats().double().T
    assert torch.allclose(product(x).double(), exact, rtol=1e-5, atol=1e-4)


def test_outputs_of_several_matrices_lie_behind_one_another(kernels: NativeKernels) -> None:
    parts = [random_rows(outputs, 256, 64) for outputs in (24, 7, 1100)]
    together = GroupedProduct(parts, None, kernels)
    x = torch.randn(3, 256)
    assert torch.equal(together(x), torch.cat([GroupedProduct([part], None, kernels)(x) for part in parts], 1))
    assert may_be_grouped(parts)
    assert not may_be_grouped([parts[0], random_rows(8, 256, 128)])
    assert not may_be_grouped([parts[0], replace(parts[1], order=torch.randperm(256))])
    assert not may_be_grouped([random_rows(8, 64, 16)])


def test_a_row_has_the_same_result_beside_any_others(kernels: NativeKernels) -> None:
    product, x = GroupedProduct([random_rows(200, 320, 64)], None, kernels), torch.randn(83, 320)
    together = product(x)
    assert torch.equal(together, torch.cat([product(row[None]) for row in x]))
    x[1, 77] = torch.nan
    assert product(x)[1].isnan().all() and torch.equal(product(x)[2:], together[2:])


def test_integers_of_outputs_are_those_that_8_bits_hold() -> None:
    numbers = torch.randint(-128, 128, (6, 40), dtype=torch.int8)
    rows = GroupedRows(numbers, torch.rand(6, 1), 40, 40)
    found = rows.integers_of_outputs()
    assert found is not None and torch.equal(found[0], numbers) and torch.equal(found[1], rows.scales[:, 0])
    unsigned = replace(rows, numbers=(numbers.short() + 128).to(torch.uint8))
    shifted = replace(unsigned, zeros=torch.full((6, 1), 128, dtype=torch.uint8)).integers_of_outputs()
    assert shifted is not None and torch.equal(shifted[0], numbers)
    assert replace(unsigned, zeros=torch.full((6, 1), 3, dtype=torch.uint8)).integers_of_outputs() is None
    assert replace(rows, scales=torch.rand(6, 2), group=20).integers_of_outputs() is None
    assert replace(rows, numbers=numbers.to(torch.float8_e4m3fn)).integers_of_outputs() is None


@pytest.mark.slow  # it compiles
@pytest.mark.long
def test_vnni_has_the_same_bits_where_its_vector_is_plain_c(software_vnni: NativeKernels) -> None:
    for count, outputs, inputs, group in SHAPES:
        rows, x = random_rows(outputs, inputs, group), torch.randn(count, inputs)
        assert torch.equal(GroupedProduct([rows], None, software_vnni)(x), computed_by_torch(rows, x))
