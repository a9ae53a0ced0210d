"""Features of images and videos, and how they take the places of placeholders in what a decoder gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Features:
    tokens: Any  # a row for each placeholder
    deep: Sequence[Any] = ()  # further features, one tensor for each layer that gets some (deepstack)

    @property
    def num_bytes(self) -> int:
        return sum(int(tensor.nbytes) for tensor in (self.tokens, *self.deep))

    def part(self, start: int, stop: int) -> "Features":
        return Features(self.tokens[start:stop], [layer[start:stop] for layer in self.deep])


@dataclass(frozen=True, slots=True)
class PlacedFeatures:
    at: int  # the first of its rows in the step
    features: Features


def embed(model: Any, ids: Any, placed: Sequence[PlacedFeatures]) -> dict[str, Any]:
    """Puts features at the positions of placeholders. Not by token id: a model may generate such a token itself."""
    rows = [one.at + n for one in placed for n in range(len(one.features.tokens))]
    at = torch.tensor(rows, dtype=torch.long, device=ids.device)
    # The id of a placeholder may be beyond the vocabulary.
    embeddings = model.get_input_embeddings()(ids.index_fill(0, at, 0))
    embeddings[at] = torch.cat([one.features.tokens for one in placed]).to(embeddings.dtype)
    inputs: dict[str, Any] = {"inputs_embeds": embeddings[None]}
    decoder = model.get_decoder()
    if getattr(decoder, "hidden_size_per_layer_input", 0):  # Gemma 4 embeds each token once more for each layer
        padding = decoder.config.pad_token_id or 0
        inputs["per_layer_inputs"] = decoder.get_per_layer_inputs(ids.index_fill(0, at, padding)[None])
    if placed[0].features.deep:
        inputs["visual_pos_masks"] = torch.zeros(1, len(ids), dtype=torch.bool, device=ids.device)
        inputs["visual_pos_masks"][0, at] = True
        layers = zip(*(one.features.deep for one in placed), strict=True)
        inputs["deepstack_visual_embeds"] = [torch.cat(layer) for layer in layers]
    return inputs
