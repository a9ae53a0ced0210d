"""8-bit weights that keep the scales of groups, and 6-bit ones: all levels have the bits of the same sums in torch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tis.engine.kernels.grouped_product import product_of
from tis.engine.kernels.grouped_rows import GroupedRows
from tis.engine.kernels.int8_spans import Int6Product, Int8SpanProduct, common_span
from tis.engine.kernels.integer_product import Int8Product, takes_integers
from tis.engine.kernels.native import NativeKernels

# rows, outputs, inputs, inputs of a group, and of a span
SHAPES = [
    *((1, 16, 32, 32, 32), (1, 200, 1024, 128, 128), (2, 70, 96, 64, 64), (3, 64, 64, 64, 64), (9, 33, 1024, 256, 128)),
    *((5, 40, 480, 160, 32), (71, 130, 96, 96, 96), (6, 17, 80, 32, 32), (2, 40, 100, 100, 128), (4, 70, 40, 40, 64)),
]


@pytest.fixture(autouse=True)
def seed(kernels: NativeKernels) -> None:
    if not takes_integers(kernels, 8, 32):
        pytest.skip("8-bit weights need AVX2")
    torch.manual_seed(0)


def random_rows(
    outputs: int, inputs: int, group: int, *, in_order: bool = True, symmetric: bool = False
) -> GroupedRows:
    groups = -(-inputs // group)
    zeros = torch.full((outputs, groups), 128) if symmetric else torch.randint(0, 256, (outputs, groups))
    return GroupedRows(
        torch.randint(0, 256, (outputs, inputs), dtype=torch.uint8),
        torch.randn(outputs, groups).half().float() * 0.02,
        group,
        inputs,
        zeros.to(torch.uint8),
        None if in_order else torch.randperm(inputs, dtype=torch.int32),
    )


def computed_by_torch(rows: GroupedRows, x: Any) -> Any:
    """Span by span: integers of rows of 16 bits times numbers, less zeros; then times the scale of the span."""
    x = x.float()
    if rows.order is not None:
        x = x[:, rows.order.long()]
    numbers, zeros, scales = rows.in_spans()
    padding = (0, -rows.inputs % rows.span)
    x, numbers = (torch.nn.functional.pad(one, padding).unflatten(1, (-1, rows.span)) for one in (x, numbers.double()))
    largest = x.abs().amax(-1)
    powers = torch.frexp(largest)[1] - 15
    powers += torch.ldexp(largest, -powers) >= 32512
    integers = torch.ldexp(x, -powers[..., None]).round()
    totals = np.zeros((len(x), len(rows)), np.longdouble)
    for span in range(scales.shape[1]):
        products = (integers[:, span].double() @ numbers[:, span].T).float().double()
        products -= zeros[:, span].double() * integers[:, span].double().sum(-1, keepdim=True)
        added = torch.ldexp(products, powers[:, span, None]).float()
        # One rounding of the product and the sum.
        scaled = added.numpy().astype(np.longdouble) * scales[:, span].numpy().astype(np.longdouble)
        totals = (totals + scaled).astype(np.float32).astype(np.longdouble)
    return torch.from_numpy(totals.astype(np.float32))


@pytest.mark.parametrize(("count", "outputs", "inputs", "group", "span"), SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("in_order", [True, False])
def test_a_product_has_the_bits_of_torch(
    kernels: NativeKernels, dtype: Any, count: int, outputs: int, inputs: int, group: int, span: int, in_order: bool
) -> None:
    rows = random_rows(outputs, inputs, group, in_order=in_order)
    assert common_span([[rows]]) == span
    product = Int8SpanProduct([rows], None, kernels)
    x = (torch.randn(count, inputs + 8) * torch.rand(inputs + 8).exp() * 3).to(dtype)[:, 8:]
    expected = computed_by_torch(rows, x)
    assert torch.equal(product(x), expected.to(dtype))
    bias = torch.randn(outputs)
    assert torch.equal(Int8SpanProduct([rows], bias, kernels)(x), (expected + bias).to(dtype))


@pytest.mark.parametrize(("count", "outputs", "inputs", "group", "span"), SHAPES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_weights_are_those_of_the_file(
    kernels: NativeKernels, count: int, outputs: int, inputs: int, group: int, span: int, symmetric: bool
) -> None:
    rows = random_rows(outputs, inputs, group, in_order=False, symmetric=symmetric)
    product = Int8SpanProduct([rows], None, kernels)
    assert torch.equal(product.weights, rows.floats())
    some = torch.tensor([outputs - 1, 3, 3])
    assert torch.equal(product.weights_of(some), rows.floats()[some])
    x = torch.randint(-64, 65, (count, inputs)).float()  # integers, which rows keep as they are
    exact = x.double() @ rows.floats().double().T
    assert torch.allclose(product(x).double(), exact, rtol=1e-5, atol=1e-3)


def test_a_product_loses_as_little_as_rows_of_16_bits(kernels: NativeKernels) -> None:
    rows = random_rows(128, 1024, 32, symmetric=True)
    x = torch.randn(100, 1024)
    x[:, 7] *= 1000  # as a few inputs of real models are
    exact = x.double() @ rows.floats().double().T
    lost = (Int8SpanProduct([rows], None, kernels)(x).double() - exact).norm() / exact.norm()
    assert lost < 2e-4
    assert (Int8Product(rows.floats(), None, kernels)(x).double() - exact).norm() / exact.norm() > 20 * lost


def test_the_largest_sums_fit(kernels: NativeKernels) -> None:
    numbers = torch.full((64, 256), 255, dtype=torch.uint8)
    rows = GroupedRows(numbers, torch.ones(64, 2), 128, 256, torch.zeros(64, 2, dtype=torch.uint8))
    product = Int8SpanProduct([rows], None, kernels)
    for number in (32511.0, -32511.0, 1.0, 1e30):
        x = torch.full((3, 256), number)
        assert torch.equal(product(x), computed_by_torch(rows, x))


def test_outputs_of_several_matrices_lie_behind_one_another(kernels: NativeKernels) -> None:
    parts = [random_rows(outputs, 256, 64) for outputs in (24, 7, 1100)]
    together = Int8SpanProduct(parts, None, kernels)
    x = torch.randn(3, 256)
    assert torch.equal(together(x), torch.cat([Int8SpanProduct([part], None, kernels)(x) for part in parts], 1))
    assert common_span([parts]) == 64
    assert common_span([[parts[0], random_rows(8, 256, 128)]]) == 0
    assert common_span([[parts[0], replace(parts[1], order=torch.randperm(256))]]) == 0
    assert common_span([[parts[0]], [replace(parts[1], order=torch.randperm(256))]]) == 64  # two experts
    assert common_span([[random_rows(8, 64, 16)]]) == 0
    assert common_span([[random_rows(8, 64, 64, symmetric=True)]]) == 0  # 8 bits with a scale for each output


def test_a_row_has_the_same_result_beside_any_others(kernels: NativeKernels) -> None:
    product, x = Int8SpanProduct([random_rows(200, 320, 64)], None, kernels), torch.randn(83, 320)
    together = product(x)
    assert torch.equal(together, torch.cat([product(row[None]) for row in x]))
    x[1, 77] = torch.nan
    assert product(x)[1].isnan().all() and torch.equal(product(x)[2:], together[2:])


def test_plain_weights_have_no_spans(kernels: NativeKernels) -> None:
    weight = torch.randn(40, 64)
    assert isinstance(product_of(weight, None, kernels, 8), Int8Product)


@pytest.mark.parametrize(("count", "outputs", "inputs"), [(1, 70, 300), (2, 130, 128), (3, 64, 256), (29, 200, 1000)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_of_6_bits_are_rounded_and_multiplied_as_by_torch(
    kernels: NativeKernels, dtype: Any, count: int, outputs: int, inputs: int
) -> None:
    weight = torch.randn(outputs, inputs)
    product, num_spans = Int6Product(weight, None, kernels), -(-inputs // 128)
    spans = torch.nn.functional.pad(weight, (0, 128 * num_spans - inputs)).unflatten(1, (num_spans, 128))
    scales = torch.maximum(spans.amax(-1) / 31, -spans.amin(-1) / 32)
    numbers = (spans / scales[..., None]).round() + 32
    assert 0 <= numbers.min() and numbers.max() <= 63
    zeros = torch.full(scales.shape, 32, dtype=torch.uint8)
    rows = GroupedRows(numbers.flatten(1)[:, :inputs].to(torch.uint8), scales, 128, inputs, zeros)
    assert torch.equal(product.weights, rows.floats())
    assert torch.equal(product.weights_of(torch.tensor([outputs - 1, 17, 17])), rows.floats()[[outputs - 1, 17, 17]])
    assert float((product.weights - weight).norm() / weight.norm()) < 0.03
    x = torch.randn(count, inputs).to(dtype)
    assert torch.equal(product(x), computed_by_torch(rows, x).to(dtype))


def test_weights_of_6_bits_may_be_nothing(kernels: NativeKernels) -> None:
    product = Int6Product(torch.zeros(20, 40), torch.ones(20), kernels)
    assert torch.equal(product(torch.randn(3, 40)), torch.ones(3, 20))
