"""The keys and values of the running windows: those of their tokens, and those of what the encoder heard.

A slot is for one window. Memory that no window has used yet is not taken from the system.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from tis.engine.kernels.native import NativeKernels


@dataclass(frozen=True, slots=True)
class SlotShape:
    layers: int
    heads: int
    size: int  # of a head
    positions: int  # of tokens
    frames: int  # of a window behind the encoder

    def bytes_of_slot(self, dtype: Any) -> int:
        return 2 * self.layers * self.heads * self.size * (self.positions + self.frames) * int(dtype.itemsize)


@dataclass(frozen=True, slots=True)
class DecoderRow:
    """What a window adds to a step."""

    slot: int
    ids: Sequence[int]
    first_position: int
    wanted: Sequence[int]  # places in `ids` whose logits are read


@dataclass(frozen=True, slots=True)
class StepLayout:
    """Where the tokens of a step lie. The last four are for the native kernels."""

    rows: Sequence[DecoderRow]
    slots: Any  # of each token
    positions: Any
    places: Any = None
    own_runs: Any = None
    heard_runs: Any = None


class WindowSlots:
    def __init__(self, shape: SlotShape, number: int, dtype: Any, device: Any, kernels: NativeKernels | None) -> None:
        """`kernels`: on a CPU, for heads that they take."""
        self.shape, self.number = shape, number
        self._kernels = kernels
        self._scale = shape.size**-0.5

        def memory(length: int) -> list[Any]:
            size = (number, shape.heads, length, shape.size)
            return [torch.zeros(size, dtype=dtype, device=device) for _ in range(shape.layers)]

        self._own_keys, self._own_values = memory(shape.positions), memory(shape.positions)
        self._heard_keys, self._heard_values = memory(shape.frames), memory(shape.frames)
        self._device = device

    def layout(self, rows: Sequence[DecoderRow]) -> StepLayout:
        of_slots = [row.slot for row in rows for _ in row.ids]
        of_positions = [row.first_position + place for row in rows for place in range(len(row.ids))]
        slots = torch.tensor(of_slots, dtype=torch.int64, device=self._device)
        positions = torch.tensor(of_positions, dtype=torch.int64, device=self._device)
        if self._kernels is None:
            return StepLayout(rows, slots, positions)
        shape = self.shape
        own, heard = [], []
        begin = 0
        for row in rows:
            length = len(row.ids)
            own.append((begin, length, row.slot * shape.heads * shape.positions, row.first_position))
            heard.append((begin, length, row.slot * shape.heads * shape.frames, shape.frames - length))
            begin += length
        places = slots * (shape.heads * shape.positions) + positions
        return StepLayout(rows, slots, positions, places, torch.tensor(own), torch.tensor(heard))

    def hear(self, layer: int, slot: int, keys: Any, values: Any) -> None:
        """[frames, heads, size]"""
        self._heard_keys[layer][slot] = keys.transpose(0, 1)
        self._heard_values[layer][slot] = values.transpose(0, 1)

    def heard_keys(self, layer: int, slot: int) -> Any:
        """[heads, frames, size]"""
        return self._heard_keys[layer][slot]

    def attend_own(self, layer: int, query: Any, key: Any, value: Any, layout: StepLayout) -> Any:
        """Writes keys and values of the tokens; each sees those before it.

        [heads, tokens, size]; returns [tokens, all heads].
        """
        keys, values = self._own_keys[layer], self._own_values[layer]
        if self._kernels is not None:
            flat_keys, flat_values = self._flat(keys), self._flat(values)
            self._kernels.write_cache(flat_keys, flat_values, key, value, layout.places)
            out = self._kernels.attend(query, flat_keys, flat_values, layout.own_runs, self._scale)
            return out.view(len(out), -1)
        keys[layout.slots, :, layout.positions] = key.transpose(0, 1)
        values[layout.slots, :, layout.positions] = value.transpose(0, 1)
        return self._attend(query, keys, values, layout, is_own=True)

    def attend_heard(self, layer: int, query: Any, layout: StepLayout) -> Any:
        keys, values = self._heard_keys[layer], self._heard_values[layer]
        if self._kernels is not None:
            flat = self._flat(keys), self._flat(values)
            runs = layout.heard_runs
            out = self._kernels.attend(query, *flat, runs, self._scale, is_bidirectional=True)
            return out.view(len(out), -1)
        return self._attend(query, keys, values, layout, is_own=False)

    def _flat(self, memory: Any) -> Any:
        """[heads, slots, size] for the kernels: the first position of window n is slot n * heads * positions."""
        number, heads, length, size = memory.shape
        reach = (number * heads - heads + 1) * length
        return memory.as_strided((heads, reach, size), (length * size, size, 1))

    def _attend(self, query: Any, keys: Any, values: Any, layout: StepLayout, *, is_own: bool) -> Any:
        """By torch: rows of one token together, prompts one by one."""
        heads, tokens, size = query.shape
        out = query.new_empty(tokens, heads, size)
        lone, begin = [], 0
        for row in layout.rows:
            if (length := len(row.ids)) == 1:
                lone.append((begin, row))
            else:
                end = row.first_position + length if is_own else keys.shape[2]
                mask = _causal(length, end, query.device) if is_own else None
                queries = query[None, :, begin : begin + length]
                attended = _attended(
                    queries, keys[row.slot, None, :, :end], values[row.slot, None, :, :end], mask, self._scale
                )
                out[begin : begin + length] = attended[0].transpose(0, 1)
            begin += length
        if lone:
            places = torch.tensor([place for place, _ in lone], device=query.device)
            end, mask = keys.shape[2], None
            if is_own:
                lengths = torch.tensor([row.first_position + 1 for _, row in lone], device=query.device)
                end = max(row.first_position for _, row in lone) + 1
                mask = (torch.arange(end, device=query.device) < lengths[:, None])[:, None, None]
            slots = [row.slot for _, row in lone]
            of_slots = slice(slots[0], slots[0] + len(slots)) if _are_neighbours(slots) else slots
            queries = query[:, places].permute(1, 0, 2)[:, :, None]
            attended = _attended(queries, keys[of_slots, :, :end], values[of_slots, :, :end], mask, self._scale)
            out[places] = attended[:, :, 0]
        return out.view(tokens, -1)


def _attended(query: Any, keys: Any, values: Any, mask: Any | None, scale: float) -> Any:
    return scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scale)


def _causal(length: int, end: int, device: Any) -> Any:
    return torch.ones(length, end, dtype=torch.bool, device=device).tril(end - length)


def _are_neighbours(slots: Sequence[int]) -> bool:
    return list(slots) == list(range(slots[0], slots[0] + len(slots)))
