"""Replaces the decoder layers of a CPU model by one module that computes all of them in one native call.

The usual layer is taken: norm, attention, norm, MLP, each behind the last, with what `fuse_modules` has found inside.
Where the MLP is of another kind, a mixture of experts for example, it stays, and all before it is one native call.
Each layer is tried against the model's own on random numbers. One that differs stays as it is, between the others.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from tis.engine.batching.attention import NAME
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.kv_cache import CacheShape, CacheSize, PagedCache
from tis.engine.batching.text_attention import cache_shape
from tis.engine.kernels.grouped_product import GroupedProduct
from tis.engine.kernels.integer_product import Int4Product, IntegerProduct
from tis.engine.kernels.layers import DecoderLayer, LayerShape, Linear, NativeLayers, Norm, PackedLayer
from tis.engine.kernels.native import NativeKernels, Scratch
from tis.engine.kernels.product import BlockFormat, takes_products
from tis.engine.optional_stages import Misfit, Trials
from tis.engine.weights.fused import attention_named, positions_of, random_rows
from tis.engine.weights.fused_attention import FusedAttention
from tis.engine.weights.fused_modules import FusedMlp, FusedNorm
from tis.engine.weights.int4 import Int4Linear
from tis.engine.weights.int8 import Int8Linear

log = logging.getLogger("tis.engine")

# Of the largest number that a layer adds to a row, and of the row itself, which is rounded at every addition.
_TOLERANCE = {torch.float32: (1e-4, 1e-6), torch.bfloat16: (2**-6, 2**-7)}
# Rows of 4-bit weights have 8 bits: a difference in the last place may round a number to the next of 127.
_TOLERANCE_OF_4_BITS = 2**-6
_NUM_TOKENS = 7


class FusedLayers(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, layers: NativeLayers, *, is_last: bool = False) -> None:
        """`is_last`: only the rows that the batch wants are read behind it."""
        super().__init__()
        self._layers = layers
        self.is_last = is_last
        self.num_bytes = layers.num_bytes

    def forward(self, hidden_states: Any, *, position_embeddings: tuple[Any, Any], batch: Batch, **ignored: Any) -> Any:
        x = hidden_states[0].clone(memory_format=torch.contiguous_format)
        cos, sin = position_embeddings
        wanted = batch.wanted if self.is_last else None
        self._layers.compute_(x, cos[0], sin[0], batch.cache, batch.slots, batch.runs, wanted)
        return x[None]


class FusedFront(torch.nn.Module):  # type: ignore[misc]
    """A layer whose MLP stays the model's own."""

    def __init__(self, packed: PackedLayer, mlp: Any, kernels: NativeKernels, scratch: Scratch) -> None:
        super().__init__()
        self._layers = NativeLayers([packed], kernels, scratch)
        self.mlp = mlp
        self.is_last = False  # then only the rows that the batch wants are read behind it
        self.num_bytes = packed.num_bytes

    def forward(self, hidden_states: Any, *, position_embeddings: tuple[Any, Any], batch: Batch, **ignored: Any) -> Any:
        x = hidden_states[0].clone(memory_format=torch.contiguous_format)
        cos, sin = position_embeddings
        wanted = batch.wanted if self.is_last else None
        normed = self._layers.compute_(x, cos[0], sin[0], batch.cache, batch.slots, batch.runs, wanted)
        if not len(normed):
            return x[None]
        added = self.mlp(normed[None])
        added = (added[0] if isinstance(added, tuple) else added)[0]
        if wanted is None:
            x += added
        else:
            x[wanted] += added
        return x[None]


@dataclass(slots=True)
class _Call:
    """How the decoder called one of its layers."""

    hidden_states: Any
    arguments: dict[str, Any]
    result: Any = None


