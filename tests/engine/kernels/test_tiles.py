"""Tiles of AMX, computed in plain C: what the kernels load, add and store, on a machine that need not have them."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.engine.kernels.conftest import compile_c
from tis.engine.kernels import build
from tis.engine.kernels.integer_product import Int8Product
from tis.engine.kernels.native import NativeKernels, load_kernels

pytestmark = pytest.mark.long

STEP_BYTES = 64  # of a row, that a tile has
ROWS = [1, 2, 15, 16, 17, 18, 31, 32]

Multiply = Callable[..., None]


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Any:
    sources = [f"-I{Path(build.__file__).parent}", str(Path(__file__).parent / "software_tiles.c")]
    return ctypes.CDLL(str(compile_c(tmp_path_factory.mktemp("tiles"), ["-O1", *sources])))


@pytest.fixture(scope="module", params=[torch.bfloat16, torch.uint8], ids=["bfloat16", "bytes"])
def numbers(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def multiply(tiles: Any, numbers: Any) -> Multiply:
    function = tiles.multiply_bfloat if numbers is torch.bfloat16 else tiles.multiply_bytes
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    function.argtypes = [pointer, number, pointer, number, number, pointer, number, number]
    function.restype = None

    def call(x: Any, weights: Any, sums: Any, *, goes_on: bool = False) -> None:
        """weights [outputs, inputs], sums [rows, outputs], in place."""
        outputs, inputs = weights.shape
        packed = weights.view(outputs, -1, 4 // x.itemsize).transpose(0, 1).contiguous()
        steps = inputs * x.itemsize // STEP_BYTES
        function(
            *(x.data_ptr(), x.stride(0) * x.itemsize, packed.data_ptr(), outputs, steps),
            *(sums.data_ptr(), goes_on, len(x)),
        )

    return call


def new_product(numbers: Any, rows: int, outputs: int, steps: int) -> tuple[Any, Any]:
    if numbers is torch.bfloat16:
        return torch.randn(rows, 32 * steps).bfloat16(), torch.randn(outputs, 32 * steps).bfloat16()
    x = torch.randint(0, 256, (rows, 64 * steps), dtype=torch.uint8)
    return x, torch.randint(-127, 128, (outputs, 64 * steps), dtype=torch.int8)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("outputs", [32, 64])
@pytest.mark.parametrize("steps", [1, 3, 16])
def test_tiles_multiply_as_torch_does(multiply: Multiply, numbers: Any, rows: int, outputs: int, steps: int) -> None:
    torch.manual_seed(rows * steps)
    x, weights = new_product(numbers, rows, outputs, steps)
    # Behind the rows lies what must be neither read nor written.
    around = torch.full((rows + 40, x.shape[1] + 6), torch.nan if numbers is torch.bfloat16 else 255, dtype=numbers)
    around[:rows, 6:] = x
    sums = torch.full((rows + 40, outputs), 7, dtype=torch.float32 if numbers is torch.bfloat16 else torch.int32)
    multiply(around[:rows, 6:], weights, sums[:rows])
    exact, sizes = x.double() @ weights.double().T, x.double().abs() @ weights.double().abs().T
    error = 1e-6 if numbers is torch.bfloat16 else 0
    assert ((sums[:rows] - exact).abs() <= error * sizes).all()
    assert (sums[rows:] == 7).all()
    multiply(around[:rows, 6:], weights, sums[:rows], goes_on=True)
    assert ((sums[:rows] - 2 * exact).abs() <= 2 * error * sizes).all()


def test_a_row_has_the_same_sum_beside_any_others(multiply: Multiply, numbers: Any) -> None:
    torch.manual_seed(0)
    x, weights = new_product(numbers, 32, 32, 5)
    together = torch.empty(32, 32)
    multiply(x, weights, together)
    for begin, end in ((0, 1), (3, 19), (5, 32), (31, 32)):
        part = torch.empty(end - begin, 32)
        multiply(x[begin:end], weights, part)
        assert torch.equal(part.view(torch.int32), together[begin:end].view(torch.int32))


@pytest.fixture(scope="module")
def by_tiles(library_with_software_tiles: Path) -> NativeKernels:
    try:
        return NativeKernels(load_kernels(library_with_software_tiles, "avx512_bf16").library, "amx")
    except OSError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def by_vectors(library: Path) -> NativeKernels:
    try:
        kernels = load_kernels(library, "avx512_bf16")
    except OSError as error:
        pytest.skip(str(error))
    return kernels


# Compiling takes seconds.
@pytest.mark.slow
@pytest.mark.parametrize("bits", [16, 8])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 9, 16, 17, 33, 127, 130, 300])
@pytest.mark.parametrize(("outputs", "inputs"), [(64, 64), (200, 1024), (70, 100), (17, 3), (130, 1990)])
def test_8_bit_weights_by_tiles_have_the_bits_of_vectors(
    by_tiles: NativeKernels, by_vectors: NativeKernels, bits: int, rows: int, outputs: int, inputs: int
) -> None:
    torch.manual_seed(rows)
    weight, bias = torch.randn(outputs, inputs), torch.randn(outputs)
    x = torch.randn(rows, inputs + 8)[:, 8:] * 3
    for dtype in (torch.float32, torch.bfloat16):
        for some in (None, bias):
            one, other = (Int8Product(weight, some, kernels) for kernels in (by_tiles, by_vectors))
            assert one.level != other.level
            assert torch.equal(one(x.to(dtype), bits=bits), other(x.to(dtype), bits=bits))
    assert torch.equal(one.weights, other.weights)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [65_536, 65_500])
def test_the_largest_sums_of_bytes_do_not_overflow(
    by_tiles: NativeKernels, by_vectors: NativeKernels, inputs: int
) -> None:
    weight, x = torch.ones(64, inputs), torch.ones(40, inputs)
    weight[1::2] *= -1
    x[1::3] *= -1
    results = [Int8Product(weight, None, kernels)(x, bits=8) for kernels in (by_tiles, by_vectors)]
    assert torch.equal(*results)
    assert torch.allclose(results[0], x @ weight.T)
