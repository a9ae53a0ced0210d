"""Preprocesses images and videos for the Qwen family: the numbers of its official processors, without torchvision."""

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tis.engine.prompt import ChatPrompt, Medium, MediumKind, Picture, Sound, Video, media_of
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision import placeholders
from tis.engine.vision.patches import Patches, image_patches, video_patches
from tis.engine.vision.placeholders import for_chat_template
from tis.engine.vision.preprocessor_config import PreprocessorConfig, read_image_config, read_video_config
from tis.engine.vision.qwen_family import QWEN_FAMILIES
from tis.engine.vision.smart_resize import fit_frame, fit_image, fit_video
from tis.engine.vision.vision_input import PictureSample, PreprocessedMedia, VisionInput
from tis.errors import BadRequest

_DEFAULT_FPS = 24.0  # of a video without a frame rate
_VIDEO_PIXELS_PER_IMAGE_PIXELS = 4


@dataclass(frozen=True, slots=True)
class _Shape:
    """What is known about a medium before any pixel is computed."""

    kind: MediumKind
    size: tuple[int, int]  # of the resized image or frame
    grid: tuple[int, int, int]
    runs: Sequence[int]  # the lengths of its runs of placeholders
    digest: bytes
    seconds_per_grid: float | None = None


class QwenVision:
    kinds: frozenset[MediumKind] = frozenset({"image", "video"})

    def __init__(self, folder: Path, config: Any, tokenizer: HfTokenizer, max_pixels: int | None = None) -> None:
        self._family = QWEN_FAMILIES[config.model_type]
        self._images = read_image_config(folder, self._family.image_defaults).with_max_pixels(max_pixels)
        videos = read_video_config(folder, self._family.video_defaults)
        # Where all frames share one budget, a video gets the budget of several images.
        share = _VIDEO_PIXELS_PER_IMAGE_PIXELS if self._family.writes_timestamps else 1
        self._videos = videos.with_max_pixels(max_pixels and share * max_pixels)
        self._tokenizer = tokenizer
        self._start, self._end = config.vision_start_token_id, config.vision_end_token_id
        self._pad: Mapping[MediumKind, int] = {"image": config.image_token_id, "video": config.video_token_id}

    def sample(self) -> PictureSample | None:
        return None

    def encode(self, prompt: ChatPrompt) -> list[int]:
        media = media_of(prompt.messages)
        messages = [for_chat_template(message) for message in prompt.messages]
        ids = self._tokenizer.encode_chat(replace(prompt, messages=messages))
        replacements = [self._tokens(medium) for medium in media]
        try:
            return placeholders.expand(ids, replacements)
        except ValueError as error:
            raise BadRequest(
                f"The model's chat template does not support these images and videos: {error}.", param="messages"
            ) from error

    def preprocess(self, prompt_ids: Sequence[int], media: Sequence[Medium]) -> PreprocessedMedia:
        seen = [medium for medium in media if not isinstance(medium, Sound)]
        shapes = [self._shape(medium) for medium in seen]
        runs = [(self._pad[shape.kind], length) for shape in shapes for length in shape.runs]
        spans = iter(placeholders.find(prompt_ids, runs, list(self._pad.values())))
        patches: dict[bytes, Patches] = {}  # a repeated image is computed once
        vision_inputs = []
        for medium, shape in zip(seen, shapes, strict=True):
            if shape.digest not in patches:
                patches[shape.digest] = self._patches(medium, shape)
            vision_inputs.append(
                VisionInput(
                    shape.kind,
                    shape.digest,
                    shape.grid,
                    tuple(next(spans) for _ in shape.runs),
                    patches[shape.digest],
                    shape.seconds_per_grid,
                )
            )
        num_bytes = sum(one.num_bytes for one in patches.values())
        return PreprocessedMedia(vision_inputs, lambda: self._generate_kwargs(prompt_ids, vision_inputs), num_bytes)

    def _tokens(self, medium: Medium) -> tuple[int, list[int]]:
        shape = self._shape(medium)
        pad = self._pad[shape.kind]
        if not (self._family.writes_timestamps and isinstance(medium, Video)):
            return pad, [pad] * sum(shape.runs)
        tokens: list[int] = []
        for time, length in zip(_timestamps(medium, self._videos.temporal_patch_size), shape.runs, strict=True):
            timestamp = self._tokenizer.encode_text(f"<{time:.1f} seconds>")
            tokens += [*timestamp, self._start, *[pad] * length, self._end]
        return pad, tokens

    def _shape(self, medium: Medium) -> _Shape:
        if isinstance(medium, Sound):
            raise BadRequest("This model accepts no audio.", param="messages", code="unsupported_content")
        return self._image_shape(medium) if isinstance(medium, Picture) else self._video_shape(medium)

    def _image_shape(self, picture: Picture) -> _Shape:
        config = self._images
        size = fit_image(picture.pixels.shape[:2], config, low=picture.detail == "low")
        grid = (1, size[0] // config.patch_size, size[1] // config.patch_size)
        return _Shape("image", size, grid, [_num_tokens(grid, config)], _digest("image", picture.digest, grid))

    def _video_shape(self, video: Video) -> _Shape:
        config, count = self._videos, len(video.frames)
        if not count:
            raise BadRequest("A video has no frames.", param="messages", code="invalid_image")
        frames = max(count, config.temporal_patch_size)  # a single frame is repeated
        fit = fit_video if self._family.writes_timestamps else fit_frame
        size = fit(video.frames.shape[1:3], frames, config, low=video.detail == "low")
        grid_t = -(-frames // config.temporal_patch_size)
        grid = (grid_t, size[0] // config.patch_size, size[1] // config.patch_size)
        tokens = _num_tokens(grid, config)
        runs = [tokens // grid_t] * grid_t if self._family.writes_timestamps else [tokens]
        seconds = _seconds_per_grid(video, config) if self._family.positions_by_seconds else None
        return _Shape("video", size, grid, runs, _digest("video", video.digest, grid, seconds, video.times), seconds)

    def _patches(self, medium: Picture | Video, shape: _Shape) -> Patches:
        if isinstance(medium, Picture):
            return image_patches(medium.pixels, shape.size, self._images)
        return video_patches(medium.frames, shape.size, self._videos)

    def _generate_kwargs(self, prompt_ids: Sequence[int], vision_inputs: Sequence[VisionInput]) -> Mapping[str, Any]:
        if not vision_inputs:
            return {}
        prompt = np.asarray(prompt_ids)
        types = (prompt == self._pad["image"]) + 2 * (prompt == self._pad["video"])
        inputs: dict[str, Any] = {"mm_token_type_ids": torch.from_numpy(types)[None]}
        images = [vision_input for vision_input in vision_inputs if vision_input.kind == "image"]
        videos = [vision_input for vision_input in vision_inputs if vision_input.kind == "video"]
        if images:
            inputs["pixel_values"] = torch.cat([vision_input.patches[:] for vision_input in images])
            inputs["image_grid_thw"] = torch.tensor([vision_input.grid for vision_input in images])
        if videos:
            inputs["pixel_values_videos"] = torch.cat([vision_input.patches[:] for vision_input in videos])
            inputs["video_grid_thw"] = torch.tensor([vision_input.grid for vision_input in videos])
            if self._family.positions_by_seconds:
                inputs["second_per_grid_ts"] = torch.tensor([vision_input.seconds_per_grid for vision_input in videos])
        return inputs


def _num_tokens(grid: tuple[int, int, int], config: PreprocessorConfig) -> int:
    return grid[0] * grid[1] * grid[2] // config.merge_size**2


def _timestamps(video: Video, frames_per_patch: int) -> Iterator[float]:
    """Yields the time of each temporal patch: the middle between its first and its last frame."""
    times = [*video.times, *[video.times[-1]] * (-len(video.times) % frames_per_patch)]
    for first in range(0, len(times), frames_per_patch):
        yield (times[first] + times[first + frames_per_patch - 1]) / 2


def _seconds_per_grid(video: Video, config: PreprocessorConfig) -> float:
    """The official formula, for a video that ends with its last sampled frame."""
    fps = video.fps or _DEFAULT_FPS
    num_frames = round(video.times[-1] * fps) + 1
    return config.temporal_patch_size / (len(video.times) / num_frames * fps)


def _digest(
    kind: MediumKind,
    content: str,
    grid: tuple[int, int, int],
    seconds: float | None = None,
    times: Sequence[float] = (),
) -> bytes:
    """The times are part of the digest, because they say which frames of a video were sampled."""
    numbers = struct.pack(f"<3q{1 + len(times)}d", *grid, -1.0 if seconds is None else seconds, *times)
    return hashlib.sha256(b"\0".join([kind.encode(), content.encode(), numbers])).digest()
