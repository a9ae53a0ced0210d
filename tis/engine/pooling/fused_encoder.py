"""Layers of BERT and its like in four products, each with what comes behind it, and one attention of all rows.

Names of sub-modules suggest which layers are such. Each is computed by both on random rows: where the results differ,
the model keeps its own. The classes of Transformers stay as they are.
"""

from functools import partial
from typing import Any

import torch
from torch.nn.functional import gelu, layer_norm

from tis.engine.kernels.native import NativeKernels
from tis.engine.kernels.product import BlockFormat, NativeProduct, takes_products
from tis.engine.optional_stages import Misfit, Trials
from tis.engine.pooling.packed_attention import PackedRows
from tis.engine.weights.fused import is_close, random_rows

_TRIAL_LENGTHS = (4, 2, 1)  # of `random_rows`


class FusedEncoderLayer(torch.nn.Module):  # type: ignore[misc]
    """`norm(x + output(attention(x)))`, then `norm(x + down(gelu(up(x))))`, for rows that lie end to end."""

    def __init__(self, layer: Any, kernels: NativeKernels) -> None:
        super().__init__()
        attention, output = layer.attention.self, layer.attention.output
        projections = [attention.query, attention.key, attention.value]
        self._kernels = kernels
        self._num_heads = attention.num_attention_heads
        self._qkv = NativeProduct(
            torch.cat([one.weight.detach() for one in projections]),
            torch.cat([one.bias.detach() for one in projections]),
            kernels,
        )
        self._attended = _product(output.dense, kernels)
        self._up = _product(layer.intermediate.dense, kernels, gelu=True)
        self._down = _product(layer.output.dense, kernels)
        self._norms = (output.LayerNorm, layer.output.LayerNorm)
        self._scale = (self._qkv.outputs // 3 // self._num_heads) ** -0.5

    def forward(self, hidden_states: Any, *ignored: Any, packed_rows: PackedRows, **options: Any) -> Any:
        x = hidden_states[0]
        heads = self._qkv(x).view(len(x), 3, self._num_heads, -1)
        query, key, value = heads.permute(1, 2, 0, 3).unbind()
        attended = self._kernels.attend(query, key, value, packed_rows.runs, self._scale, is_bidirectional=True)
        x = _normalised(self._attended(attended.view(len(x), -1), x), self._norms[0])
        return _normalised(self._down(self._up(x), x), self._norms[1])[None]


def fuse_encoder_layers(model: Any, kernels: NativeKernels) -> int:
    """In place. The model is computed packed. Returns how many layers were replaced."""
    trials = Trials("fusing the layers of an encoder")
    replaced = 0
    with torch.inference_mode():
        for parent in [*model.modules()]:
            for name, child in [*parent.named_children()]:
                if all(hasattr(child, part) for part in ("attention", "intermediate", "output")):
                    new = trials.attempt(child, partial(_fused, child, kernels))
                    if new is not None:
                        setattr(parent, name, new)
                        replaced += 1
    trials.report()
    return replaced


def _fused(layer: Any, kernels: NativeKernels) -> FusedEncoderLayer:
    attention = layer.attention.self
    linears = [
        *(attention.query, attention.key, attention.value),
        *(layer.attention.output.dense, layer.intermediate.dense, layer.output.dense),
    ]
    dtype = attention.query.weight.dtype
    inputs = [one.in_features for one in linears]
    if any(type(one) is not torch.nn.Linear or one.bias is None or one.weight.dtype is not dtype for one in linears):
        raise Misfit("it has linear layers of another kind")
    if not takes_products(kernels, dtype) or not BlockFormat(kernels, dtype).takes(*inputs):
        raise Misfit("the kernels do not multiply its weights")
    if not kernels.takes(dtype, attention.query.out_features // attention.num_attention_heads):
        raise Misfit("the kernels do not take its heads")
    # Forms of GELU differ too little to be told apart behind a norm.
    steps = torch.linspace(-6, 6, 1001, dtype=dtype)
    if not torch.allclose(layer.intermediate.intermediate_act_fn(steps), gelu(steps), atol=1e-6):
        raise Misfit("its activation is no GELU")
    x = random_rows(inputs[0], dtype)[None]
    packed_rows = PackedRows.of(_TRIAL_LENGTHS, kernels)
    new = FusedEncoderLayer(layer, kernels)
    theirs = layer(x, None, packed_rows=packed_rows)
    if not is_close(new(x, packed_rows=packed_rows), theirs[0] if isinstance(theirs, tuple) else theirs):
        raise Misfit("the numbers are others")
    return new


def _product(linear: Any, kernels: NativeKernels, *, gelu: bool = False) -> NativeProduct:
    return NativeProduct(linear.weight.detach(), linear.bias.detach(), kernels, gelu=gelu)


def _normalised(x: Any, norm: Any) -> Any:
    return layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
