"""Records what the official, torchvision-backed processors make of our test pictures and clips.

The server never has torchvision; this script needs it, in a throw-away environment of its own:

    python3.11 -m venv /tmp/reference
    /tmp/reference/bin/pip install torch==2.13.0 transformers==5.23.0 numpy pillow jinja2 num2words
    /tmp/reference/bin/pip install --no-deps torchvision==0.28.0
    /tmp/reference/bin/python scripts/record_vision_reference.py

The torchvision may be built for CUDA: none of its own kernels are used, so two of their schemas are declared by hand.
"""

import dataclasses
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.engine.vision.cases import (
    FAMILIES,
    LOW_DETAIL_PIXELS,
    PROMPTS,
    REFERENCE,
    Family,
    make_folder,
)
from tests.engine.vision.tiny_models import ASKED, ASKED_VIDEOS, TINY, TinyFamily, digest_of, make_processor
from tis.engine.prompt import ChatPrompt, Medium, Video, media_of

TORCHVISION = torch.library.Library("torchvision", "DEF")


def main() -> None:
    for schema in ("nms", "qnms"):
        TORCHVISION.define(f"{schema}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision
    import transformers

    rows: dict[str, Any] = {}
    recorded: dict[str, Any] = {
        "versions": {module.__name__: module.__version__ for module in (torch, torchvision, transformers)}
    }
    with tempfile.TemporaryDirectory() as scratch:
        for name, family in FAMILIES.items():
            processor = official(make_folder(Path(scratch) / name, family), family)
            recorded[name] = {case: record(processor, f"{name}/{case}", PROMPTS[case], rows) for case in PROMPTS}
    REFERENCE.mkdir(exist_ok=True)
    text = json.dumps(recorded, separators=(",", ":")).replace('},"', '},\n"')
    (REFERENCE / "official.json").write_text(text + "\n", encoding="utf-8")
    np.savez_compressed(REFERENCE / "rows.npz", **rows)
    with tempfile.TemporaryDirectory() as scratch:
        tiny = {name: record_tiny(Path(scratch) / name, family) for name, family in TINY.items()}
        videos = {name: record_tiny_videos(Path(scratch) / name) for name, family in TINY.items() if family.videos}
    (REFERENCE / "tiny.json").write_text(json.dumps(tiny) + "\n", encoding="utf-8")
    (REFERENCE / "tiny_videos.json").write_text(json.dumps(videos) + "\n", encoding="utf-8")
    print({path.name: path.stat().st_size for path in REFERENCE.iterdir()})


def record_tiny(folder: Path, family: TinyFamily) -> dict[str, Any]:
    """Of other families the tokens and shapes: without torchvision their pixels are those of the Pillow backend."""
    import transformers
    from PIL import Image

    make_processor(folder, family)
    content = [
        {"type": "image", "image": Image.fromarray(part["image"].pixels)} if part["type"] == "image" else part
        for part in ASKED.messages[0]["content"]
    ]
    made = transformers.AutoProcessor.from_pretrained(folder).apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )
    shapes = {key: list(tensor.shape) for key, tensor in made.items() if key != "input_ids"}
    return {"input_ids": made["input_ids"].tolist(), **shapes}


def record_tiny_videos(folder: Path) -> list[dict[str, Any]]:
    """The tokens, and a digest of each other input."""
    import transformers

    processor = transformers.AutoProcessor.from_pretrained(folder)
    recorded = []
    for asked in ASKED_VIDEOS:
        clips = [_sampled(medium, processor) for medium in media_of(asked.messages) if isinstance(medium, Video)]
        frames = iter([clip.frames for clip in clips])
        content = [
            {"type": "video", "video": next(frames)} if part["type"] == "video" else part
            for part in asked.messages[0]["content"]
        ]
        made = processor.apply_chat_template(
            [{"role": "user", "content": content}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"do_sample_frames": False, "video_metadata": [_metadata(clip) for clip in clips]},
        )
        digests = {key: [list(made[key].shape), digest_of(made[key])] for key in made if key != "input_ids"}
        recorded.append({"input_ids": made["input_ids"].tolist(), **digests})
    return recorded


