"""The KV cache of all sequences: one long tensor for each layer, cut into blocks, and how large it may be.

On a CPU the heads are the first axis, so that a head reads its keys contiguously; on CUDA the tokens are, as its kernel
needs it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from tis.engine.batching.layer_states import LayerStates, StateShape
from tis.engine.batching.scheduler import BlockCopy

# The paged kernel of CUDA needs multiples of this size; smaller blocks share prefixes in finer steps.
_CUDA_BLOCK_SIZE = 256
_CPU_BLOCK_SIZE = 16


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What a layer keeps of each token."""

    num_heads: int
    key_size: int  # of each head
    value_size: int
    chunk: int | None = None  # its tokens see only those of their own part of so many
    has_latents: bool = False  # its values are the first numbers of its keys

    @property
    def num_numbers(self) -> int:
        return self.num_heads * (self.key_size + (0 if self.has_latents else self.value_size))


NO_TOKENS = LayerCache(0, 0, 0)  # of a layer without attention


@dataclass(frozen=True, slots=True)
class CacheShape:
    layers: tuple[LayerCache, ...]
    dtype: Any
    device: Any
    states: tuple[StateShape, ...] = ()

    @property
    def head_sizes(self) -> set[int]:
        return {size for layer in self.layers for size in (layer.key_size, layer.value_size) if layer.num_heads}

    @property
    def bytes_per_token(self) -> int:
        return int(sum(layer.num_numbers for layer in self.layers) * self.dtype.itemsize)

    @property
    def bytes_of_states(self) -> int:
        """Of one sequence, however long it is."""
        return sum(one.num_bytes for one in self.states)


@dataclass(frozen=True, slots=True)
class CacheSize:
    num_blocks: int
    block_size: int

    @property
    def num_tokens(self) -> int:
        return self.num_blocks * self.block_size

    @classmethod
    def of(cls, shape: CacheShape, cache_tokens: int) -> "CacheSize":
        block_size = _CPU_BLOCK_SIZE if shape.device.type == "cpu" else _CUDA_BLOCK_SIZE
        return cls(max(1, cache_tokens // block_size), block_size)


class PagedCache:
    def __init__(self, shape: CacheShape, num_blocks: int, block_size: int, num_slots: int = 32) -> None:
        """`num_slots`: sequences that may run, if layers keep states of them."""
        self.layers = shape.layers
        self.num_slots = num_slots if shape.states else None
        self.states = {one.layer: LayerStates(one, num_slots, shape.device) for one in shape.states}
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.token_axis = 1 if shape.device.type == "cpu" else 0

        def rows(num_heads: int, size: int) -> Any:
            sizes = [num_heads, size]
            sizes.insert(self.token_axis, num_blocks * block_size)
            # On a CPU, memory costs nothing before a token is written to it.
            return torch.empty(sizes, dtype=shape.dtype, device=shape.device)

        self.keys = [rows(layer.num_heads, layer.key_size) for layer in shape.layers]
        self.values = [
            keys[..., : layer.value_size] if layer.has_latents else rows(layer.num_heads, layer.value_size)
            for layer, keys in zip(shape.layers, self.keys, strict=True)
        ]
        self._own_values = [
            values for layer, values in zip(shape.layers, self.values, strict=True) if not layer.has_latents
        ]

    def write(self, layer: int, slots: Any, keys: Any, values: Any) -> None:
        """Takes `keys` and `values` as the models make them: [1, heads, tokens, size]."""
        if self.token_axis == 0:
            keys, values = keys.transpose(1, 2), values.transpose(1, 2)
        self.keys[layer].index_copy_(self.token_axis, slots, keys[0])
        if self.layers[layer].has_latents:
            return
        self.values[layer].index_copy_(self.token_axis, slots, values[0])

    def copy_blocks(self, copies: Iterable[BlockCopy]) -> None:
        for copy in copies:
            for start, stop, to in _contiguous_parts(copy):
                for tensor in (*self.keys, *self._own_values):
                    tokens = tensor.movedim(self.token_axis, 0)
                    source = tokens[start * self.block_size : stop * self.block_size]
                    # A sequence may move by less than its length: then source and target overlap.
                    overlaps = start < to + (stop - start) and to < stop
                    end = to + (stop - start)
                    tokens[to * self.block_size : end * self.block_size] = source.clone() if overlaps else source


def _contiguous_parts(copy: BlockCopy) -> Iterable[tuple[int, int, int]]:
    """Yields the first source block, the end, and the target of the first block."""
    begin = 0
    for at in range(1, len(copy.sources) + 1):
        if at == len(copy.sources) or copy.sources[at] != copy.sources[at - 1] + 1:
            yield copy.sources[begin], copy.sources[at - 1] + 1, copy.to + begin
            begin = at
