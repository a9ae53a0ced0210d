"""Linear layers with LoRA adapters beside them: a step may have rows of the plain model and of several adapters."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear as multiply
from torch.nn.functional import pad

from tis.engine.errors import LoadFailed
from tis.engine.kernels.native import TYPES, NativeKernels
from tis.engine.kernels.product import BlockFormat, NativeProduct
from tis.engine.weights.fused_attention import FusedAttention
from tis.engine.weights.fused_modules import FusedMlp
from tis.engine.weights.lora_files import LoraAdapter, LoraMatrices

# Modules that `fuse_modules` has merged, and what their output consists of, one behind the other.
_MERGED: Mapping[str, tuple[str, ...]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}


@dataclass(frozen=True, slots=True)
class AdapterRows:
    """The rows of a step that one adapter changes."""

    number: int
    rows: Any | None  # None: all

    def between(self, begin: int, end: int) -> "AdapterRows | None":
        """As they are counted from `begin` on; None if there are none of them."""
        if self.rows is None:
            return self
        inside = self.rows[(self.rows >= begin) & (self.rows < end)] - begin
        return AdapterRows(self.number, inside) if len(inside) else None


class _ThreadRows(threading.local):
    adapters: Sequence[AdapterRows] = ()


_OF_THREAD = _ThreadRows()


@contextmanager
def adapting(adapters: Sequence[AdapterRows]) -> Iterator[None]:
    """Until its end, adapted layers that are computed in this thread add these adapters to these rows."""
    _OF_THREAD.adapters = adapters
    try:
        yield
    finally:
        _OF_THREAD.adapters = ()


@contextmanager
def adapting_part(begin: int, end: int) -> Iterator[None]:
    """Until its end, layers are computed with these rows of the step alone."""
    whole = _OF_THREAD.adapters
    _OF_THREAD.adapters = [part for one in whole if (part := one.between(begin, end))]
    try:
        yield
    finally:
        _OF_THREAD.adapters = whole


class LoraProduct:
    """`up @ (down @ x)`. A row has the same result beside any other rows, where the native kernels multiply."""

    def __init__(self, matrices: LoraMatrices, dtype: Any, device: Any, kernels: NativeKernels | None) -> None:
        down, up = matrices.down.to(device, dtype), matrices.up.to(device, dtype)
        self._down: Any
        self._up: Any
        step = BlockFormat(kernels, dtype).step if kernels and dtype in TYPES and device.type == "cpu" else 0
        if kernels and step and down.shape[1] % step == 0:
            missing = -len(down) % step  # the rank is the number of inputs of `up`
            self._down = NativeProduct(pad(down, (0, 0, 0, missing)), None, kernels)
            self._up = NativeProduct(pad(up, (0, missing)), None, kernels)
            self.num_bytes = self._down.num_bytes + self._up.num_bytes
        else:
            self._down, self._up = (lambda x: multiply(x, down)), (lambda x: multiply(x, up))
            self.num_bytes = int(down.nbytes + up.nbytes)

    def __call__(self, rows: Any) -> Any:
        """rows [number, inputs]."""
        return self._up(self._down(rows))


class AdaptedLinear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any, products: Mapping[int, LoraProduct]) -> None:
        """`products` by the number of the adapter."""
        super().__init__()
        self.linear = linear
        self.num_bytes = sum(product.num_bytes for product in products.values())
        self._products = products

    @property
    def weight(self) -> Any:
        """Some families ask a layer for the type of its weights."""
        return self.linear.weight

    @property
    def bias(self) -> Any:
        return self.linear.bias

    def forward(self, x: Any) -> Any:
        result = self.linear(x)
        for one in _OF_THREAD.adapters:
            if product := self._products.get(one.number):
                rows, out = x.reshape(-1, x.shape[-1]), result.view(-1, result.shape[-1])
                if one.rows is None:
                    out += product(rows)
                else:
                    out.index_add_(0, one.rows, product(rows[one.rows]))
        return result


def adapt_layers(model: Any, adapters: Sequence[LoraAdapter], kernels: NativeKernels | None = None) -> int:
    """Puts the adapters beside the layers of a model, in place. Returns how many layers have one.

    To be called behind all that replaces modules. Raises LoadFailed if an adapter is for another model.
    """
    found: dict[Any, _Adapted] = {}
    for number, adapter in enumerate(adapters):
        for path, matrices in adapter.matrices.items():
            parent, name, first, size = _find(model, adapter.name, path)
            linear = getattr(parent, name)
            inputs, outputs = _sizes_of(linear)
            if matrices.down.shape[1] != inputs or len(matrices.up) != (size or outputs):
                raise LoadFailed(f"Adapter {adapter.name} is for another model: {path} has other sizes.")
            place = found.setdefault(linear, _Adapted(parent, name, linear, outputs, {}))
            place.parts.setdefault(number, []).append((first, matrices))
    for place in found.values():
        products = {
            number: LoraProduct(_side_by_side(parts, place.outputs), model.dtype, model.device, kernels)
            for number, parts in place.parts.items()
        }
        setattr(place.parent, place.name, AdaptedLinear(place.linear, products))
    return len(found)


@dataclass(frozen=True, slots=True)
class _Adapted:
    parent: Any
    name: str
    linear: Any
    outputs: int
    parts: dict[int, list[tuple[int, LoraMatrices]]]  # of each adapter, with the first output of each


def _find(model: Any, adapter: str, path: str) -> tuple[Any, str, int, int | None]:
    """Returns parent and name of the layer, and where in its outputs those of `path` begin and how many they are.

    None of them: all. Above the decoder, a path has names that differ between versions of Transformers.
    """
    decoder = model.get_decoder()
    parts = path.split(".")
    for start in range(len(parts)):
        *outer, name = parts[start:]
        try:
            parent = decoder.get_submodule(".".join(outer))
        except AttributeError:
            continue
        if not outer:
            break
        parent = getattr(parent, "layer", parent)  # a `StateLayer` has the family's own inside
        module = getattr(parent, name, None)
        if isinstance(module, torch.nn.Module) and getattr(module, "is_called", True):
            return parent, name, 0, None
        if place := _place_in_merged(parent, name):
            return parent, *place
    raise LoadFailed(f"Adapter {adapter} adapts {path}, which is no linear layer of the text part of this model.")


def _place_in_merged(parent: Any, name: str) -> tuple[str, int, int] | None:
    if isinstance(parent, FusedAttention):
        sizes = [heads * parent.head_dim for heads in parent.head_counts]
    elif isinstance(parent, FusedMlp):
        sizes = [_sizes_of(parent.gate_up_proj)[1] // 2] * 2
    else:
        return None
    for merged, names in _MERGED.items():
        if name in names and hasattr(parent, merged):
            at = names.index(name)
            return merged, sum(sizes[:at]), sizes[at]
    return None


def _sizes_of(linear: Any) -> tuple[int, int]:
    """Inputs and outputs."""
    if hasattr(linear, "in_features"):
        return int(linear.in_features), int(linear.out_features)
    weight = getattr(linear, "weight", None)
    if weight is None or weight.ndim != 2:
        return 0, 0
    outputs, inputs = weight.shape if type(linear).__name__ != "Conv1D" else weight.shape[::-1]
    return int(inputs), int(outputs)


def _side_by_side(parts: list[tuple[int, LoraMatrices]], outputs: int) -> LoraMatrices:
    """The adapters of merged layers as one: each reads its own part of the low rows."""
    if len(parts) == 1 and len(parts[0][1].up) == outputs:
        return parts[0][1]
    down = torch.cat([one.down.float() for _, one in parts])
    up = torch.zeros(outputs, len(down))
    at = 0
    for first, one in parts:
        up[first : first + len(one.up), at : at + len(one.down)] = one.up
        at += len(one.down)
    return LoraMatrices(down, up)
