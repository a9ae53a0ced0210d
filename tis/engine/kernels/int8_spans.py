"""8-bit weights of files that give groups of inputs a scale of their own, which they keep, and weights of 6 bits.

See int8_spans.h.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch

from tis.engine.kernels.integer_product import IntegerProduct, SpanBits, floats_of, level_of_spans
from tis.engine.kernels.memory_advice import in_huge_pages
from tis.engine.kernels.native import NativeKernels

_ROWS_PACKED_AT_ONCE = 1024
_FOUR = 4  # inputs that are multiplied at once, and vectors of a step
_SPAN_OF_6_BITS, _MIDDLE_OF_6_BITS = 128, 32


class SpanRows(Protocol):
    """Rows of a file, as far as they are 8-bit numbers in spans."""

    @property
    def inputs(self) -> int: ...

    @property
    def order(self) -> Any | None:
        """int32 [inputs]: which input of the layer each number is of. None: 0, 1, 2, ..."""
        ...

    @property
    def span(self) -> int:
        """Inputs that follow each other and have one scale and one zero; 0: they are something else."""
        ...

    @property
    def has_scales_of_outputs(self) -> bool:
        """Whether they are integers of 8 bits with a sign, times a scale of their output."""
        ...

    def in_spans(self) -> tuple[Any, Any, Any]:
        """Numbers uint8 [outputs, inputs]; zeros uint8 and scales float32 [outputs, spans]."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice) -> "SpanRows": ...


