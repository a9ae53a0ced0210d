"""4-bit weights of files that were saved so, which keep their numbers, zeros and scales: see int4_product.c."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tis.engine.kernels.grouped_rows import SMALLEST_GROUP, GroupedRows
from tis.engine.kernels.int8_spans import Int8SpanProduct, common_span, in_pieces
from tis.engine.kernels.integer_product import Int4Product, Int8Product, IntegerProduct, WeightBits, level_of
from tis.engine.kernels.k_quants import KQuantProduct, are_k_quants
from tis.engine.kernels.memory_advice import in_huge_pages
from tis.engine.kernels.native import NativeKernels
from tis.engine.kernels.offset_spans import OffsetSpanProduct, bits_with_offsets

_ROWS_PACKED_AT_ONCE = 1024
_FOUR = 4  # inputs that are multiplied at once


class GroupedProduct(IntegerProduct):
    """`parts` are outputs behind one another, and `may_be_grouped`. Rows have 8 bits, as in `Int4Product`."""

    def __init__(self, parts: Sequence[GroupedRows], bias: Any | None, kernels: NativeKernels) -> None:
        first = parts[0]
        outputs = sum(len(part) for part in parts)
        super().__init__((outputs, first.inputs), bias, level_of(kernels, 4), kernels)
        self._steps = -(-self.inputs // SMALLEST_GROUP)
        has_one_scale = first.scales.shape[1] == 1
        self.group = self._steps * SMALLEST_GROUP if has_one_scale else first.group
        self.order = None if first.order is None else first.order.to(torch.int32).contiguous()
        padded = self._num_blocks * self._width
        self.scales = torch.zeros(self._num_blocks, first.scales.shape[1], self._width)
        bytes_of_step = self._width * (1 + SMALLEST_GROUP // 2)
        self.blocks = in_huge_pages((self._num_blocks, self._steps, bytes_of_step), torch.uint8).zero_()
        at = 0
        for rows in in_pieces(parts, _ROWS_PACKED_AT_ONCE):
            assert at % self._width == 0
            self._pack(rows, at // self._width)
            at += sum(len(one) for one in rows)
        assert at == outputs <= padded

    def _pack(self, rows: Sequence[GroupedRows], block: int) -> None:
        width, steps, count = self._width, self._steps, sum(len(one) for one in rows)
        blocks = -(-count // width)

        def padded(pieces: list[Any], size: int) -> Any:
            whole = pieces[0].new_zeros(blocks * width, size)
            whole[:count, : pieces[0].shape[1]] = torch.cat(pieces)
            return whole.view(blocks, width, size)

        numbers = padded([one.integers() for one in rows], steps * SMALLEST_GROUP)
        of_four = numbers.view(blocks, width, steps, SMALLEST_GROUP // (2 * _FOUR), 2, _FOUR)
        pairs = of_four[..., 0, :] | of_four[..., 1, :] << 4  # [block, output, step, two fours, input]
        zeros = padded([_zeros_of(one) for one in rows], rows[0].scales.shape[1])
        zeros = zeros.repeat_interleave(self.group // SMALLEST_GROUP, 2)[..., :steps]
        to = self.blocks[block : block + blocks]
        to[..., :width] = zeros.transpose(1, 2)
        to[..., width:] = pairs.permute(0, 2, 3, 1, 4).reshape(blocks, steps, -1)
        self.scales[block : block + blocks] = padded([one.scales for one in rows], rows[0].scales.shape[1]).mT

    @property
    def weights(self) -> Any:
        """The weights as they are multiplied, [outputs, inputs] in float32."""
        width, steps = self._width, self._steps
        zeros, pairs = self.blocks.split([width, self.blocks.shape[-1] - width], -1)
        pairs = pairs.view(self._num_blocks, steps, SMALLEST_GROUP // (2 * _FOUR), width, _FOUR).movedim(3, 1)
        numbers = torch.stack([pairs & 15, pairs >> 4], -2).flatten(3).float()  # [block, output, step, input]
        scales = self.scales.mT.repeat_interleave(self.group // SMALLEST_GROUP, 2)[..., :steps]
        weights = (numbers - zeros.mT[..., None].float()) * scales[..., None]
        weights = weights.flatten(2).flatten(0, 1)[: self.outputs, : self.inputs]
        if self.order is None:
            return weights
        return torch.empty(self.outputs, self.inputs).index_copy_(1, self.order.long(), weights)


def product_of(weight: Any, bias: Any | None, kernels: NativeKernels, bits: WeightBits) -> IntegerProduct:
    """Weights that have scales of their own keep them."""
    return way_of([weight], bits)(weight, bias, kernels)


def way_of(weights: Sequence[Any], bits: WeightBits) -> Callable[[Any, Any | None, NativeKernels], IntegerProduct]:
    """One that multiplies all of them, so that their blocks are alike: what makes a product of one of them."""
    if bits == 4:
        return _in_4_bits
    matrices: list[Sequence[Any]] = [getattr(weight, "parts", ()) for weight in weights]
    if not all(matrices):
        return Int8Product
    if common_span(matrices):
        return lambda weight, bias, kernels: Int8SpanProduct(weight.parts, bias, kernels)
    if bits_of_spans := bits_with_offsets(matrices):
        return lambda weight, bias, kernels: OffsetSpanProduct(weight.parts, bias, kernels, bits_of_spans)
    if are_k_quants(matrices):
        has_minima = any(one.has_minima for parts in matrices for one in parts)
        return lambda weight, bias, kernels: KQuantProduct(weight.parts, bias, kernels, has_minima=has_minima)
    return Int8Product


def _in_4_bits(weight: Any, bias: Any | None, kernels: NativeKernels) -> IntegerProduct:
    if getattr(weight, "keeps_scales", False):
        return GroupedProduct(weight.parts, bias, kernels)
    return Int4Product(weight, bias, kernels)


def _zeros_of(rows: GroupedRows) -> Any:
    return torch.zeros(rows.scales.shape, dtype=torch.uint8) if rows.zeros is None else rows.zeros
