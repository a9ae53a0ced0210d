"""Finds the attentions of the text part: the modules that call Transformers' attention interface, and with what."""

import threading
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface

from tis.engine.batching.kv_cache import NO_TOKENS, CacheShape, LayerCache
from tis.engine.batching.state_layers import LayerKinds, find_states
from tis.engine.weights.fused import attention_named

_NAME = "tis_sizes"
_NUM_TOKENS = 2


@dataclass(frozen=True, slots=True)
class TextAttention:
    module: Any
    num_heads: int  # of queries
    cache: LayerCache
    window: int | None
    sinks: Any | None
    has_mask: bool  # that it makes itself


class PastOfRow:
    """Stands where a cache would, for attentions that ask it how many tokens came before."""

    def __init__(self, positions: Any) -> None:
        """`positions` of each token of the row; an attention adds its place in the row to the answer."""
        self._before = positions - torch.arange(positions.shape[-1], device=positions.device)

    def get_seq_length(self, layer_idx: int | None = None) -> Any:
        return self._before

    def update(self, key: Any, value: Any, layer_idx: int) -> tuple[Any, Any]:
        return key, value


def asks_for_past(model: Any) -> bool:
    """Whether its attention scales queries by how many tokens came before, which it asks the cache."""
    return any(getattr(module, "attn_temperature_tuning", False) for module in model.get_decoder().modules())


class _Found(threading.local):
    layers: list[TextAttention] | None = None


_FOUND = _Found()


def text_attentions(model: Any) -> list[TextAttention]:
    """Computes two tokens, and returns the attentions in the order in which they were called."""
    ids = torch.arange(_NUM_TOKENS, device=model.device)[None] + 3
    found: list[TextAttention] = []
    _FOUND.layers = found
    try:
        with torch.inference_mode(), attention_named(model, _NAME):
            model.get_decoder()(input_ids=ids, position_ids=ids - 3, use_cache=False)
    finally:
        _FOUND.layers = None
    return found


def cache_shape(model: Any) -> CacheShape:
    return shape_of(model, text_attentions(model))


def shape_of(model: Any, attentions: list[TextAttention]) -> CacheShape:
    if not LayerKinds.of(model).states:
        return CacheShape(tuple(one.cache for one in attentions), model.dtype, model.device)
    states = tuple(one.shape for one in find_states(model))
    by_layer = {one.module.layer_idx: one.cache for one in attentions}
    layers = tuple(by_layer.get(at, NO_TOKENS) for at in range(model.config.get_text_config().num_hidden_layers))
    return CacheShape(layers, model.dtype, model.device, states)


def _note_sizes(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **arguments: Any
) -> tuple[Any, None]:
    latents = getattr(module, "latent_heads", None)
    if _FOUND.layers is not None:
        sizes = (key.shape[1], key.shape[3], value.shape[3])
        cache = LayerCache(*sizes, chunk=_chunk_of(module), has_latents=latents is not None)
        window, sinks = arguments.get("sliding_window"), arguments.get("s_aux")
        has_mask = attention_mask is not None or arguments.get("position_bias") is not None
        _FOUND.layers.append(TextAttention(module, query.shape[1], cache, window, sinks, has_mask))
    value_size = latents.value_size if latents else value.shape[3]
    return query.new_zeros(query.shape[0], query.shape[2], query.shape[1], value_size), None


def _chunk_of(module: Any) -> int | None:
    config: Any = getattr(module, "config", None)
    kinds, number = getattr(config, "layer_types", None), getattr(module, "layer_idx", None)
    is_chunked = kinds and number is not None and kinds[number] == "chunked_attention"
    return int(config.attention_chunk_size) if is_chunked else None


AttentionInterface.register(_NAME, _note_sizes)
