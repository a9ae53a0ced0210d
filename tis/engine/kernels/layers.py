"""Decoder layers in one native call: no Python and no operator of torch runs between the operations of a step."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

import torch

from tis.engine.kernels.native import TYPES, NativeKernels, check_code
from tis.engine.kernels.product import BlockFormat, address_of

# The structures of decoder_layers.c.
_LAYER = Struct("@15q 6f")
_LAYERS = Struct("@26q")
# Products of a layer for which a second thread is worth the waiting for each other.
_MIN_FOR_THREADS = 262_144


@dataclass(frozen=True, slots=True)
class LayerShape:
    hidden: int
    inner: int  # of the MLP
    heads: int
    key_heads: int
    head_size: int
    rotary_size: int  # of each head, what rotary embedding turns

    @property
    def qkv_width(self) -> int:
        return (self.heads + 2 * self.key_heads) * self.head_size

    @property
    def num_weights(self) -> int:
        return self.hidden * (self.qkv_width + self.heads * self.head_size + 3 * self.inner)


@dataclass(frozen=True, slots=True)
class Norm:
    weight: Any
    eps: float


@dataclass(frozen=True, slots=True)
class Linear:
    weight: Any  # [outputs, inputs]
    bias: Any | None = None

    def pack(self, form: BlockFormat) -> tuple[Any, Any | None]:
        return form.pack(self.weight), form.pack_bias(self.bias)


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """`x += output(attention(norm(x)))`, then `x += down(silu(gate(norm(x))) * up(norm(x)))`."""

    number: int  # in the cache
    input_norm: Norm
    qkv: Linear
    query_norm: Norm | None  # of each head
    key_norm: Norm | None
    output: Linear
    inner_norm: Norm
    gate: Linear
    up: Linear
    down: Linear
    scale: float  # of the attention
    window: int | None = None
    softcap: float | None = None

    @property
    def dtype(self) -> Any:
        return self.qkv.weight.dtype


class PackedLayer:
    """Keeps what the native structure points to."""

    def __init__(self, layer: DecoderLayer, shape: LayerShape, kernels: NativeKernels) -> None:
        form = BlockFormat(kernels, layer.dtype)
        gate, up = layer.gate, layer.up
        bias = None if gate.bias is None or up.bias is None else form.interleave(gate.bias, up.bias)
        gate_up = Linear(form.interleave(gate.weight, up.weight), bias)
        norms = (layer.input_norm, layer.query_norm, layer.key_norm, layer.inner_norm)
        self.number, self.shape, self.dtype = layer.number, shape, layer.dtype
        self._tensors = (
            *(layer.input_norm.weight, *layer.qkv.pack(form), *(norm and norm.weight for norm in norms[1:3])),
            *(*layer.output.pack(form), layer.inner_norm.weight, *gate_up.pack(form), *layer.down.pack(form)),
        )
        self._window = layer.window or 0
        self._numbers = (*(norm.eps if norm else 0.0 for norm in norms), layer.scale, layer.softcap or 0.0)

    def fields(self, cache: Any) -> bytes:
        tensors = (*self._tensors, cache.keys[self.number], cache.values[self.number])
        return _LAYER.pack(*(address_of(tensor) for tensor in tensors), self._window, *self._numbers)


class NativeLayers:
    """Layers of one shape, computed one after the other. Only one thread may call."""

    def __init__(self, layers: Sequence[PackedLayer], kernels: NativeKernels) -> None:
        self._layers = layers
        self._shape = layers[0].shape
        self._call = (kernels.level, TYPES[layers[0].dtype])
        self._compute = kernels.library.tis_layers
        self._compute.argtypes, self._compute.restype = [ctypes.c_char_p], ctypes.c_int64
        self._cache: Any = None
        self._table: Any = None
        self._scratch: Any = None

    def compute_(self, x: Any, cos: Any, sin: Any, cache: Any, slots: Any, runs: Any) -> None:
        """Changes x [tokens, hidden] in place. The other arguments are those of `NativeKernels`."""
        shape, tokens = self._shape, len(x)
        keys, values = cache.keys[self._layers[0].number], cache.values[self._layers[0].number]
        if cache is not self._cache:
            self._cache = cache
            self._table = ctypes.create_string_buffer(b"".join(layer.fields(cache) for layer in self._layers))
        size = tokens * (shape.hidden + shape.qkv_width + shape.heads * shape.head_size + shape.inner)
        if self._scratch is None or len(self._scratch) < size:
            self._scratch = x.new_empty(size)
        is_large = tokens * shape.num_weights >= _MIN_FOR_THREADS
        check_code(
            self._compute(
                _LAYERS.pack(
                    *(*self._call, torch.get_num_threads() if is_large else 1),
                    *(ctypes.addressof(self._table), len(self._layers), shape.hidden, shape.inner, shape.heads),
                    *(shape.key_heads, shape.head_size, shape.rotary_size, x.data_ptr(), self._scratch.data_ptr()),
                    *(cos.data_ptr(), sin.data_ptr(), cos.stride(0), sin.stride(0), slots.data_ptr(), runs.data_ptr()),
                    *(tokens, len(runs), keys.shape[1], *keys.stride()[:2], *values.stride()[:2]),
                )
            )
        )
