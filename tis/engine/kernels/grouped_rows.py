"""Weights as files of GPTQ, AWQ, compressed-tensors and FP8 have them: numbers of 4 or 8 bits, and scales of groups."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from tis.engine.kernels.int8_spans import is_same_order

SMALLEST_GROUP = 32  # inputs that the native kernels give a zero of their own
_SPANS = (128, 96, 64, 32)  # inputs that share a scale and a zero of 8 bits, in those kernels
_MIDDLE = 128  # what is added to numbers with a sign


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """[outputs, inputs]: a weight is `scale of its group * (number - zero of its group)`.

    A group is some inputs of an output that follow each other. `order` says for each of them in turn which input of the
    layer it is.
    """

    # uint8 [outputs, half of the inputs], the first of two in the low four bits; or of 8 bits [outputs, inputs].
    numbers: Any
    scales: Any  # float32 [outputs, groups]
    group: int
    inputs: int
    zeros: Any | None = None  # uint8 [outputs, groups]; None: 0
    order: Any | None = None  # int32 [inputs]; None: 0, 1, 2, ...
    has_four_bits: bool = False
    rounded_to: Any | None = None  # the type that a weight is rounded to before anything is computed with it

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> "GroupedRows":
        zeros = None if self.zeros is None else self.zeros[rows]
        return replace(self, numbers=self.numbers[rows], scales=self.scales[rows], zeros=zeros)

    @property
    def kind(self) -> str:
        return f"{4 if self.has_four_bits else 8} bits, groups of {self.group}"

    def floats(self) -> Any:
        """float32 [outputs, inputs]."""
        numbers = self.integers().float()
        groups = self.scales.shape[1]
        padding = groups * self.group - self.inputs
        if padding:
            numbers = torch.nn.functional.pad(numbers, (0, padding))
        grouped = numbers.view(len(self), groups, self.group)
        if self.zeros is not None:
            grouped -= self.zeros.float()[..., None]
        grouped *= self.scales[..., None]
        floats = grouped.view(len(self), -1)[:, : self.inputs]
        if self.order is not None:
            floats = torch.empty(len(self), self.inputs).index_copy_(1, self.order.long(), floats)
        return floats if self.rounded_to is None else floats.to(self.rounded_to).float()

    def integers(self) -> Any:
        """The numbers, one by one; of FP8 they are floats."""
        if not self.has_four_bits:
            return self.numbers
        halves = torch.stack([self.numbers & 15, self.numbers >> 4], -1)
        return halves.flatten(1)[:, : self.inputs]

    def integers_of_outputs(self) -> tuple[Any, Any] | None:
        """int8 [outputs, inputs] and float32 [outputs], if that is what these weights are."""
        is_integer = not self.has_four_bits and not self.numbers.dtype.is_floating_point
        if not is_integer or self.scales.shape[1] != 1 or self.order is not None:
            return None
        numbers = self.numbers.short() - (0 if self.zeros is None else self.zeros.short())
        fits = bool((numbers >= -128).all()) and bool((numbers <= 127).all())
        return (numbers.to(torch.int8), self.scales[:, 0]) if fits else None

    @property
    def span(self) -> int:
        is_integer = not self.has_four_bits and not self.numbers.dtype.is_floating_point
        return span_of(self.inputs, self.inputs if self.scales.shape[1] == 1 else self.group) if is_integer else 0

    @property
    def has_scales_of_outputs(self) -> bool:
        if self.scales.shape[1] != 1 or self.order is not None:
            return False
        if self.zeros is None:
            return bool(self.numbers.dtype is torch.int8)
        return bool(self.numbers.dtype is torch.uint8 and (self.zeros == _MIDDLE).all())

    def in_spans(self) -> tuple[Any, Any, Any]:
        numbers, zeros, span = self.numbers, self.zeros, self.span
        if numbers.dtype is torch.int8:
            numbers = numbers.view(torch.uint8) ^ _MIDDLE
        if zeros is None:
            zeros = torch.full(self.scales.shape, _MIDDLE if self.numbers.dtype is torch.int8 else 0, dtype=torch.uint8)
        num_spans = -(-self.inputs // span)
        each = num_spans if self.scales.shape[1] == 1 else self.group // span
        zeros, scales = (one.repeat_interleave(each, 1)[:, :num_spans] for one in (zeros, self.scales))
        return numbers, zeros, scales


def span_of(inputs: int, group: int) -> int:
    """Inputs of a span of 8-bit weights that have a scale for each `group`; 0: no kernel keeps them."""
    if group == inputs:
        return next(span for span in reversed(_SPANS) if span >= min(inputs, _SPANS[0]))
    return next((span for span in _SPANS if group % span == 0), 0)


def may_be_grouped(parts: Any) -> bool:
    """Whether a product can keep the 4-bit numbers, zeros and scales of these rows: all lie in one order."""
    first = parts[0]
    return all(
        isinstance(one, GroupedRows)
        and one.has_four_bits
        and (one.group % SMALLEST_GROUP == 0 or one.scales.shape[1] == 1)
        and (one.group, one.inputs) == (first.group, first.inputs)
        and is_same_order(one.order, first.order)
        for one in parts
    )
