"""Folders of tiny models of random weights that hear, of several families, and what `generate()` answers there."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image

from tests.engine.vision.cases import DEMO
from tests.media.sounds import noise, spoken
from tis.engine.prompt import ChatPrompt, Medium, Sound
from tis.engine.vision.official_processor import load_processor

_TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 4096,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
    "initializer_range": 0.25,
}
_CHUNK_SECONDS = 4  # of the encoder; the published models have 30
_TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}\
{% if part.type == 'audio' %}AUDIO{% elif part.type == 'image' %}<|image|>{% else %}{{ part.text }}{% endif %}\
{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@dataclass(frozen=True)
class HearingFamily:
    audio: str  # what the template writes for a sound
    tokens: Mapping[str, str]
    config: Callable[[int, int], Any]  # takes the id of the placeholder and the size of the vocabulary
    processor: str
    more: Mapping[str, Any] = field(default_factory=dict)  # of the file of the processor
    max_sounds: int = 2
    model_class: str = "AutoModelForSeq2SeqLM"
    has_extractor: bool = False  # in `more`, instead of Whisper's
    sees: bool = False
    max_seconds: float = _CHUNK_SECONDS

    @property
    def placeholder(self) -> str:
        return self.tokens["audio_token"]


def _qwen2_audio(token: int, vocabulary: int) -> Any:
    return transformers.Qwen2AudioConfig(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "qwen2"},
        audio_config={
            "model_type": "qwen2_audio_encoder", "num_mel_bins": 16, "encoder_layers": 3, "d_model": 32,
            "encoder_attention_heads": 2, "encoder_ffn_dim": 48, "max_source_positions": 50 * _CHUNK_SECONDS,
            "initializer_range": 0.25,
        },
        audio_token_index=token,
    )  # fmt: skip


def _audio_flamingo(token: int, vocabulary: int) -> Any:
    return _flamingo(transformers.AudioFlamingo3Config, token, vocabulary)


def _music_flamingo(token: int, vocabulary: int) -> Any:
    """The tokens of the family follow each other."""
    return _flamingo(
        transformers.MusicFlamingoConfig, token, vocabulary, audio_bos_token_id=token + 1, audio_eos_token_id=token + 2
    )


def _flamingo(config_class: Any, token: int, vocabulary: int, **more: Any) -> Any:
    return config_class(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "qwen2"},
        audio_config={
            "model_type": "audioflamingo3_encoder", "num_mel_bins": 16, "num_hidden_layers": 3, "hidden_size": 32,
            "num_attention_heads": 2, "intermediate_size": 48, "max_source_positions": 50 * _CHUNK_SECONDS,
            "initializer_range": 0.25,
        },
        audio_token_id=token,
        **more,
    )  # fmt: skip


def _glm_asr(token: int, vocabulary: int) -> Any:
    return transformers.GlmAsrConfig(
        text_config={**_TEXT, "vocab_size": vocabulary, "model_type": "llama"},
        audio_config={
            "model_type": "glmasr_encoder", "num_mel_bins": 16, "num_hidden_layers": 3, "hidden_size": 32,
            "num_attention_heads": 2, "intermediate_size": 128, "max_position_embeddings": 50 * _CHUNK_SECONDS,
            "initializer_range": 0.25,
        },
        audio_token_id=token,
        tie_word_embeddings=False,
    )  # fmt: skip


def _gemma4(token: int, vocabulary: int) -> Any:
    """The tokens of the family follow each other."""
    per_layer = {"hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": vocabulary}
    layers = {"layer_types": ["sliding_attention", "full_attention"], "per_layer_config": {"1": {"head_dim": 16}}}
    return transformers.Gemma4Config(
        text_config={**_TEXT, "vocab_size": vocabulary, "sliding_window": 64, **per_layer, **layers},
        vision_config={
            "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "num_key_value_heads": 2, "head_dim": 16, "patch_size": 8, "pooling_kernel_size": 2,
            "position_embedding_size": 64, "default_output_length": 70, "initializer_range": 0.25,
        },
        audio_config={
            "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "output_proj_dims": 32,
            "subsampling_conv_channels": [128, 4], "initializer_range": 0.25,
        },
        audio_token_id=token,
        image_token_id=token + 1,
        video_token_id=vocabulary - 1,
        tie_word_embeddings=False,
    )  # fmt: skip


_QWEN_TOKENS = {"audio_token": "<|AUDIO|>", "audio_bos_token": "<|audio_bos|>", "audio_eos_token": "<|audio_eos|>"}
HEARING: Mapping[str, HearingFamily] = {
    "qwen2_audio": HearingFamily(
        "<|audio_bos|><|AUDIO|><|audio_eos|>", _QWEN_TOKENS, _qwen2_audio, "Qwen2AudioProcessor"
    ),
    "audioflamingo3": HearingFamily(
        "<sound>",
        {"audio_token": "<sound>"},
        _audio_flamingo,
        "AudioFlamingo3Processor",
        {"max_audio_len": 12},
        max_sounds=1,
    ),
    "musicflamingo": HearingFamily(
        "<sound>",
        {"audio_token": "<sound>", "audio_bos_token": "<|sound_bos|>", "audio_eos_token": "<|sound_eos|>"},
        _music_flamingo,
        "MusicFlamingoProcessor",
        {"max_audio_len": 12},
        max_sounds=1,
    ),
    "glmasr": HearingFamily(
        "<|begin_of_audio|><|sound|><|end_of_audio|>",
        {"audio_token": "<|sound|>", "begin": "<|begin_of_audio|>", "end": "<|end_of_audio|>"},
        _glm_asr,
        "GlmAsrProcessor",
        {"audio_token": "<|sound|>", "max_audio_len": 12},
        max_sounds=1,
    ),
    "gemma4": HearingFamily(
        "<|audio|>",
        {"audio_token": "<|audio|>", "image_token": "<|image|>", "boi_token": "<|image>", "eoi_token": "<image|>"}
        | {"boa_token": "<|audio>", "eoa_token": "<audio|>"},
        _gemma4,
        "Gemma4Processor",
        {
            "image_seq_length": 70,
            "image_processor": {"image_processor_type": "Gemma4ImageProcessor", "patch_size": 8, "max_soft_tokens": 70}
            | {"pooling_kernel_size": 2},
            "feature_extractor": {"feature_extractor_type": "Gemma4AudioFeatureExtractor"},
            "video_processor": {"video_processor_type": "Gemma4VideoProcessor"},
        },
        model_class="AutoModelForImageTextToText",
        has_extractor=True,
        sees=True,
        max_seconds=30,
    ),
}


def sound(text: str, seed: int = 0) -> Sound:
    """Tones, which every encoder tells apart, with a little noise."""
    samples = spoken(text)
    samples = (samples + noise(len(samples) / 16_000, 0.01 * (1 + seed))[: len(samples)]).astype(np.float32)
    return Sound(samples, f"{text} {seed}")


def heard(*parts: str | Medium) -> ChatPrompt:
    """One message of a user."""
    content = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": part.kind, part.kind: part}
        for part in parts
    ]
    return ChatPrompt([{"role": "user", "content": content}])


def make_hearing(folder: Path, name: str) -> Path:
    family = HEARING[name]
    folder.mkdir(parents=True)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(DEMO / "tokenizer.json"),
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=dict(family.tokens),
    )
    tokenizer.chat_template = _TEMPLATE.replace("AUDIO", family.audio)
    tokenizer.save_pretrained(folder)
    if not family.has_extractor:
        extractor = transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=_CHUNK_SECONDS)
        extractor._processor_class = family.processor
        extractor.save_pretrained(folder)
    (folder / "processor_config.json").write_text(json.dumps({"processor_class": family.processor, **family.more}))
    config = family.config(tokenizer.convert_tokens_to_ids(family.placeholder), len(tokenizer) + 8)
    torch.manual_seed(5)
    model = getattr(transformers, family.model_class).from_config(config)
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)
    model.save_pretrained(folder)
    return folder


def official_inputs(folder: Path, asked: ChatPrompt) -> Any:
    """Calls the processor as the documentation of Transformers says."""
    messages = [
        {**one, "content": text if isinstance(text := one["content"], str) else [_official_part(part) for part in text]}
        for one in asked.messages
    ]
    # AutoProcessor's, but for Gemma 4, whose part for videos needs torchvision.
    processor = load_processor(folder, transformers.AutoConfig.from_pretrained(folder))
    return processor.apply_chat_template(
        messages,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )


def _official_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    if part["type"] == "image":
        return {"type": "image", "image": Image.fromarray(part["image"].pixels)}
    return {"type": "audio", "audio": part["audio"].samples} if part["type"] == "audio" else part


def likeliest_logprob(folder: Path, asked: ChatPrompt) -> float:
    """Of the first token that the official model would write."""
    config = transformers.AutoConfig.from_pretrained(folder)
    model_class = getattr(transformers, HEARING[config.model_type].model_class)
    with torch.inference_mode():
        logits = model_class.from_pretrained(folder).eval().float()(**official_inputs(folder, asked)).logits
    return float(logits[0, -1].log_softmax(-1).max())


def generated(folder: Path, prompts: Sequence[ChatPrompt], length: int) -> list[list[int]]:
    """Greedy tokens of `generate()` with the inputs of the official processor."""
    config = transformers.AutoConfig.from_pretrained(folder)
    model_class = getattr(transformers, HEARING[config.model_type].model_class)
    model = model_class.from_pretrained(folder).eval().float()
    greedy = transformers.GenerationConfig(
        max_new_tokens=length, min_new_tokens=length, do_sample=False, pad_token_id=0
    )
    answers = []
    for asked in prompts:
        inputs = official_inputs(folder, asked)
        with torch.inference_mode():
            made = model.generate(**inputs, generation_config=greedy)
        answers.append(made[0, inputs["input_ids"].shape[1] :].tolist())
    return answers
