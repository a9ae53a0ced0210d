"""Positions for models with M-RoPE, which count in time, height and width (Qwen-VL)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tis.engine.vision.vision_input import VisionInput


@dataclass(frozen=True, slots=True)
class MropePositions:
    of_prompt: Any  # [3, tokens]

    def between(self, start: int, stop: int) -> Any:
        """Returns [3, tokens]. Generated tokens continue where the prompt ends, as generate() counts them."""
        num_prompt = self.of_prompt.shape[1]
        if stop <= num_prompt:
            return self.of_prompt[:, start:stop]
        generated = torch.arange(max(start, num_prompt), stop) - (num_prompt - 1) + self.of_prompt[:, -1:]
        return torch.cat([self.of_prompt[:, start:], generated], 1)


def mrope_positions(model: Any, prompt_ids: Sequence[int], vision_inputs: Sequence[VisionInput]) -> MropePositions:
    """Asks the model itself, by its `get_rope_index`."""
    ids = torch.tensor([prompt_ids])
    types = torch.zeros_like(ids, dtype=torch.int)
    for vision_input in vision_inputs:
        for start, stop in vision_input.spans:
            types[0, start:stop] = 1 if vision_input.kind == "image" else 2
    seconds = [
        vision_input.seconds_per_grid for vision_input in vision_inputs if vision_input.seconds_per_grid is not None
    ]
    of_prompt, _ = model.base_model.get_rope_index(
        ids,
        types,
        image_grid_thw=_grids(vision_inputs, "image"),
        video_grid_thw=_grids(vision_inputs, "video"),
        **({"second_per_grid_ts": torch.tensor(seconds)} if seconds else {}),
    )
    return MropePositions(of_prompt[:, 0])


def has_mrope(model: Any) -> bool:
    return hasattr(model.base_model, "get_rope_index")


def _grids(vision_inputs: Sequence[VisionInput], kind: str) -> Any:
    grids = [_grid(vision_input) for vision_input in vision_inputs if vision_input.kind == kind]
    return torch.cat(grids) if grids else None


def _grid(vision_input: VisionInput) -> Any:
    if vision_input.shown:
        return vision_input.shown.inputs[f"{vision_input.kind}_grid_thw"]
    return torch.tensor([vision_input.grid])
