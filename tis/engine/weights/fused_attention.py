"""Self-attention with queries, keys and values in one product, and rotary embeddings in place.

Whether a module computes this, and what else it hands to its attention function, is found by calling it: the name
`PROBE` is registered with Transformers as an attention function that records its arguments.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from tis.engine.kernels.native import NativeKernels
from tis.engine.optional_stages import Misfit
from tis.engine.weights.fused_modules import merged_linear, plain_linears

PROBE = "tis_probe"


class FusedAttention(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, attention: Any, arguments: dict[str, Any], kernels: NativeKernels | None) -> None:
        """`arguments` are those that the module adds to the call of its attention function."""
        super().__init__()
        self.config = attention.config
        self.layer_idx = attention.layer_idx
        self.head_dim = attention.head_dim
        self.num_key_value_groups = attention.num_key_value_groups
        self.is_causal = attention.is_causal
        self.qkv_proj = merged_linear(projections_of(attention))
        self.o_proj = attention.o_proj
        self.q_norm, self.k_norm = getattr(attention, "q_norm", None), getattr(attention, "k_norm", None)
        num_heads = self.qkv_proj.out_features // self.head_dim
        num_key_heads = num_heads // (self.num_key_value_groups + 2)
        self.head_counts = (num_heads - 2 * num_key_heads, num_key_heads, num_key_heads)
        if self.head_counts[0] * self.head_dim != getattr(self.o_proj, "in_features", None):
            raise Misfit("not all that it makes are queries, keys and values")
        self.arguments = arguments
        # Reading an attribute of a config takes longer than a native kernel.
        self._config_values = vars(attention.config)
        self._kernels = kernels

    def forward(
        self,
        hidden_states: Any,
        position_embeddings: Any,
        attention_mask: Any = None,
        past_key_values: Any = None,
        **kwargs: Any,
    ) -> tuple[Any, Any]:
        shape = hidden_states.shape[:-1]
        heads = self.qkv_proj(hidden_states).view(*shape, -1, self.head_dim)
        query, key, value = heads.split_with_sizes(self.head_counts, 2)
        if self.q_norm is None or self.k_norm is None:
            num_rotated = self.head_counts[0] + self.head_counts[1]
            rotated = self._rotate(heads[:, :, :num_rotated], *position_embeddings)
            query, key = rotated[:, :, : self.head_counts[0]], rotated[:, :, self.head_counts[0] :]
        else:
            query = self._rotate(self.q_norm(query), *position_embeddings)
            key = self._rotate(self.k_norm(key), *position_embeddings)
        query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        interface = ALL_ATTENTION_FUNCTIONS[self._config_values["_attn_implementation_internal"]]
        out, weights = interface(self, query, key, value, attention_mask, **self.arguments, **kwargs)
        return self.o_proj(out.reshape(*shape, -1)), weights

    def _rotate(self, x: Any, cos: Any, sin: Any) -> Any:
        """`x` is [batch, tokens, heads, size]; `cos` and `sin` are [batch, tokens, size or less]. May change `x`."""
        width = cos.shape[-1]
        if self._kernels is not None and len(x) == 1:
            part = x[0] if width == self.head_dim else x[0, ..., :width]
            self._kernels.rotary_(part.transpose(0, 1), cos[0], sin[0])
            return x
        part = x[..., :width]
        first, second = part.chunk(2, -1)
        turned = torch.cat((-second, first), -1)
        part = part * cos[:, :, None] + turned * sin[:, :, None]
        return part if width == x.shape[-1] else torch.cat((part, x[..., width:]), -1)


def projections_of(attention: Any) -> list[Any]:
    """Returns the plain linear layers that make queries, keys and values, or nothing."""
    return plain_linears(attention, "q_proj", "k_proj", "v_proj") or plain_linears(attention, "qkv_proj")


@dataclass(slots=True)
class AttentionCalls:
    """What attention functions were called with: queries, keys and values, then their other arguments."""

    tensors: list[tuple[Any, Any, Any]] = field(default_factory=list)
    arguments: list[dict[str, Any]] = field(default_factory=list)


def record_attention(
    module: Any, query: Any, key: Any, value: Any, mask: Any, *, probe: AttentionCalls | None = None, **arguments: Any
) -> tuple[Any, None]:
    if probe is None:
        raise Misfit("its layers do not hand on their arguments")
    probe.tensors.append((query, key, value))
    probe.arguments.append(arguments)
    return query.transpose(1, 2).contiguous(), None


AttentionInterface.register(PROBE, record_attention)
