"""K-quants of GGUF files: products keep what the file says, and all levels have the bits of the same sums in numpy."""

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
from tis.engine.kernels.integer_product import Int8Product, takes_integers
from tis.engine.kernels.k_quants import KQuantProduct
from tis.engine.kernels.native import NativeKernels, Scratch
from tis.engine.weights.block_tensor import BlockStack, BlockTensor

# rows, outputs of each part, and inputs
SHAPES = [
    *((1, (16,), 256), (2, (70,), 512), (3, (64,), 256), (5, (24, 7, 33), 768), (9, (33, 100), 1024)),
    *((13, (130,), 256), (71, (40, 40), 512), (203, (20,), 256)),
]
MIXES = {
    "Q4_K": [Kind.Q4_K],
    "Q5_K": [Kind.Q5_K],
    "Q6_K": [Kind.Q6_K],
    "all": [Kind.Q6_K, Kind.Q4_K, Kind.Q5_K],
}


@pytest.fixture(autouse=True)
def seed(kernels: NativeKernels) -> None:
    if not takes_integers(kernels, 8, 32):
        pytest.skip("8-bit weights need AVX2")
    torch.manual_seed(0)


def random_blocks(kind: Kind, outputs: int, inputs: int, seed: int) -> Any:
    """Any bytes but for the two or one halves, which are of both signs and finite."""
    random = np.random.default_rng(seed)
    raw = random.integers(0, 256, (outputs, inputs // 256, TYPES_OF_GGUF[int(kind)].num_bytes), dtype=np.uint8)
    for at in (208,) if kind is Kind.Q6_K else (0, 2):
        raw[..., at : at + 2] = random.normal(0, 0.01, (*raw.shape[:2], 1)).astype(np.float16).view(np.uint8)
    return raw.reshape(outputs, -1)


def parts_of(kernels: NativeKernels, kinds: list[Kind], outputs: tuple[int, ...], inputs: int) -> list[BlockRows]:
    return [
        BlockRows(torch.from_numpy(random_blocks(kind, count, inputs, seed)), int(kind), GgufKernels(kernels))
        for seed, (kind, count) in enumerate(zip((kinds * len(outputs))[: len(outputs)], outputs, strict=True))
    ]


def product_of(parts: list[BlockRows], kernels: NativeKernels, bias: Any | None = None) -> KQuantProduct:
    return KQuantProduct(parts, bias, kernels, has_minima=any(part.has_minima for part in parts))


def official(parts: list[BlockRows]) -> Any:
    rows = [dequantize(part.blocks.numpy(), Kind(part.ggml_type)) for part in parts]
    return torch.from_numpy(np.concatenate(rows))


def as_in_file(part: BlockRows) -> tuple[Any, Any, Any, Any]:
    """Numbers times scales [outputs, inputs], minima for each 32, and for each 256 what both are multiplied with."""
    blocks = part.blocks.numpy().reshape(len(part), -1, TYPES_OF_GGUF[part.ggml_type].num_bytes)
    plain = blocks.copy()  # with d = 1, and no minima: scales times numbers are what the official reader says
    one = np.array([1, 0], np.float16).view(np.uint8)
    if part.ggml_type == Kind.Q6_K:
        d = blocks[..., 208:210].copy().view(np.float16)
        plain[..., 208:210] = one[:2]
        minima, least = np.zeros((*blocks.shape[:2], 8)), np.zeros_like(d)
    else:
        d, least = (blocks[..., at : at + 2].copy().view(np.float16) for at in (0, 2))
        plain[..., 0:4] = one
        upper, both = blocks[..., 8:12], blocks[..., 12:16]
        minima = np.concatenate([upper & 63, both >> 4 | upper >> 6 << 4], -1)
    scaled = dequantize(plain.reshape(len(part), -1), Kind(part.ggml_type))
    return scaled, minima.reshape(len(part), -1), d[..., 0].astype(np.float32), least[..., 0].astype(np.float32)


def computed_by_numpy(parts: list[BlockRows], x: Any) -> Any:
    """For each 32 inputs: integers of rows of 15 bits times numbers and scales, exactly; then d, power and minima."""
    scaled, minima, d, least = (np.concatenate(some) for some in zip(*map(as_in_file, parts), strict=True))
    grouped = x.float().unflatten(1, (-1, 32))
    largest = grouped.abs().amax(-1)
    powers = torch.frexp(largest)[1] - 14
    powers += torch.ldexp(largest, -powers) >= 16383.5
    integers = torch.ldexp(grouped, -powers[..., None]).round().double().numpy()
    power = np.ldexp(np.float32(1), powers.numpy())
    totals = np.zeros((len(x), len(scaled)), np.float32)

    def add(totals: Any, one: Any, other: Any) -> Any:
        """One rounding of the product and the sum."""
        exact = totals.astype(np.longdouble) + one.astype(np.longdouble) * other.astype(np.longdouble)
        return exact.astype(np.float32)

    has_minima = any(part.has_minima for part in parts)
    for group in range(grouped.shape[1]):
        sums = integers[:, group] @ scaled[:, 32 * group : 32 * group + 32].astype(float).T
        assert np.abs(sums).max() < 2**31
        scale = d[None, :, group // 8] * power[:, group, None]
        totals = add(totals, sums.astype(np.float32), scale)
        if has_minima:
            offset = minima[:, group].astype(np.float32) * least[:, group // 8]
            row_sum = integers[:, group].sum(-1).astype(np.float32) * power[:, group]
            totals = add(totals, -offset[None], row_sum[:, None])
    return torch.from_numpy(totals)


@pytest.mark.parametrize(("count", "outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_product_has_the_bits_of_numpy(
    kernels: NativeKernels, dtype: Any, mix: str, count: int, outputs: tuple[int, ...], inputs: int
) -> None:
    parts = parts_of(kernels, MIXES[mix], outputs, inputs)
    x = (torch.randn(count, inputs + 8) * torch.rand(inputs + 8).exp() * 3).to(dtype)[:, 8:]
    expected = computed_by_numpy(parts, x)
    assert torch.equal(product_of(parts, kernels)(x), expected.to(dtype))
    bias = torch.randn(sum(outputs))
    assert torch.equal(product_of(parts, kernels, bias)(x), (expected + bias).to(dtype))


@pytest.mark.parametrize(("count", "outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("mix", MIXES)
def test_weights_are_bit_for_bit_those_of_the_official_reader(
    kernels: NativeKernels, mix: str, count: int, outputs: tuple[int, ...], inputs: int
) -> None:
    parts = parts_of(kernels, MIXES[mix], outputs, inputs)
    product = product_of(parts, kernels)
    assert torch.equal(product.weights, official(parts))
    some = torch.tensor([sum(outputs) - 1, 3, 3])
    assert torch.equal(product.weights_of(some), official(parts)[some])
    x = torch.randint(-64, 65, (count, inputs)).float()  # integers, which rows keep as they are
    exact = x.double() @ official(parts).double().T
    assert torch.allclose(product(x).double(), exact, rtol=1e-5, atol=float(exact.abs().max()) * 1e-6)


@pytest.mark.parametrize("kind", [Kind.Q4_K, Kind.Q5_K, Kind.Q6_K], ids=lambda kind: kind.name)
def test_a_product_loses_as_little_as_rows_of_15_bits(kernels: NativeKernels, kind: Kind) -> None:
    raw = quantised((torch.randn(128, 1024) * 0.05).numpy(), kind)
    rows = BlockRows(torch.from_numpy(raw), int(kind), GgufKernels(kernels))
    x = torch.randn(100, 1024)
    weights = official([rows])
    for outlier, allowed in ((1, 1e-4), (1000, 3e-4)):  # as a few inputs of real models are
        x[:, 7] *= outlier
        exact = x.double() @ weights.double().T
        lost = (product_of([rows], kernels)(x).double() - exact).norm() / exact.norm()
        assert lost < allowed
        assert (Int8Product(weights, None, kernels)(x).double() - exact).norm() / exact.norm() > 20 * lost


def test_the_largest_sums_fit(kernels: NativeKernels) -> None:
    raw = np.zeros((64, 210), np.uint8)  # numbers are -32
    raw[:, 192:208] = 0x80  # and scales -128
    raw[:, 208:210] = np.array([0.5], np.float16).view(np.uint8)
    rows = BlockRows(torch.from_numpy(raw), int(Kind.Q6_K), GgufKernels(kernels))
    for number, allowed in ((16383.0, 1e-6), (-16383.0, 1e-6), (1.0, 1e-6), (1e30, 1e-4), (0.0, 0)):
        x = torch.full((7, 256), number)
        exact = x.double() @ official([rows]).double().T
        assert torch.allclose(product_of([rows], kernels)(x).double(), exact, rtol=allowed)


def test_a_row_has_the_same_result_beside_any_others(kernels: NativeKernels) -> None:
    product, x = product_of(parts_of(kernels, MIXES["all"], (90, 70, 40), 512), kernels), torch.randn(203, 512)
    together = product(x)
    assert torch.equal(together, torch.cat([product(row[None]) for row in x]))
    assert torch.equal(together[5:102], product(x[5:102]))
    x[1, 77] = torch.nan
    assert product(x)[1].isnan().all() and torch.equal(product(x)[2:], together[2:])


def test_outputs_without_minima_have_the_same_bits_beside_others_that_have_some(kernels: NativeKernels) -> None:
    parts, x = parts_of(kernels, [Kind.Q6_K], (80, 30), 512), torch.randn(9, 512)
    alone, beside = (KQuantProduct(parts, None, kernels, has_minima=has) for has in (False, True))
    assert alone.level != beside.level and torch.equal(alone(x), beside(x))


@pytest.mark.parametrize("mix", MIXES)
def test_it_takes_as_many_bits_as_the_documents_say(kernels: NativeKernels, mix: str) -> None:
    product = product_of(parts_of(kernels, MIXES[mix], (128, 64, 64), 512), kernels)
    bits = 8 * sum(one.nbytes for one in product.tensors) / (product.outputs * product.inputs)
    assert bits == (6.625 if mix == "Q6_K" else 7)


def test_experts_are_multiplied_as_those_of_the_file(kernels: NativeKernels) -> None:
    """One way for all of them: where one has minima, the blocks of all have room for some."""
    gates = [
        BlockTensor(parts_of(kernels, [kind, Kind.Q6_K], (256, 256), 256), torch.float32)
        for kind in (Kind.Q6_K, Kind.Q5_K, Kind.Q6_K)
    ]
    downs = [BlockTensor(parts_of(kernels, [Kind.Q6_K], (256,), 256), torch.float32) for _ in gates]
    native = NativeExperts(ExpertMatrices(BlockStack(gates), BlockStack(downs)), kernels, None, Scratch(), bits=8)
    x, chosen, shares = torch.randn(9, 256) * 0.01, torch.arange(9)[:, None] % 3, torch.rand(9, 1)
    expected = []
    for row, expert in enumerate(chosen[:, 0].tolist()):
        gate, up = (x[row].double() @ gates[expert].numbers().double().T).chunk(2)
        expected.append(shares[row] * (torch.nn.functional.silu(gate) * up @ downs[expert].numbers().double().T))
    exact = torch.stack(expected)
    assert float((native(x, chosen, shares).double() - exact).norm() / exact.norm()) < 1e-3
