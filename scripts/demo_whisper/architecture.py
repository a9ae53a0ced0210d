"""The shape of the small Whisper: the family's own in everything but size; a window has its 30 seconds."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import (
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperTokenizer,
)
from transformers.models.whisper.tokenization_whisper import LANGUAGES

from scripts.demo_whisper.tokenizer import NUM_TIMESTAMPS, unspoken_ids

SEED = 30
POSITIONS = 1500  # of the encoder: 50 a second
WIDTH = 128
LAYERS = 2
HEADS = 4
LATEST_FIRST_TIME = 50  # Whisper lets the first segment of a window begin within a second


def configuration(tokenizer: WhisperTokenizer) -> WhisperConfig:
    end = tokenizer.eos_token_id
    return WhisperConfig(
        vocab_size=len(tokenizer),
        num_mel_bins=80,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=256,
        decoder_ffn_dim=256,
        max_source_positions=POSITIONS,
        max_target_positions=448,
        pad_token_id=end,
        bos_token_id=end,
        eos_token_id=end,
        decoder_start_token_id=tokenizer.convert_tokens_to_ids("<|startoftranscript|>"),
        begin_suppress_tokens=_never_first(tokenizer),
        dtype="float32",
    )


def generation_configuration(
    tokenizer: WhisperTokenizer, alignment_heads: Sequence[tuple[int, int]]
) -> GenerationConfig:
    token_id = tokenizer.convert_tokens_to_ids
    end = tokenizer.eos_token_id
    return GenerationConfig(
        alignment_heads=[list(head) for head in alignment_heads],
        begin_suppress_tokens=_never_first(tokenizer),
        bos_token_id=end,
        decoder_start_token_id=token_id("<|startoftranscript|>"),
        eos_token_id=end,
        is_multilingual=True,
        lang_to_id={f"<|{code}|>": token_id(f"<|{code}|>") for code in LANGUAGES},
        max_initial_timestamp_index=LATEST_FIRST_TIME,
        max_length=448,
        no_timestamps_token_id=token_id("<|notimestamps|>"),
        pad_token_id=end,
        prev_sot_token_id=token_id("<|startofprev|>"),
        return_timestamps=False,
        suppress_tokens=unspoken_ids(tokenizer),
        task_to_id={task: token_id(f"<|{task}|>") for task in ("transcribe", "translate")},
    )


def _never_first(tokenizer: WhisperTokenizer) -> list[int]:
    """Real ones never begin with a lone space, either: here it is a piece of words whose first letter is rare."""
    return [tokenizer.eos_token_id]


def feature_extractor() -> WhisperFeatureExtractor:
    return WhisperFeatureExtractor(feature_size=80)


def untrained_model(tokenizer: WhisperTokenizer) -> Any:
    """The tokens of times begin as waves, as the encoder's positions do: neighbours are alike from the start."""
    torch.manual_seed(SEED)
    model = WhisperForConditionalGeneration(configuration(tokenizer)).to(torch.float32)
    first = tokenizer.convert_tokens_to_ids("<|0.00|>")
    with torch.no_grad():
        for convolution in (model.model.encoder.conv1, model.model.encoder.conv2):
            torch.nn.init.kaiming_normal_(convolution.weight)  # else the waves of the places drown the sound
        waves = model.model.encoder.embed_positions.weight
        model.model.decoder.embed_tokens.weight[first : first + NUM_TIMESTAMPS - 1] = waves / 8
        model.model.decoder.embed_tokens.weight[first + NUM_TIMESTAMPS - 1] = waves[-1] / 8
    return model
