"""Packs the weights of a CPU model once into the layout of its matrix kernels, which otherwise pack at every call.

Those of this package where they are the fastest, else oneDNN's.
"""

import logging
from collections.abc import Callable
from typing import Any

import torch

from tis.engine.kernels.int8_spans import SpanProduct
from tis.engine.kernels.integer_product import Int8Product, WeightBits, takes_integers
from tis.engine.kernels.k_quants import KQuantProduct
from tis.engine.kernels.native import NativeKernels
from tis.engine.kernels.product import BlockFormat, NativeProduct, takes_products
from tis.engine.optional_stages import Trials
from tis.engine.weights.block_tensor import BlockStack, BlockTensor
from tis.engine.weights.fused_experts import fuse_experts
from tis.engine.weights.int4 import Int4Linear, Int8Embedding
from tis.engine.weights.int8 import Int8Linear, without_numbers

log = logging.getLogger("tis.engine")

# The packed layout hardly depends on it, but the one for 1 is slow for any other number of rows.
_EXPECTED_ROWS = 16
# A linear layer with so many times fewer outputs than inputs is taken for a router of experts.
_MIN_INPUTS_PER_OUTPUT_OF_ROUTERS = 16
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05}


class PackedLinear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _EXPECTED_ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach()
        self.num_bytes = int(linear.weight.nbytes)
        self.weight = without_numbers(linear.weight)

    def forward(self, x: Any) -> Any:
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


class NativeLinear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any, kernels: NativeKernels) -> None:
        super().__init__()
        bias = None if linear.bias is None else linear.bias.detach()
        self._product = NativeProduct(linear.weight.detach(), bias, kernels)
        self.num_bytes = self._product.num_bytes
        self.weight = without_numbers(linear.weight)

    def forward(self, x: Any) -> Any:
        return self._product(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], -1)


def pack_weights(model: Any, kernels: NativeKernels | None = None) -> int:
    """Packs the text part of a CPU model in place. Returns the number of layers that it changed."""
    places = _linears_of(model)
    if kernels is not None and places and not _why_not(model, places) and _is_native(places, kernels):
        return _replace(places, lambda linear: NativeLinear(linear, kernels)) + fuse_experts(model, kernels)
    if (
        model.dtype not in _TOLERANCE
        or _why_not(model, places)
        or not torch.backends.mkldnn.is_available()
        or not _packs_correctly(places[0])
    ):
        return 0
    return _replace(places, PackedLinear)


def pack_blocks(model: Any, kernels: NativeKernels) -> int:
    """Packs what a file has in blocks: 4-bit numbers in 4 bits, those of 5 to 8 bits as `product_of` keeps them in 8.

    So are merged matrices of several kinds. FP8 is left for `pack_weights`.
    """
    places = [
        place
        for place in _linears_of(model)
        if (weight := block_weight_of(place[2])) is not None and not weight.has_floats
    ]
    has_experts = any(isinstance(one, BlockStack) and not one.has_floats for one in model.parameters())
    if not (places or has_experts) or _why_not(model, places or _linears_of(model)):
        return 0
    number = _pack_integers(
        model,
        places,
        kernels,
        has_4_bits=lambda linear: linear.weight.has_four_bits,
        with_embedding=block_weight_of(model.get_input_embeddings()) is not None,
    )
    return number + fuse_experts(model, kernels)


def quantise_weights(model: Any, kernels: NativeKernels | None, bits: WeightBits = 8) -> int:
    """Rounds the text part of a CPU model, as `pack_weights`. Its weights may still have a type of 16 bits."""
    places = _linears_of(model)
    if reason := _why_not(model, places):
        log.warning("QUANTIZE=int%d does not apply: %s", bits, reason)
        return 0
    if bits == 8:
        return _replace(places, lambda linear: Int8Linear(linear, kernels)) + fuse_experts(model, kernels, bits=8)
    if kernels is None or not takes_integers(kernels, 4, *(linear.in_features for *_, linear in places)):
        log.warning("QUANTIZE=int4 needs the native kernels: the weights have 8 bits")
        return quantise_weights(model, kernels)
    return _pack_integers(model, places, kernels) + fuse_experts(model, kernels, bits=4)


