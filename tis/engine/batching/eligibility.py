"""Decides whether a loaded model can be batched, and says why not. Requests of other models take turns."""

from typing import Any

import torch

from tis.engine.batching.kv_cache import CacheShape

_SUPPORTED_LAYER_TYPES = {"full_attention", "sliding_attention"}
# Their frequencies depend on the longest sequence in the batch, or change in the middle of a sequence.
_LENGTH_DEPENDENT_ROPES = {"dynamic", "longrope"}


def why_not_batchable(model: Any) -> str | None:
    config = model.config.get_text_config()
    if config.is_encoder_decoder:
        return "it has an encoder"
    if not getattr(model, "_supports_attention_backend", False):
        return "its attention cannot be replaced"
    layers = attention_layers(model)
    if [layer.layer_idx for layer in layers] != list(range(config.num_hidden_layers)):
        return "not every layer has an attention of its own"
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if not kinds <= _SUPPORTED_LAYER_TYPES:
        return f"it has layers of type {', '.join(sorted(kinds - _SUPPORTED_LAYER_TYPES))}"
    if getattr(config, "use_bidirectional_attention", False) or not all(layer.is_causal for layer in layers):
        return "its tokens look ahead"
    if any(hasattr(layer, "sinks") for layer in layers):
        return "its attention has sinks"
    if ropes := _rope_types(config) & _LENGTH_DEPENDENT_ROPES:
        return f"its rotary embedding is {', '.join(sorted(ropes))}"
    if any(not hasattr(layer, "head_dim") or not hasattr(layer, "num_key_value_groups") for layer in layers):
        return "its keys and values have no size in common"
    if len({_sizes(layer) for layer in layers}) > 1:
        return "its layers differ in size"
    return _why_not_on_device(model, config)


def _why_not_on_device(model: Any, config: Any) -> str | None:
    devices = {parameter.device for parameter in model.parameters()}
    if len(devices) > 1:
        return f"it is spread over {len(devices)} devices"
    [device] = devices
    if device.type not in ("cpu", "cuda"):
        return f"it is on {device.type}"
    if device.type == "cuda" and model.dtype not in (torch.bfloat16, torch.float16):
        return f"the paged kernel of CUDA does not compute in {model.dtype}"
    if device.type == "cuda" and getattr(config, "attn_logit_softcapping", None):
        return "the paged kernel of CUDA has no soft cap"
    return None


def cache_shape(model: Any) -> CacheShape:
    layers = attention_layers(model)
    num_heads, head_size = _sizes(layers[0])
    return CacheShape(len(layers), num_heads, head_size, model.dtype, model.device)


def attention_layers(model: Any) -> list[Any]:
    """Returns the self-attention modules of the text part, in order."""
    decoder = model.get_decoder()
    found = [module for module in decoder.modules() if hasattr(module, "layer_idx") and hasattr(module, "o_proj")]
    return sorted(found, key=lambda module: module.layer_idx)


def _sizes(layer: Any) -> tuple[int, int]:
    heads: int = layer.config.num_attention_heads // layer.num_key_value_groups
    return heads, int(layer.head_dim)


def _rope_types(config: Any) -> set[str]:
    parameters = getattr(config, "rope_parameters", None) or {}
    kinds = parameters.values() if all(isinstance(value, dict) for value in parameters.values()) else [parameters]
    return {str(one.get("rope_type", "default")) for one in kinds if one}
