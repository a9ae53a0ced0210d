"""Modules that compute what several small ones of Transformers do, in fewer operations.

Each is built from the module that it replaces. `kernels` are the native ones, or None: then torch computes the same.
"""

from typing import Any

import torch

from tis.engine.kernels.native import NativeKernels


class FusedNorm(torch.nn.Module):  # type: ignore[misc]
    """RMSNorm. `offset` 1 is for families that store their weights as the difference to 1."""

    def __init__(self, norm: Any, offset: float, kernels: NativeKernels) -> None:
        super().__init__()
        # The families with an offset multiply in float32 and round once.
        self.weight = norm.weight if offset == 0 else _parameter(norm.weight.detach().float() + offset)
        self.eps = float(getattr(norm, "variance_epsilon", None) or norm.eps)
        self._kernels = kernels

    def forward(self, x: Any) -> Any:
        if self.weight.dtype is x.dtype:
            return self._kernels.rms_norm(x, self.weight, self.eps)
        # Weights in float32, or a sum in float32 that a family keeps between layers of 16 bits (Mamba).
        return self._kernels.rms_norm(x.float(), self.weight.float(), self.eps).to(x.dtype)


class FusedMlp(torch.nn.Module):  # type: ignore[misc]
    """`down(activation(gate) * up)`, with gate and up in one product. `activation` None is SiLU, by a native kernel."""

    def __init__(self, gate_up_proj: Any, down_proj: Any, activation: Any, kernels: NativeKernels | None) -> None:
        super().__init__()
        self.gate_up_proj = gate_up_proj
        self.down_proj = down_proj
        self.act_fn = activation
        self._kernels = kernels

    def forward(self, x: Any) -> Any:
        both = self.gate_up_proj(x)
        gate, up = both.split_with_sizes((both.shape[-1] // 2,) * 2, -1)
        if self.act_fn is None:
            assert self._kernels is not None
            return self.down_proj(self._kernels.silu_mul(gate, up))
        return self.down_proj(self.act_fn(gate) * up)


def plain_linears(module: Any, *names: str) -> list[Any]:
    """Returns these children of a module, or nothing if one of them is missing or does more than multiply."""
    found = [getattr(module, name, None) for name in names]
    return found if all(type(one) is torch.nn.Linear for one in found) else []


def merged_linear(linears: list[Any]) -> Any:
    """Returns one layer whose output is the outputs of the others, side by side."""
    if len(linears) == 1:
        return linears[0]
    merged = torch.nn.Linear(linears[0].in_features, sum(one.out_features for one in linears), device="meta")
    merged.weight = _parameter(torch.cat([one.weight.detach() for one in linears]))
    if any(one.bias is not None for one in linears):
        biases = [one.weight.new_zeros(one.out_features) if one.bias is None else one.bias for one in linears]
        merged.bias = _parameter(torch.cat([bias.detach() for bias in biases]))
    else:
        merged.bias = None
    return merged


def _parameter(tensor: Any) -> Any:
    return torch.nn.Parameter(tensor, requires_grad=False)
