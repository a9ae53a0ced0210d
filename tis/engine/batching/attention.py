"""The attention of a batch: every sequence attends to its own run of the cache, on a CPU or on CUDA.

It is registered with Transformers under a name that Transformers' mask functions do not know, so they build no mask,
and models need no change.
"""

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from tis.engine.batching.batch import Batch

NAME = "tis_batch"


def batch_attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    batch: Batch | None = None,
    **ignored: Any,
) -> tuple[Any, None]:
    if batch is None:
        raise TypeError("the layers do not hand on the arguments of the batch")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    # No kernel knows pictures whose tokens attend to each other in both directions.
    if batch.kernels is not None and not batch.looks_ahead:
        keys, values = batch.cache.keys[module.layer_idx], batch.cache.values[module.layer_idx]
        batch.kernels.write_cache(keys, values, key[0], value[0], batch.slots)
        return batch.kernels.attend(query[0], keys, values, batch.runs, scale, sliding_window, softcap)[None], None
    batch.cache.write(module.layer_idx, batch.slots, key, value)
    if batch.cache.token_axis == 0 and not batch.looks_ahead:
        return _attend_on_cuda(batch, module.layer_idx, query, scale, sliding_window, softcap), None
    return _attend_run_by_run(batch, module.layer_idx, query, scale, sliding_window, softcap), None


def _attend_on_cuda(
    batch: Batch, layer: int, query: Any, scale: float, window: int | None, softcap: float | None
) -> Any:
    """Runs one kernel over the packed row and the blocks of the cache."""
    from torch.nn.attention.varlen import varlen_attn

    if softcap is not None:
        raise NotImplementedError("The paged kernel of CUDA has no soft cap.")
    table = batch.block_table
    blocks = (batch.cache.num_blocks, batch.cache.block_size, -1, query.shape[-1])
    out = varlen_attn(
        query[0].transpose(0, 1).contiguous(),
        batch.cache.keys[layer].view(blocks),
        batch.cache.values[layer].view(blocks),
        table.query_starts,
        None,
        table.max_query,
        table.max_keys,
        scale=scale,
        # The kernel counts the tokens to the left, without the querying token itself.
        window_size=(-1 if window is None else window - 1, 0),
        enable_gqa=True,
        seqused_k=table.num_keys,
        block_table=table.blocks,
    )
    return out[None]


def _attend_run_by_run(
    batch: Batch, layer: int, query: Any, scale: float, window: int | None, softcap: float | None
) -> Any:
    keys, values = (one[layer].movedim(batch.cache.token_axis, 1) for one in (batch.cache.keys, batch.cache.values))
    num_heads, size, num_key_heads = query.shape[1], query.shape[3], keys.shape[0]
    groups = num_heads // num_key_heads
    # Query heads of a group become query positions of one head: the grouped kernel of a CPU is several times slower.
    singles = query[0, :, : batch.num_single].transpose(0, 1).reshape(-1, 1, num_key_heads, groups, size)
    out = query.new_empty(query.shape[2], num_heads, size)
    for number, run in enumerate(batch.query_runs):
        length = run.length
        last_slot = run.first_slot + run.num_keys
        if length == 1:
            num_visible = run.num_keys if window is None else min(window, run.num_keys)
            folded, mask = singles[number], None
        else:
            first, mask = batch.mask(run, window, groups)
            num_visible = run.num_keys - first
            folded = query[:, :, run.begin : run.end].reshape(1, num_key_heads, groups * length, size)
        k, v = (tensor[None, :, last_slot - num_visible : last_slot] for tensor in (keys, values))
        if softcap is None:
            result = scaled_dot_product_attention(folded, k, v, attn_mask=mask, scale=scale)
        else:
            result = _softcapped(folded, k, v, mask, scale, softcap)
        unfolded = result.view(num_key_heads, groups, length, size).permute(2, 0, 1, 3)
        out[run.begin : run.end].view(length, num_key_heads, groups, size).copy_(unfolded)
    return out[None]


def _softcapped(query: Any, key: Any, value: Any, mask: Any, scale: float, softcap: float) -> Any:
    scores = torch.tanh(query @ key.transpose(-1, -2) * (scale / softcap)) * softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, -1, dtype=torch.float32).to(value.dtype) @ value


AttentionInterface.register(NAME, batch_attention)