class SpanProduct(IntegerProduct):
    """Weights in spans. Rows have 16 bits in any company."""

    _bytes_of_zero = 1  # of an output, before the numbers of a span

    def __init__(
        self, shape: Sequence[int], bias: Any | None, level: int, kernels: NativeKernels, bits: SpanBits, span: int
    ) -> None:
        super().__init__(shape, bias, level, kernels)
        self.group, self._bits = span, bits
        self._spans = -(-self.inputs // span)
        bytes_of_span = self._width * (self._bytes_of_zero + span * bits // 8)
        self.blocks = in_huge_pages((self._num_blocks, self._spans, bytes_of_span), torch.uint8).zero_()

    def _pack_numbers(self, numbers: Any, block: int) -> slice:
        """uint8 [outputs, inputs] of outputs that begin with a block. Returns the blocks that they are."""
        width, blocks = self._width, -(-len(numbers) // self._width)
        fours = self._padded(numbers, self._spans * self.group).view(
            blocks, width, self._spans, self.group // _FOUR, _FOUR
        )
        vectors = fours.permute(0, 2, 3, 1, 4).reshape(blocks, self._spans, -1, _FOUR, width)
        if self._bits == 6:
            uppers = [(vectors[..., 3, :] >> 2 * of & 3) << 6 for of in range(3)]
            vectors = vectors[..., :3, :] | torch.stack(uppers, -2)
        packed = slice(block, block + blocks)
        self.blocks[packed, :, self._bytes_of_zero * width :] = vectors.flatten(2)
        return packed

    def _padded(self, values: Any, size: int) -> Any:
        """[outputs, some] as [block, output, size]."""
        blocks = -(-len(values) // self._width)
        whole = values.new_zeros(blocks * self._width, size)
        whole[: len(values), : values.shape[1]] = values
        return whole.view(blocks, self._width, size)

    def _numbers_of(self, block: Any, at: Any) -> Any:
        """float32 [number, span, input] of outputs."""
        packed = self.blocks[..., self._bytes_of_zero * self._width :]
        if self._bits == 6:
            return six_bit_numbers(packed, self._width, block, at).flatten(2).float()
        return packed.view(self._num_blocks, self._spans, -1, self._width, _FOUR)[block, :, :, at].flatten(2).float()

    @property
    def weights(self) -> Any:
        """The weights as they are multiplied, [outputs, inputs] in float32."""
        return self.weights_of(torch.arange(self.outputs))

    def weights_of(self, outputs: Any) -> Any:
        """[number, inputs] of these outputs."""
        raise NotImplementedError


class _ProductWithZeros(SpanProduct):
    def __init__(
        self, shape: Sequence[int], bias: Any | None, kernels: NativeKernels, bits: SpanBits, span: int
    ) -> None:
        level = level_of_spans(kernels, bits, has_offsets=False)
        super().__init__(shape, bias, level, kernels, bits, span)
        self.scales = torch.zeros(self._num_blocks, self._spans, self._width)

    def _pack(self, numbers: Any, zeros: Any, scales: Any, block: int) -> int:
        """Of outputs that begin with a block: as `SpanRows.in_spans` has them. Returns the block behind them."""
        packed = self._pack_numbers(numbers, block)
        self.blocks[packed, :, : self._width] = self._padded(zeros, self._spans).mT
        self.scales[packed] = self._padded(scales, self._spans).mT
        return int(packed.stop)

    def weights_of(self, outputs: Any) -> Any:
        block, at = outputs // self._width, outputs % self._width
        zeros = self.blocks[..., : self._width][block, :, at]
        weights = (self._numbers_of(block, at) - zeros[..., None].float()) * self.scales[block, :, at][..., None]
        weights = weights.flatten(1)[:, : self.inputs]
        if self.order is None:
            return weights
        return torch.empty(len(outputs), self.inputs).index_copy_(1, self.order.long(), weights)


class Int8SpanProduct(_ProductWithZeros):
    """`parts` are outputs behind one another, and have a `common_span`."""

    def __init__(self, parts: Sequence[SpanRows], bias: Any | None, kernels: NativeKernels) -> None:
        first = parts[0]
        super().__init__((sum(len(part) for part in parts), first.inputs), bias, kernels, 8, first.span)
        self.order = None if first.order is None else first.order.to(torch.int32).contiguous()
        block = 0
        for pieces in in_pieces(parts, _ROWS_PACKED_AT_ONCE):
            tensors = zip(*(piece.in_spans() for piece in pieces), strict=True)
            numbers, zeros, scales = (torch.cat(some) for some in tensors)
            block = self._pack(numbers, zeros, scales, block)


class Int6Product(_ProductWithZeros):
    """Weights that are rounded to 6 bits: 128 inputs of an output have a scale."""

    def __init__(self, weight: Any, bias: Any | None, kernels: NativeKernels) -> None:
        super().__init__(weight.shape, bias, kernels, 6, _SPAN_OF_6_BITS)
        block = 0
        for begin in range(0, self.outputs, _ROWS_PACKED_AT_ONCE):
            numbers, scales = self._rounded(floats_of(weight[begin : begin + _ROWS_PACKED_AT_ONCE]))
            zeros = torch.full(scales.shape, _MIDDLE_OF_6_BITS, dtype=torch.uint8)
            block = self._pack(numbers, zeros, scales, block)

    def _rounded(self, weight: Any) -> tuple[Any, Any]:
        padding = self._spans * self.group - self.inputs
        spans = torch.nn.functional.pad(weight, (0, padding)).unflatten(1, (self._spans, self.group))
        least, most = spans.aminmax(dim=-1)
        scales = torch.maximum(most / (_MIDDLE_OF_6_BITS - 1), -least / _MIDDLE_OF_6_BITS).clamp(min=1e-30)
        numbers = (spans / scales[..., None]).round().add_(_MIDDLE_OF_6_BITS).to(torch.uint8)
        return numbers.flatten(1), scales


def common_span(matrices: Sequence[Sequence[Any]]) -> int:
    """Of matrices that are rows of files behind one another: inputs of a span, if an `Int8SpanProduct` keeps them.

    0: it does not, or need not, as 8 bits with a scale for each output keep them.
    """
    first = matrices[0][0]
    span = int(getattr(first, "span", 0))
    if not span or all(one.has_scales_of_outputs for parts in matrices for one in parts):
        return 0
    is_alike = all(
        getattr(one, "span", 0) == span and one.inputs == first.inputs and is_same_order(one.order, parts[0].order)
        for parts in matrices
        for one in parts
    )
    return span if is_alike else 0


def six_bit_numbers(bytes_of_numbers: Any, width: int, block: Any, at: Any) -> Any:
    """uint8 [number, span, step, 4] of outputs, from [block, span, bytes]; blocks have `width` outputs."""
    quarter = width // _FOUR  # outputs of a vector
    three = bytes_of_numbers.unflatten(-1, (-1, 3, quarter, _FOUR))
    three = three[block, :, :, :, at % quarter]  # [number, span, step, vector, 4]
    last = (three >> 6 << torch.tensor([0, 2, 4], dtype=torch.uint8)[:, None]).sum(-2, dtype=torch.uint8)
    vectors = torch.cat([three & 63, last[..., None, :]], -2)
    return vectors[torch.arange(len(at)), :, :, at // quarter]


def is_same_order(one: Any | None, other: Any | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or torch.equal(one, other)


def in_pieces(parts: Sequence[Any], size: int) -> Iterator[list[Any]]:
    """Lists of rows with `size` outputs each, but for the last."""
    piece: list[Any] = []
    missing = size
    for part in parts:
        begin = 0
        while begin < len(part):
            taken = part[begin : begin + missing]
            piece.append(taken)
            begin, missing = begin + len(taken), missing - len(taken)
            if not missing:
                yield piece
                piece, missing = [], size
    if piece:
        yield piece
