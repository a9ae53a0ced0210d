"""Linear layers with 8-bit integer weights for a CPU, where reading weights limits the speed of one answer.

The native kernel rounds the rows, too: to 16 bits, which is as good as not at all, or to 8 for the many rows of a
prompt where the CPU has instructions for that. Without the kernel a few rows are multiplied by torch; for many rows it
turns the weights back into floats. See `docs/decisions/0086-eight-bits.md`.
"""

from typing import Any

import torch
from torch.nn.functional import linear as multiply

from tis.engine.kernels.grouped_product import product_of
from tis.engine.kernels.integer_product import floats_of, scales_of, takes_integers
from tis.engine.kernels.native import NativeKernels

# From this number, all of which belong to prompts as a rule, rows have 8 bits instead of 16.
_MIN_ROWS_FOR_8_BITS = 64
# Up to this number, torch's integer kernel was faster than floats on the measured machines.
_MAX_ROWS_FOR_TORCH = 8


class Int8Linear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any, kernels: NativeKernels | None = None) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight = without_numbers(linear.weight)
        weight = linear.weight.detach()
        bias = None if linear.bias is None else linear.bias.detach()
        self.product = None
        if kernels is not None and takes_integers(kernels, 8, self.in_features):
            self.product = product_of(weight, bias, kernels, 8)
        else:
            self._round(weight, bias)

    def _round(self, weight: Any, bias: Any | None) -> None:
        self.bias = bias
        weight = floats_of(weight)
        # The scales of torch's kernel have 16 bits.
        self.scales = scales_of(weight).bfloat16()
        self.integers = (weight / self.scales.float()[:, None]).round().clamp(-127, 127).to(torch.int8)

    @property
    def num_bytes(self) -> int:
        tensors = self.product.tensors if self.product else [self.integers, self.scales]
        return sum(tensor.nbytes for tensor in tensors)

    def forward(self, x: Any) -> Any:
        if not x.numel():  # torch's kernel refuses a matrix without rows
            return x.new_zeros(*x.shape[:-1], self.out_features)
        rows = x.reshape(-1, x.shape[-1])
        if self.product is None:
            return self._multiply_by_torch(rows).view(*x.shape[:-1], -1)
        bits = 8 if len(rows) >= _MIN_ROWS_FOR_8_BITS else 16
        return self.product(rows, bits=bits).view(*x.shape[:-1], -1)

    def _multiply_by_torch(self, rows: Any) -> Any:
        bias = None if self.bias is None else self.bias.to(rows.dtype)
        # With other sizes torch's kernel reads beyond its memory.
        fits = self.in_features % 32 == 0 and self.out_features % 16 == 0
        if len(rows) > _MAX_ROWS_FOR_TORCH or not fits:
            return multiply(rows, self.integers.to(rows.dtype) * self.scales.to(rows.dtype)[:, None], bias)
        out = torch._weight_int8pack_mm(rows.bfloat16(), self.integers, self.scales).to(rows.dtype)
        return out if bias is None else out + bias


def without_numbers(weight: Any) -> Any:
    """What is left of packed weights: a few models read the type of the weights of a layer before they call it."""
    return weight.detach().to("meta")
