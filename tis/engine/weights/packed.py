"""Packs the weights of a CPU model once into the layout of its matrix kernels, which otherwise pack at every call."""

import logging
from typing import Any

import psutil  # type: ignore[import-untyped]  # comes with accelerate
import torch

from tis.engine.weights.int8 import Quantisation, quantise

log = logging.getLogger("tis.engine")

# The packed layout hardly depends on it, but the one for 1 is slow for any other number of rows.
_EXPECTED_ROWS = 16
# From this number of rows, the plain float32 kernel is faster (by a sixth at 512), but then both copies are in memory.
_MIN_ROWS_FOR_PLAIN = 192
_SHARE_OF_FREE_MEMORY = 0.25
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05}


class PackedLinear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any, keeps_plain: bool = False) -> None:
        super().__init__()
        self.for_many_rows = linear if keeps_plain else None
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _EXPECTED_ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Any) -> Any:
        if self.for_many_rows is not None and x.numel() >= _MIN_ROWS_FOR_PLAIN * self.in_features:
            return self.for_many_rows(x)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


def pack_weights(
    model: Any, quantisation: Quantisation | None = None, share_of_free_memory: float = _SHARE_OF_FREE_MEMORY
) -> int:
    """Packs or quantises the text part of a CPU model in place. Returns the number of layers that it changed."""
    places = [*_linears_of(model.get_decoder()), *_head_of(model)]
    if reason := _why_not(model, places):
        if quantisation:
            log.warning("QUANTIZE=%s does not apply: %s", quantisation, reason)
        return 0
    if quantisation:
        for parent, name, linear in places:
            setattr(parent, name, quantise(linear, quantisation, is_head=parent is model))
        return len(places)
    if not torch.backends.mkldnn.is_available() or not _packs_correctly(places[0]):
        return 0
    keeps_plain = model.dtype is torch.float32 and _fits_twice(places, share_of_free_memory)
    for parent, name, linear in places:
        # The head computes only the last token of each request, never many rows.
        setattr(parent, name, PackedLinear(linear, keeps_plain and parent is not model))
    return len(places)


def _why_not(model: Any, places: list[tuple[Any, str, Any]]) -> str | None:
    if model.device.type != "cpu":
        return f"the model is on {model.device}, and integer weights are for a CPU"
    if model.dtype not in _TOLERANCE:
        return f"its weights are {model.dtype}"
    return None if places else "it has no plain linear layers"


def _fits_twice(places: list[tuple[Any, str, Any]], share_of_free_memory: float) -> bool:
    extra = sum(linear.weight.nbytes for *_, linear in places)
    return bool(extra <= psutil.virtual_memory().available * share_of_free_memory)


def _linears_of(decoder: Any) -> list[tuple[Any, str, Any]]:
    return [
        (parent, name, child)
        for parent in decoder.modules()
        for name, child in parent.named_children()
        # Subclasses do more than multiply.
        if type(child) is torch.nn.Linear
    ]


def _head_of(model: Any) -> list[tuple[Any, str, Any]]:
    head = getattr(model, "lm_head", None)
    return [(model, "lm_head", head)] if type(head) is torch.nn.Linear else []


def _packs_correctly(place: tuple[Any, str, Any]) -> bool:
    """Tries one layer before all are changed, because the packing operators are not a public API."""
    linear = place[2]
    x = torch.randn(3, linear.in_features, dtype=linear.weight.dtype)
    try:
        with torch.inference_mode():
            packed, plain = PackedLinear(linear)(x), linear(x)
    except (RuntimeError, AttributeError, NotImplementedError) as error:
        log.warning("the weights are not packed, because packing failed: %s", error)
        return False
    return bool(
        torch.allclose(packed, plain, atol=_TOLERANCE[linear.weight.dtype], rtol=_TOLERANCE[linear.weight.dtype])
    )
