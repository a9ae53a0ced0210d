"""Tries whether a model computes in a batch what it computes alone: two short texts, before requests rely on it."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import NoneType
from typing import Any

import torch

from tis.engine.batching.attention import NAME
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.kv_cache import CacheShape, CacheSize, PagedCache
from tis.engine.batching.state_layers import StateLayer, has_states, state_layers, with_state_layers
from tis.engine.batching.text_attention import PastOfRow, TextAttention, asks_for_past, shape_of, text_attentions
from tis.engine.kernels.native import NativeKernels
from tis.engine.weights.fused import attention_named

Step = list[tuple[int, int, int]]  # a text, the first of its tokens that is computed, and the token behind the last

_FIRST_TOKEN = 3
_LENGTH = 4  # of each text
# In two steps: an attention that leaves something else in the cache computes the first one correctly.
_STEPS: list[Step] = [[(0, 0, 3), (1, 0, 2)], [(0, 3, 4), (1, 2, 4)]]  # single tokens come first
# Of the largest number of a row. Roundings to 16 bits add up over the layers, and may send a token to another expert.
_TOLERANCES = {torch.bfloat16: 0.5, torch.float16: 0.5}
_LEFT_OUT = 1  # the row of a step whose logits are not asked for, as those of most rows of a prompt are not


class BatchTrial:
    def __init__(self, model: Any) -> None:
        """The model must still be as it was read. Logits alone are computed only if they can be compared later."""
        self.continues = True  # layers with states compute several tokens behind a state correctly
        self._tolerance = tolerance_of(model)
        self._texts = torch.arange(2 * _LENGTH, device=model.device).view(2, _LENGTH) + _FIRST_TOKEN
        self._logits = self._alone(model).logits.float() if model.dtype.itemsize >= 4 else None

    def why_not_plain(self, model: Any) -> str | None:
        """Says what is wrong with an unchanged model in a batch. Its layers are computed up to the last new kind."""
        reason = None
        for continues in (True, False) if has_states(model) else (True,):
            with with_state_layers(model, continues=continues):
                reason = self._why_not_as_alone(model)
            if reason is None:
                self.continues = continues
                break
        return reason

    def _why_not_as_alone(self, model: Any) -> str | None:
        attentions = text_attentions(model)
        cache = _new_cache(shape_of(model, attentions))
        with attention_outputs(model, attentions) as outputs:
            with suppress(Enough):
                self._alone(model)
            alone = outputs.pop()
            with torch.inference_mode(), attention_named(model, NAME):
                for step in _STEPS:
                    with suppress(Enough):
                        self._in_batch(model, cache, step, None)
        rows = [row for step in _STEPS for row in _rows(step)]
        return compare(torch.cat([one[0] for one in outputs]), alone[tuple(zip(*rows, strict=True))], self._tolerance)

    def why_not(
        self, model: Any, shape: CacheShape, kernels: NativeKernels | None = None, *, is_rounded: bool = False
    ) -> str | None:
        """Says what is wrong with the prepared model. `is_rounded`: other numbers are no fault if they are finite."""
        cache = _new_cache(shape)
        for step in _STEPS:
            with torch.inference_mode(), attention_named(model, NAME):
                ours = self._in_batch(model, cache, step, kernels).logits.float()
            rows = [row for number, row in enumerate(_rows(step)) if number != _LEFT_OUT]
            if ours.shape[:2] != (1, len(rows)):
                return "it returns other logits than those that it is asked for"
            if self._logits is None or is_rounded:
                expected = ours[0].masked_fill(ours[0] == math.inf, 0)
            else:
                expected = self._logits[tuple(zip(*rows, strict=True))]
            if reason := compare(ours[0], expected, self._tolerance):
                return reason
        return None

    def _alone(self, model: Any) -> Any:
        positions = torch.arange(_LENGTH, device=model.device).expand(2, -1)
        with torch.inference_mode():
            return model(input_ids=self._texts, position_ids=positions, use_cache=False)

    def _in_batch(self, model: Any, cache: PagedCache, step: Step, kernels: NativeKernels | None) -> Any:
        runs: list[QueryRun] = []
        for text, start, stop in step:
            begin = runs[-1].end if runs else 0
            runs.append(QueryRun(begin, stop - start, text * cache.block_size, start, state_slot=text))
        rows = _rows(step)
        texts, tokens = (torch.tensor(column, device=model.device) for column in zip(*rows, strict=True))
        wanted = torch.tensor([row for row in range(len(rows)) if row != _LEFT_OUT], device=model.device)
        batch = Batch(cache, runs, texts * cache.block_size + tokens, kernels, wanted)
        ids = self._texts[texts, tokens][None]
        inputs = {"input_ids": ids, "position_ids": tokens[None], "use_cache": False, "batch": batch}
        if asks_for_past(model):
            inputs["past_key_values"] = PastOfRow(tokens)
        with batch.computed_here():
            return model(logits_to_keep=wanted, **inputs)


def tolerance_of(model: Any) -> float:
    return _TOLERANCES.get(model.dtype, 1e-2)


class Enough(Exception):
    """The layers that are compared are computed."""


@contextmanager
def attention_outputs(model: Any, attentions: Sequence[TextAttention]) -> Iterator[list[Any]]:
    """Records what the attention behind the last new kind of layer returns, and ends the computation there.

    Layers with states, if they are replaced, are layers, too.
    """
    layers = sorted([*state_layers(model), *(one.module for one in attentions)], key=lambda one: int(one.layer_idx))
    parents = {child: parent for parent in model.get_decoder().modules() for child in parent.children()}
    kinds = [_kind(layer, parents[layer]) for layer in layers]
    last_new = max(kinds.index(kind) for kind in kinds)
    recorded = layers[min(last_new + 1, len(layers) - 1)]
    outputs: list[Any] = []

    def record(attention: Any, args: Any, output: Any) -> None:
        outputs.append((output[0] if isinstance(output, Sequence) else output).float())
        raise Enough

    handle = recorded.register_forward_hook(record)
    try:
        yield outputs
    finally:
        handle.remove()


def _kind(layer: Any, parent: Any) -> tuple[Any, ...]:
    """Equal for attentions in blocks that compute the same, with other weights."""
    own = layer.layer if isinstance(layer, StateLayer) else layer
    plain = {name: value for name, value in vars(own).items() if isinstance(value, bool | int | float | str | NoneType)}
    number = plain.pop("layer_idx")
    of_config = getattr(getattr(own, "config", None), "layer_types", None)
    return type(own), [type(part) for part in parent.modules()], plain, of_config and of_config[number]


def _new_cache(shape: CacheShape) -> PagedCache:
    return PagedCache(shape, 2, CacheSize.of(shape, 0).block_size, num_slots=2)


def _rows(step: Step) -> list[tuple[int, int]]:
    return [(text, token) for text, start, stop in step for token in range(start, stop)]


def compare(ours: Any, alone: Any, tolerance: float) -> str | None:
    # Equal infinities are no difference.
    difference = torch.where(ours == alone, 0.0, (ours - alone).abs()).amax(-1)
    size = alone.masked_fill(alone.isinf(), 0).abs().amax(-1)
    if not difference.isfinite().all():
        return "in a batch it computes numbers that are not finite"
    if (difference <= tolerance * size).all():
        return None
    return f"in a batch it computes something else: {float((difference / size).max()):.3g} of the largest number"
