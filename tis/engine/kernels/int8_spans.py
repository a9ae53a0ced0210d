"""8-bit weights of files that give groups of inputs a scale of their own, which they keep: see int8_spans.c."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch

from tis.engine.kernels.integer_product import IntegerProduct, level_of_spans
from tis.engine.kernels.memory_advice import in_huge_pages
from tis.engine.kernels.native import NativeKernels

_ROWS_PACKED_AT_ONCE = 1024
_FOUR = 4  # inputs that are multiplied at once


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


class Int8SpanProduct(IntegerProduct):
    """`parts` are outputs behind one another, and have a `common_span`. Rows have 16 bits in any company."""

    def __init__(self, parts: Sequence[SpanRows], bias: Any | None, kernels: NativeKernels) -> None:
        first = parts[0]
        super().__init__((sum(len(part) for part in parts), first.inputs), bias, level_of_spans(kernels), kernels)
        self.group = first.span
        self.order = None if first.order is None else first.order.to(torch.int32).contiguous()
        self._spans = -(-self.inputs // self.group)
        self.scales = torch.zeros(self._num_blocks, self._spans, self._width)
        bytes_of_span = self._width * (1 + self.group)
        self.blocks = in_huge_pages((self._num_blocks, self._spans, bytes_of_span), torch.uint8).zero_()
        block = 0
        for pieces in in_pieces(parts, _ROWS_PACKED_AT_ONCE):
            block += self._pack([piece.in_spans() for piece in pieces], block)

    def _pack(self, pieces: Sequence[tuple[Any, Any, Any]], block: int) -> int:
        """Returns how many blocks they are."""
        numbers, zeros, scales = (torch.cat(tensors) for tensors in zip(*pieces, strict=True))
        width, count = self._width, len(numbers)
        blocks = -(-count // width)

        def padded(values: Any, size: int) -> Any:
            whole = values.new_zeros(blocks * width, size)
            whole[:count, : values.shape[1]] = values
            return whole.view(blocks, width, size)

        fours = padded(numbers, self._spans * self.group).view(blocks, width, self._spans, self.group // _FOUR, _FOUR)
        to = self.blocks[block : block + blocks]
        to[..., :width] = padded(zeros, self._spans).mT
        to[..., width:] = fours.permute(0, 2, 3, 1, 4).reshape(blocks, self._spans, -1)
        self.scales[block : block + blocks] = padded(scales, self._spans).mT
        return blocks

    @property
    def weights(self) -> Any:
        """The weights as they are multiplied, [outputs, inputs] in float32."""
        return self.weights_of(torch.arange(self.outputs))

    def weights_of(self, outputs: Any) -> Any:
        """[number, inputs] of these outputs."""
        block, at = outputs // self._width, outputs % self._width
        zeros = self.blocks[..., : self._width][block, :, at]
        fours = self.blocks[..., self._width :].view(self._num_blocks, self._spans, -1, self._width, _FOUR)
        numbers = fours[block, :, :, at].flatten(2).float()  # [number, span, input]
        weights = (numbers - zeros[..., None].float()) * self.scales[block, :, at][..., None]
        weights = weights.flatten(1)[:, : self.inputs]
        if self.order is None:
            return weights
        return torch.empty(len(outputs), self.inputs).index_copy_(1, self.order.long(), weights)


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
