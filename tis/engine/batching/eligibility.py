"""Decides whether a loaded model can be batched, and says why not. Requests of other models take turns."""

from typing import Any

import torch

from tis.engine.batching.long_ropes import rope_borders
from tis.engine.batching.state_layers import LayerKinds, find_states
from tis.engine.batching.text_attention import TextAttention, text_attentions

_SUPPORTED_LAYER_TYPES = {
    *("full_attention", "sliding_attention", "chunked_attention"),
    *("conv", "linear_attention", "hybrid", "hybrid_sliding"),
    *("mlp", "moe"),
}


def why_not_batchable(model: Any) -> str | None:
    config = model.config.get_text_config()
    if config.is_encoder_decoder:
        return "it has an encoder"
    layers = LayerKinds.of(model)
    # Qwen2-Audio's own class does not say what its decoder's class says.
    supports = any(getattr(one, "_supports_attention_backend", False) for one in (model, model.get_decoder()))
    if not layers.states and not supports:
        return "its attention cannot be replaced"
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if not kinds <= _SUPPORTED_LAYER_TYPES:
        return f"it has layers of type {', '.join(sorted(kinds - _SUPPORTED_LAYER_TYPES))}"
    if len(rope_borders(model)) > 1:
        return "its rotary embeddings change at different lengths"
    attentions = text_attentions(model)
    expected = sorted(layers.attentions) if layers.states else list(range(config.num_hidden_layers))
    if [getattr(one.module, "layer_idx", None) for one in attentions] != expected:
        return "not every layer has an attention of its own"
    if {one.shape.layer for one in find_states(model)} != layers.states:
        return "its layers keep their states in a way of their own"
    if getattr(config, "use_bidirectional_attention", False) or not all(
        getattr(one.module, "is_causal", True) for one in attentions
    ):
        return "its tokens look ahead"
    if any(one.has_mask for one in attentions):
        return "its attention makes a mask of its own"
    windows = _windows(config)
    if any(one.window != windows[one.module.layer_idx] for one in attentions):
        return "its layers do not say how far they see"
    return _why_not_on_device(model, attentions)


def _why_not_on_device(model: Any, attentions: list[TextAttention]) -> str | None:
    devices = {parameter.device for parameter in model.parameters()}
    if len(devices) > 1:
        return f"it is spread over {len(devices)} devices"
    [device] = devices
    if device.type not in ("cpu", "cuda"):
        return f"it is on {device.type}"
    if device.type == "cuda" and model.dtype not in (torch.bfloat16, torch.float16):
        return f"the paged kernel of CUDA does not compute in {model.dtype}"
    if device.type == "cuda" and any(one.sinks is not None for one in attentions):
        return "the paged kernel of CUDA has no sinks"
    if device.type == "cuda" and any(one.cache.chunk for one in attentions):
        return "the paged kernel of CUDA has no chunks"
    if device.type == "cuda" and any(one.cache.key_size != one.cache.value_size for one in attentions):
        return "the paged kernel of CUDA takes no keys and values of different sizes"
    if device.type == "cuda" and getattr(model.config.get_text_config(), "attn_logit_softcapping", None):
        return "the paged kernel of CUDA has no soft cap"
    return None


def _windows(config: Any) -> list[int | None]:
    """How many tokens each layer sees, as the masks of Transformers have it."""
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        return [window if getattr(config, "use_sliding_window", True) else None] * config.num_hidden_layers
    return [window if kind == "sliding_attention" else None for kind in kinds]
