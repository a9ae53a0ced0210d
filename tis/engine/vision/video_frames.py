"""Official video processors without torchvision: their own arithmetic, with torch's resizing below it.

Transformers' classes need torchvision for four operations. `_TorchOnly` has these in torch, with the same numbers, and
stands between an official class and its base.
"""

import importlib
import logging
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate, pad

from tis.engine.prompt import Video

_log = logging.getLogger("tis.engine")

_DEFAULT_FPS = 24.0  # of a video without a frame rate: that of the official processors
_BILINEAR, _BICUBIC, _LANCZOS = 2, 3, 1  # of Pillow
_MODES = {_BILINEAR: "bilinear", _BICUBIC: "bicubic", _LANCZOS: "lanczos"}
# Modules that import torchvision at their beginning, and what computes the same: only frames are chosen in another way.
_SAME_ARITHMETIC = {
    "transformers.models.internvl": "transformers.models.llava_onevision",
    "transformers.models.glm46v": "transformers.models.glm4v",
}


def load_video_processor(folder: Path, processor_class: Any) -> Any | None:
    """Returns the video processor that belongs to an official processor. None: there is none without torchvision."""
    if "video_processor" not in processor_class.get_attributes():
        return None
    package = processor_class.__module__.rpartition(".")[0]
    package = _SAME_ARITHMETIC.get(package, package)
    try:
        module = importlib.import_module(f"{package}.video_processing_{package.rpartition('.')[2]}")
        official = getattr(module, module.__all__[0])
        # Whether frames are sampled is the server's decision: it has done so while it decoded the video.
        settings = {**official.get_video_processor_dict(folder)[0], "do_sample_frames": False}
        return _without_torchvision(official).from_dict(settings)
    except Exception:  # modules and folders may raise anything; the model can still be shown pictures
        _log.debug("there is no video processor without torchvision", exc_info=True)
        return None


def official_frames(video: Video, processor: Any) -> Any:
    """Frames x 3 x height x width. A processor never mistakes the axis of the colours when it is the second."""
    missing = _num_missing(len(video.frames), processor)
    frames = np.concatenate([video.frames, *[video.frames[-1:]] * missing]) if missing else video.frames
    return np.array(frames.transpose(0, 3, 1, 2))


def metadata_of(video: Video, processor: Any) -> Mapping[str, Any]:
    """What the library's own decoders say, for a video that ends with its last sampled frame."""
    fps = video.fps or _DEFAULT_FPS
    indices = [round(time * fps) for time in video.times]
    num_frames = indices[-1] + 1
    indices += indices[-1:] * _num_missing(len(indices), processor)
    height, width = video.frames.shape[1:3]
    return {
        "total_num_frames": num_frames,
        "fps": fps,
        "duration": num_frames / fps,
        "frames_indices": indices,
        "height": height,
        "width": width,
    }


def _num_missing(num_frames: int, processor: Any) -> int:
    """Official sampling repeats the last frame, so that patches of several frames are full."""
    return -num_frames % (getattr(processor, "temporal_patch_size", None) or 1)


@cache
def _without_torchvision(official: Any) -> Any:
    from transformers.image_transforms import get_resize_output_image_size, get_size_with_aspect_ratio
    from transformers.image_utils import ChannelDimension
    from transformers.video_processing_utils import BaseVideoProcessor

    class _TorchOnly(BaseVideoProcessor):  # type: ignore[misc]
        def convert_to_rgb(self, video: Any) -> Any:
            return video  # ours are

        def resize(self, image: Any, size: Any, resample: Any = None, antialias: bool = True, **_: Any) -> Any:
            if size.shortest_edge and size.longest_edge:
                new_size = get_size_with_aspect_ratio(image.shape[-2:], size.shortest_edge, size.longest_edge)
            elif size.shortest_edge:
                new_size = get_resize_output_image_size(
                    image, size.shortest_edge, default_to_square=False, input_data_format=ChannelDimension.FIRST
                )
            elif size.height and size.width:
                new_size = (size.height, size.width)
            else:
                raise ValueError(f"the size {size} of videos is not supported")
            return _resized(image, tuple(new_size), _MODES[_BILINEAR if resample is None else int(resample)])

        def normalize(self, image: Any, mean: Any, std: Any, inplace: bool = False, **_: Any) -> Any:
            mean, std = (torch.as_tensor(one, dtype=image.dtype)[:, None, None] for one in (mean, std))
            return image.sub_(mean).div_(std) if inplace else image.sub(mean).div_(std)

        def center_crop(self, image: Any, size: Any, **_: Any) -> Any:
            down, across = (
                wanted - have for wanted, have in zip((size.height, size.width), image.shape[-2:], strict=True)
            )
            if down > 0 or across > 0:
                down, across = max(down, 0), max(across, 0)
                image = pad(image, (across // 2, (across + 1) // 2, down // 2, (down + 1) // 2))
            top, left = (
                int((have - wanted) / 2.0)
                for wanted, have in zip((size.height, size.width), image.shape[-2:], strict=True)
            )
            return image[..., top : top + size.height, left : left + size.width]

    return type(f"{official.__name__}OfTorch", (official, _TorchOnly), {})


def _resized(frames: torch.Tensor, size: tuple[int, int], mode: str) -> torch.Tensor:
    if frames.shape[-2:] == size:
        return frames
    flat = frames.reshape(-1, *frames.shape[-3:])
    # Stays uint8, as in torchvision: by way of floats the last bits would differ.
    resized = interpolate(
        flat, size=size, mode=mode, align_corners=None if mode == "lanczos" else False, antialias=True
    )
    return resized.reshape(*frames.shape[:-2], *size)
