"""Weights of 8 or 4 bits in the order in which the native kernels read them, and their product with rows of numbers."""

import ctypes
from collections.abc import Sequence
from struct import Struct
from typing import Any, Literal

import torch

from tis.engine.kernels.memory_advice import in_huge_pages
from tis.engine.kernels.native import TYPES, NativeKernels

WeightBits = Literal[4, 8]  # of all weights
SpanBits = Literal[6, 8]

# How weights are multiplied, as in integer_product.h, and the outputs of a block of them.
_INT8_AVX2, _INT8_VNNI, _INT8_AMX, _INT4_PLAIN, _INT4_AVX2, _INT4_VNNI = range(1, 7)
_SPANS_AVX2, _SPANS_VNNI, _INT6_AVX2, _INT6_VNNI = range(7, 11)
_K_QUANTS_AVX2, _K_QUANTS_VNNI, _K_MINIMA_AVX2, _K_MINIMA_VNNI = range(11, 15)
_OFFSETS6_AVX2, _OFFSETS6_VNNI, _OFFSETS8_AVX2, _OFFSETS8_VNNI = range(15, 19)
_WIDTHS = {
    **{_INT8_AVX2: 16, _INT8_VNNI: 64, _INT8_AMX: 64, _INT4_PLAIN: 16, _INT4_AVX2: 16, _INT4_VNNI: 64},
    **{_SPANS_AVX2: 16, _SPANS_VNNI: 64, _INT6_AVX2: 16, _INT6_VNNI: 64},
    **{_K_QUANTS_AVX2: 16, _K_QUANTS_VNNI: 64, _K_MINIMA_AVX2: 16, _K_MINIMA_VNNI: 64},
    **{_OFFSETS6_AVX2: 16, _OFFSETS6_VNNI: 64, _OFFSETS8_AVX2: 16, _OFFSETS8_VNNI: 64},
}
_FOUR = 4  # inputs that are multiplied at once
_TILE = 64  # by tiles of AMX
_GROUP = 32  # inputs with a scale and an offset of their own, of 4 bits
_MAX_INPUTS: dict[WeightBits, int] = {8: 65_536, 4: 131_072}  # sums of bytes have 32 bits; `MAX_GROUPS` of int4_pack.c
_ROWS_PACKED_AT_ONCE = 1024
_MIN_FOR_THREADS = 65_536  # products for which a second thread is worth the waking

_ARGUMENTS = Struct("@18q")  # `struct integer_product` of integer_product.h
_PACKING = Struct("@7q")  # `struct int4_pack` of int4_pack.c


