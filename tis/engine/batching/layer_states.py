"""The states that layers keep of a sequence, however long it is: of convolutions, state spaces, linear attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class StateTensor:
    sizes: tuple[int, ...]  # of one sequence
    dtype: Any

    @property
    def num_bytes(self) -> int:
        return int(prod(self.sizes) * self.dtype.itemsize)


@dataclass(frozen=True, slots=True)
class StateShape:
    """What a layer keeps of a sequence."""

    layer: int
    convolved: StateTensor | None  # the last inputs of its convolution
    recurrent: StateTensor | None

    @property
    def num_bytes(self) -> int:
        return sum(one.num_bytes for one in (self.convolved, self.recurrent) if one)


class LayerStates:
    """The states of a layer, a slot for each sequence that runs."""

    def __init__(self, shape: StateShape, num_slots: int, device: Any) -> None:
        def slots(one: StateTensor | None) -> Any | None:
            return None if one is None else torch.empty((num_slots, *one.sizes), dtype=one.dtype, device=device)

        self.convolved = slots(shape.convolved)
        self.recurrent = slots(shape.recurrent)


@dataclass(frozen=True, slots=True)
class StateRows:
    """Rows of a step that a layer with states computes at once: a part of one sequence, or a token of several."""

    begin: int
    end: int
    slots: Sequence[int]  # of the sequences
    is_first: bool  # the sequence has no state yet


class StatesOfRows:
    """Stands where the cache of a family would, for these sequences as its batch."""

    def __init__(self, states: LayerStates, rows: StateRows) -> None:
        self._states = states
        self._slots = rows.slots
        self._has_state = not rows.is_first
        self._convolved = self._read(states.convolved)
        self._recurrent = self._read(states.recurrent)

    def get_conv_state(self, layer_idx: int, state_idx: int = 0) -> Any | None:
        return self._convolved if self._has_state else None

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> Any | None:
        return self._recurrent if self._has_state else None

    def has_previous_state(self, layer_idx: int | None = None, state_idx: int | None = None) -> bool:
        return self._has_state

    def is_recording_past(self, layer_idx: int) -> bool:
        return False

    def update_conv_state(self, conv_states: Any, layer_idx: int, state_idx: int = 0, **ignored: Any) -> Any:
        """Returns the inputs from those that are kept on, as `LinearAttentionLayer` does."""
        assert self._convolved is not None
        if self._has_state:
            # In memory a token behind the other, as layers make them.
            inputs = torch.cat([self._convolved.transpose(1, 2), conv_states.transpose(1, 2)], 1).transpose(1, 2)
        else:
            inputs = padded(conv_states, self._convolved.shape[-1])
        self._convolved.copy_(inputs[..., -self._convolved.shape[-1] :])
        return inputs

    def update_recurrent_state(self, recurrent_states: Any, layer_idx: int, state_idx: int = 0, **ignored: Any) -> Any:
        assert self._recurrent is not None
        if recurrent_states is self._recurrent:  # was changed in place
            return recurrent_states
        return self._recurrent.copy_(recurrent_states)

    def get_linear_cache(self, layer_idx: int) -> Any | None:
        return self.get_recurrent_state(layer_idx)

    def set_linear_cache(self, layer_idx: int, linear_cache: Any) -> None:
        self.update_recurrent_state(linear_cache, layer_idx)

    def write(self) -> None:
        """To be called when the layer has computed its rows."""
        if self._are_in_a_row:
            return
        slots = torch.tensor(self._slots)
        for tensor, rows in (
            (self._states.convolved, self._convolved),
            (self._states.recurrent, self._recurrent),
        ):
            if tensor is not None:
                tensor.index_copy_(0, slots.to(tensor.device), rows)

    def _read(self, tensor: Any | None) -> Any | None:
        if tensor is None:
            return None
        if self._are_in_a_row:  # then what the layer writes is in place
            return tensor[self._slots[0] : self._slots[0] + len(self._slots)]
        return tensor[list(self._slots)]

    @property
    def _are_in_a_row(self) -> bool:
        first = self._slots[0]
        return list(self._slots) == list(range(first, first + len(self._slots)))


def padded(conv_states: Any, size: int) -> Any:
    """The inputs of a convolution with zeros before them, where they are fewer than it keeps."""
    missing = size - conv_states.shape[-1]
    return torch.nn.functional.pad(conv_states, (missing, 0)) if missing > 0 else conv_states
