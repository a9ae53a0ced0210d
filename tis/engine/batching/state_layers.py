"""Layers that keep a state of a sequence instead of its tokens: finds them, and computes them on the rows of a batch.

A family computes such a layer with its own functions, and asks its cache for the state. In a step of the batch it
gets the states of the pool instead: once for all sequences with one token, which are a batch for it, and once for each
part of a prompt.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers import AttentionInterface, DynamicCache
from transformers.cache_utils import CacheLayerMixin, LinearAttentionCacheLayerMixin

from tis.engine.batching.batch import batch_or_none
from tis.engine.batching.layer_states import StateRows, StateShape, StatesOfRows, StateTensor, padded
from tis.engine.weights.adapted_linear import adapting_part
from tis.engine.weights.fused import attention_named

_NUM_TOKENS = 2
_NO_ATTENTION = "tis_no_attention"
_ANY = inspect.Parameter.VAR_KEYWORD


@dataclass(frozen=True, slots=True)
class LayerKinds:
    """Numbers of the layers, by what Transformers keeps of a sequence for them."""

    attentions: frozenset[int]
    states: frozenset[int]

    @classmethod
    def of(cls, model: Any) -> "LayerKinds":
        layers = list(enumerate(DynamicCache(config=model.config.get_text_config()).layers))
        return cls(
            frozenset(number for number, one in layers if isinstance(one, CacheLayerMixin)),
            frozenset(number for number, one in layers if isinstance(one, LinearAttentionCacheLayerMixin)),
        )


@dataclass(frozen=True, slots=True)
class FoundState:
    module: Any  # what asks for the state
    cache_argument: str
    shape: StateShape
    not_called: tuple[Any, ...]  # modules inside whose weights it reads itself


class StateLayer(torch.nn.Module):  # type: ignore[misc]
    """Outside of a batch it is the layer that it has inside."""

    def __init__(self, layer: Any, cache_argument: str, *, continues: bool) -> None:
        """`continues`: the layer computes several tokens behind a state correctly; else it gets them one by one."""
        super().__init__()
        self.layer = layer
        self.layer_idx = layer.layer_idx
        self.continues = continues
        self.native_forward: Callable[..., Any] | None = None  # in a batch: that of the layer, with other functions
        self._cache_argument = cache_argument
        first, *others = inspect.signature(layer.forward).parameters.values()
        # Positions and masks of the whole row mean nothing to a part of it.
        self._arguments = {one.name: None for one in others if one.default is one.empty and one.kind is not _ANY}

    def forward(self, hidden_states: Any, *args: Any, **arguments: Any) -> Any:
        batch = batch_or_none()
        if batch is None:
            return self.layer(hidden_states, *args, **arguments)
        outputs = [
            self.of_rows(
                hidden_states[:, one.begin : one.end], one, StatesOfRows(batch.cache.states[self.layer_idx], one)
            )
            for rows in batch.state_rows
            for one in self._computable(rows)
        ]
        if isinstance(outputs[0], tuple):
            return torch.cat([one[0] for one in outputs], 1), None
        return torch.cat(outputs, 1)

    def of_rows(self, hidden_states: Any, rows: StateRows, states: StatesOfRows) -> Any:
        has_several = len(rows.slots) > 1
        arguments = self._arguments | {self._cache_argument: states}
        compute = partial(self.native_forward, self.layer) if self.native_forward else self.layer
        with adapting_part(rows.begin, rows.end):
            out = compute(hidden_states.transpose(0, 1) if has_several else hidden_states, **arguments)
        states.write()
        if not has_several:
            return out
        return (out[0].transpose(0, 1), None) if isinstance(out, tuple) else out.transpose(0, 1)

    def _computable(self, rows: StateRows) -> list[StateRows]:
        if self.continues or rows.is_first or len(rows.slots) > 1:
            return [rows]
        return [StateRows(at, at + 1, rows.slots, is_first=False) for at in range(rows.begin, rows.end)]


def find_states(model: Any) -> list[FoundState]:
    """Computes two tokens, and returns what asked the cache for states, in the order of the calls."""
    if not LayerKinds.of(model).states:
        return []
    decoder, noting = model.get_decoder(), _NotingCache()
    argument = "cache_params" if "cache_params" in inspect.signature(decoder.forward).parameters else "past_key_values"
    ids = torch.arange(_NUM_TOKENS, device=model.device)[None] + 3
    with noting.calls_in(decoder), torch.inference_mode(), attention_named(model, _NO_ATTENTION):
        decoder(input_ids=ids, position_ids=ids - 3, use_cache=False, **{argument: noting})
    return [
        FoundState(
            module,
            noting.argument_of[module],
            StateShape(number, noting.convolved.get(number), noting.recurrent.get(number)),
            tuple(one for one in module.modules() if one not in noting.called),
        )
        for number, module in noting.modules.items()
    ]


def replace_state_layers(model: Any, *, continues: bool = True) -> int:
    """Returns how many layers were replaced, in place. Those that are replaced already stay."""
    if not has_states(model):
        return 0
    parents = [one for one in model.get_decoder().modules() if not isinstance(one, StateLayer)]
    found = {one.module: one for one in find_states(model)}
    replaced = 0
    for parent in parents:
        for name, child in [*parent.named_children()]:
            if child in found:
                for module in found[child].not_called:
                    module.is_called = False
                setattr(parent, name, StateLayer(child, found[child].cache_argument, continues=continues))
                replaced += 1
    return replaced


@contextmanager
def with_state_layers(model: Any, *, continues: bool = True) -> Iterator[None]:
    """Replaces them for a while."""
    replace_state_layers(model, continues=continues)
    try:
        yield
    finally:
        for parent in [*model.get_decoder().modules()]:
            for name, child in [*parent.named_children()]:
                if isinstance(child, StateLayer):
                    setattr(parent, name, child.layer)


def state_layers(model: Any) -> list[StateLayer]:
    return [one for one in model.get_decoder().modules() if isinstance(one, StateLayer)]


def has_states(model: Any) -> bool:
    return bool(LayerKinds.of(model).states)


def no_attention(module: Any, query: Any, key: Any, value: Any, *more: Any, **ignored: Any) -> tuple[Any, None]:
    """Of the right size, for probes."""
    return query.new_zeros(query.shape[0], query.shape[2], query.shape[1], value.shape[3]), None


class _NotingCache:
    """Is handed to a decoder as its cache, and notes which modules ask it for states, and of what size they are."""

    def __init__(self) -> None:
        self.modules: dict[int, Any] = {}  # by the number of the layer
        self.argument_of: dict[Any, str] = {}
        self.called: set[Any] = set()
        self.convolved: dict[int, StateTensor] = {}
        self.recurrent: dict[int, StateTensor] = {}
        self._running: list[Any] = []

    @contextmanager
    def calls_in(self, decoder: Any) -> Iterator[None]:
        def begin(module: Any, args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
            self._running.append(module)
            self.called.add(module)
            self.argument_of.update((module, name) for name, value in arguments.items() if value is self)

        handles = [module.register_forward_pre_hook(begin, with_kwargs=True) for module in decoder.modules()]
        handles += [module.register_forward_hook(lambda *_: self._end()) for module in decoder.modules()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _end(self) -> None:
        self._running.pop()

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> None:
        self._note(layer_idx, state_idx)

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> None:
        self._note(layer_idx, state_idx)

    def has_previous_state(self, layer_idx: int | None = None, state_idx: int | None = None) -> bool:
        return False

    def is_recording_past(self, layer_idx: int) -> bool:
        return False

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0

    def update(self, keys: Any, values: Any, layer_idx: int, *ignored: Any) -> tuple[Any, Any]:
        return keys, values

    def update_conv_state(
        self, conv_states: Any, layer_idx: int, state_idx: int = 0, *, conv_kernel_size: int, **ignored: Any
    ) -> Any:
        self._note(layer_idx, state_idx)
        self.convolved[layer_idx] = StateTensor((*conv_states.shape[1:-1], conv_kernel_size), conv_states.dtype)
        return padded(conv_states, conv_kernel_size)

    def update_recurrent_state(self, recurrent_states: Any, layer_idx: int, state_idx: int = 0, **ignored: Any) -> Any:
        self._note(layer_idx, state_idx)
        self.recurrent[layer_idx] = StateTensor(tuple(recurrent_states.shape[1:]), recurrent_states.dtype)
        return recurrent_states

    def get_linear_cache(self, layer_idx: int) -> None:
        self._note(layer_idx, 0)

    def set_linear_cache(self, layer_idx: int, linear_cache: Any) -> None:
        self.update_recurrent_state(linear_cache, layer_idx)

    def _note(self, layer_idx: int, state_idx: int) -> None:
        module = self._running[-1]
        if state_idx or getattr(module, "layer_idx", None) != layer_idx:
            raise ValueError("a layer keeps its states in a way of its own")
        self.modules[layer_idx] = module


AttentionInterface.register(_NO_ATTENTION, no_attention)
