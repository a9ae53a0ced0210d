"""Whispers with random weights in the shapes of the real ones, which write as many tokens as they are told to.

The end is among the tokens that are never written, and there are positions for so many only: every contender does the
same work. The vocabulary has the size and the special tokens of the multilingual models; its words are made up.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Numbers of a vector, layers of the encoder and of the decoder, heads.
SHAPES: Mapping[str, tuple[int, int, int, int]] = {
    "tiny": (384, 4, 4, 6),
    "base": (512, 6, 6, 8),
    "small": (768, 12, 12, 12),
    "medium": (1024, 24, 24, 16),
    "large-v3-turbo": (1280, 32, 4, 20),
}
_NUM_WORDS = 50_257
_NUM_TOLD = 4  # start, language, task, no times


def build_whisper(folder: Path, shape: str, num_tokens: int) -> None:
    if (folder / "model.safetensors").exists():
        return
    import torch
    import transformers
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    print(f"building {shape} in {folder}", flush=True)
    width, encoder_layers, decoder_layers, heads = SHAPES[shape]
    words = _tokenizer(transformers, [*LANGUAGES][:99])
    ids = words.get_vocab()
    end = ids["<|endoftext|>"]
    config = transformers.WhisperConfig(
        vocab_size=len(ids),
        d_model=width,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        max_target_positions=_NUM_TOLD + num_tokens,
        decoder_start_token_id=end + 1,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
    )
    torch.manual_seed(0)
    model = transformers.WhisperForConditionalGeneration(config)
    _set(
        model.generation_config,
        max_length=_NUM_TOLD + num_tokens,
        is_multilingual=True,
        no_timestamps_token_id=ids["<|notimestamps|>"],
        prev_sot_token_id=ids["<|startofprev|>"],
        suppress_tokens=list(range(end, len(ids))),
        begin_suppress_tokens=[220, end],
        decoder_start_token_id=end + 1,
        lang_to_id={f"<|{code}|>": ids[f"<|{code}|>"] for code in [*LANGUAGES][:99]},
        task_to_id={task: ids[f"<|{task}|>"] for task in ("transcribe", "translate")},
        alignment_heads=[[decoder_layers - 1, 0]],
    )
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)


def _tokenizer(transformers: Any, languages: list[str]) -> Any:
    from tokenizers import pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    for number in range(_NUM_WORDS - len(letters)):
        vocabulary[f"Ġw{number}"] = len(vocabulary)
    made = transformers.WhisperTokenizer(vocab=vocabulary, merges=[])
    marks = ["translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"]
    names = ["endoftext", "startoftranscript", *languages, *marks]
    made.add_tokens([f"<|{name}|>" for name in names], special_tokens=True)
    made.add_tokens([f"<|{place * 0.02:.2f}|>" for place in range(1501)])
    return made


def _set(generation: Any, **values: Any) -> None:
    """`GenerationConfig.update` leaves out what only Whispers have."""
    generation._from_model_config = False  # else what the class does not know is not read again
    for name, value in values.items():
        setattr(generation, name, value)
