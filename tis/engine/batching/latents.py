"""Latent attention (MLA): the cache keeps what keys and values are made of, one head of it for all heads.

A few rows attend to the latents themselves: their queries are multiplied with the part of `kv_b_proj` that makes keys,
what they gather with the part that makes values. Many rows of one sequence make its keys and values first, which then
is less work. Each attention is tried against its own way when a model is loaded.
"""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from tis.engine.optional_stages import Misfit, Trials
from tis.engine.weights.fused import is_close

log = logging.getLogger("tis.engine")

# Only under these attentions the model hands out latents, so that `generate()` goes on as before.
_NAMES = ("tis_batch", "tis_sizes")
_SIZES = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank", "num_heads")
EXPANSION = "kv_b_proj"  # makes keys and values of latents
# For longer texts their keys and values are not made at once.
_MAX_EXPANDED_BYTES = 2**28
_NUM_TRIED = 5  # tokens
_TOLERANCE_OF_INTEGERS = 0.1  # of the largest number of a row: latents are rounded, too


@dataclass(frozen=True, slots=True)
class LatentHeads:
    """How the heads of an attention read latents [rank], which a rotated part of the key follows in the cache."""

    of_keys: Any  # [heads, size of the part of keys that is not rotated, rank]
    of_values: Any  # [heads, size of values, rank]
    expand: Any  # the attention's own: latents and rotated parts to keys and values

    @property
    def rank(self) -> int:
        return int(self.of_keys.shape[2])

    @property
    def value_size(self) -> int:
        return int(self.of_values.shape[1])

    def queries(self, query: Any) -> Any:
        """[heads, rows, size] to [heads, rows, rank + rotated]: their products with latents are those with keys."""
        plain, rotated = query.split([self.of_keys.shape[1], query.shape[2] - self.of_keys.shape[1]], -1)
        return torch.cat((plain @ self.of_keys, rotated), -1)

    def values(self, gathered: Any) -> Any:
        """[rows, heads, rank] to [rows, heads, size of values]."""
        return (gathered.transpose(0, 1) @ self.of_values.transpose(1, 2)).transpose(0, 1)

    def keys_and_values(self, latents: Any) -> tuple[Any, Any]:
        """[tokens, rank + rotated] to keys and values [heads, tokens, size]."""
        keys, values = self.expand(latents[None, None, :, : self.rank], latents[None, None, :, self.rank :])
        return keys[0], values[0]

    def expands(self, num_rows: int, num_keys: int, cached_size: int) -> bool:
        """Whether making all keys and values is less work for so many rows of a sequence."""
        num_heads, key_size, rank = self.of_keys.shape
        sizes = key_size + self.value_size
        num_expanded = num_keys * num_heads * (sizes + cached_size - rank)
        is_less = num_rows * (2 * rank - sizes) > rank * sizes
        return bool(is_less and num_expanded * self.of_keys.itemsize <= _MAX_EXPANDED_BYTES)


def compress_latents(model: Any, *, is_rounded: bool = False) -> int:
    """Returns the number of attentions that give latents to the cache from now on."""
    if model.device.type != "cpu":
        return 0
    found = [module for module in model.get_decoder().modules() if hasattr(module, "expand_kv")]
    trials, number = Trials("compressing latents"), 0
    with torch.inference_mode():
        for attention in found:
            if heads := trials.attempt(attention, partial(_tried, attention, is_rounded=is_rounded)):
                _hand_out_latents(attention, heads)
                number += 1
    trials.report()
    if number:
        log.info("the cache keeps the latents of %d attentions", number)
    return number


def _tried(attention: Any, *, is_rounded: bool) -> LatentHeads:
    if any(not isinstance(getattr(attention, name, None), int) for name in _SIZES):
        raise Misfit("its sizes have other names")
    key_size, rotated, value_size, rank, num_heads = (getattr(attention, name) for name in _SIZES)
    dtype, product = attention.kv_a_layernorm.weight.dtype, attention.kv_b_proj
    # The weights, in whatever way they are kept.
    weight = product(torch.eye(rank, dtype=dtype)).T
    if weight.shape[0] != num_heads * (key_size + value_size) or product(torch.zeros(1, rank, dtype=dtype)).any():
        raise Misfit("it makes keys and values in another way")
    by_head = weight.view(num_heads, key_size + value_size, rank)
    of_keys, of_values = (one.contiguous() for one in by_head.split([key_size, value_size], 1))
    heads = LatentHeads(of_keys, of_values, attention.expand_kv)
    generator = torch.Generator().manual_seed(1)
    latents = torch.randn(_NUM_TRIED, rank + rotated, generator=generator).to(dtype)
    query = torch.randn(num_heads, _NUM_TRIED, key_size + rotated, generator=generator).to(dtype)
    keys, values = heads.keys_and_values(latents)
    theirs = scaled_dot_product_attention(query, keys, values, is_causal=True, scale=attention.scaling)
    as_head = latents.expand(num_heads, -1, -1)
    gathered = scaled_dot_product_attention(
        heads.queries(query), as_head, as_head[..., :rank], is_causal=True, scale=attention.scaling
    )
    tolerance = _TOLERANCE_OF_INTEGERS if is_rounded else None
    if not is_close(heads.values(gathered.transpose(0, 1)).transpose(0, 1), theirs, tolerance):
        raise Misfit("it computes something else")
    return heads


def _hand_out_latents(attention: Any, heads: LatentHeads) -> None:
    values = attention.config.__dict__

    def expand_kv(latents: Any, rotated: Any) -> tuple[Any, Any]:
        if values["_attn_implementation_internal"] not in _NAMES:
            return heads.expand(latents, rotated)  # type: ignore[no-any-return]
        return torch.cat((latents, rotated), -1), latents

    attention.latent_heads = heads
    attention.num_bytes = heads.of_keys.nbytes + heads.of_values.nbytes  # beside its weights: `weight_bytes_of`
    attention.expand_kv = expand_kv
