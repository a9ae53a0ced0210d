"""The attention of a batch: every sequence attends to its own run of the cache, on a CPU or on CUDA.

It is registered with Transformers under a name that Transformers' mask functions do not know, so they build no mask,
and models need no change.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from tis.engine.batching.batch import Batch, QueryRun, batch_of_thread
from tis.engine.batching.kv_cache import widen_rows
from tis.engine.batching.latents import LatentHeads

NAME = "tis_batch"
Scales = tuple[Any, Any] | None  # of the keys and values of a cache of 8 bits


@dataclass(frozen=True, slots=True)
class _Rules:
    scale: float
    window: int | None
    softcap: float | None
    chunk: int | None  # tokens see only those of their own part of so many
    sinks: Any | None  # of each head: a score that takes its share of the weights and has no value


def batch_attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Any | None = None,
    batch: Batch | None = None,
    **ignored: Any,
) -> tuple[Any, None]:
    batch = batch or batch_of_thread()
    layer, cache = module.layer_idx, batch.cache
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    keys, values, chunk = cache.keys[layer], cache.values[layer], cache.layers[layer].chunk
    scales = cache.scales[layer]
    if cache.layers[layer].has_latents:
        cache.write(layer, batch.slots, key, value)
        rules = _Rules(scale, sliding_window, softcap, chunk, s_aux)
        return _attend_latents(batch, module.latent_heads, keys, scales, query, rules)[None], None
    # No kernel knows pictures whose tokens attend to each other in both directions.
    if batch.kernels is not None and not batch.looks_ahead:
        batch.kernels.write_cache(keys, values, key[0], value[0], batch.slots, scales)
        more = (batch.runs, scale, sliding_window, softcap, chunk, s_aux)
        return batch.kernels.attend(query[0], keys, values, *more, scales=scales)[None], None
    rules = _Rules(scale, sliding_window, softcap, chunk, s_aux)
    cache.write(layer, batch.slots, key, value)
    if cache.token_axis == 0 and not batch.looks_ahead:
        return _attend_on_cuda(batch, keys, values, query, rules), None
    return _attend_run_by_run(batch, keys, values, scales, query, rules), None


def _attend_latents(batch: Batch, heads: LatentHeads, keys: Any, scales: Scales, query: Any, rules: _Rules) -> Any:
    """`keys` of the cache begin with the latents, which are its values."""
    is_plain = rules.chunk is None and rules.softcap is None and rules.sinks is None
    expanded = [run for run in batch.query_runs if is_plain and heads.expands(run.length, run.num_keys, keys.shape[2])]
    out = query.new_empty(query.shape[2], query.shape[1], heads.value_size)
    for run in expanded:
        out[run.begin : run.end] = _attend_expanded(batch, run, heads, keys, scales, query, rules)
    if len(expanded) == len(batch.query_runs):
        return out
    part, rows = batch.without(expanded)
    of_latents = heads.queries(query[0, :, rows])
    if batch.kernels is not None and not batch.looks_ahead:
        more = (part.runs, rules.scale, rules.window, rules.softcap, rules.chunk, rules.sinks)
        gathered = batch.kernels.attend(of_latents, keys, keys[..., : heads.rank], *more, scales=scales)
    else:
        gathered = _attend_run_by_run(part, keys, keys[..., : heads.rank], scales, of_latents[None], rules)[0]
    out[rows] = heads.values(gathered)
    return out


def _attend_expanded(
    batch: Batch, run: QueryRun, heads: LatentHeads, keys: Any, scales: Scales, query: Any, rules: _Rules
) -> Any:
    first = run.first_key(rules.window, None)
    seen = slice(run.first_slot + first, run.first_slot + run.num_keys)
    latents = keys.movedim(batch.cache.token_axis, 1)[0, seen]
    if scales:
        latents = widen_rows(latents, scales[0][0, seen]).to(query.dtype)
    of_run = query[0, :, run.begin : run.end]
    k, v = heads.keys_and_values(latents)
    kernels = batch.kernels
    if kernels is not None and not run.pictures and kernels.takes(k.dtype, k.shape[2], v.shape[2]):
        runs = torch.tensor([(0, run.length, 0, run.num_before - first)])
        return kernels.attend(of_run, k, v, runs, rules.scale, rules.window)
    mask = batch.mask(run, rules.window, None, 1)
    return scaled_dot_product_attention(of_run[None], k[None], v[None], attn_mask=mask, scale=rules.scale)[0].transpose(
        0, 1
    )


def _attend_on_cuda(batch: Batch, keys: Any, values: Any, query: Any, rules: _Rules) -> Any:
    """Runs one kernel over the packed row and the blocks of the cache."""
    from torch.nn.attention.varlen import varlen_attn

    if rules.softcap is not None or rules.chunk is not None or rules.sinks is not None:
        raise NotImplementedError("The paged kernel of CUDA has no soft cap, no chunks and no sinks.")
    table = batch.block_table
    blocks = (batch.cache.num_blocks, batch.cache.block_size, -1, query.shape[-1])
    out = varlen_attn(
        query[0].transpose(0, 1).contiguous(),
        keys.view(blocks),
        values.view(blocks),
        table.query_starts,
        None,
        table.max_query,
        table.max_keys,
        scale=rules.scale,
        # The kernel counts the tokens to the left, without the querying token itself.
        window_size=(-1 if rules.window is None else rules.window - 1, 0),
        enable_gqa=True,
        seqused_k=table.num_keys,
        block_table=table.blocks,
    )
    return out[None]


def _attend_run_by_run(batch: Batch, keys: Any, values: Any, scales: Scales, query: Any, rules: _Rules) -> Any:
    keys, values = (one.movedim(batch.cache.token_axis, 1) for one in (keys, values))
    num_heads, size, num_key_heads = query.shape[1], query.shape[3], keys.shape[0]
    groups, value_size = num_heads // num_key_heads, values.shape[2]
    # Query heads of a group become query positions of one head: the grouped kernel of a CPU is several times slower.
    singles = query[0, :, : batch.num_single].transpose(0, 1).reshape(-1, 1, num_key_heads, groups, size)
    sinks = None if rules.sinks is None else rules.sinks.view(1, num_key_heads, groups, 1)
    out = query.new_empty(query.shape[2], num_heads, value_size)
    for number, run in enumerate(batch.query_runs):
        length, last_slot = run.length, run.first_slot + run.num_keys
        first, mask = run.first_key(rules.window, rules.chunk), None
        if length == 1:
            folded = singles[number]
        else:
            mask = batch.mask(run, rules.window, rules.chunk, groups)
            folded = query[:, :, run.begin : run.end].reshape(1, num_key_heads, groups * length, size)
        seen = slice(run.first_slot + first, last_slot)
        k, v = keys[None, :, seen], values[None, :, seen]
        if scales:
            k, v = (widen_rows(one, of[None, :, seen]) for one, of in zip((k, v), scales, strict=True))
            folded = folded.float()
        if rules.softcap is None and sinks is None:
            result = scaled_dot_product_attention(folded, k, v, attn_mask=mask, scale=rules.scale)
        else:
            result = _attend_step_by_step(folded, k, v, mask, rules, sinks)
        unfolded = result.view(num_key_heads, groups, length, value_size).permute(2, 0, 1, 3)
        out[run.begin : run.end].view(length, num_key_heads, groups, value_size).copy_(unfolded)
    return out[None]


def _attend_step_by_step(query: Any, key: Any, value: Any, mask: Any, rules: _Rules, sinks: Any) -> Any:
    if rules.softcap is None:
        scores = query @ key.transpose(-1, -2) * rules.scale
    else:
        scores = torch.tanh(query @ key.transpose(-1, -2) * (rules.scale / rules.softcap)) * rules.softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if sinks is None:
        return torch.softmax(scores, -1, dtype=torch.float32).to(value.dtype) @ value
    beside = sinks.repeat_interleave(query.shape[2] // sinks.shape[2], 2).to(scores.dtype)
    weights = torch.softmax(torch.cat((scores, beside), -1), -1, dtype=torch.float32)
    return weights[..., :-1].to(value.dtype) @ value


AttentionInterface.register(NAME, batch_attention)
