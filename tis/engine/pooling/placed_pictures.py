"""What the decoder of a model that sees takes for rows of which some have pictures: features in their places."""

from collections.abc import Sequence
from typing import Any

import torch

from tis.engine.batching.features import PlacedFeatures, embed
from tis.engine.batching.positions import mrope_positions
from tis.engine.batching.towers import EncodeJob, QwenTower
from tis.engine.pooling.token_row import TokenRow


def places_pictures(model: Any) -> bool:
    """Whether the model is of the kind that this file knows: Qwen's."""
    return all(hasattr(model, name) for name in ("visual", "language_model", "get_image_features", "get_rope_index"))


def with_pictures(model: Any, rows: Sequence[TokenRow]) -> dict[str, Any]:
    """Rows lie end to end."""
    tower = QwenTower(model)
    placed: list[PlacedFeatures] = []
    positions: list[Any] = []
    begin = 0
    for row in rows:
        seen = row.media.inputs if row.media else ()
        if seen:
            positions.append(mrope_positions(model, list(row.ids), seen).of_prompt)
        else:
            positions.append(torch.arange(len(row)).expand(3, -1))
        for one in seen:
            [features] = tower.encode([EncodeJob(one, 0, one.grid[0])])
            offset = 0
            for start, stop in one.spans:
                placed.append(PlacedFeatures(begin + start, features.part(offset, offset + stop - start)))
                offset += stop - start
        begin += len(row)
    ids = torch.tensor([token for row in rows for token in row.ids], device=model.device)
    return {"position_ids": torch.cat(positions, 1)[:, None].to(model.device), **embed(model, ids, placed)}
