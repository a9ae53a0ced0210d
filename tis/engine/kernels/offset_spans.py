"""Small blocks of GGUF files (Q4_0, Q4_1, Q5_0, Q5_1), which keep all that the file says of them: see int8_spans.h.

A `KQuantProduct` has no room for their scales, which have 16 bits each: those of k-quants have 6 or 8.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tis.engine.kernels.gguf_blocks import BlockRows
from tis.engine.kernels.int8_spans import SpanProduct, in_pieces
from tis.engine.kernels.integer_product import SpanBits, level_of_spans
from tis.engine.kernels.native import NativeKernels

_ROWS_PACKED_AT_ONCE = 1024
_SPAN = 32  # inputs of a block
_MIDDLES: dict[SpanBits, int] = {6: 32, 8: 128}


class OffsetSpanProduct(SpanProduct):
    """`parts` are outputs behind one another, and have `bits_with_offsets`."""

    _bytes_of_zero = 0

    def __init__(self, parts: Sequence[BlockRows], bias: Any | None, kernels: NativeKernels, bits: SpanBits) -> None:
        shape = (sum(len(part) for part in parts), parts[0].inputs)
        level = level_of_spans(kernels, bits, has_offsets=True)
        super().__init__(shape, bias, level, kernels, bits, _SPAN)
        self.scales = torch.zeros(self._num_blocks, self._spans, 2, self._width, dtype=torch.float16)
        block = 0
        for pieces in in_pieces(parts, _ROWS_PACKED_AT_ONCE):
            tensors = zip(*(piece.with_offsets(_MIDDLES[bits]) for piece in pieces), strict=True)
            numbers, *factors = (torch.cat(some) for some in tensors)
            packed = self._pack_numbers(numbers, block)
            for at, values in enumerate(factors):
                self.scales[packed, :, at] = self._padded(values, self._spans).mT
            block = packed.stop

    def weights_of(self, outputs: Any) -> Any:
        """[number, inputs] of these outputs: those of the file, bit for bit."""
        block, at = outputs // self._width, outputs % self._width
        scales, offsets = self.scales[block, :, :, at].float()[..., None].unbind(2)
        signed = self._numbers_of(block, at) - _MIDDLES[self._bits]
        return (signed * scales + offsets).flatten(1)


def bits_with_offsets(matrices: Sequence[Sequence[Any]]) -> SpanBits | None:
    """Of matrices that are rows of files behind one another, if an `OffsetSpanProduct` keeps them.

    Q8_0 may be among them: a file of k-quants has it beside Q5_0 or Q5_1 where rows are no whole super-blocks.
    """
    rows = [one for parts in matrices for one in parts]
    if not all(isinstance(one, BlockRows) and (one.is_small or one.span) for one in rows):
        return None
    return 6 if all(one.is_small for one in rows) else 8
