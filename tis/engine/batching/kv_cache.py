"""The KV cache of all sequences: one long tensor for each layer, cut into blocks, and how large it may be.

On a CPU the heads are the first axis, so that a head reads its keys contiguously; on CUDA the tokens are, as its kernel
needs it.

On a CPU it may have 8 bits: the row of a token in a head is then integers and one scale. A row is rounded when it is
written, by itself, and all tokens read the rounded rows, those of the same step too: so prompts may be cut anywhere.
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
_LARGEST_INTEGER = 127
_SCALE_BYTES = 4


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

    @property
    def num_rows(self) -> int:
        return self.num_heads * (1 if self.has_latents else 2)


NO_TOKENS = LayerCache(0, 0, 0)  # of a layer without attention


@dataclass(frozen=True, slots=True)
class CacheShape:
    layers: tuple[LayerCache, ...]
    dtype: Any  # of the keys and values that models make
    device: Any
    states: tuple[StateShape, ...] = ()
    has_8_bits: bool = False

    @property
    def head_sizes(self) -> set[int]:
        return {size for layer in self.layers for size in (layer.key_size, layer.value_size) if layer.num_heads}

    @property
    def bytes_per_token(self) -> int:
        if self.has_8_bits:
            return sum(layer.num_numbers + layer.num_rows * _SCALE_BYTES for layer in self.layers)
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
        self.bytes_per_token = shape.bytes_per_token
        self.num_slots = num_slots if shape.states else None
        self.states = {one.layer: LayerStates(one, num_slots, shape.device) for one in shape.states}
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.token_axis = 1 if shape.device.type == "cpu" else 0

        assert self.token_axis == 1 or not shape.has_8_bits, "the kernel of CUDA reads no 8 bits"
        num_slots_of_tokens = num_blocks * block_size

        def rows(num_heads: int, size: int) -> Any:
            sizes = [num_heads, size]
            sizes.insert(self.token_axis, num_slots_of_tokens)
            # On a CPU, memory costs nothing before a token is written to it.
            return torch.empty(sizes, dtype=torch.int8 if shape.has_8_bits else shape.dtype, device=shape.device)

        def scales(layer: LayerCache) -> tuple[Any, Any]:
            of_keys, of_values = (torch.empty(layer.num_heads, num_slots_of_tokens) for _ in range(2))
            return of_keys, of_keys if layer.has_latents else of_values

        self.keys = [rows(layer.num_heads, layer.key_size) for layer in shape.layers]
        self.values = [
            keys[..., : layer.value_size] if layer.has_latents else rows(layer.num_heads, layer.value_size)
            for layer, keys in zip(shape.layers, self.keys, strict=True)
        ]
        # Of keys and of values, with 8 bits.
        self.scales = [scales(layer) if shape.has_8_bits else None for layer in shape.layers]
        self.tensors = [*self.keys, *(of_keys for of_keys, _ in filter(None, self.scales))]
        for number, layer in enumerate(shape.layers):
            if not layer.has_latents:
                self.tensors += [self.values[number], *(self.scales[number] or ())[1:]]

    def write(self, layer: int, slots: Any, keys: Any, values: Any) -> None:
        """Takes `keys` and `values` as the models make them: [1, heads, tokens, size]."""
        if self.token_axis == 0:
            keys, values = keys.transpose(1, 2), values.transpose(1, 2)
        key_scales, value_scales = self.scales[layer] or (None, None)
        self._write_rows(self.keys[layer], key_scales, slots, keys[0])
        if not self.layers[layer].has_latents:
            self._write_rows(self.values[layer], value_scales, slots, values[0])

    def _write_rows(self, numbers: Any, scales: Any | None, slots: Any, rows: Any) -> None:
        if scales is not None:
            rows, of_rows = round_rows(rows)
            scales.index_copy_(self.token_axis, slots, of_rows)
        numbers.index_copy_(self.token_axis, slots, rows)

    def copy_blocks(self, copies: Iterable[BlockCopy]) -> None:
        for copy in copies:
            for start, stop, to in _contiguous_parts(copy):
                for tensor in self.tensors:
                    tokens = tensor.movedim(self.token_axis, 0)
                    source = tokens[start * self.block_size : stop * self.block_size]
                    # A sequence may move by less than its length: then source and target overlap.
                    overlaps = start < to + (stop - start) and to < stop
                    end = to + (stop - start)
                    tokens[to * self.block_size : end * self.block_size] = source.clone() if overlaps else source


def round_rows(rows: Any) -> tuple[Any, Any]:
    """[..., size] to integers and the scale of each row, to the bit as the native kernels do (`round_row`).

    A row with a number that is infinite or none has a scale that is none.
    """
    wide = rows.float()
    scales = wide.abs().amax(-1) / torch.tensor(float(_LARGEST_INTEGER))
    scales = scales.masked_fill(~wide.isfinite().all(-1), torch.nan)
    scales = scales.masked_fill(scales < torch.finfo(torch.float32).tiny, 0)
    return (wide / scales[..., None]).round_().nan_to_num_(0, 0, 0).to(torch.int8), scales


def widen_rows(integers: Any, scales: Any) -> Any:
    """In float32."""
    return integers.float() * scales[..., None]


def _contiguous_parts(copy: BlockCopy) -> Iterable[tuple[int, int, int]]:
    """Yields the first source block, the end, and the target of the first block."""
    begin = 0
    for at in range(1, len(copy.sources) + 1):
        if at == len(copy.sources) or copy.sources[at] != copy.sources[at - 1] + 1:
            yield copy.sources[begin], copy.sources[at - 1] + 1, copy.to + begin
            begin = at
