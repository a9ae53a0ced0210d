"""Folders of tiny vision models of several families, with random weights."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.engine.vision.cases import DEMO, picture, prompt, video

ASKED = prompt("Bandingkan ", picture(40, 60), " dengan ", picture(90, 20), ".")
ASKED_VIDEOS = (
    prompt("Lihat ", video(90, 120, [0, 12, 24], 24.0), " Apa ini?"),
    prompt(video(48, 40, [0, 15, 30, 45], 30.0), " dan ", video(30, 64, [0, 20, 40, 60], 29.97), "?"),
    prompt(video(61, 130, [0, 30, 61, 92, 2000], 25.0)),
)


def digest_of(tensor: Any) -> str:
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()[:16]


TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}\
{% if part.type == 'image' %}IMAGE{% elif part.type == 'video' %}VIDEO{% else %}{{ part.text }}{% endif %}\
{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
_LISTS_ONLY = "{% if message.content is string %}{{ message.content }}{% else %}", "{% if true %}"

_TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "initializer_range": 0.25,
}
_VISION: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}


@dataclass(frozen=True)
class TinyFamily:
    image_token: str
    special: Mapping[str, str]
    config: Callable[[Any, int], Any]  # takes the tokenizer and the size of its vocabulary
    preprocessor: Mapping[str, Any]
    processor: Mapping[str, Any]
    template: str = TEMPLATE
    video_token: str = "<video>"
    videos: Mapping[str, Any] = field(default_factory=dict)  # of the video processor, if the family has one


def _gemma3(tokenizer: Any, vocabulary: int) -> Any:
    return transformers.Gemma3Config(
        text_config={**_TEXT, "vocab_size": vocabulary, "sliding_window": 64, "query_pre_attn_scalar": 16},
        vision_config={**_VISION, "model_type": "siglip_vision_model"},
        mm_tokens_per_image=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image_soft_token>"),
        boi_token_index=tokenizer.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=tokenizer.convert_tokens_to_ids("<end_of_image>"),
    )


def _llava(tokenizer: Any, vocabulary: int) -> Any:
    return transformers.LlavaConfig(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "llama"},
        vision_config={**_VISION, "model_type": "clip_vision_model"},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=16,
    )


def _llava_onevision(tokenizer: Any, vocabulary: int) -> Any:
    return transformers.LlavaOnevisionConfig(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "qwen2"},
        vision_config={**_VISION, "model_type": "siglip_vision_model", "vision_use_head": False},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=[[32, 32], [32, 64], [64, 32]],
    )


def _idefics3(tokenizer: Any, vocabulary: int) -> Any:
    return transformers.Idefics3Config(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "llama"},
        vision_config={**_VISION, "model_type": "idefics3_vision"},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )


def _smolvlm(tokenizer: Any, vocabulary: int) -> Any:
    return transformers.SmolVLMConfig(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "llama"},
        vision_config={**_VISION, "model_type": "smolvlm_vision"},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=0,
    )


def _internvl(tokenizer: Any, vocabulary: int) -> Any:
    return transformers.InternVLConfig(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "qwen2"},
        vision_config={**_VISION, "model_type": "internvl_vision", "image_size": [32, 32], "patch_size": [8, 8]},
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=4,
    )


def _llava_next_video(tokenizer: Any, vocabulary: int) -> Any:
    return transformers.LlavaNextVideoConfig(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "llama"},
        vision_config={**_VISION, "model_type": "clip_vision_model"},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=[[32, 32], [32, 64], [64, 32]],
        spatial_pool_stride=2,
    )


def _glm4v(tokenizer: Any, vocabulary: int, config_class: Any = None) -> Any:
    ids = {
        f"{kind}_{name}token_id": tokenizer.convert_tokens_to_ids(token.replace("image", kind))
        for kind in ("image", "video")
        for name, token in (
            ("", "<|image|>"), ("start_", "<|begin_of_image|>"), ("end_", "<|end_of_image|>")
        )
    }  # fmt: skip
    rope = {"rope_type": "default", "mrope_section": [4, 2, 2], "rope_theta": 10000.0}
    vision = {"depth": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32, "patch_size": 8, "image_size": 32}
    return (config_class or transformers.Glm4vConfig)(
        text_config={**_TEXT, "vocab_size": vocabulary, "rope_parameters": rope, "partial_rotary_factor": 1.0},
        vision_config={**vision, "out_hidden_size": 32},
        **ids,
    )


def _mllama(tokenizer: Any, vocabulary: int) -> Any:
    return transformers.MllamaConfig(image_token_index=tokenizer.convert_tokens_to_ids("<|image|>"))


_SQUARE = {"size": {"height": 32, "width": 32}}
TINY: Mapping[str, TinyFamily] = {
    "gemma3": TinyFamily(
        "<start_of_image>",
        {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"},
        _gemma3,
        {"image_processor_type": "Gemma3ImageProcessor", "processor_class": "Gemma3Processor", **_SQUARE},
        {"image_seq_length": 4},
    ),
    "llava": TinyFamily(
        "<image>",
        {"image_token": "<image>"},
        _llava,
        {"image_processor_type": "LlavaImageProcessor", "processor_class": "LlavaProcessor"}
        | {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}},
        {"patch_size": 8, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1},
    ),
    "llava_onevision": TinyFamily(
        "<image>",
        {"image_token": "<image>", "video_token": "<video>"},
        _llava_onevision,
        {"image_processor_type": "LlavaOnevisionImageProcessor", "processor_class": "LlavaOnevisionProcessor"}
        | {"image_grid_pinpoints": [[32, 32], [32, 64], [64, 32]], **_SQUARE},
        {"num_image_tokens": 16, "vision_feature_select_strategy": "full"},
        videos={"video_processor_type": "LlavaOnevisionVideoProcessor", **_SQUARE},
    ),
    "idefics3": TinyFamily(
        "<image>",
        {"image_token": "<image>", "fake": "<fake_token_around_image>", "utterance": "<end_of_utterance>"}
        | {"global": "<global-img>", "row": "<row_1_col_1>"},
        _idefics3,
        {"image_processor_type": "Idefics3ImageProcessor", "processor_class": "Idefics3Processor"}
        | {"size": {"longest_edge": 64}, "max_image_size": {"longest_edge": 32}},
        {"image_seq_len": 4},
        template=TEMPLATE.replace(*_LISTS_ONLY),
    ),
}


TINY = {
    **TINY,
    "smolvlm": replace(
        TINY["idefics3"],
        config=_smolvlm,
        special={**TINY["idefics3"].special, "video_token": "<video>"},
        preprocessor={**TINY["idefics3"].preprocessor, "image_processor_type": "SmolVLMImageProcessor"}
        | {"processor_class": "SmolVLMProcessor"},
        videos={"video_processor_type": "SmolVLMVideoProcessor", "size": {"longest_edge": 64}}
        | {"max_image_size": {"longest_edge": 32}, "fps": 1, "num_frames": 64},
    ),
}
_GLM_TOKENS = (
    "<|image|>",
    "<|video|>",
    *(f"<|{at}_of_{kind}|>" for at in ("begin", "end") for kind in ("image", "video")),
)
_GLM = {
    "size": {"shortest_edge": 256, "longest_edge": 9216},
    "patch_size": 8,
    "merge_size": 2,
    "temporal_patch_size": 2,
}
TINY = {
    **TINY,
    "internvl": TinyFamily(
        "<IMG_CONTEXT>",
        {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"}
        | {"video_token": "<video>"},
        _internvl,
        {"image_processor_type": "GotOcr2ImageProcessor", "processor_class": "InternVLProcessor", **_SQUARE}
        | {"crop_to_patches": True, "min_patches": 1, "max_patches": 3},
        {"image_seq_length": 4},
        videos={"video_processor_type": "InternVLVideoProcessor", **_SQUARE},
    ),
    "llava_next_video": TinyFamily(
        "<image>",
        {"image_token": "<image>", "video_token": "<video>"},
        _llava_next_video,
        {"image_processor_type": "LlavaNextImageProcessor", "processor_class": "LlavaNextVideoProcessor"}
        | {"image_grid_pinpoints": [[32, 32], [32, 64], [64, 32]], "size": {"shortest_edge": 32}}
        | {"crop_size": {"height": 32, "width": 32}},
        {"patch_size": 8, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1},
        videos={"video_processor_type": "LlavaNextVideoVideoProcessor", "size": {"shortest_edge": 32}}
        | {"crop_size": {"height": 32, "width": 32}},
    ),
    "glm4v": TinyFamily(
        "<|begin_of_image|><|image|><|end_of_image|>",
        {"image_token": "<|image|>", "video_token": "<|video|>"}
        | {token.strip("<|>"): token for token in _GLM_TOKENS[2:]},
        _glm4v,
        {"image_processor_type": "Glm4vImageProcessor", "processor_class": "Glm4vProcessor", **_GLM},
        {},
        video_token="<|begin_of_video|><|video|><|end_of_video|>",
        videos={"video_processor_type": "Glm4vVideoProcessor", **_GLM},
    ),
}
TINY = {
    **TINY,
    "glm46v": replace(
        TINY["glm4v"],
        config=lambda tokenizer, vocabulary: _glm4v(tokenizer, vocabulary, transformers.Glm46VConfig),
        preprocessor={**_GLM, "image_processor_type": "Glm46VImageProcessor", "processor_class": "Glm46VProcessor"},
        videos={"video_processor_type": "Glm46VVideoProcessor", **_GLM},
    ),
}
MLLAMA = TinyFamily(
    "<|image|>",
    {"image_token": "<|image|>"},
    _mllama,
    {
        "image_processor_type": "MllamaImageProcessor",
        "processor_class": "MllamaProcessor",
        "max_image_tiles": 2,
        **_SQUARE,
    },
    {},
)


def make_tiny(folder: Path, name: str) -> Path:
    config = make_processor(folder, TINY[name])
    torch.manual_seed(5)
    transformers.AutoModelForImageTextToText.from_config(config).save_pretrained(folder)
    return folder


def make_processor(folder: Path, family: TinyFamily) -> Any:
    """Writes a folder with everything except weights."""
    folder.mkdir(parents=True)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(DEMO / "tokenizer.json"),
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=dict(family.special),
    )
    template = family.template.replace("IMAGE", family.image_token).replace("VIDEO", family.video_token)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    config = family.config(tokenizer, len(tokenizer) + 8)
    config.save_pretrained(folder)
    named = {"processor_class": family.preprocessor["processor_class"]}
    write(folder / "preprocessor_config.json", family.preprocessor)
    write(folder / "processor_config.json", {**named, **family.processor})
    if family.videos:
        write(folder / "video_preprocessor_config.json", {**named, **family.videos})
    return config


def write(path: Path, said: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(said), encoding="utf-8")
