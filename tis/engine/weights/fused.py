"""Replaces modules of a loaded model by fused ones that compute the same in fewer operations.

Names of sub-modules suggest candidates. Each candidate is computed by both on random numbers: where the results
differ, the model keeps its own module. Only this instance of a model is changed, never the classes of Transformers.
"""

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from tis.engine.kernels.native import NativeKernels
from tis.engine.optional_stages import Trials
from tis.engine.weights.fused_attention import PROBE, AttentionCalls, FusedAttention, projections_of
from tis.engine.weights.fused_modules import FusedMlp, FusedNorm, merged_linear, plain_linears

log = logging.getLogger("tis.engine")

# Small rows show the epsilon of a norm, large ones show where a module clips its values.
ROW_SIZES = (0.003, 0.1, 0.5, 2.0, 8.0, 30.0, 500.0)
# Relative to the largest number of a row: sums in another order, or roundings to bfloat16 at other places.
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2**-6}


def fuse_modules(model: Any, kernels: NativeKernels | None) -> int:
    """Fuses modules of the text part of a CPU model in place. Returns the number of modules that were replaced.

    `kernels` are the native ones. None: only matrices are merged.
    """
    if model.device.type != "cpu" or model.dtype not in _TOLERANCE or getattr(model, "is_quantized", False):
        return 0
    decoder = model.get_decoder()
    trials = Trials("fusing modules")
    with torch.no_grad():
        num_norms = 0 if kernels is None else _replace(decoder, _norm_fuser(kernels), trials)
        num_mlps = _replace(decoder, _mlp_fuser(kernels), trials)
        with attention_named(model, PROBE):
            calls = trials.attempt(decoder, lambda: _calls_of_attentions(model, decoder)) or {}
            num_attentions = _replace(decoder, _attention_fuser(kernels, calls), trials)
    trials.report()
    if number := num_norms + num_mlps + num_attentions:
        log.info("fused %d norms, %d MLPs and %d attentions", num_norms, num_mlps, num_attentions)
    return number


Fuser = Callable[[Any], Any | None]  # returns the new module, if it computes the same


def _replace(decoder: Any, fuse: Fuser, trials: Trials) -> int:
    replaced = 0
    for parent in [*decoder.modules()]:
        for name, child in [*parent.named_children()]:
            if isinstance(child, FusedNorm | FusedMlp | FusedAttention):
                continue
            if (new := trials.attempt(child, partial(fuse, child))) is not None:
                setattr(parent, name, new)
                replaced += 1
    return replaced


def _norm_fuser(kernels: NativeKernels) -> Fuser:
    def fuse(norm: Any) -> Any | None:
        parameters = dict(norm.named_parameters())
        weight = parameters.get("weight")
        if len(parameters) != 1 or weight is None or weight.ndim != 1:
            return None
        if len(inspect.signature(norm.forward).parameters) != 1:  # some multiply with a gate, too
            return None
        x = random_rows(len(weight), weight.dtype)
        new = (FusedNorm(norm, offset, kernels) for offset in (0.0, 1.0))
        return next((one for one in new if is_close(one(x), norm(x))), None)

    return lambda module: fuse(module) if hasattr(module, "variance_epsilon") or hasattr(module, "eps") else None


def _mlp_fuser(kernels: NativeKernels | None) -> Fuser:
    def fuse(mlp: Any) -> Any | None:
        linears = plain_linears(mlp, "gate_proj", "up_proj") or plain_linears(mlp, "gate_up_proj")
        if not linears or not plain_linears(mlp, "down_proj"):
            return None
        activations = [child for child in mlp.children() if type(child) is not torch.nn.Linear]
        if len(activations) != 1:
            return None
        [activation] = activations
        x = random_rows(linears[0].in_features, linears[0].weight.dtype)
        is_silu = kernels is not None and _is_silu(activation, kernels, x.dtype)
        new = FusedMlp(merged_linear(linears), mlp.down_proj, None if is_silu else activation, kernels)
        return new if is_close(new(x), mlp(x)) else None

    return fuse


def _is_silu(activation: Any, kernels: NativeKernels, dtype: Any) -> bool:
    x = torch.linspace(-12, 12, 256, dtype=dtype)[:, None].expand(-1, 16).contiguous()
    return is_close(kernels.silu_mul(x, torch.ones_like(x)), activation(x))


