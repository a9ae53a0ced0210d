"""Turns pixels into the patches that a vision tower of the Qwen family takes, bit for bit as torchvision does.

Pixels are cut into patches before they become floats, while the official code does it in the other order: this moves a
quarter of the bytes and gives the same numbers.
"""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate

from tis.engine.vision.preprocessor_config import PreprocessorConfig
from tis.engine.vision.smart_resize import Size


class Patches:
    """Patches kept as uint8, an eighth of the size of the floats that the vision tower takes. Slices are normalised."""

    def __init__(self, cut: torch.Tensor, config: PreprocessorConfig, repeats: int) -> None:
        self._cut = cut
        self._config = config
        self._repeats = repeats  # of each patch within its row

    @property
    def num_bytes(self) -> int:
        return int(self._cut.nbytes)

    def __len__(self) -> int:
        return len(self._cut)

    def __getitem__(self, rows: slice) -> torch.Tensor:
        normalised = _normalised(self._cut[rows], self._config)
        return normalised[:, :, None].expand(-1, -1, self._repeats, -1).flatten(1)


def image_patches(pixels: Any, size: Size, config: PreprocessorConfig) -> Patches:
    """An image is a temporal patch of its own: every row repeats it `temporal_patch_size` times."""
    cut = _cut(_resized(_frames(pixels[None]), size), config, frames_per_patch=1)
    return Patches(cut, config, config.temporal_patch_size)


def video_patches(frames: Any, size: Size, config: PreprocessorConfig) -> Patches:
    resized = _resized(_frames(frames), size)
    missing = -len(resized) % config.temporal_patch_size
    whole = torch.cat([resized, resized[-1:].expand(missing, -1, -1, -1)]) if missing else resized
    return Patches(_cut(whole, config, frames_per_patch=config.temporal_patch_size), config, 1)


def _frames(pixels: Any) -> torch.Tensor:
    """Returns frames x 3 x height x width."""
    # Torch warns about read-only arrays and rejects negative strides, which rotated images have.
    return torch.from_numpy(np.require(pixels, requirements=["C", "W"])).permute(0, 3, 1, 2)


def _resized(frames: torch.Tensor, size: Size) -> torch.Tensor:
    if frames.shape[-2:] == size:
        return frames
    # Stays uint8, as in torchvision: by way of floats the last bits would differ.
    return interpolate(frames, size=size, mode="bicubic", align_corners=False, antialias=True)


def _cut(frames: torch.Tensor, config: PreprocessorConfig, *, frames_per_patch: int) -> torch.Tensor:
    """Returns patches x 3 x pixels. Patches that are merged into one token follow each other."""
    count, channels, height, width = frames.shape
    side, merge = config.patch_size, config.merge_size
    across = (height // config.factor, merge, side, width // config.factor, merge, side)
    cut = frames.reshape(count // frames_per_patch, frames_per_patch, channels, *across).permute(
        0, 3, 6, 4, 7, 2, 1, 5, 8
    )
    return cut.reshape(-1, channels, frames_per_patch * side * side)


def _normalised(patches: torch.Tensor, config: PreprocessorConfig) -> torch.Tensor:
    mean = torch.tensor(config.image_mean) * (1.0 / config.rescale_factor)
    std = torch.tensor(config.image_std) * (1.0 / config.rescale_factor)
    return patches.to(torch.float32).sub_(mean[:, None]).div_(std[:, None])