def fuse_layers(model: Any, kernels: NativeKernels | None) -> int:
    """Returns the number of layers that were replaced, in place. `fuse_modules` should have run before."""
    if kernels is None or model.device.type != "cpu":
        return 0
    decoder = model.get_decoder()
    layers = list(getattr(decoder, "layers", ()))
    if not layers:
        return 0
    shape = cache_shape(model)
    if not kernels.takes(model.dtype, *shape.head_sizes):
        return 0
    trials, scratch = Trials("fusing layers"), Scratch()
    with torch.inference_mode(), attention_named(model, NAME):
        calls = trials.attempt(decoder, partial(_calls_of_layers, model, shape, layers))
        found: list[Any] = []
        if calls:
            decoder.layers = torch.nn.ModuleList()
            while layers:  # the memory of a layer is free before the next needs some
                pack = partial(_packed, layers[0], calls[len(found)], kernels, scratch)
                found.append(trials.attempt(layers[0], pack) or layers[0])
                del layers[0], pack
    trials.report()
    if not calls:
        return 0
    for group in _groups(calls, found, _num_deep(model)):
        if isinstance(group, list):
            decoder.layers.append(FusedLayers(NativeLayers(group, kernels, scratch), is_last=group[-1] is found[-1]))
        else:
            decoder.layers.append(group)
    if isinstance(found[-1], FusedFront):
        found[-1].is_last = True
    number = sum(isinstance(one, PackedLayer | FusedFront) for one in found)
    log.info("fused %d of %d layers, and computes them as %d", number, len(found), len(decoder.layers))
    return number


