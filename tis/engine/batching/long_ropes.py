"""Rotary embeddings whose factors depend on how long a sequence is, for rows of sequences of many lengths.

As `generate()` has it: a prompt is computed with the factors of its own length, each token of the answer with those of
the length that it makes, and keys stay as they were computed; some families compute all of them again when an answer
grows past the border.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, GenerationMixin


@dataclass(frozen=True, slots=True)
class RopeBorder:
    length: int  # up to this one, all sequences have the same factors
    grows: bool  # whether each length behind it has factors of its own
    recomputes: bool  # keys, when an answer grows past it

    def factors_of(self, length: int) -> int:
        """Returns the shortest length with the same factors."""
        if length <= self.length:
            return 1
        return length if self.grows else self.length + 1


class RotaryByLength(torch.nn.Module):  # type: ignore[misc]
    """Asks the rotary embedding of the model once for each length among the sequences of a step."""

    def __init__(self, rotary: Any, border: RopeBorder) -> None:
        super().__init__()
        self.rotary = rotary
        self.border = border
        self.lengths: list[int] | None = None  # None: whatever the model does

    def forward(self, x: Any, position_ids: Any, *more: Any, **named: Any) -> Any:
        if self.lengths is None:
            return self.rotary(x, position_ids, *more, **named)
        lengths = torch.tensor(self.lengths, device=position_ids.device)
        different = sorted(set(self.lengths))
        if len(different) == 1:
            return self._of(different[0], x, position_ids, *more, **named)
        places = [(lengths == length).nonzero()[:, 0] for length in different]
        parts = [
            self._of(length, x, position_ids[..., rows], *more, **named)
            for length, rows in zip(different, places, strict=True)
        ]
        order = torch.cat(places).argsort()
        return _apply(lambda *of_lengths: torch.cat(of_lengths, -2)[..., order, :], *parts)

    def _of(self, length: int, x: Any, position_ids: Any, *more: Any, **named: Any) -> Any:
        if self.border.grows:  # it remembers the longest one, until it sees a short one
            self.rotary(x, torch.zeros_like(position_ids[..., :1]), *more, **named)
        last = torch.full_like(position_ids[..., :1], length - 1)
        of_all = self.rotary(x, torch.cat((position_ids, last), -1) if length > 1 else position_ids, *more, **named)
        return _apply(lambda one: one[..., : position_ids.shape[-1], :], of_all)


def _apply(change: Callable[..., Any], *results: Any) -> Any:
    """Of cosines and sines, or of complex numbers."""
    return tuple(map(change, *results)) if isinstance(results[0], tuple) else change(*results)


def rope_borders(model: Any) -> set[RopeBorder]:
    """Of the text part. Empty: its rotary embeddings do not depend on lengths."""
    return {
        RopeBorder(length, rope_type == "dynamic", rope_type == "longrope" and _recomputes(model, length))
        for _, _, rotary in _rotaries(model)
        for rope_type, length in _borders_of(rotary)
    }


class LongRopes:
    """The rotary embeddings of a model that depend on lengths, which it replaces in place."""

    def __init__(self, model: Any) -> None:
        # A worker before this one may have replaced them.
        self._found = [module for module in model.get_decoder().modules() if isinstance(module, RotaryByLength)]
        if not self._found and (borders := rope_borders(model)):
            [border] = borders
            for parent, name, rotary in _rotaries(model):
                self._found.append(RotaryByLength(rotary, border))
                setattr(parent, name, self._found[-1])

    @property
    def border(self) -> RopeBorder | None:
        return self._found[0].border if self._found else None

    @contextmanager
    def with_lengths(self, lengths: Iterator[int]) -> Iterator[None]:
        """Of each token of the row: see RopeBorder.factors_of."""
        of_row = list(lengths) if self._found else None
        for rotary in self._found:
            rotary.lengths = of_row
        try:
            yield
        finally:
            for rotary in self._found:
                rotary.lengths = None


def _rotaries(model: Any) -> list[tuple[Any, str, Any]]:
    return [
        (parent, name, child)
        for parent in model.get_decoder().modules()
        for name, child in parent.named_children()
        if not isinstance(parent, RotaryByLength) and any(_borders_of(child))
    ]


def _borders_of(rotary: Any) -> Iterator[tuple[str, int]]:
    types: Any = getattr(rotary, "rope_type", None)
    config: Any = getattr(rotary, "config", None)
    of_layers = types if isinstance(types, dict) else {None: types}
    for layer_type, rope_type in of_layers.items():
        if rope_type == "dynamic":
            yield rope_type, config.max_position_embeddings
        elif rope_type == "longrope":
            parameters = config.rope_parameters if layer_type is None else config.rope_parameters[layer_type]
            yield rope_type, parameters["original_max_position_embeddings"]


class _PastOf(DynamicCache):  # type: ignore[misc]
    """As long as it says, and empty."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self._length = length

    def __len__(self) -> int:
        return 1

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._length


def _recomputes(model: Any, border: int) -> bool:
    """Asks the model what `generate()` would compute for the first token behind the border."""
    if type(model).prepare_inputs_for_generation is GenerationMixin.prepare_inputs_for_generation:
        return False
    ids = torch.zeros(1, border + 1, dtype=torch.long, device=model.device)
    inputs = model.prepare_inputs_for_generation(
        ids,
        past_key_values=_PastOf(border),
        attention_mask=torch.ones_like(ids),
        use_cache=True,
        next_sequence_length=1,
    )
    return bool(inputs["input_ids"].shape[1] > 1)
