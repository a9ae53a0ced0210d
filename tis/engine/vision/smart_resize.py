"""The size to which an image or a video is resized: whole patches, within a budget of pixels. Pure arithmetic.

The steps and their order are those of the official `smart_resize`, because each rounding changes the number of tokens.
"""

import math
from dataclasses import replace

from tis.engine.vision.preprocessor_config import PreprocessorConfig
from tis.errors import BadRequest

LOW_DETAIL_PIXELS = 512 * 512
_MAX_ASPECT_RATIO = 200

Size = tuple[int, int]  # height, width


def fit_image(size: Size, config: PreprocessorConfig, *, low: bool) -> Size:
    """Also for a frame of a video, in families with a budget for each frame."""
    max_pixels = min(config.longest_edge, LOW_DETAIL_PIXELS) if low else config.longest_edge
    check_size(size)
    return _scale(
        size, _round(size, config.factor), (1, 1), min(config.shortest_edge, max_pixels), max_pixels, config.factor
    )


def fit_frame(size: Size, frames: int, config: PreprocessorConfig, *, low: bool) -> Size:
    """For Qwen2-VL and Qwen2.5-VL: each frame has its own budget."""
    if config.cap_pixels_per_frame:
        total = int(config.max_video_tokens * config.factor**2 * 0.9)
        share = min(config.longest_edge, total * config.temporal_patch_size // frames)
        config = replace(config, longest_edge=max(share, int(config.shortest_edge * 1.05)))
    return fit_image(size, config, low=low)


def fit_video(size: Size, frames: int, config: PreprocessorConfig, *, low: bool) -> Size:
    """For Qwen3-VL: the frames share one budget."""
    factor, max_pixels = config.factor, config.longest_edge
    if config.cap_pixels_per_frame:
        share = min(config.max_video_tokens * factor**2, max_pixels // frames)
        max_pixels = max(share, int(config.shortest_edge * 1.05)) * frames
    if low:
        max_pixels = min(max_pixels, LOW_DETAIL_PIXELS * frames)
    check_size(size)
    height, width = size
    if height < factor or width < factor:
        scale = max(factor / height, factor / width)
        height, width = int(height * scale), int(width * scale)
    # The official code, too, counts whole temporal patches here, but scales by the number of frames.
    padded_frames = round(frames / config.temporal_patch_size) * config.temporal_patch_size
    rounded = _round((height, width), factor)
    return _scale(
        (height, width), rounded, (frames, padded_frames), min(config.shortest_edge, max_pixels), max_pixels, factor
    )


def _scale(size: Size, rounded: Size, frames: tuple[int, int], min_pixels: int, max_pixels: int, factor: int) -> Size:
    (height, width), (num_frames, padded_frames) = size, frames
    pixels = padded_frames * rounded[0] * rounded[1]
    if pixels > max_pixels:
        beta = math.sqrt((num_frames * height * width) / max_pixels)
        return (
            max(factor, math.floor(height / beta / factor) * factor),
            max(factor, math.floor(width / beta / factor) * factor),
        )
    if pixels < min_pixels:
        beta = math.sqrt(min_pixels / (num_frames * height * width))
        return math.ceil(height * beta / factor) * factor, math.ceil(width * beta / factor) * factor
    return rounded


def _round(size: Size, factor: int) -> Size:
    return round(size[0] / factor) * factor, round(size[1] / factor) * factor


def check_size(size: Size) -> None:
    """Raises BadRequest. Who enlarges the shorter side of a line of pixels needs gigabytes for the longer one."""
    if min(size) < 1:
        raise BadRequest("An image has no pixels.", param="messages", code="invalid_image")
    if max(size) / min(size) > _MAX_ASPECT_RATIO:
        raise BadRequest(
            f"An image of {size[1]} x {size[0]} pixels is too elongated: the longer side may be at most "
            f"{_MAX_ASPECT_RATIO} times the shorter.",
            param="messages",
            code="invalid_image",
        )