class IntegerProduct:
    """Multiplies rows with weights [outputs, inputs] that were rounded to integers. The rows are rounded, too."""

    def __init__(self, shape: Sequence[int], bias: Any | None, level: int, kernels: NativeKernels) -> None:
        self.level = level
        self._multiply = kernels.library.tis_integer_multiply
        self._multiply.argtypes, self._multiply.restype = [ctypes.c_char_p], None
        self.outputs, self.inputs = shape
        self._width = _WIDTHS[level]
        self._num_blocks = -(-self.outputs // self._width)
        self.blocks: Any = None
        self.scales = torch.zeros(self._num_blocks * self._width)
        self.sums: Any = None
        self.group, self.order = 0, None  # of weights that keep the scales of a file
        self.bias = torch.zeros(self._num_blocks * self._width) if bias is not None else None
        if self.bias is not None:
            self.bias[: self.outputs] = bias

    @property
    def tensors(self) -> list[Any]:
        return [one for one in (self.blocks, self.scales, self.sums, self.order) if one is not None]

    def __call__(self, rows: Any, *, bits: int = 16) -> Any:
        """rows [number, inputs] in float32 or bfloat16; returns [number, outputs] in the same type.

        `bits`: what rows are rounded to where the weights have 8.
        """
        if rows.stride(-1) != 1:
            rows = rows.contiguous()
        number = len(rows)
        out = torch.empty(number, self.outputs, dtype=rows.dtype)
        integers = torch.empty(number * integers_of_row(self.inputs), dtype=torch.uint8)
        row_scales = torch.empty(number)
        is_large = number * self.inputs * self.outputs >= _MIN_FOR_THREADS
        arguments = _ARGUMENTS.pack(
            *(rows.data_ptr(), self.blocks.data_ptr(), self.scales.data_ptr()),
            *(0 if one is None else one.data_ptr() for one in (self.sums, self.bias)),
            *(out.data_ptr(), integers.data_ptr(), row_scales.data_ptr()),
            *(number, rows.stride(0), self.inputs, self.outputs, TYPES[rows.dtype], bits),
            *(torch.get_num_threads() if is_large else 1, self.level),
            *(self.group, 0 if self.order is None else self.order.data_ptr()),
        )
        self._multiply(arguments)
        return out


class Int8Product(IntegerProduct):
    """Each output has a scale of its own. Rows have 16 bits, or 8 where the CPU computes that in half the time."""

    def __init__(self, weight: Any, bias: Any | None, kernels: NativeKernels) -> None:
        super().__init__(weight.shape, bias, level_of(kernels, 8), kernels)
        together = _TILE if self.level == _INT8_AMX else _FOUR
        self._groups = -(-self.inputs // together) * together // _FOUR
        self.blocks = in_huge_pages((self._num_blocks, self._groups, self._width, _FOUR), torch.int8).zero_()
        self.sums = torch.zeros(self._num_blocks * self._width, dtype=torch.int32)
        for begin in range(0, self.outputs, _ROWS_PACKED_AT_ONCE):
            some = weight[begin : begin + _ROWS_PACKED_AT_ONCE]
            kept = some.integers_of_outputs() if hasattr(some, "integers_of_outputs") else None
            integers, scales = kept or _rounded(floats_of(some))
            self._pack(integers, scales, begin)

    def _pack(self, rounded: Any, scales: Any, begin: int) -> None:
        end = begin + len(rounded)
        integers = torch.zeros(-(-len(rounded) // self._width) * self._width, self._groups * _FOUR, dtype=torch.int8)
        integers[: len(rounded), : self.inputs] = rounded
        self.scales[begin:end] = scales
        self.sums[begin:end] = integers[: len(rounded)].sum(1, dtype=torch.int32)
        blocks = integers.view(-1, self._width, self._groups, _FOUR).transpose(1, 2)
        self.blocks[begin // self._width : begin // self._width + len(blocks)] = blocks

    @property
    def weights(self) -> Any:
        """The weights as they are multiplied, [outputs, inputs] in float32."""
        return self.weights_of(torch.arange(self.outputs))

    def weights_of(self, outputs: Any) -> Any:
        """[number, inputs] of these outputs."""
        integers = self.blocks[outputs // self._width, :, outputs % self._width].flatten(1)
        return integers[:, : self.inputs] * self.scales[outputs, None]


class Int4Product(IntegerProduct):
    """32 inputs of an output have a scale and an offset. Rows have 8 bits, and a power of two for each 32 of them."""

    def __init__(self, weight: Any, bias: Any | None, kernels: NativeKernels) -> None:
        super().__init__(weight.shape, bias, level_of(kernels, 4), kernels)
        self._groups = -(-self.inputs // _GROUP)
        bytes_of_group = self._width * (2 + _GROUP // 2)
        self.blocks = in_huge_pages((self._num_blocks, self._groups, bytes_of_group), torch.uint8).zero_()
        keep_numbers = getattr(weight, "pack_int4", None)  # of weights that have 4 bits already
        if keep_numbers is None or not keep_numbers(self.blocks, self.scales, self._width):
            self._round(weight, kernels)

    def _round(self, weight: Any, kernels: NativeKernels) -> None:
        pack = kernels.library.tis_int4_pack
        pack.argtypes, pack.restype = [ctypes.c_char_p], None
        for begin in range(0, self.outputs, _ROWS_PACKED_AT_ONCE):
            some = floats_of(weight[begin : begin + _ROWS_PACKED_AT_ONCE]).contiguous()
            pack(
                _PACKING.pack(
                    *(some.data_ptr(), *some.shape, self._width, self.blocks[begin // self._width :].data_ptr()),
                    *(self.scales[begin:].data_ptr(), torch.get_num_threads()),
                )
            )

    @property
    def parts(self) -> tuple[Any, Any]:
        """Numbers times scale, and offsets, [outputs, inputs]: the weights, but for the scale of their output."""
        width, steps = self._width, _GROUP // (2 * _FOUR)
        scales, offsets, numbers = self.blocks.to(torch.int32).split([width, width, width * _GROUP // 2], -1)
        numbers = numbers.view(*numbers.shape[:2], steps, width, _FOUR).movedim(3, 1)  # [block, output, group, step, 4]
        numbers = torch.stack([numbers & 15, numbers >> 4], -2).flatten(3)
        scales, offsets = (one.transpose(1, 2)[..., None] for one in (scales, offsets))
        parts = (scales * numbers, (16 * offsets).expand_as(numbers))
        return tuple(one.flatten(2).flatten(0, 1)[: self.outputs, : self.inputs] for one in parts)

    @property
    def weights(self) -> Any:
        """The weights as they are multiplied, [outputs, inputs] in float32."""
        numbers, offsets = self.parts
        return (numbers - offsets) * self.scales[: self.outputs, None]


def floats_of(weight: Any) -> Any:
    """In memory, also of weights that have numbers only while something is computed with them."""
    return weight.numbers(torch.float32) if hasattr(weight, "numbers") else weight.float()


def scales_of(weight: Any) -> Any:
    """Of each row of float32 weights, so that its largest is 127."""
    return (weight.abs().amax(1) / 127).clamp(min=1e-12)


def _rounded(weight: Any) -> tuple[Any, Any]:
    scales = scales_of(weight)
    return (weight / scales[:, None]).round(), scales


def integers_of_row(inputs: int) -> int:
    """Bytes of a row whose numbers are rounded, and of what is said of each 32 of them, at most."""
    return 2 * (inputs + 2 * _TILE - 1) + 16 * -(-inputs // _GROUP)


def takes_integers(kernels: NativeKernels | None, bits: WeightBits, *inputs: int) -> bool:
    if kernels is None or not level_of(kernels, bits):
        return False
    return all(0 < number <= _MAX_INPUTS[bits] for number in inputs)


def level_of_spans(kernels: NativeKernels, bits: SpanBits, *, has_offsets: bool) -> int:
    """Of a `SpanProduct`. Tiles would have to be emptied behind each span: 0126."""
    if has_offsets:
        avx2, vnni = (_OFFSETS6_AVX2, _OFFSETS6_VNNI) if bits == 6 else (_OFFSETS8_AVX2, _OFFSETS8_VNNI)
    else:
        avx2, vnni = (_INT6_AVX2, _INT6_VNNI) if bits == 6 else (_SPANS_AVX2, _SPANS_VNNI)
    return avx2 if level_of(kernels, 8) == _INT8_AVX2 else vnni


def level_of_k_quants(kernels: NativeKernels, *, has_minima: bool) -> int:
    if level_of(kernels, 8) == _INT8_AVX2:
        return _K_MINIMA_AVX2 if has_minima else _K_QUANTS_AVX2
    return _K_MINIMA_VNNI if has_minima else _K_QUANTS_VNNI


def level_of(kernels: NativeKernels, bits: WeightBits) -> int:
    function = kernels.library.tis_integer_level
    function.argtypes, function.restype = [ctypes.c_int64], ctypes.c_int64
    best = int(function(bits))
    if bits == 8:
        lower = {"scalar": 0, "avx2": _INT8_AVX2, "amx": best}
        return min(best, lower.get(kernels.isa, _INT8_VNNI))
    lower = {"scalar": _INT4_PLAIN, "avx2": _INT4_AVX2}
    return min(best, lower.get(kernels.isa, best))
