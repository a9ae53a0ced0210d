"""The linear layers of a Whisper: native products on a CPU, with weights of 8 or 4 bits if asked for, or torch's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn.functional import gelu, linear

from tis.engine.kernels.grouped_product import product_of
from tis.engine.kernels.integer_product import IntegerProduct, WeightBits, takes_integers
from tis.engine.kernels.native import NativeKernels
from tis.engine.kernels.product import BlockFormat, NativeProduct, takes_products


class LinearMap(Protocol):
    def __call__(self, rows: Any, residual: Any | None = None) -> Any:
        """rows [number, inputs]; `residual` [number, outputs] is added."""
        ...


class TorchMap:
    def __init__(self, weight: Any, bias: Any | None, *, has_gelu: bool) -> None:
        self._weight, self._bias, self._has_gelu = weight, bias, has_gelu
        self.num_bytes = int(weight.nbytes)

    def __call__(self, rows: Any, residual: Any | None = None) -> Any:
        out = linear(rows, self._weight, self._bias)
        if self._has_gelu:
            out = gelu(out)
        return out if residual is None else out.add_(residual)


class RoundedMap:
    def __init__(self, product: IntegerProduct, *, has_gelu: bool) -> None:
        self._product, self._has_gelu = product, has_gelu
        self.num_bytes = sum(int(tensor.nbytes) for tensor in product.tensors)

    def __call__(self, rows: Any, residual: Any | None = None) -> Any:
        out = self._product(rows)
        if self._has_gelu:
            out = gelu(out)
        return out if residual is None else out.add_(residual)


@dataclass(slots=True)
class LinearMaker:
    """Takes weights out of modules. `num_bytes`: of what it has made."""

    kernels: NativeKernels | None  # None: torch computes
    bits: WeightBits | None = None  # of the weights as integers
    num_bytes: int = 0

    def of(self, *modules: Any, has_gelu: bool = False, is_head: bool = False) -> LinearMap:
        """Several modules that read the same rows become one, their outputs side by side. A head has 8 bits, not 4."""
        weights = [one.weight.detach() for one in modules]
        weight = torch.cat(weights) if len(weights) > 1 else weights[0]
        bits: WeightBits | None = 8 if self.bits and is_head else self.bits
        made = self._made(weight, _bias_of(modules, weight), bits, has_gelu=has_gelu)
        self.num_bytes += made.num_bytes
        for one in modules:  # else the memory of both would be needed until the last is made
            one.weight = torch.nn.Parameter(weight.new_empty(0), requires_grad=False)
        return made

    def _made(
        self, weight: Any, bias: Any | None, bits: WeightBits | None, *, has_gelu: bool
    ) -> "NativeProduct | RoundedMap | TorchMap":
        kernels = self.kernels
        if kernels is not None and bits and takes_integers(kernels, bits, weight.shape[1]):
            return RoundedMap(product_of(weight, bias, kernels, bits), has_gelu=has_gelu)
        if kernels is not None and takes_products(kernels, weight.dtype):
            if BlockFormat.suited_to(weight, kernels).takes(weight.shape[1]):
                return NativeProduct(weight, bias, kernels, gelu=has_gelu)
        return TorchMap(weight, bias, has_gelu=has_gelu)


def _bias_of(modules: Sequence[Any], weight: Any) -> Any | None:
    """Keys have none, queries and values beside them do."""
    if all(one.bias is None for one in modules):
        return None
    parts = [weight.new_zeros(len(one.weight)) if one.bias is None else one.bias.detach() for one in modules]
    return torch.cat(parts)
