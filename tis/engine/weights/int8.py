"""Linear layers with 8- or 4-bit integer weights for a CPU, where reading weights limits the speed of one answer.

A few rows are multiplied with the integers directly. For many rows, the weights are first converted back to floats,
because there the multiplication takes most of the time.
"""

from typing import Any, Literal

import torch
from torch.nn.functional import linear as multiply

Quantisation = Literal["int8", "int4"]

# Up to this number, the integer kernels were faster on the measured machines.
_MAX_ROWS_FOR_INTEGERS = 8
_GROUP_SIZES = (64, 32)  # of 4-bit weights that share a scale: the first that divides a row


class Int8Linear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any) -> None:
        super().__init__()
        self.out_features = linear.out_features
        weight = linear.weight.detach().float()
        self.bias = None if linear.bias is None else linear.bias.detach()
        scales = (weight.abs().amax(1) / 127).clamp(min=1e-12)
        self.integers = (weight / scales[:, None]).round().to(torch.int8)
        self.scales = scales.bfloat16()

    def forward(self, x: Any) -> Any:
        if not x.numel():  # the kernels refuse a matrix without rows
            return x.new_zeros(*x.shape[:-1], self.out_features)
        rows = x.reshape(-1, x.shape[-1])
        if len(rows) > _MAX_ROWS_FOR_INTEGERS:
            return multiply(x, self.integers.to(x.dtype) * self.scales.to(x.dtype)[:, None], self.bias)
        out = torch._weight_int8pack_mm(rows.bfloat16(), self.integers, self.scales).to(x.dtype)
        out = out.view(*x.shape[:-1], -1)
        return out if self.bias is None else out + self.bias


class Int4Linear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any) -> None:
        super().__init__()
        self.out_features = linear.out_features
        weight = linear.weight.detach().float()
        self.bias = None if linear.bias is None else linear.bias.detach()
        self.group_size = _group_size_of(linear)
        groups = weight.view(len(weight), -1, self.group_size)
        low, high = groups.amin(-1, True), groups.amax(-1, True)
        scales = ((high - low) / 15).clamp(min=1e-9).bfloat16().float()
        middles = (low + 8 * scales).bfloat16().float()
        integers = ((groups - middles) / scales + 8).round().clamp(0, 15).to(torch.int32).view_as(weight)
        self.packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(integers, 1)
        self.scales_and_middles = torch.cat([scales, middles], -1).transpose(0, 1).contiguous().bfloat16()
        pairs = integers.to(torch.uint8)
        self.pairs = pairs[:, ::2] | pairs[:, 1::2] << 4

    def forward(self, x: Any) -> Any:
        if not x.numel():  # the kernels refuse a matrix without rows
            return x.new_zeros(*x.shape[:-1], self.out_features)
        rows = x.reshape(-1, x.shape[-1])
        if len(rows) > _MAX_ROWS_FOR_INTEGERS:
            return multiply(x, self._weight(x.dtype), self.bias)
        product = torch.ops.aten._weight_int4pack_mm_for_cpu(
            rows.bfloat16(), self.packed, self.group_size, self.scales_and_middles
        )
        out = product.to(x.dtype).view(*x.shape[:-1], -1)
        return out if self.bias is None else out + self.bias

    def _weight(self, dtype: Any) -> Any:
        integers = torch.stack([self.pairs & 15, self.pairs >> 4], -1).view(len(self.pairs), -1, self.group_size)
        scales, middles = self.scales_and_middles.to(dtype).transpose(0, 1).split(1, -1)
        return ((integers.to(dtype) - 8) * scales + middles).view(len(self.pairs), -1)


def quantise(linear: Any, quantisation: Quantisation, *, is_head: bool) -> Any:
    """The head always has eight bits, because every sampled token depends on it."""
    fits = _group_size_of(linear) and linear.out_features % 32 == 0
    if quantisation == "int4" and fits and not is_head:
        return Int4Linear(linear)
    return Int8Linear(linear)


def _group_size_of(linear: Any) -> int:
    return next((size for size in _GROUP_SIZES if linear.in_features % size == 0), 0)
