"""The decoder of a Whisper: the next tokens of all running windows in one forward pass."""

from collections.abc import Sequence
from typing import Any

import torch

from tis.engine.speech.linear_maps import LinearMaker
from tis.engine.speech.whisper_encoder import normed
from tis.engine.speech.window_slots import DecoderRow, StepLayout, WindowSlots

_Heads = Sequence[tuple[int, int]]  # each by its layer and its number


class WhisperDecoder:
    def __init__(self, decoder: Any, head: Any, maker: LinearMaker, alignment_heads: _Heads) -> None:
        """`decoder` and `head`: those of Transformers. `alignment_heads` look at the time of a token."""
        self._embedding = decoder.embed_tokens.weight.detach()
        self._embedding_scale = float(decoder.embed_scale)
        self._positions = decoder.embed_positions.weight.detach()
        self._norm = decoder.layer_norm
        self._layers = [_DecoderLayer(number, layer, maker) for number, layer in enumerate(decoder.layers)]
        self._head = maker.of(head, is_head=True)
        self._alignment_heads = alignment_heads

    @property
    def num_layers(self) -> int:
        return len(self._layers)

    def hear(self, layer: int, encoded: Any, slot: int, slots: WindowSlots) -> None:
        """Computes keys and values of a window, [frames, hidden], for one layer."""
        self._layers[layer].hear(encoded, slot, slots)

    def step(self, rows: Sequence[DecoderRow], slots: WindowSlots) -> Any:
        """The logits of the wanted places of all rows, one behind the other, as float32 in numpy."""
        x = self._hidden(rows, slots.layout(rows), slots)
        wanted, begin = [], 0
        for row in rows:
            wanted += [begin + place for place in row.wanted]
            begin += len(row.ids)
        x = normed(x[torch.tensor(wanted, device=x.device)], self._norm)
        return self._head(x).float().cpu().numpy()

    def alignment(self, ids: Sequence[int], slot: int, slots: WindowSlots) -> Any:
        """How much each token looks at each frame of the window: [alignment heads, tokens, frames] in numpy.

        Overwrites the tokens of the slot.
        """
        rows = [DecoderRow(slot, ids, 0, ())]
        seen: list[Any] = []
        self._hidden(rows, slots.layout(rows), slots, seen)
        return torch.cat(seen).float().cpu().numpy()

    def _hidden(
        self, rows: Sequence[DecoderRow], layout: StepLayout, slots: WindowSlots, seen: list[Any] | None = None
    ) -> Any:
        ids = torch.tensor([token_id for row in rows for token_id in row.ids], device=self._embedding.device)
        x = self._embedding[ids] * self._embedding_scale + self._positions[layout.positions]
        for layer in self._layers:
            if seen is None:
                x = layer(x, layout, slots)
                continue
            heads = [head for number, head in self._alignment_heads if number == layer.number]
            x = layer(x, layout, slots, heads, seen)
        return x


class _DecoderLayer:
    def __init__(self, number: int, layer: Any, maker: LinearMaker) -> None:
        self.number = number
        own, heard = layer.self_attn, layer.encoder_attn
        self._heads, self._scale = own.num_heads, own.scaling
        self._norms = (layer.self_attn_layer_norm, layer.encoder_attn_layer_norm, layer.final_layer_norm)
        self._qkv = maker.of(own.q_proj, own.k_proj, own.v_proj)
        self._output = maker.of(own.out_proj)
        self._query = maker.of(heard.q_proj)
        self._keys_values = maker.of(heard.k_proj, heard.v_proj)
        self._heard_output = maker.of(heard.out_proj)
        self._up, self._down = maker.of(layer.fc1, has_gelu=True), maker.of(layer.fc2)

    def hear(self, encoded: Any, slot: int, slots: WindowSlots) -> None:
        keys, values = self._keys_values(encoded).view(len(encoded), 2, self._heads, -1).unbind(1)
        slots.hear(self.number, slot, keys, values)

    def __call__(
        self,
        x: Any,
        layout: StepLayout,
        slots: WindowSlots,
        heads: Sequence[int] = (),
        seen: list[Any] | None = None,
    ) -> Any:
        """Adds to `seen` what these heads look at."""
        qkv = self._qkv(normed(x, self._norms[0])).view(len(x), 3, self._heads, -1)
        query, key, value = qkv.permute(1, 2, 0, 3).unbind()
        x = self._output(slots.attend_own(self.number, query, key, value, layout), x)
        query = self._query(normed(x, self._norms[1])).view(len(x), self._heads, -1).transpose(0, 1)
        if heads and seen is not None:
            keys = slots.heard_keys(self.number, layout.rows[0].slot)
            chosen = torch.tensor([*heads], device=x.device)
            seen.append(torch.softmax((query[chosen] * self._scale) @ keys[chosen].transpose(1, 2), -1))
        x = self._heard_output(slots.attend_heard(self.number, query, layout), x)
        return self._down(self._up(normed(x, self._norms[2])), x)
