"""Weights in the order in which the native kernels read them, and their product with rows of numbers."""

import ctypes
from dataclasses import dataclass
from struct import Struct
from typing import Any

import torch

from tis.engine.kernels.memory_advice import in_huge_pages
from tis.engine.kernels.native import TYPES, NativeKernels

_PRODUCT = Struct("@16q")  # `struct product` of kernels.h
_NOTHING, _ADD_RESIDUAL, _GELU = 0, 1, 3  # what comes behind a product
_MIN_FOR_THREADS = 262_144  # products for which a second thread is worth the waking


class BlockFormat:
    """How an instruction set wants its weights: [block][step][output of the block][input of the step]."""

    def __init__(self, kernels: NativeKernels, dtype: Any, weight_dtype: Any | None = None) -> None:
        """`dtype` is that of the rows. `weight_dtype`: theirs, or bfloat16."""
        self.weight_dtype = weight_dtype or dtype
        types = (TYPES[dtype], TYPES[self.weight_dtype])
        self.width, self.step = (
            int(_function(kernels, name, ctypes.c_int64, [ctypes.c_int64] * 3)(kernels.level, *types))
            for name in ("tis_product_width", "tis_product_step")
        )

    @classmethod
    def suited_to(cls, weight: Any, kernels: NativeKernels) -> "BlockFormat":
        """Half the bytes for float32 weights that were loaded from bfloat16: the products are the same, bit for bit."""
        narrow = cls(kernels, weight.dtype, torch.bfloat16)
        return narrow if narrow.takes(weight.shape[1]) and is_bfloat16(weight) else cls(kernels, weight.dtype)

    def takes(self, *inputs: int) -> bool:
        return all(number % self.step == 0 for number in inputs)

    def pack(self, weight: Any) -> Any:
        """weight [outputs, inputs]. What is missing in the last block is zero."""
        outputs, inputs = weight.shape
        weight = weight.to(self.weight_dtype)
        blocks = -(-outputs // self.width)
        if outputs < blocks * self.width:
            weight = torch.cat([weight, weight.new_zeros(blocks * self.width - outputs, inputs)])
        packed = in_huge_pages((blocks, inputs // self.step, self.width, self.step), weight.dtype)
        return packed.copy_(weight.view(blocks, self.width, inputs // self.step, self.step).transpose(1, 2))

    def pack_bias(self, bias: Any | None) -> Any | None:
        if bias is None:
            return None
        padded = torch.zeros(-(-len(bias) // self.width) * self.width)
        padded[: len(bias)] = bias
        return padded

    def interleave(self, gate: Any, up: Any) -> Any:
        """The rows of two matrices, or of two biases, in turn: half a block of gates, and the other half for them."""
        half = self.width // 2
        missing = -len(gate) % half
        parts = (
            torch.cat([one, one.new_zeros(missing, *one.shape[1:])]).unflatten(0, (-1, half)) for one in (gate, up)
        )
        return torch.stack([*parts], 1).flatten(0, 2)


@dataclass(frozen=True, slots=True)
class PackedWeights:
    """`struct weights` of parts.h."""

    blocks: Any
    bias: Any | None
    scales: Any | None = None
    sums: Any | None = None
    integer_level: int = 0  # of integers: how they are multiplied
    group: int = 0
    order: Any | None = None

    @property
    def num_bytes(self) -> int:
        """Without scales of outputs, which are few."""
        return int(self.blocks.nbytes) + (int(self.scales.nbytes) if self.group and self.scales is not None else 0)

    def fields(self) -> tuple[int, ...]:
        tensors = (self.blocks, self.bias, self.scales, self.sums)
        kind = self.integer_level or TYPES[self.blocks.dtype]
        return *(address_of(tensor) for tensor in tensors), kind, self.group, address_of(self.order)


class NativeProduct:
    """Multiplies rows with weights [outputs, inputs]. A row has the same result beside any other rows."""

    def __init__(self, weight: Any, bias: Any | None, kernels: NativeKernels, *, gelu: bool = False) -> None:
        """`gelu`: the exact form of it is applied to the result."""
        form = BlockFormat.suited_to(weight, kernels)
        self.outputs, self.inputs = weight.shape
        self._weights, self._bias = form.pack(weight), form.pack_bias(bias)
        self._multiply = _function(kernels, "tis_multiply", None, [ctypes.c_char_p])
        self._call = (kernels.level, TYPES[weight.dtype])
        self._weight_type = TYPES[form.weight_dtype]
        self._behind = _GELU if gelu else _NOTHING

    @property
    def num_bytes(self) -> int:
        """Of the weights."""
        return int(self._weights.nbytes)

    def __call__(self, rows: Any, residual: Any | None = None) -> Any:
        """rows [number, inputs], and `residual` [number, outputs] to be added, have the type of the given weights."""
        if rows.stride(-1) != 1:
            rows = rows.contiguous()
        number = len(rows)
        out = rows.new_empty(number, self.outputs)
        is_large = number * self.inputs * self.outputs >= _MIN_FOR_THREADS
        self._multiply(
            _PRODUCT.pack(
                *(*self._call, torch.get_num_threads() if is_large else 1, rows.data_ptr(), rows.stride(0)),
                *(self._weights.data_ptr(), self._weight_type, address_of(self._bias)),
                *(out.data_ptr(), self.outputs, address_of(residual), 0 if residual is None else residual.stride(0)),
                *(number, self.inputs, self.outputs, self._behind if residual is None else _ADD_RESIDUAL),
            )
        )
        return out


def takes_products(kernels: NativeKernels | None, dtype: Any) -> bool:
    """Whether these products are the fastest here. With AMX, oneDNN's are if these cannot use its tiles."""
    if kernels is None or dtype not in TYPES:
        return False
    if dtype is torch.bfloat16:
        return kernels.isa == "amx" or kernels.isa == "avx512_bf16" and not torch.cpu._is_amx_tile_supported()
    return True


def is_bfloat16(weight: Any) -> bool:
    """Whether no weight would be rounded. Row by row, as a float32 copy of a head is large."""
    if weight.dtype is torch.bfloat16:
        return True
    return all(bool((rows.bfloat16() == rows).all()) for rows in weight.split(1024))


def address_of(tensor: Any | None) -> int:
    return 0 if tensor is None else int(tensor.data_ptr())


def _function(kernels: NativeKernels, name: str, result: Any, arguments: list[Any]) -> Any:
    function = getattr(kernels.library, name)
    function.argtypes, function.restype = arguments, result
    return function
