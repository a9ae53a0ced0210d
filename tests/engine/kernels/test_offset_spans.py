"""Small blocks of GGUF files: products keep what the file says, and levels have the bits of the same sums in numpy."""

from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize

from tests.engine.gguf_files import quantised
from tis.engine.kernels.experts import ExpertMatrices, NativeExperts
from tis.engine.kernels.gguf_blocks import BlockRows, GgufKernels
from tis.engine.kernels.gguf_types import TYPES_OF_GGUF
from tis.engine.kernels.grouped_product import product_of
from tis.engine.kernels.integer_product import Int8Product, takes_integers
from tis.engine.kernels.native import NativeKernels, Scratch
from tis.engine.kernels.offset_spans import OffsetSpanProduct, bits_with_offsets
from tis.engine.weights.block_tensor import BlockStack, BlockTensor

# rows, outputs of each part, and inputs
SHAPES = [
    *((1, (16,), 32), (2, (70,), 96), (3, (64,), 256), (5, (24, 7, 33), 480), (9, (33, 100), 1024)),
    *((6, (130,), 64), (71, (40, 40), 512), (203, (20,), 288)),
]
MIXES = {
    "Q5_0": [Kind.Q5_0],
    "Q5_1": [Kind.Q5_1],
    "4 and 5 bits": [Kind.Q5_1, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0],
    "beside 8 bits": [Kind.Q8_0, Kind.Q5_0, Kind.Q5_1],
}


@pytest.fixture(autouse=True)
def seed(kernels: NativeKernels) -> None:
    if not takes_integers(kernels, 8, 32):
        pytest.skip("8-bit weights need AVX2")
    torch.manual_seed(0)


