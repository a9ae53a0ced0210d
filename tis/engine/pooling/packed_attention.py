"""The attention of rows that lie end to end: every token attends to its own row alone.

It is registered with Transformers under a name that Transformers' mask functions do not know, so they build no mask.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from tis.engine.kernels.native import NativeKernels

NAME = "tis_packed"


@dataclass(frozen=True, slots=True)
class PackedRows:
    """How the rows of a step lie. `runs` is that of `NativeKernels.attend`."""

    lengths: Sequence[int]
    runs: Any
    kernels: NativeKernels | None

    @classmethod
    def of(cls, lengths: Sequence[int], kernels: NativeKernels | None) -> "PackedRows":
        runs, begin = [], 0
        for length in lengths:
            runs.append((begin, length, begin, 0))
            begin += length
        return cls(lengths, torch.tensor(runs, dtype=torch.int64), kernels)


def packed_attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    packed_rows: PackedRows | None = None,
    **ignored: Any,
) -> tuple[Any, None]:
    """Without the native kernels, rows of one length that follow each other are computed in one call."""
    if packed_rows is None or softcap is not None or query.shape[0] != 1 or query.shape[2] != key.shape[2]:
        raise TypeError("the layers do not hand on what the packed attention needs")
    is_causal = bool(getattr(module, "is_causal", False))
    num_heads, num_key_heads, size = query.shape[1], key.shape[1], query.shape[3]
    scale = size**-0.5 if scaling is None else scaling
    kernels = packed_rows.kernels
    if kernels is not None and kernels.takes(query.dtype, size, value.shape[3]):
        runs, window = packed_rows.runs, sliding_window
        parts = (query[0], key[0], value[0])
        return kernels.attend(*parts, runs, scale, window, is_bidirectional=not is_causal)[None], None
    out = query.new_empty(query.shape[2], num_heads, value.shape[3])
    begin = 0
    for length, group in groupby(packed_rows.lengths):
        end = begin + length * sum(1 for _ in group)
        # [rows, heads, tokens of a row, size]
        queries, keys, values = (
            one[0, :, begin:end].unflatten(1, (-1, length)).transpose(0, 1) for one in (query, key, value)
        )
        mask = _window(length, sliding_window, query.device, is_causal=is_causal)
        result = scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=mask,
            is_causal=is_causal and mask is None and length > 1,
            scale=scale,
            enable_gqa=num_heads != num_key_heads,
        )
        out[begin:end].unflatten(0, (-1, length)).copy_(result.transpose(1, 2))
        begin = end
    return out[None], None


def _window(length: int, window: int | None, device: Any, *, is_causal: bool) -> Any | None:
    """True where a token sees another; None where the window is wider than the row."""
    if window is None or length <= window:
        return None
    place = torch.arange(length, device=device)
    distance = place[:, None] - place
    seen = distance.abs() < window
    return seen & (distance >= 0) if is_causal else seen


AttentionInterface.register(NAME, packed_attention)