def _calls_of_layers(model: Any, shape: CacheShape, layers: list[Any]) -> list[_Call]:
    """Computes a few tokens, and returns how each layer was called."""
    calls: list[_Call] = []

    def before(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(args) != 1 or layer is not layers[len(calls)]:
            raise Misfit("the decoder calls its layers in another way")
        calls.append(_Call(args[0], kwargs))

    def behind(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        calls[-1].result = result

    size = CacheSize.of(shape, _NUM_TOKENS + 16)
    slots = torch.arange(_NUM_TOKENS)
    cache = PagedCache(shape, size.num_blocks, size.block_size)
    batch = Batch(cache, [QueryRun(0, _NUM_TOKENS, 0, 0)], slots)
    handles = [layer.register_forward_pre_hook(before, with_kwargs=True) for layer in layers]
    handles += [layer.register_forward_hook(behind, with_kwargs=True) for layer in layers]
    try:
        with batch.computed_here():
            model.get_decoder()(
                input_ids=torch.arange(_NUM_TOKENS)[None] + 3,
                position_ids=positions_of(model, _NUM_TOKENS),
                use_cache=False,
                batch=batch,
            )
    finally:
        for handle in handles:
            handle.remove()
    if len({id(call.arguments.get("position_embeddings")) for call in calls}) > 1:
        raise Misfit("not all layers have the same rotary embedding")
    return calls


def _packed(layer: Any, call: _Call, kernels: NativeKernels, scratch: Scratch) -> PackedLayer | FusedFront:
    described, shape = _described(layer, call)
    _require_products(described, shape, kernels)
    packed = PackedLayer(described, shape, kernels)
    x = random_rows(shape.hidden, described.dtype)[None]
    if shape.inner:
        ours, theirs = FusedLayers(NativeLayers([packed], kernels, scratch)), layer(x, **call.arguments)
    else:
        mlp = layer.mlp
        stub = _Through(returns_more=isinstance(mlp(x), tuple))
        ours, theirs = FusedFront(packed, stub, kernels, scratch), _computed_with(stub, layer, x, call)
    has_4_bits = any(isinstance(product, Int4Product | GroupedProduct) for product in described.products)
    if not _is_close(ours(x, **call.arguments) - x, theirs - x, x, has_4_bits=has_4_bits):
        raise Misfit("it computes something else")
    if shape.inner:
        return packed
    ours.mlp = mlp
    return ours


class _Through(torch.nn.Module):  # type: ignore[misc]
    """Stands for an MLP whose router would choose other experts for a difference of one rounding."""

    def __init__(self, *, returns_more: bool) -> None:
        super().__init__()
        self._returns_more = returns_more

    def forward(self, x: Any) -> Any:
        return (x, None) if self._returns_more else x


def _computed_with(mlp: Any, layer: Any, x: Any, call: _Call) -> Any:
    own, layer.mlp = layer.mlp, mlp
    try:
        return layer(x, **call.arguments)
    finally:
        layer.mlp = own


def _require_products(layer: DecoderLayer, shape: LayerShape, kernels: NativeKernels) -> None:
    levels = {product.level if isinstance(product, IntegerProduct) else 0 for product in layer.products}
    if 0 not in levels:
        return
    if len(levels) > 1:
        raise Misfit("some of its weights are integers, and some are not")
    if any(isinstance(product, Linear) and product.weight.dtype is not layer.dtype for product in layer.products):
        raise Misfit("its matrices have another type than its numbers")
    if not takes_products(kernels, layer.dtype):
        raise Misfit("another kernel multiplies faster")
    if not BlockFormat(kernels, layer.dtype).takes(shape.hidden, shape.inner, shape.attended):
        raise Misfit("it has a size that the kernels do not take")


def _described(layer: Any, call: _Call) -> tuple[DecoderLayer, LayerShape]:
    attention, mlp = getattr(layer, "self_attn", None), getattr(layer, "mlp", None)
    is_usual = isinstance(mlp, FusedMlp)
    if not isinstance(attention, FusedAttention) or mlp is None or is_usual and mlp.act_fn is not None:
        raise Misfit("it has another attention or another MLP")
    if call.arguments.get("attention_mask") is not None:
        raise Misfit("it wants a mask")
    if call.arguments["batch"].cache.layers[attention.layer_idx].chunk:
        raise Misfit("its tokens see only a part of the text")
    rotary_size = call.arguments["position_embeddings"][0].shape[-1]
    hidden_states, heads, key_heads = call.hidden_states, *attention.head_counts[:2]
    if any(one.dtype is not hidden_states.dtype for one in call.arguments["position_embeddings"]):
        raise Misfit("its rotary embedding has another type than its numbers")
    described = DecoderLayer(
        number=attention.layer_idx,
        input_norm=_norm(getattr(layer, "input_layernorm", None), hidden_states),
        qkv=_product(attention.qkv_proj),
        query_norm=None if attention.q_norm is None else _norm(attention.q_norm, hidden_states, attention.head_dim),
        key_norm=None if attention.k_norm is None else _norm(attention.k_norm, hidden_states, attention.head_dim),
        output=_product(attention.o_proj),
        inner_norm=_norm(getattr(layer, "post_attention_layernorm", None), hidden_states),
        gate_up=_product(mlp.gate_up_proj) if is_usual else None,
        down=_product(mlp.down_proj) if is_usual else None,
        scale=attention.arguments.get("scaling") or attention.head_dim**-0.5,
        window=attention.arguments.get("sliding_window"),
        softcap=attention.arguments.get("softcap"),
    )
    inner = mlp.gate_up_proj.out_features // 2 if is_usual else 0
    shape = LayerShape(hidden_states.shape[-1], inner, heads, key_heads, attention.head_dim, rotary_size)
    return described, shape


def _product(linear: Any) -> Linear | IntegerProduct:
    if isinstance(linear, Int8Linear | Int4Linear) and linear.product is not None:
        return linear.product
    if type(linear) is not torch.nn.Linear:
        raise Misfit(f"{type(linear).__name__} is no plain linear layer")
    return Linear(linear.weight.detach(), None if linear.bias is None else linear.bias.detach())


def _norm(norm: Any, beside: Any, size: int | None = None) -> Norm:
    if not isinstance(norm, FusedNorm) or norm.weight.dtype is not beside.dtype or size not in (None, len(norm.weight)):
        raise Misfit("a norm is of another kind")
    return Norm(norm.weight, norm.eps)


def _is_close(ours: Any, theirs: Any, x: Any, *, has_4_bits: bool) -> bool:
    of_added, of_row = _TOLERANCE[theirs.dtype]
    of_added = max(of_added, _TOLERANCE_OF_4_BITS * has_4_bits)
    allowed = of_added * theirs.float().abs().amax(-1) + of_row * x.float().abs().amax(-1)
    return bool(((ours.float() - theirs.float()).abs().amax(-1) <= allowed).all())


def _groups(calls: list[_Call], found: list[Any], num_deep: int) -> Iterator[Any]:
    """Packed layers that follow each other with nothing between them, and the others one by one."""
    group: list[PackedLayer] = []
    for number, one in enumerate(found):
        is_next = number > num_deep and calls[number].hidden_states is calls[number - 1].result
        is_alike = isinstance(one, PackedLayer) and group and one.is_like(group[-1])
        if group and not (is_next and is_alike):
            yield group
            group = []
        if isinstance(one, PackedLayer):
            group.append(one)
        else:
            yield one
    if group:
        yield group


def _num_deep(model: Any) -> int:
    """Behind so many layers the decoder adds features of images, when there are some."""
    vision = getattr(model.config, "vision_config", None)
    return len(getattr(vision, "deepstack_visual_indexes", None) or ())