def _attention_fuser(kernels: NativeKernels | None, calls: dict[Any, dict[str, Any]]) -> Fuser:
    def fuse(attention: Any) -> Any | None:
        call = calls.pop(attention, None)
        if call is None:
            return None
        x = random_rows(projections_of(attention)[0].in_features, attention.o_proj.weight.dtype)
        call |= {"hidden_states": x[None], "probe": (seen := AttentionCalls())}
        theirs = attention(**call)
        added = {name: value for name, value in seen.arguments[0].items() if name not in call}
        if not all(value is None or isinstance(value, bool | int | float) for value in added.values()):
            return None
        new = FusedAttention(attention, added, kernels)
        ours = new(**call)
        is_same = len(theirs) == 2 and seen.arguments[0] == seen.arguments[1]
        of_both = zip((ours[0], *seen.tensors[1]), (theirs[0], *seen.tensors[0]), strict=True)
        return new if is_same and all(is_close(our, their) for our, their in of_both) else None

    return fuse


def _calls_of_attentions(model: Any, decoder: Any) -> dict[Any, dict[str, Any]]:
    """Computes a few tokens, and returns with which arguments the decoder called each attention that may be fused."""
    calls: dict[Any, dict[str, Any]] = {}

    def record(attention: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        named = zip(inspect.signature(attention.forward).parameters, args, strict=False)
        call = {**dict(named), **kwargs}
        if _has_equal_halves(call.get("position_embeddings")):
            calls[attention] = call

    names = ("layer_idx", "o_proj", "head_dim", "num_key_value_groups")
    candidates = [
        module
        for module in decoder.modules()
        if all(hasattr(module, name) for name in names) and projections_of(module)
    ]
    if not candidates:
        return calls
    handles = [module.register_forward_pre_hook(record, with_kwargs=True) for module in candidates]
    try:
        number = len(ROW_SIZES)
        ids = torch.arange(number)[None] + 3
        decoder(input_ids=ids, position_ids=positions_of(model, number), use_cache=False, probe=AttentionCalls())
    finally:
        for handle in handles:
            handle.remove()
    return calls


def positions_of(model: Any, number: int) -> Any:
    """The axes of M-RoPE get different ones. The last is the last of the context: some families scale far queries."""
    config = model.config.get_text_config()
    parameters = getattr(config, "rope_parameters", None) or {}
    positions = torch.arange(number)[None] ** 2
    positions[0, -1] = max(int(positions[0, -1]), int(getattr(config, "max_position_embeddings", None) or 0) - 1)
    return torch.stack([positions, positions + 5, positions * 2]) if "mrope_section" in parameters else positions


def _has_equal_halves(embeddings: Any) -> bool:
    """Whether cosines and sines are those that `rotate_half` goes with."""
    if not isinstance(embeddings, tuple) or len(embeddings) != 2:
        return False
    halves = [one.chunk(2, -1) for one in embeddings]
    return all(one.ndim == 3 for one in embeddings) and all(torch.equal(*pair) for pair in halves)


@contextmanager
def attention_named(model: Any, name: str) -> Iterator[None]:
    before = model.config.get_text_config()._attn_implementation
    has_parts = "text_config" in model.config.sub_configs
    model.set_attn_implementation({"text_config": name} if has_parts else name)
    try:
        yield
    finally:
        model.set_attn_implementation({"text_config": before} if has_parts else before)


def random_rows(width: int, dtype: Any) -> Any:
    sizes = torch.tensor(ROW_SIZES)[:, None]
    noise = torch.randn(len(ROW_SIZES), width, generator=torch.Generator().manual_seed(1))
    # Their mean is not zero: a LayerNorm would subtract it.
    return ((noise + 0.5) * sizes).to(dtype)


def is_close(ours: Any, theirs: Any, tolerance: float | None = None) -> bool:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    difference = (ours.float() - theirs.float()).abs().amax(-1)
    tolerance = tolerance or _TOLERANCE[theirs.dtype]
    return bool((difference <= tolerance * theirs.float().abs().amax(-1)).all())
