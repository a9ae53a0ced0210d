"""Tiny models that speak, with random weights: built, saved, and read again by `from_pretrained`."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers

LETTERS = "abcdefghijklmnopqrstuvwxyz ,.-'"
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "ffn_dim": 32,
    "flow_size": 16,
    "spectrogram_bins": 17,
    "duration_predictor_filter_channels": 16,
    "prior_encoder_num_flows": 2,
    "prior_encoder_num_wavenet_layers": 1,
    "posterior_encoder_num_wavenet_layers": 1,
    "duration_predictor_num_flows": 2,
    "depth_separable_num_layers": 1,
    "upsample_initial_channel": 32,
    "upsample_rates": [8, 8, 4],
    "upsample_kernel_sizes": [16, 16, 8],
    "resblock_kernel_sizes": [3],
    "resblock_dilation_sizes": [[1, 3]],
}


def save_vits(folder: Path, speakers: int = 1, **fields: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({"_": 0, **{one: at for at, one in enumerate(LETTERS, 1)}}))
    tokenizer = transformers.VitsTokenizer(
        str(folder / "vocab.json"), pad_token="_", language="ind", normalize=True, phonemize=False
    )
    tokenizer.save_pretrained(folder)
    config = transformers.VitsConfig(
        vocab_size=len(LETTERS) + 1,
        num_speakers=speakers,
        speaker_embedding_size=8 if speakers > 1 else 0,
        **{**SMALL, **fields},
    )
    torch.manual_seed(0)
    model = transformers.VitsModel(config)
    if not config.use_stochastic_duration_prediction:
        model.duration_predictor.proj.weight.data.mul_(0.1)
        model.duration_predictor.proj.bias.data.fill_(0.3)  # two frames for a character, as in slow speech
    model.save_pretrained(folder)
    return folder
