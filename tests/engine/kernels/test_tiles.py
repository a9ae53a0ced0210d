"""Tiles of AMX, computed in plain C: what the kernels load, add and store, on a machine that need not have them."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.engine.kernels.conftest import compile_c
from tis.engine.kernels import build

OUTPUTS, INPUTS_OF_A_TILE = 32, 32


@pytest.fixture(scope="module")
def multiply(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    sources = [f"-I{Path(build.__file__).parent}", str(Path(__file__).parent / "software_tiles.c")]
    library = compile_c(tmp_path_factory.mktemp("tiles"), ["-O1", *sources])
    function = ctypes.CDLL(str(library)).multiply
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    function.argtypes = [pointer, number, pointer, number, pointer, number, number]
    function.restype = None

    def call(x: Any, weights: Any, sums: Any, *, goes_on: bool = False) -> None:
        """weights [32, inputs], sums [rows, 32], in place."""
        packed = weights.view(OUTPUTS, -1, 2).transpose(0, 1).contiguous()
        count = weights.shape[1] // INPUTS_OF_A_TILE
        function(x.data_ptr(), x.stride(0), packed.data_ptr(), count, sums.data_ptr(), goes_on, len(x))

    return call


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 18, 31, 32])
@pytest.mark.parametrize("inputs", [32, 96, 512])
def test_tiles_multiply_as_torch_does(multiply: Callable[..., None], rows: int, inputs: int) -> None:
    torch.manual_seed(rows * inputs)
    x, weights = torch.randn(rows, inputs + 6).bfloat16()[:, 6:], torch.randn(OUTPUTS, inputs).bfloat16()
    # Behind the rows lies what must be neither read nor written.
    around = torch.full((rows + 40, inputs + 6), torch.nan, dtype=torch.bfloat16)
    around[:rows, 6:] = x
    sums = torch.full((rows + 40, OUTPUTS), 7.5)
    multiply(around[:rows, 6:], weights, sums[:rows])
    exact, sizes = x.double() @ weights.double().T, x.double().abs() @ weights.double().abs().T
    assert ((sums[:rows] - exact).abs() <= 1e-6 * sizes).all()
    assert (sums[rows:] == 7.5).all()
    multiply(around[:rows, 6:], weights, sums[:rows], goes_on=True)
    assert ((sums[:rows] - 2 * exact).abs() <= 2e-6 * sizes).all()


def test_a_row_has_the_same_sum_beside_any_others(multiply: Callable[..., None]) -> None:
    torch.manual_seed(0)
    x, weights = torch.randn(32, 160).bfloat16(), torch.randn(OUTPUTS, 160).bfloat16()
    together = torch.empty(32, OUTPUTS)
    multiply(x, weights, together)
    for begin, end in ((0, 1), (3, 19), (5, 32), (31, 32)):
        part = torch.empty(end - begin, OUTPUTS)
        multiply(x[begin:end], weights, part)
        assert torch.equal(part, together[begin:end])
