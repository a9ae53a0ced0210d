"""Tiny random Whispers, saved as Transformers saves them: windows of two seconds, 64 tokens at most."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SECONDS = 2
SAMPLE_RATE = 16_000
_TEXTS = [
    "Selamat pagi, apa kabar? Saya mau memesan kopi dari Aceh.",
    "Good morning, how are you? I would like to order some coffee.",
    "今天天气很好。",
]
# Of the weights, by parts of their names.
_DEVIATIONS = {"embed_positions": 1.5, "embed_tokens": 0.2, "encoder_attn": 0.5}
_LANGUAGES = ("en", "id", "zh")


def tokenizer(*, english_only: bool = False) -> Any:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        _TEXTS * 4,
        trainers.BpeTrainer(vocab_size=320, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False),
    )
    folder_tokenizer = transformers.WhisperTokenizer(**_vocabulary_of(made))
    languages = () if english_only else tuple(f"<|{code}|>" for code in _LANGUAGES)
    marks = ["startoftranscript", "translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"]
    named = ["<|endoftext|>", "<|startoftranscript|>", *languages, *(f"<|{mark}|>" for mark in marks[1:])]
    folder_tokenizer.add_tokens(named, special_tokens=True)
    folder_tokenizer.add_tokens([f"<|{place * 0.02:.2f}|>" for place in range(SECONDS * 50 + 1)])
    return folder_tokenizer


def _vocabulary_of(made: Any) -> dict[str, Any]:
    import json

    model = json.loads(made.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(merge) for merge in model["merges"]]}


def save_whisper(folder: Path, *, english_only: bool = False, seed: int = 0, dtype: Any = torch.float32) -> Path:
    words = tokenizer(english_only=english_only)
    ids = words.get_vocab()
    config = transformers.WhisperConfig(
        vocab_size=len(ids),
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_source_positions=SECONDS * 50,
        max_target_positions=64,
        num_mel_bins=80,
        decoder_start_token_id=ids["<|startoftranscript|>"],
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|endoftext|>"],
        pad_token_id=ids["<|endoftext|>"],
    )
    torch.manual_seed(seed)
    model = transformers.WhisperForConditionalGeneration(config)
    with torch.no_grad():  # so that tokens depend on the sound and on their position, and seldom repeat
        for name, weight in model.named_parameters():
            if "norm" not in name and "encoder.embed_positions" not in name:
                weight.normal_(0, next((std for part, std in _DEVIATIONS.items() if part in name), 0.15))
    generation = model.generation_config
    _set(
        generation,
        max_length=64,
        is_multilingual=not english_only,
        no_timestamps_token_id=ids["<|notimestamps|>"],
        prev_sot_token_id=ids["<|startofprev|>"],
        suppress_tokens=[*_unreadable(ids), *(ids[f"<|{name}|>"] for name in ("startofprev", "nospeech"))],
        begin_suppress_tokens=[ids["<|endoftext|>"], 220],
        max_initial_timestamp_index=50,
        alignment_heads=[[0, 1], [1, 0], [1, 3]],
        return_timestamps=False,
        decoder_start_token_id=ids["<|startoftranscript|>"],
    )
    if not english_only:
        _set(
            generation,
            lang_to_id={f"<|{code}|>": ids[f"<|{code}|>"] for code in _LANGUAGES},
            task_to_id={task: ids[f"<|{task}|>"] for task in ("transcribe", "translate")},
        )
    model.to(dtype).save_pretrained(folder)
    words.save_pretrained(folder)
    extractor(folder)
    return folder


def _unreadable(ids: Mapping[str, int]) -> list[int]:
    """Parts of letters, which would make a text of broken characters."""
    return [token_id for token, token_id in ids.items() if token_id < 320 and not token.replace("Ġ", "").isascii()]


def extractor(folder: Path) -> Any:
    made = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=SECONDS)
    made.save_pretrained(folder)
    return made


def sound(seed: int, seconds: float = SECONDS) -> Any:
    """A few tones that come and go, and a little noise."""
    numbers = np.random.default_rng(seed)
    time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    tones = [
        np.sin(2 * np.pi * numbers.uniform(80, 3000) * time) * (np.sin(2 * np.pi * numbers.uniform(0.5, 3) * time) > 0)
        for _ in range(4)
    ]
    return (0.1 * sum(tones) + numbers.normal(0, 0.01, len(time))).astype(np.float32)


def _set(generation: Any, **values: Any) -> None:
    """`GenerationConfig.update` leaves out what only Whispers have."""
    generation._from_model_config = False  # else what the class does not know is not read again
    for name, value in values.items():
        setattr(generation, name, value)
