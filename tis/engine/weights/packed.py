"""Packs the weights of a CPU model once into the layout of its matrix kernels, which otherwise pack at every call."""

import logging
from typing import Any

import torch

from tis.engine.weights.int8 import Int8Linear, Quantisation

log = logging.getLogger("tis.engine")

# The packed layout hardly depends on it, but the one for 1 is slow for any other number of rows.
_EXPECTED_ROWS = 16
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05}


class PackedLinear(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, linear: Any) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _EXPECTED_ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Any) -> Any:
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


def pack_weights(model: Any, quantisation: Quantisation | None = None) -> int:
    """Packs or quantises the text part of a CPU model in place. Returns the number of layers that it changed."""
    places = [*_linears_of(model.get_decoder()), *_head_of(model)]
    if reason := _why_not(model, places):
        if quantisation:
            log.warning("QUANTIZE=%s does not apply: %s", quantisation, reason)
        return 0
    if quantisation:
        for parent, name, linear in places:
            setattr(parent, name, Int8Linear(linear))
        return len(places)
    if not torch.backends.mkldnn.is_available() or not _packs_correctly(places[0]):
        return 0
    for parent, name, linear in places:
        setattr(parent, name, PackedLinear(linear))
    return len(places)


def _why_not(model: Any, places: list[tuple[Any, str, Any]]) -> str | None:
    if model.device.type != "cpu":
        return f"the model is on {model.device}, and integer weights are for a CPU"
    if model.dtype not in _TOLERANCE:
        return f"its weights are {model.dtype}"
    return None if places else "it has no plain linear layers"


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
