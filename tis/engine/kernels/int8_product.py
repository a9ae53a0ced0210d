"""8-bit weights in the order in which `int8_product.c` reads them, and their product with rows of numbers."""

import ctypes
from struct import Struct
from typing import Any

import torch

from tis.engine.kernels.native import NativeKernels

_AVX2, _VNNI = 1, 2
_OUTPUTS, _GROUP = {_AVX2: 16, _VNNI: 64}, 4  # of a block of weights, as in int8_product.c
_MAX_INPUTS = 65_536  # sums of bytes have 32 bits
_ROWS_PACKED_AT_ONCE = 1024
_MIN_FOR_THREADS = 65_536  # products for which a second thread is worth the waking

_ARGUMENTS = Struct("@17q")  # `struct int8_product` of int8_product.h


class Int8Product:
    """Multiplies rows with weights [outputs, inputs] that were rounded to 8 bits, each output with a scale of its own.

    The rows are rounded, too: to 16 bits, or to 8 where the CPU computes that in half the time.
    """

    def __init__(self, weight: Any, bias: Any | None, kernels: NativeKernels) -> None:
        self.level = _level_of(kernels)
        self._multiply = kernels.library.tis_int8_multiply
        self._multiply.argtypes, self._multiply.restype = [ctypes.c_char_p], None
        self.outputs, self.inputs = weight.shape
        self._width = _OUTPUTS[self.level]
        blocks, self._groups = -(-self.outputs // self._width), -(-self.inputs // _GROUP)
        self.blocks = torch.zeros(blocks, self._groups, self._width, _GROUP, dtype=torch.int8)
        self.scales = torch.zeros(blocks * self._width)
        self.sums = torch.zeros(blocks * self._width, dtype=torch.int32)
        self.bias = torch.zeros(blocks * self._width) if bias is not None else None
        if self.bias is not None:
            self.bias[: self.outputs] = bias
        for begin in range(0, self.outputs, _ROWS_PACKED_AT_ONCE):
            self._pack(weight[begin : begin + _ROWS_PACKED_AT_ONCE].float(), begin)

    def _pack(self, weight: Any, begin: int) -> None:
        end = begin + len(weight)
        scales = scales_of(weight)
        integers = torch.zeros(-(-len(weight) // self._width) * self._width, self._groups * _GROUP, dtype=torch.int8)
        integers[: len(weight), : self.inputs] = (weight / scales[:, None]).round()
        self.scales[begin:end] = scales
        self.sums[begin:end] = integers[: len(weight)].sum(1, dtype=torch.int32)
        blocks = integers.view(-1, self._width, self._groups, _GROUP).transpose(1, 2)
        self.blocks[begin // self._width : begin // self._width + len(blocks)] = blocks

    @property
    def tensors(self) -> list[Any]:
        return [self.blocks, self.scales, self.sums]

    @property
    def weights(self) -> Any:
        """The weights as they are multiplied, [outputs, inputs] in float32."""
        integers = self.blocks.transpose(1, 2).reshape(-1, self._groups * _GROUP)
        return integers[: self.outputs, : self.inputs] * self.scales[: self.outputs, None]

    def __call__(self, rows: Any, *, bits: int = 16) -> Any:
        """rows [number, inputs] in float32 or bfloat16; returns [number, outputs] in the same type."""
        if rows.stride(-1) != 1:
            rows = rows.contiguous()
        number = len(rows)
        out = torch.empty(number, self.outputs, dtype=rows.dtype)
        integers = torch.empty(number * self._groups * _GROUP * 2, dtype=torch.uint8)
        row_scales = torch.empty(number)
        is_large = number * self.inputs * self.outputs >= _MIN_FOR_THREADS
        arguments = _ARGUMENTS.pack(
            *(rows.data_ptr(), self.blocks.data_ptr(), self.scales.data_ptr(), self.sums.data_ptr()),
            *(0 if self.bias is None else self.bias.data_ptr(), out.data_ptr()),
            *(integers.data_ptr(), row_scales.data_ptr(), number, rows.stride(0), self.inputs, self.outputs),
            *(
                self._groups,
                rows.dtype is torch.bfloat16,
                bits,
                torch.get_num_threads() if is_large else 1,
                self.level,
            ),
        )
        self._multiply(arguments)
        return out


def scales_of(weight: Any) -> Any:
    """Of each row of float32 weights, so that its largest is 127."""
    return (weight.abs().amax(1) / 127).clamp(min=1e-12)


def takes_int8(kernels: NativeKernels | None, inputs: int) -> bool:
    return kernels is not None and _level_of(kernels) > 0 and 0 < inputs <= _MAX_INPUTS


def _level_of(kernels: NativeKernels) -> int:
    kernels.library.tis_int8_level.restype = ctypes.c_int64
    best = int(kernels.library.tis_int8_level())
    return min(best, {"scalar": 0, "avx2": _AVX2}.get(kernels.isa, best))
