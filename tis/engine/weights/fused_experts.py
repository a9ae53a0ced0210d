"""Replaces the experts of a mixture by native products behind the router of the model, layer by layer.

How the matrices of a layer's experts lie is what their module tells Transformers' own interface of experts
(`use_experts_implementation`). Whether the result is the same is found by computing both on random numbers.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tis.engine.kernels.experts import ExpertMatrices, NativeExperts
from tis.engine.kernels.integer_product import WeightBits, takes_integers
from tis.engine.kernels.native import NativeKernels, Scratch
from tis.engine.kernels.product import BlockFormat, takes_products
from tis.engine.optional_stages import Misfit, Trials
from tis.engine.weights.block_tensor import BlockStack
from tis.engine.weights.fused import is_close, random_rows

log = logging.getLogger("tis.engine")

_TOLERANCES: dict[WeightBits | None, float | None] = {
    None: None,
    8: 2**-4,
    4: 2**-2,
}  # against the weights as they were saved


class FusedExperts(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, native: NativeExperts) -> None:
        super().__init__()
        self._native = native
        self.num_experts = native.num_experts
        self.num_bytes = native.num_bytes

    def forward(self, hidden_states: Any, top_k_index: Any, top_k_weights: Any) -> Any:
        return self._native(hidden_states, top_k_index, top_k_weights)


def fuse_experts(model: Any, kernels: NativeKernels | None, *, bits: WeightBits | None = None) -> int:
    """Returns the number of layers whose experts it replaced, in place. Those that a file has packed stay so."""
    if kernels is None or model.device.type != "cpu" or getattr(model, "is_quantized", False):
        return 0
    places = [
        (parent, name)
        for parent in model.get_decoder().modules()
        for name, child in parent.named_children()
        if hasattr(child, "is_concatenated") and hasattr(child, "has_gate")
    ]
    trials, scratch = Trials("fusing experts"), Scratch()
    number = 0
    with torch.inference_mode():
        for parent, name in places:  # the memory of a layer is free before the next needs some
            fuse = partial(_fused, getattr(parent, name), kernels, scratch, bits=bits)
            if new := trials.attempt(getattr(parent, name), fuse):
                setattr(parent, name, new)
                number += 1
            del fuse
    trials.report()
    if number:
        log.info("fused the experts of %d layers%s", number, f", in {bits} bits" if bits else "")
    return number


def _fused(experts: Any, kernels: NativeKernels, scratch: Scratch, *, bits: WeightBits | None) -> FusedExperts:
    matrices = _matrices_of(experts)
    bits = bits or _bits_of_file(matrices)
    dtype, hidden = matrices.down.dtype, matrices.down.shape[1]
    if bits:
        if not takes_integers(kernels, bits, hidden, matrices.inner):
            raise Misfit(f"no kernel takes these sizes in {bits} bits")
    elif not takes_products(kernels, dtype) or not BlockFormat(kernels, dtype).takes(hidden, matrices.inner):
        raise Misfit("another kernel multiplies faster, or these sizes are not taken")
    call = _random_call(hidden, len(matrices.down), dtype)
    theirs = experts(*call)
    activation = _activation_of(experts, matrices, kernels)
    new = FusedExperts(NativeExperts(matrices, kernels, activation, scratch, bits=bits))
    if not is_close(new(*call), theirs, _TOLERANCES[bits]):
        raise Misfit("it computes something else")
    if activation is not None:  # a method of the module, whose numbers are no longer read
        experts._parameters.clear()
    return new


def _matrices_of(experts: Any) -> ExpertMatrices:
    if getattr(experts, "has_post_expert_norm", False):
        raise Misfit("a norm stands behind each expert")
    first = "gate_up_proj" if experts.has_gate else "up_proj"
    gate_up, down = (getattr(experts, name, None) for name in (first, "down_proj"))
    if gate_up is None or down is None or gate_up.ndim != 3 or down.ndim != 3:
        raise Misfit("its matrices lie in another way")
    biases = [getattr(experts, f"{name}_bias", None) for name in (first, "down_proj")]
    if {name for name, _ in experts.named_parameters()} - {first, "down_proj", f"{first}_bias", "down_proj_bias"}:
        raise Misfit("it has more parameters")
    if experts.is_transposed:
        gate_up, down = gate_up.transpose(1, 2), down.transpose(1, 2)
    gate_up, down, *biases = (one if one is None else one.detach() for one in (gate_up, down, *biases))
    return ExpertMatrices(gate_up, down, *biases)


def _bits_of_file(matrices: ExpertMatrices) -> WeightBits | None:
    stacks = (matrices.gate_up, matrices.down)
    if not all(isinstance(one, BlockStack) and not one.has_floats for one in stacks):
        return None
    return 4 if all(one.keeps_scales for one in stacks) else 8


def _activation_of(experts: Any, matrices: ExpertMatrices, kernels: NativeKernels) -> Callable[[Any], Any] | None:
    """What comes between the two products. None: SiLU of the first half of the outputs, times the second."""
    activation: Callable[[Any], Any] = experts._apply_gate if experts.has_gate else experts.act_fn
    if not experts.has_gate:
        return activation
    x = random_rows(2 * matrices.inner, matrices.down.dtype)
    gate, up = x.chunk(2, -1)
    return None if is_close(kernels.silu_mul(gate, up), activation(x)) else activation


def _random_call(hidden: int, num_experts: int, dtype: Any) -> tuple[Any, Any, Any]:
    """Rows, two experts for each of them, the first and the last among them, and their shares."""
    x = random_rows(hidden, dtype)
    chosen = torch.linspace(0, num_experts - 1, 2 * len(x)).long().view(2, -1).T
    return x, chosen, torch.tensor([0.7, 0.4], dtype=dtype).expand(len(x), 2)
