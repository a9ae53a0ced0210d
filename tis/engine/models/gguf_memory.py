"""What the tensors of a GGUF file take in memory, by its header."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from tis.engine.kernels.gguf_types import BF16, FLOAT_TYPES, FOUR_BIT_TYPES, K_QUANTS, Q6_K, Q8_0, SMALL_BLOCKS
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
        is_apart = tensor.name == _EMBEDDING and _HEAD in self.tensors and self._has_integers(tensor)
        if is_apart and tensor.kind not in FLOAT_TYPES and _has_kernel(tensor):
            return tensor.num_bytes  # as it is in the file
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
        kinds = {one.kind for one in self._merged_with(tensor)}
        is_outside = tensor.name in (_EMBEDDING, _HEAD)
        has_four_bits = self.rounded_to == "int4" if self.rounded_to else kinds <= FOUR_BIT_TYPES
        if kinds == {Q8_0} and (is_outside or self.rounded_to != "int4"):
            return number + number // 32 * 5  # with a zero and a scale for each 32
        if is_outside or not has_four_bits:
            if kinds <= K_QUANTS:
                return number * 53 // 64 if kinds == {Q6_K} else number * 7 // 8
            if kinds <= SMALL_BLOCKS | {Q8_0}:
                return number * 9 // 8 if Q8_0 in kinds else number * 7 // 8
        if is_outside and self.rounded_to == "int4" and tensor.kind in FLOAT_TYPES and self._is_head(tensor):
            return number * 3 // 4 + number // 128 * 5  # with a zero and a scale for each 128
        if is_outside:
            return number + 8 * tensor.shape[0]  # with scales
        return number * 9 // 16 if has_four_bits else number

    def _is_head(self, tensor: GgufTensor) -> bool:
        return tensor.name == _HEAD or _HEAD not in self.tensors

    def _merged_with(self, tensor: GgufTensor) -> list[GgufTensor]:
        """It, and those that become one matrix with it."""
        layer, _, part = tensor.name.removesuffix(".weight").rpartition(".")
        together = next((parts for parts in _MERGED if part in parts), (part,))
        return [self.tensors.get(f"{layer}.{one}.weight", tensor) for one in together]


def _has_kernel(tensor: GgufTensor) -> bool:
    """Else its numbers become plain weights."""
    from tis.engine.kernels.gguf_blocks import GgufKernels
    from tis.engine.kernels.native import native_kernels

    kernels = native_kernels()
    return kernels is not None and GgufKernels(kernels).takes(tensor.kind)
