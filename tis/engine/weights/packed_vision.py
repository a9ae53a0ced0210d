"""Packs the linear layers of a vision tower, like those of the text part, where that changes no bit of its features."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch

from tis.engine.optional_stages import Trials
from tis.engine.weights.packed import PackedLinear

_PROBED_ROWS = 64  # an image has at least as many patches in practice


def pack_vision_tower(model: Any, stacks: Iterable[Any] = ()) -> int:
    """Returns the number of layers that it packed in place. In float32 packing changes the last bits: none are.

    `stacks` are the layers outside of the text part, where the tower is not Qwen's.
    """
    tower = getattr(model.base_model, "visual", None)
    if model.device.type != "cpu" or model.dtype is not torch.bfloat16:
        return 0
    if not torch.backends.mkldnn.is_available():
        return 0
    places = [
        (parent, name, child)
        for part in (stacks if tower is None else [tower])
        for parent in part.modules()
        for name, child in parent.named_children()
        if type(child) is torch.nn.Linear  # subclasses do more than multiply
    ]
    trials = Trials("packing the vision tower")
    is_exact = all(trials.attempt(one, partial(_packs_exactly, one)) for one in _one_of_each_shape(places))
    trials.report()
    if not is_exact:
        return 0
    for parent, name, linear in places:
        setattr(parent, name, PackedLinear(linear))
    return len(places)


def _one_of_each_shape(places: list[tuple[Any, str, Any]]) -> list[Any]:
    return list({tuple(linear.weight.shape): linear for *_, linear in places}.values())


def _packs_exactly(linear: Any) -> bool:
    """Tried before anything is changed, because the packing operators are not a public API."""
    x = torch.randn(_PROBED_ROWS, linear.in_features).to(linear.weight.dtype)
    with torch.inference_mode():
        return bool(torch.equal(PackedLinear(linear)(x), linear(x)))
