"""Layers with 4-bit weights for a CPU, a head with 6 and an embedding with 8 bits. The native kernels compute them.

See `docs/decisions/0118-four-bits.md`.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tis.engine.kernels.gguf_blocks import BlockRows
from tis.engine.kernels.grouped_product import product_of
from tis.engine.kernels.int8_spans import Int6Product, SpanProduct
from tis.engine.kernels.integer_product import Int8Product, floats_of, scales_of
from tis.engine.kernels.k_quants import KQuantProduct
from tis.engine.kernels.native import NativeKernels
from tis.engine.weights.int8 import without_numbers

_ROWS_ROUNDED_AT_ONCE = 1024


class Int4Linear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any, kernels: NativeKernels, *, has_6_bits: bool = False) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight = without_numbers(linear.weight)
        weight, bias = linear.weight.detach(), None if linear.bias is None else linear.bias.detach()
        self.product = Int6Product(weight, bias, kernels) if has_6_bits else product_of(weight, bias, kernels, 4)

    @property
    def num_bytes(self) -> int:
        return sum(int(tensor.nbytes) for tensor in self.product.tensors)

    def forward(self, x: Any) -> Any:
        return self.product(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], self.out_features)


class Int8Embedding(torch.nn.Module):  # type: ignore[misc]
    """`head` has the same weights, where the model ties them: then they are in memory once."""

    def __init__(self, embedding: Any, head: Int8Product | SpanProduct | KQuantProduct | None = None) -> None:
        super().__init__()
        weight = embedding.weight.detach()
        self.num_embeddings, self.embedding_dim = weight.shape
        self.padding_idx = embedding.padding_idx
        self.register_buffer("like", weight.new_zeros(1), persistent=False)  # has the type of the model, later too
        self.num_bytes, self._head, self._blocks = 0, head, None
        if head is None and (rows := _rows_of_a_file(weight)):
            self._blocks = rows.in_memory()
            self.num_bytes = int(self._blocks.blocks.nbytes)
        elif head is None:
            self._integers, self._scales = _rounded(weight)
            self.num_bytes = int(self._integers.nbytes + self._scales.nbytes)

    @property
    def weight(self) -> Any:
        """For models that read the type or the device of the weights, to which some of them move token ids."""
        return self.like.expand(self.num_embeddings, self.embedding_dim)

    def forward(self, ids: Any) -> Any:
        flat = ids.reshape(-1)
        if self._blocks is not None:
            rows = self._blocks[flat].floats()
        elif self._head is None:
            rows = self._integers[flat] * self._scales[flat, None]
        else:
            rows = self._head.weights_of(flat)
        return rows.to(self.like.dtype).view(*ids.shape, self.embedding_dim)


def _rows_of_a_file(weight: Any) -> BlockRows | None:
    """Of GGUF, whose blocks stay as they are."""
    parts: Sequence[Any] = getattr(weight, "parts", ())
    return parts[0] if len(parts) == 1 and isinstance(parts[0], BlockRows) else None


def _rounded(weight: Any) -> tuple[Any, Any]:
    integers = torch.empty(weight.shape, dtype=torch.int8)
    scales = torch.empty(len(weight))
    for begin in range(0, len(weight), _ROWS_ROUNDED_AT_ONCE):
        some = floats_of(weight[begin : begin + _ROWS_ROUNDED_AT_ONCE])
        scales[begin : begin + len(some)] = scales_of(some)
        integers[begin : begin + len(some)] = (some / scales[begin : begin + len(some), None]).round()
    return integers, scales
