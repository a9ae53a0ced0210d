"""Weights as a GGUF file has them, in blocks of bytes: into float32, and numbers into the blocks of native products."""

import ctypes
from dataclasses import dataclass, replace
from struct import Struct
from typing import Any

import torch

from tis.engine.kernels.gguf_types import (
    FOUR_BIT_TYPES,
    K_QUANTS,
    Q4_0,
    Q5_0,
    Q5_1,
    Q6_K,
    Q8_0,
    SMALL_BLOCKS,
    TYPES_OF_GGUF,
    name_of,
)
from tis.engine.kernels.native import NativeKernels

_BLOCKS = Struct("@11q")  # `struct gguf_blocks` of gguf_blocks.h
_MIN_FOR_THREADS = 65_536
_MIDDLE = 128  # what is added to numbers with a sign


class GgufKernels:
    """`blocks` are uint8 [rows, bytes of a row], of whole blocks of `kind`."""

    def __init__(self, kernels: NativeKernels) -> None:
        self._library = kernels.library
        self._library.tis_gguf_numbers.argtypes = [ctypes.c_int64]
        self._library.tis_gguf_numbers.restype = ctypes.c_int64
        self._library.tis_gguf_floats.argtypes, self._library.tis_gguf_floats.restype = [ctypes.c_char_p], None
        self._library.tis_gguf_int4.argtypes, self._library.tis_gguf_int4.restype = [ctypes.c_char_p], ctypes.c_int64
        self._library.tis_gguf_k_quants.argtypes = [ctypes.c_char_p]
        self._library.tis_gguf_k_quants.restype = None

    def takes(self, kind: int) -> bool:
        return bool(self._library.tis_gguf_numbers(kind))

    def floats(self, blocks: Any, kind: int) -> Any:
        """float32 [rows, inputs], bit for bit those of `gguf.quants.dequantize`."""
        out = torch.empty(len(blocks), inputs_of(blocks, kind))
        self._library.tis_gguf_floats(self._call(blocks, kind, out))
        return out

    def pack_int4(self, blocks: Any, kind: int, out: Any, scales: Any, first: int, width: int) -> int:
        """Keeps the numbers; `first` is that of the first row among all outputs. Returns how many rows do not fit."""
        return int(self._library.tis_gguf_int4(self._call(blocks, kind, out, scales, first, width)))

    def pack_k_quants(
        self, blocks: Any, kind: int, out: Any, scales: Any, first: int, width: int, *, has_minima: bool
    ) -> None:
        """Keeps all that the file has. `out` is zero before."""
        self._library.tis_gguf_k_quants(self._call(blocks, kind, out, scales, first, width, has_minima))

    def _call(
        self,
        blocks: Any,
        kind: int,
        out: Any,
        scales: Any | None = None,
        first: int = 0,
        width: int = 0,
        has_minima: bool = False,
    ) -> bytes:
        rows, row_bytes = blocks.shape
        inputs = inputs_of(blocks, kind)
        threads = torch.get_num_threads() if rows * inputs >= _MIN_FOR_THREADS else 1
        return _BLOCKS.pack(
            *(blocks.data_ptr(), out.data_ptr(), 0 if scales is None else scales.data_ptr()),
            *(rows, inputs, row_bytes, kind, threads, first, width, has_minima),
        )


def inputs_of(blocks: Any, kind: int) -> int:
    known = TYPES_OF_GGUF[kind]
    return int(blocks.shape[1]) // known.num_bytes * known.numbers


@dataclass(frozen=True, slots=True)
class BlockRows:
    blocks: Any  # uint8 [rows, bytes of a row]
    ggml_type: int
    kernels: GgufKernels

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, rows: Any) -> "BlockRows":
        return BlockRows(self.blocks[rows], self.ggml_type, self.kernels)

    @property
    def inputs(self) -> int:
        return inputs_of(self.blocks, self.ggml_type)

    @property
    def kind(self) -> str:
        return name_of(self.ggml_type)

    @property
    def has_four_bits(self) -> bool:
        return self.ggml_type in FOUR_BIT_TYPES

    @property
    def is_k_quant(self) -> bool:
        return self.ggml_type in K_QUANTS

    @property
    def has_minima(self) -> bool:
        """Of k-quants."""
        return self.ggml_type != Q6_K

    @property
    def order(self) -> None:
        return None

    @property
    def span(self) -> int:
        return TYPES_OF_GGUF[Q8_0].numbers if self.ggml_type == Q8_0 else 0

    @property
    def has_scales_of_outputs(self) -> bool:
        return False

    def in_spans(self) -> tuple[Any, Any, Any]:
        """Of Q8_0: a scale of 16 bits, then numbers with a sign."""
        blocks = self.blocks.view(len(self), -1, TYPES_OF_GGUF[Q8_0].num_bytes)
        scales = blocks[..., :2].contiguous().view(torch.float16)[..., 0].float()
        numbers = (blocks[..., 2:] ^ _MIDDLE).flatten(1)
        return numbers, torch.full(scales.shape, _MIDDLE, dtype=torch.uint8), scales

    @property
    def is_small(self) -> bool:
        return self.ggml_type in SMALL_BLOCKS

    def with_offsets(self, middle: int) -> tuple[Any, Any, Any]:
        """Of small blocks and Q8_0: a weight is `scale * (number - middle) + offset`.

        Numbers uint8 [outputs, inputs], scales and offsets float16 [outputs, blocks].
        """
        blocks = self.blocks.view(len(self), -1, TYPES_OF_GGUF[self.ggml_type].num_bytes)
        scales, offsets = blocks[..., :4].contiguous().view(torch.float16).unbind(-1)
        if self.ggml_type == Q8_0:
            assert middle == _MIDDLE
            return (blocks[..., 2:] ^ _MIDDLE).flatten(1), scales, torch.zeros_like(scales)
        pairs = blocks[..., -16:]
        numbers = torch.cat([pairs & 15, pairs >> 4], -1)
        if self.ggml_type in (Q5_0, Q5_1):  # whose fifth bits lie before the pairs
            fifth = blocks[..., -20:-16, None] >> torch.arange(8, dtype=torch.uint8) & 1
            numbers |= fifth.flatten(-2) << 4
        middle_of_file = {Q4_0: 8, Q5_0: 16}.get(self.ggml_type, 0)
        numbers += middle - middle_of_file
        return numbers.flatten(1), scales, torch.zeros_like(scales) if middle_of_file else offsets

    def in_memory(self) -> "BlockRows":
        return replace(self, blocks=self.blocks.clone())

    def floats(self) -> Any:
        return self.kernels.floats(self.blocks, self.ggml_type)
