"""Products of integers with more threads than blocks of weights: rows are divided, and no bit changes."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.engine.kernels.test_int8_spans import random_rows
from tests.engine.kernels.test_k_quants import MIXES, parts_of
from tests.engine.kernels.test_offset_spans import of_spans
from tests.engine.kernels.test_offset_spans import parts_of as small_parts_of
from tis.engine.kernels.grouped_product import product_of
from tis.engine.kernels.int8_spans import Int8SpanProduct
from tis.engine.kernels.integer_product import WeightBits, takes_integers
from tis.engine.kernels.k_quants import KQuantProduct
from tis.engine.kernels.native import NativeKernels

INPUTS, OUTPUTS = 1024, 130  # some blocks of 16 or 64 outputs, the last of which is not whole
TEAMS = (2, 3, 8, 32)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def product_with(kind: str, kernels: NativeKernels) -> Any:
    torch.manual_seed(1)
    if kind == "groups":
        return Int8SpanProduct([random_rows(OUTPUTS, INPUTS, 128)], None, kernels)
    if kind == "k-quants":
        parts = parts_of(kernels, MIXES["all"], (60, 40, 30), INPUTS)
        return KQuantProduct(parts, None, kernels, has_minima=True)
    if kind == "small blocks":
        return of_spans(small_parts_of(kernels, "4 and 5 bits", (60, 40, 30), INPUTS), kernels)
    bits: WeightBits = 4 if kind == "4 bits" else 8
    return product_of(torch.randn(OUTPUTS, INPUTS), torch.randn(OUTPUTS), kernels, bits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["8 bits", "4 bits", "groups", "k-quants", "small blocks"])
def test_a_prompt_has_the_same_bits_with_any_number_of_threads(kernels: NativeKernels, kind: str, dtype: Any) -> None:
    if not takes_integers(kernels, 4 if kind == "4 bits" else 8, INPUTS):
        pytest.skip("8-bit weights need AVX2")
    product = product_with(kind, kernels)
    ways: list[dict[str, Any]] = [{"bits": 16}, {"bits": 8}] if kind == "8 bits" else [{}]
    for rows in (47, 95, 97, 211, 500):  # no part, one, and several that differ in their rows
        x = torch.randn(rows, INPUTS).to(dtype)
        for way in ways:
            torch.set_num_threads(1)
            alone = product(x, **way)
            for team in TEAMS:
                torch.set_num_threads(team)
                assert torch.equal(product(x, **way), alone), (rows, way, team)
