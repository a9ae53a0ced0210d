"""Linear layers with 8-bit integer weights for a CPU, where reading weights limits the speed of one answer.

A few rows are multiplied with the integers directly. For many rows, the weights are first converted back to floats,
because there the multiplication takes most of the time.
"""

from typing import Any, Literal

import torch
from torch.nn.functional import linear as multiply

Quantisation = Literal["int8"]

# Up to this number, the integer kernels were faster on the measured machines.
_MAX_ROWS_FOR_INTEGERS = 8


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
