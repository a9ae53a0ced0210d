"""Decoder layers in one native call: no Python and no operator of torch runs between the operations of a step."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

import torch

from tis.engine.kernels.integer_product import IntegerProduct, integers_of_row
from tis.engine.kernels.native import TYPES, NativeKernels, Scratch, check_code
from tis.engine.kernels.product import BlockFormat, PackedWeights, address_of

# The structures of decoder_layers.c.
_LAYER = Struct("@37q 6f")
_LAYERS = Struct("@34q")
# Products of a layer for which a second thread is worth the waiting for each other.
_MIN_FOR_THREADS = 262_144


@dataclass(frozen=True, slots=True)
class LayerShape:
    hidden: int
    inner: int  # of the MLP; 0: it is computed elsewhere
    heads: int
    key_heads: int
    head_size: int
    rotary_size: int  # of each head, what rotary embedding turns

    @property
    def attended(self) -> int:
        return self.heads * self.head_size

    @property
    def qkv_width(self) -> int:
        return (self.heads + 2 * self.key_heads) * self.head_size

    @property
    def num_weights(self) -> int:
        return self.hidden * (self.qkv_width + self.attended + 3 * self.inner)

    @property
    def scratch_width(self) -> int:
        """Numbers for each token: `buffers_of` in decoder_layers.c."""
        return self.hidden + self.qkv_width + self.attended + self.inner + max(self.hidden, 2 * self.inner)

    @property
    def num_integers(self) -> int:
        """Bytes for each token whose numbers are rounded."""
        return integers_of_row(max(self.hidden, self.attended, self.inner))


@dataclass(frozen=True, slots=True)
class Norm:
    weight: Any
    eps: float


@dataclass(frozen=True, slots=True)
class Linear:
    weight: Any  # [outputs, inputs]
    bias: Any | None = None


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """`x += output(attention(norm(x)))`, then `x += down(silu(gate(norm(x))) * up(norm(x)))`.

    Without `gate_up` and `down` it ends with the second `norm(x)`. Its weights are all numbers, or all integers.
    """

    number: int  # in the cache
    input_norm: Norm
    qkv: Linear | IntegerProduct
    query_norm: Norm | None  # of each head
    key_norm: Norm | None
    output: Linear | IntegerProduct
    inner_norm: Norm
    gate_up: Linear | IntegerProduct | None  # first all gates
    down: Linear | IntegerProduct | None
    scale: float  # of the attention
    window: int | None = None
    softcap: float | None = None

    @property
    def dtype(self) -> Any:
        return self.input_norm.weight.dtype

    @property
    def products(self) -> "tuple[Linear | IntegerProduct, ...]":
        return tuple(one for one in (self.qkv, self.output, self.gate_up, self.down) if one is not None)


class PackedLayer:
    """Keeps what the native structure points to."""

    def __init__(self, layer: DecoderLayer, shape: LayerShape, kernels: NativeKernels) -> None:
        norms = (layer.input_norm, layer.query_norm, layer.key_norm, layer.inner_norm)
        self.number, self.shape, self.dtype = layer.number, shape, layer.dtype
        self.has_integers = isinstance(layer.qkv, IntegerProduct)
        self._products = [_packed(product, kernels, in_turn=product is layer.gate_up) for product in layer.products]
        self._norms = [norm and norm.weight for norm in norms]
        self._window = layer.window or 0
        self._numbers = (*(norm.eps if norm else 0.0 for norm in norms), layer.scale, layer.softcap or 0.0)

    @property
    def num_bytes(self) -> int:
        """Of the matrices."""
        return sum(product.num_bytes for product in self._products)

    def is_like(self, other: "PackedLayer") -> bool:
        """Whether one native call computes both."""
        return (self.shape, self.has_integers) == (other.shape, other.has_integers)

    def fields(self, cache: Any) -> bytes:
        scales = cache.scales[self.number] or (None, None)
        tensors = (*self._norms, cache.keys[self.number], cache.values[self.number], *scales)
        return _LAYER.pack(
            *(field for product in self._products for field in product.fields()),
            *(0,) * (7 * (4 - len(self._products))),
            *(address_of(tensor) for tensor in tensors),
            *(self._window, *self._numbers),
        )


def _packed(product: Linear | IntegerProduct, kernels: NativeKernels, *, in_turn: bool) -> PackedWeights:
    if isinstance(product, IntegerProduct):
        return PackedWeights(
            *(product.blocks, product.bias, product.scales, product.sums, product.level, product.group, product.order)
        )
    form, weight, bias = BlockFormat.suited_to(product.weight, kernels), product.weight, product.bias
    if in_turn:
        weight, bias = (None if one is None else form.interleave(*one.chunk(2)) for one in (weight, bias))
    return PackedWeights(form.pack(weight), form.pack_bias(bias))


class NativeLayers:
    """Layers of one shape, computed one after the other. Only one thread may call.

    One whose MLP is computed elsewhere stands alone.
    """

    def __init__(self, layers: Sequence[PackedLayer], kernels: NativeKernels, scratch: Scratch | None = None) -> None:
        assert layers[0].shape.inner or len(layers) == 1
        self._layers = layers
        self._shape = layers[0].shape
        self._call = (kernels.level, TYPES[layers[0].dtype])
        self._compute = kernels.library.tis_layers
        self._compute.argtypes, self._compute.restype = [ctypes.c_char_p], ctypes.c_int64
        self.num_bytes = sum(layer.num_bytes for layer in layers)
        self._cache: Any = None
        self._table: Any = None
        self._scratch = scratch or Scratch()

    def compute_(self, x: Any, cos: Any, sin: Any, cache: Any, slots: Any, runs: Any, wanted: Any | None = None) -> Any:
        """Changes x [tokens, hidden] in place. `slots` and `runs` are those of `NativeKernels`.

        `wanted`: numbers of the rows that are read behind these layers. The others are left unfinished. Returns the
        rows of the last norm, all or those that are wanted, which are what an MLP reads that is computed elsewhere.
        """
        shape, first, tokens = self._shape, self._layers[0], len(x)
        keys, values, scales = (one[first.number] for one in (cache.keys, cache.values, cache.scales))
        if cache is not self._cache:
            if {keys.dtype, values.dtype} != {torch.int8 if scales else first.dtype}:
                raise TypeError(f"a cache of {keys.dtype} for layers of {first.dtype}")
            self._cache = cache
            self._table = ctypes.create_string_buffer(b"".join(layer.fields(cache) for layer in self._layers))
        num_wanted = 0 if wanted is None else len(wanted)
        of_all = self._scratch.get("rows", tokens * shape.scratch_width, first.dtype)
        of_wanted = self._scratch.get("wanted rows", num_wanted * shape.scratch_width, first.dtype)
        wanted_x = self._scratch.get("wanted", num_wanted * shape.hidden, first.dtype)
        is_rounded = first.has_integers
        integers = self._scratch.get("integers", tokens * shape.num_integers * is_rounded, torch.uint8)
        row_scales = self._scratch.get("row scales", tokens * is_rounded, torch.float32)
        is_large = tokens * shape.num_weights >= _MIN_FOR_THREADS
        check_code(
            self._compute(
                _LAYERS.pack(
                    *(*self._call, torch.get_num_threads() if is_large else 1, is_rounded),
                    *(ctypes.addressof(self._table), len(self._layers), shape.hidden, shape.inner, shape.heads),
                    *(shape.key_heads, shape.head_size, shape.rotary_size, x.data_ptr(), of_all.data_ptr()),
                    *(-1 if wanted is None else len(wanted), address_of(wanted)),
                    *(wanted_x.data_ptr(), of_wanted.data_ptr()),
                    *(integers.data_ptr(), row_scales.data_ptr(), cos.data_ptr(), sin.data_ptr()),
                    *(cos.stride(0), sin.stride(0), slots.data_ptr(), runs.data_ptr(), tokens, len(runs)),
                    *(keys.shape[1], *keys.stride()[:2], *values.stride()[:2], scales[0].stride(0) if scales else 0),
                )
            )
        )
        normed, rows = (of_all, tokens) if wanted is None else (of_wanted, num_wanted)
        return normed[: rows * shape.hidden].view(rows, shape.hidden)