def _pack_integers(
    model: Any,
    places: list[tuple[Any, str, Any]],
    kernels: NativeKernels,
    *,
    has_4_bits: Callable[[Any], bool] = lambda linear: True,
    with_embedding: bool = True,
) -> int:
    """The head has 6 bits, or 8 where a file has less than 16 for it. The embedding has 8, if it is not the head.

    So have routers, where an error chooses other experts.
    """
    head, embedding = getattr(model, "lm_head", None), model.get_input_embeddings()
    is_tied = head is not None and getattr(head, "weight", None) is getattr(embedding, "weight", None)
    head = id(head)  # it is not kept until all are rounded

    def rounded(linear: Any) -> Any:
        is_plain_head = id(linear) == head and not isinstance(linear.weight, BlockTensor)
        if is_plain_head and takes_integers(kernels, 8, linear.in_features):
            return Int4Linear(linear, kernels, has_6_bits=True)
        is_router = linear.out_features * _MIN_INPUTS_PER_OUTPUT_OF_ROUTERS <= linear.in_features
        may_have_4 = not (id(linear) == head or is_router) or getattr(linear.weight, "keeps_scales", False)
        has_8 = not may_have_4 or not has_4_bits(linear)
        return (Int8Linear if has_8 else Int4Linear)(linear, kernels)

    number = _replace(places, rounded)
    if with_embedding and type(embedding) is torch.nn.Embedding and embedding.max_norm is None:
        new_head = getattr(model, "lm_head", None)
        product = getattr(new_head, "product", None)
        product = product if is_tied and isinstance(product, Int8Product | SpanProduct | KQuantProduct) else None
        model.set_input_embeddings(Int8Embedding(embedding, product))
    return number


def block_weight_of(module: Any) -> BlockTensor | None:
    """Of a linear layer whose weights are still those of the file."""
    weight = getattr(module, "weight", None)
    return weight if isinstance(weight, BlockTensor) else None


def unfold_blocks(model: Any) -> int:
    """Makes plain weights of what is left in blocks, one by one. Returns how many they were."""
    found = [
        (module, name, parameter)
        for module in model.modules()
        for name, parameter in module._parameters.items()
        if isinstance(parameter, BlockTensor | BlockStack)
    ]
    made: dict[int, Any] = {}  # tied weights stay one
    for module, name, parameter in found:
        if id(parameter) not in made:
            made[id(parameter)] = torch.nn.Parameter(parameter.numbers(), requires_grad=False)
        module._parameters[name] = made[id(parameter)]
    if made:
        dtype = str(next(iter(made.values())).dtype).removeprefix("torch.")
        log.info("%d packed matrices have become plain weights of %s", len(made), dtype)
    return len(made)


def weight_bytes_of(model: Any) -> int:
    """Also of packed and quantised layers, whose weights are no parameters: those modules have `num_bytes`."""
    return int(model.get_memory_footprint()) + sum(getattr(module, "num_bytes", 0) for module in model.modules())


def _replace(places: list[tuple[Any, str, Any]], new: Callable[[Any], Any]) -> int:
    """One by one: the memory of a layer is free before the next needs some."""
    count = len(places)
    while places:
        parent, name, linear = places.pop()
        setattr(parent, name, new(linear))
    return count


def _why_not(model: Any, places: list[tuple[Any, str, Any]]) -> str | None:
    if model.device.type != "cpu":
        return f"the model is on {model.device}, and integer weights are for a CPU"
    if model.dtype not in (*_TOLERANCE, torch.float16):
        return f"its weights are {model.dtype}"
    return None if places else "it has no plain linear layers"


def _linears_of(model: Any) -> list[tuple[Any, str, Any]]:
    """Those of the text part, with parent and name. Subclasses are left out: they do more than multiply.

    So are those that are marked as never called: a layer reads their weights itself.
    """
    layers = [(parent, *found) for parent in model.get_decoder().modules() for found in parent.named_children()]
    head = (model, "lm_head", getattr(model, "lm_head", None))
    return [
        place for place in (*layers, head) if type(place[2]) is torch.nn.Linear and getattr(place[2], "is_called", True)
    ]


def _is_native(places: list[tuple[Any, str, Any]], kernels: NativeKernels) -> bool:
    dtype = places[0][2].weight.dtype
    return takes_products(kernels, dtype) and BlockFormat(kernels, dtype).takes(
        *(one.in_features for *_, one in places)
    )


def _packs_correctly(place: tuple[Any, str, Any]) -> bool:
    """Tries one layer before all are changed, because the packing operators are not a public API."""
    linear = place[2]

    def is_close() -> bool:
        x = torch.randn(3, linear.in_features, dtype=linear.weight.dtype)
        with torch.inference_mode():
            packed, plain = PackedLinear(linear)(x), linear(x)
        return bool(torch.allclose(packed, plain, atol=_TOLERANCE[x.dtype], rtol=_TOLERANCE[x.dtype]))

    trials = Trials("packing the weights")
    packs = trials.attempt(linear, is_close)
    trials.report()
    return packs is True
