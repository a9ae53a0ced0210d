"""What the tensors of a GGUF file take in memory, by its header."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from tis.engine.kernels.gguf_types import BF16, FLOAT_TYPES, FOUR_BIT_TYPES
from tis.engine.models.gguf_file import GgufTensor

_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"
# Tensors of a layer that become one matrix, which has 4 bits if all of them have.
_MERGED = (("attn_q", "attn_k", "attn_v"), ("ffn_gate", "ffn_up"))


@dataclass(frozen=True, slots=True)
class GgufMemory:
    tensors: Mapping[str, GgufTensor]
    is_on_cpu: bool
    is_packed: bool  # by the native kernels; else all numbers become plain ones
    bytes_of_plain: int  # of such a number
    rounded_to: Literal["int8", "int4"] | None  # QUANTIZE

    @property
    def num_bytes(self) -> int:
        total = sum(self._bytes_of(one) for one in self.tensors.values())
        embedding = self.tensors.get(_EMBEDDING)
        is_tied = embedding is not None and _HEAD not in self.tensors
        # A head is packed beside the embedding that it is tied to, unless both read the same integers.
        if embedding and is_tied and self.is_on_cpu and not self._has_integers(embedding):
            total += self._bytes_of_matrix(embedding)
        return total

    def _bytes_of(self, tensor: GgufTensor) -> int:
        stays_plain = tensor.name == _EMBEDDING and not self._has_integers(tensor)
        return prod(tensor.shape) * self.bytes_of_plain if stays_plain else self._bytes_of_matrix(tensor)

    def _has_integers(self, embedding: GgufTensor) -> bool:
        if self.rounded_to:
            return self.is_packed and self.rounded_to == "int4"
        return self.is_packed and embedding.kind not in FLOAT_TYPES and _has_kernel(embedding)

    def _bytes_of_matrix(self, tensor: GgufTensor) -> int:
        number = prod(tensor.shape)
        if len(tensor.shape) != 2 or not self.is_packed:
            return number * self.bytes_of_plain
        if not self.rounded_to:
            if tensor.kind == BF16:
                return 2 * number
            if tensor.kind in FLOAT_TYPES or not _has_kernel(tensor):
                return number * self.bytes_of_plain
        if tensor.name in (_EMBEDDING, _HEAD):
            return number + 8 * tensor.shape[0]  # with scales
        return number * 9 // 16 if self._has_four_bits(tensor) else number

    def _has_four_bits(self, tensor: GgufTensor) -> bool:
        if self.rounded_to:
            return self.rounded_to == "int4"
        layer, _, part = tensor.name.removesuffix(".weight").rpartition(".")
        together = next((parts for parts in _MERGED if part in parts), (part,))
        merged = [self.tensors.get(f"{layer}.{one}.weight", tensor) for one in together]
        return all(one.kind in FOUR_BIT_TYPES for one in merged)


def _has_kernel(tensor: GgufTensor) -> bool:
    """Else its numbers become plain weights."""
    from tis.engine.kernels.gguf_blocks import GgufKernels
    from tis.engine.kernels.native import native_kernels

    kernels = native_kernels()
    return kernels is not None and GgufKernels(kernels).takes(tensor.kind)