def random_blocks(kind: Kind, outputs: int, inputs: int, seed: int) -> Any:
    """Any bytes but for the scale and the minimum, which are of both signs and finite."""
    random = np.random.default_rng(seed)
    raw = random.integers(0, 256, (outputs, inputs // 32, TYPES_OF_GGUF[int(kind)].num_bytes), dtype=np.uint8)
    for at in (0, 2) if kind in (Kind.Q4_1, Kind.Q5_1) else (0,):
        raw[..., at : at + 2] = random.normal(0, 0.01, (*raw.shape[:2], 1)).astype(np.float16).view(np.uint8)
    return raw.reshape(outputs, -1)


def parts_of(kernels: NativeKernels, mix: str, outputs: tuple[int, ...], inputs: int) -> list[BlockRows]:
    kinds = (MIXES[mix] * len(outputs))[: len(outputs)]
    return [
        BlockRows(torch.from_numpy(random_blocks(kind, count, inputs, seed)), int(kind), GgufKernels(kernels))
        for seed, (kind, count) in enumerate(zip(kinds, outputs, strict=True))
    ]


def of_spans(parts: list[BlockRows], kernels: NativeKernels, bias: Any | None = None) -> OffsetSpanProduct:
    return OffsetSpanProduct(parts, bias, kernels, 8 if any(part.span for part in parts) else 6)


def official(parts: list[BlockRows]) -> Any:
    rows = [dequantize(part.blocks.numpy(), Kind(part.ggml_type)) for part in parts]
    return torch.from_numpy(np.concatenate(rows))


def as_in_file(part: BlockRows) -> tuple[Any, Any, Any]:
    """Numbers less their middle [outputs, inputs], scales and minima of each 32."""
    blocks = part.blocks.numpy().reshape(len(part), -1, TYPES_OF_GGUF[part.ggml_type].num_bytes)
    plain = blocks.copy()  # with a scale of 1 and no minimum the official reader says the numbers
    plain[..., 0:2] = np.array([1], np.float16).view(np.uint8)
    scales, minima = (blocks[..., at : at + 2].copy().view(np.float16)[..., 0].astype(np.float32) for at in (0, 2))
    if part.ggml_type in (Kind.Q4_1, Kind.Q5_1):
        plain[..., 2:4] = 0
    else:
        minima = np.zeros_like(scales)
    return dequantize(plain.reshape(len(part), -1), Kind(part.ggml_type)), scales, minima


def computed_by_numpy(parts: list[BlockRows], x: Any) -> Any:
    """For each 32 inputs: integers of rows of 16 bits times numbers, exactly; then power and scale, then minima."""
    numbers, scales, minima = (np.concatenate(some) for some in zip(*map(as_in_file, parts), strict=True))
    grouped = x.float().unflatten(1, (-1, 32))
    largest = grouped.abs().amax(-1)
    powers = torch.frexp(largest)[1] - 15
    powers += torch.ldexp(largest, -powers) >= 32512
    integers = torch.ldexp(grouped, -powers[..., None]).round().double().numpy()
    power = np.ldexp(np.float32(1), powers.numpy())
    totals = np.zeros((len(x), len(numbers)), np.float32)

    def add(totals: Any, one: Any, other: Any) -> Any:
        """One rounding of the product and the sum."""
        exact = totals.astype(np.longdouble) + one.astype(np.longdouble) * other.astype(np.longdouble)
        return exact.astype(np.float32)

    for span in range(grouped.shape[1]):
        sums = integers[:, span] @ numbers[:, 32 * span : 32 * span + 32].astype(float).T
        totals = add(totals, sums.astype(np.float32) * power[:, span, None], scales[None, :, span])
        row_sum = integers[:, span].sum(-1).astype(np.float32) * power[:, span]
        totals = add(totals, minima[None, :, span], row_sum[:, None])
    return torch.from_numpy(totals)


@pytest.mark.parametrize(("count", "outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_product_has_the_bits_of_numpy(
    kernels: NativeKernels, dtype: Any, mix: str, count: int, outputs: tuple[int, ...], inputs: int
) -> None:
    parts = parts_of(kernels, mix, outputs, inputs)
    x = (torch.randn(count, inputs + 8) * torch.rand(inputs + 8).exp() * 3).to(dtype)[:, 8:]
    expected = computed_by_numpy(parts, x)
    assert torch.equal(of_spans(parts, kernels)(x), expected.to(dtype))
    bias = torch.randn(sum(outputs))
    assert torch.equal(of_spans(parts, kernels, bias)(x), (expected + bias).to(dtype))


@pytest.mark.parametrize(("count", "outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("mix", MIXES)
def test_weights_are_bit_for_bit_those_of_the_official_reader(
    kernels: NativeKernels, mix: str, count: int, outputs: tuple[int, ...], inputs: int
) -> None:
    parts = parts_of(kernels, mix, outputs, inputs)
    product = of_spans(parts, kernels)
    assert torch.equal(product.weights, official(parts))
    some = torch.tensor([sum(outputs) - 1, 3, 3])
    assert torch.equal(product.weights_of(some), official(parts)[some])
    x = torch.randint(-64, 65, (count, inputs)).float()  # integers, which rows keep as they are
    exact = x.double() @ official(parts).double().T
    assert torch.allclose(product(x).double(), exact, rtol=1e-5, atol=float(exact.abs().max()) * 1e-6)


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1], ids=lambda kind: kind.name)
def test_a_product_loses_as_little_as_rows_of_16_bits(kernels: NativeKernels, kind: Kind) -> None:
    raw = quantised((torch.randn(128, 1024) * 0.05).numpy(), kind)
    rows = BlockRows(torch.from_numpy(raw), int(kind), GgufKernels(kernels))
    x = torch.randn(100, 1024)
    weights = official([rows])
    for outlier in (1, 1000):  # as a few inputs of real models are
        x[:, 7] *= outlier
        exact = x.double() @ weights.double().T
        lost = (of_spans([rows], kernels)(x).double() - exact).norm() / exact.norm()
        assert lost < 2e-4
        assert (Int8Product(weights, None, kernels)(x).double() - exact).norm() / exact.norm() > 20 * lost


@pytest.mark.parametrize("kind", [Kind.Q5_1, Kind.Q8_0], ids=lambda kind: kind.name)
def test_the_largest_sums_fit(kernels: NativeKernels, kind: Kind) -> None:
    """Of products by AVX2, which add the numbers before their middle is taken off."""
    raw = np.full((64, 2, TYPES_OF_GGUF[int(kind)].num_bytes), 0x7F if kind is Kind.Q8_0 else 0xFF, np.uint8)
    raw[..., 0:2] = np.array([0.5], np.float16).view(np.uint8)
    if kind is Kind.Q5_1:
        raw[..., 2:4] = np.array([-0.25], np.float16).view(np.uint8)
    parts = [BlockRows(torch.from_numpy(raw.reshape(64, -1)), int(kind), GgufKernels(kernels))]
    for number in (32511.0, -32511.0, 1.0, 1e30, 0.0):
        x = torch.full((3, 64), number)
        exact = x.double() @ official(parts).double().T
        assert torch.allclose(OffsetSpanProduct(parts, None, kernels, 8)(x).double(), exact, rtol=2e-5)


def test_a_row_has_the_same_result_beside_any_others(kernels: NativeKernels) -> None:
    product, x = of_spans(parts_of(kernels, "4 and 5 bits", (90, 70, 40, 9), 320), kernels), torch.randn(203, 320)
    together = product(x)
    assert torch.equal(together, torch.cat([product(row[None]) for row in x]))
    assert torch.equal(together[5:102], product(x[5:102]))
    x[1, 77] = torch.nan
    assert product(x)[1].isnan().all() and torch.equal(product(x)[2:], together[2:])


@pytest.mark.parametrize(("mix", "bits"), [("Q5_0", 7), ("Q5_1", 7), ("4 and 5 bits", 7), ("beside 8 bits", 9)])
def test_it_takes_as_many_bits_as_the_documents_say(kernels: NativeKernels, mix: str, bits: int) -> None:
    parts = parts_of(kernels, mix, (64, 64, 64, 64), 512)
    product = product_of(BlockTensor(parts, torch.float32), None, kernels, 8)
    assert isinstance(product, OffsetSpanProduct)
    assert bits == 8 * sum(one.nbytes for one in product.tensors) / (product.outputs * product.inputs)


def test_what_has_other_blocks_is_not_kept_so(kernels: NativeKernels) -> None:
    [five], [eight] = (parts_of(kernels, mix, (16,), 256) for mix in ("Q5_0", "beside 8 bits"))
    raw = quantised(torch.randn(16, 256).numpy(), Kind.Q6_K)
    k_quant = BlockRows(torch.from_numpy(raw), int(Kind.Q6_K), GgufKernels(kernels))
    assert bits_with_offsets([[five, eight]]) == bits_with_offsets([[five], [eight]]) == 8
    assert bits_with_offsets([[five, k_quant]]) is bits_with_offsets([[five], [k_quant]]) is None


def test_experts_are_multiplied_as_those_of_the_file(kernels: NativeKernels) -> None:
    """One way for all of them, and rows that are no whole super-blocks."""
    gates = [
        BlockTensor(parts_of(kernels, "beside 8 bits", (96,) * number, 160), torch.float32) for number in (2, 2, 2)
    ]
    downs = [BlockTensor(parts_of(kernels, mix, (160,), 96), torch.float32) for mix in ("Q5_0", "Q5_1", "Q5_0")]
    native = NativeExperts(ExpertMatrices(BlockStack(gates), BlockStack(downs)), kernels, None, Scratch(), bits=8)
    x, chosen, shares = torch.randn(9, 160) * 0.1, torch.arange(9)[:, None] % 3, torch.rand(9, 1)
    expected = []
    for row, expert in enumerate(chosen[:, 0].tolist()):
        gate, up = (x[row].double() @ gates[expert].numbers().double().T).chunk(2)
        expected.append(shares[row] * (torch.nn.functional.silu(gate) * up @ downs[expert].numbers().double().T))
    exact = torch.stack(expected)
    assert float((native(x, chosen, shares).double() - exact).norm() / exact.norm()) < 1e-3