def _sampled(clip: Video, processor: Any) -> Video:
    """GLM's `sample_frames` repeats the last of an odd number of frames."""
    if "Glm" not in type(processor).__name__ or len(clip.times) % 2 == 0:
        return clip
    frames = np.concatenate([clip.frames, clip.frames[-1:]])
    return dataclasses.replace(clip, frames=frames, times=(*clip.times, clip.times[-1]))


def _metadata(clip: Video) -> dict[str, Any]:
    indices = [round(time * clip.fps) for time in clip.times]
    num_frames = indices[-1] + 1
    return {
        "total_num_frames": num_frames,
        "fps": clip.fps,
        "duration": num_frames / clip.fps,
        "frames_indices": indices,
    }


def official(folder: Path, family: Family) -> Any:
    import transformers
    from transformers.models.qwen2_vl import image_processing_qwen2_vl, video_processing_qwen2_vl
    from transformers.models.qwen3_vl import video_processing_qwen3_vl

    # By name, as the folder has the configuration of the demo model, whatever family its processor is of.
    pictures = image_processing_qwen2_vl.Qwen2VLImageProcessor.from_pretrained(folder)
    clips_class = (
        video_processing_qwen3_vl.Qwen3VLVideoProcessor
        if family.model_type == "qwen3_vl"
        else video_processing_qwen2_vl.Qwen2VLVideoProcessor
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return getattr(transformers, family.processor)(
        pictures, tokenizer, clips_class.from_pretrained(folder), chat_template=tokenizer.chat_template
    )


def record(processor: Any, name: str, prompt: ChatPrompt, rows: dict[str, Any]) -> dict[str, Any]:
    media = [as_official_takes(medium, processor) for medium in media_of(prompt.messages)]
    clips = [medium for medium in media if isinstance(medium, Video)]
    limits: dict[str, Any] = {}
    if any(medium.detail == "low" for medium in media):
        frames = len(clips[0].frames) if clips and "3" in type(processor.video_processor).__name__ else 1
        limits["images_kwargs"] = {"size": low(processor.image_processor.size, 1)}
        limits["videos_kwargs"] = {"size": low(processor.video_processor.size, frames)}
    metadata = [
        {
            "total_num_frames": round(clip.times[-1] * clip.fps) + 1,
            "fps": clip.fps,
            "frames_indices": [round(time * clip.fps) for time in clip.times],
        }
        for clip in clips
    ]
    limits["videos_kwargs"] = {
        **limits.get("videos_kwargs", {}),
        "do_sample_frames": False,
        **({"video_metadata": [metadata]} if metadata else {}),
    }
    made = processor.apply_chat_template(
        [official_message(message, media) for message in prompt.messages],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
        sanitize_control_tokens=True,
        processor_kwargs=limits,
    )
    said: dict[str, Any] = {}
    for key, tensor in made.items():
        if key.startswith("pixel_values"):
            assert tensor.dtype == torch.float32
            rows[f"{name}/{key}"] = tensor[[0, len(tensor) // 2]].numpy()
            said[key] = {"shape": list(tensor.shape), "sha256": hashlib.sha256(tensor.numpy().tobytes()).hexdigest()}
        elif key != "attention_mask":
            said[key] = tensor.tolist()
    return said


def as_official_takes(medium: Medium, processor: Any) -> Medium:
    """Qwen3-VL refuses a single frame; we show it twice, and so does Qwen2-VL by itself."""
    if isinstance(medium, Video) and len(medium.frames) == 1 and "3" in type(processor.video_processor).__name__:
        return dataclasses.replace(medium, frames=np.repeat(medium.frames, 2, axis=0), times=medium.times * 2)
    return medium


def official_message(message: Any, media: list[Medium]) -> dict[str, Any]:
    waiting = iter(media)
    parts = []
    for part in message["content"]:
        if part["type"] == "text":
            parts.append(part)
        else:
            medium = next(waiting)
            pixels = medium.frames if isinstance(medium, Video) else medium.pixels
            # Channels first: of a picture of one to three pixels it would have to guess.
            parts.append({"type": part["type"], part["type"]: np.ascontiguousarray(np.moveaxis(pixels, -1, -3))})
    return {**message, "content": parts}


def low(size: Any, frames: int) -> dict[str, int]:
    max_pixels = min(size["longest_edge"], LOW_DETAIL_PIXELS * frames)
    return {"shortest_edge": min(size["shortest_edge"], max_pixels), "longest_edge": max_pixels}


if __name__ == "__main__":
    main()
