"""The shape of the small voice: VITS as Transformers has it, with several speakers and foreseeable durations."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import VitsConfig, VitsModel, VitsTokenizer

from scripts.demo_voice.texts import letters, texts, voices

SEED = 31
HOP = 256  # samples of a frame
PAD = "<pad>"


def configuration(vocab_size: int) -> VitsConfig:
    return VitsConfig(
        vocab_size=vocab_size,
        pad_token_id=0,
        hidden_size=96,
        num_hidden_layers=4,
        num_attention_heads=2,
        ffn_dim=192,
        layerdrop=0.0,
        flow_size=96,
        spectrogram_bins=1,  # of the part that only learns, which this one does without
        posterior_encoder_num_wavenet_layers=1,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        use_stochastic_duration_prediction=False,
        num_speakers=len(voices()),
        speaker_embedding_size=32,
        upsample_initial_channel=160,
        upsample_rates=[8, 8, 2, 2],
        upsample_kernel_sizes=[16, 16, 4, 4],
        duration_predictor_dropout=0.1,
        duration_predictor_filter_channels=128,
        prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=3,
        noise_scale=0.0,  # it reads a text always alike
        noise_scale_duration=0.0,
        sampling_rate=16000,
        dtype="float32",
    )


def tokenizer(folder: Path) -> VitsTokenizer:
    """Single letters; written to the folder first, for Transformers reads it from there."""
    vocabulary = {PAD: 0, **{letter: number for number, letter in enumerate(letters(texts()), 1)}}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vocab.json"
    path.write_text(json.dumps(vocabulary, ensure_ascii=False, indent=0), encoding="utf-8")
    return VitsTokenizer(
        str(path), pad_token=PAD, unk_token=PAD, add_blank=False, normalize=True, phonemize=False, is_uroman=False
    )


def untrained_voice(vocab_size: int) -> Any:
    torch.manual_seed(SEED)
    return VitsModel(configuration(vocab_size)).to(torch.float32)
