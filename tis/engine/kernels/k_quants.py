"""K-quants of GGUF files, which keep all that the file says of them: see k_quants.h."""

from collections.abc import Sequence
from typing import Any

import torch

from tis.engine.kernels.gguf_blocks import BlockRows
from tis.engine.kernels.int8_spans import six_bit_numbers
from tis.engine.kernels.integer_product import IntegerProduct, level_of_k_quants
from tis.engine.kernels.memory_advice import in_huge_pages
from tis.engine.kernels.native import NativeKernels

_SUPER_BLOCK = 256  # inputs of an output with a `d` of its own
_WITH_SCALE, _WITH_MINIMUM = 16, 32  # inputs
_FLOAT = 4  # bytes
_MIDDLE = 32  # what is added to numbers with a sign


class KQuantProduct(IntegerProduct):
    """`parts` are outputs behind one another, all `is_k_quant`. Rows have 15 bits in any company.

    `has_minima`: whether blocks have room for them; needed where one of the parts has some.
    """

    def __init__(
        self, parts: Sequence[BlockRows], bias: Any | None, kernels: NativeKernels, *, has_minima: bool
    ) -> None:
        level = level_of_k_quants(kernels, has_minima=has_minima)
        super().__init__((sum(len(part) for part in parts), parts[0].inputs), bias, level, kernels)
        self.group, self._has_minima = _SUPER_BLOCK, has_minima
        super_blocks = self.inputs // _SUPER_BLOCK
        self.scales = torch.zeros(self._num_blocks, super_blocks, self._width)
        bytes_of_block = self._width * (sum(self._bytes_of_output) + _SUPER_BLOCK * 6 // 8)
        self.blocks = in_huge_pages((self._num_blocks, super_blocks, bytes_of_block), torch.uint8).zero_()
        first = 0
        for part in parts:
            part.kernels.pack_k_quants(
                part.blocks, part.ggml_type, self.blocks, self.scales, first, self._width, has_minima=has_minima
            )
            first += len(part)

    @property
    def _bytes_of_output(self) -> tuple[int, int, int]:
        """In a super-block, before its numbers: scales, minima, and what these are multiplied with."""
        minima = (_SUPER_BLOCK // _WITH_MINIMUM, _FLOAT) if self._has_minima else (0, 0)
        return (_SUPER_BLOCK // _WITH_SCALE, *minima)

    @property
    def weights(self) -> Any:
        """The weights as they are multiplied, [outputs, inputs] in float32: those of the file, bit for bit."""
        return self.weights_of(torch.arange(self.outputs))

    def weights_of(self, outputs: Any) -> Any:
        """[number, inputs] of these outputs."""
        block, at = outputs // self._width, outputs % self._width
        sizes = [self._width * size for size in self._bytes_of_output]
        scales, minima, least, numbers = self.blocks.split([*sizes, self.blocks.shape[-1] - sum(sizes)], -1)

        def of_outputs(bytes_of_all: Any, dtype: Any) -> Any:
            """[number, super-block, group, 1]"""
            return bytes_of_all.view(dtype).unflatten(-1, (-1, self._width))[block, :, :, at, None].float()

        factors = of_outputs(scales, torch.int8) * self.scales[block, :, at, None, None]
        signed = six_bit_numbers(numbers, self._width, block, at).flatten(2).float() - _MIDDLE
        weights = signed.unflatten(-1, (-1, _WITH_SCALE)) * factors
        if self._has_minima:
            offsets = of_outputs(minima, torch.uint8) * of_outputs(least, torch.float32)
            weights = weights.flatten(2).unflatten(-1, (-1, _WITH_MINIMUM)) - offsets
        return weights.flatten(1)


def are_k_quants(matrices: Sequence[Sequence[Any]]) -> bool:
    """Of matrices that are rows of files behind one another."""
    return all(getattr(one, "is_k_quant", False) for parts in matrices for one in parts)
