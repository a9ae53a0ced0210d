"""The small BERT of both models: its tokenizer, its sizes, and its folder as sentence-transformers saves one."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, PreTrainedTokenizerFast

VOCABULARY_SIZE = 5000
MAX_LENGTH = 128
MAX_FOLDER_BYTES = 3_000_000
_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def config(*, num_layers: int = 1, **options: Any) -> BertConfig:
    return BertConfig(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=128,
        num_hidden_layers=num_layers,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=MAX_LENGTH,
        pad_token_id=0,
        **options,
    )


def tokenizer_of(texts: Iterable[str], kept: Path) -> PreTrainedTokenizerFast:
    """The vocabulary of the file `kept`; a new one if there is none. The trainer of `tokenizers` counts in the order of
    a hash, so that each run gives other pieces, and with them other weights.
    """
    return _wrapped(Tokenizer.from_file(str(kept)) if kept.exists() else _trained(texts))


def _trained(texts: Iterable[str]) -> Tokenizer:
    """Words of the goods and of their uses, and pieces of words for the rest; accents and capitals do not count."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=list(_TOKENS),
        initial_alphabet=sorted("abcdefghijklmnopqrstuvwxyz0123456789.,-/%&+'\"()?!:"),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    around = [(token, made.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around
    )
    return made


def _wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=MAX_LENGTH,
        model_input_names=["input_ids", "attention_mask", "token_type_ids"],
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def save(model: Any, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """The numbers are kept in 16 bits and computed in 32, as the configuration says."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    for tensor in model.parameters():
        tensor.data = tensor.data.half().float()  # what is measured from here on is what is read later
    model.save_pretrained(folder)
    tensors = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors writes for its owner only
    _say_float32(folder / "config.json")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)


def _say_float32(path: Path) -> None:
    read = json.loads(path.read_text(encoding="utf-8"))
    _write(path, {**read, "dtype": "float32"})


def save_sentence_files(folder: Path, size: int) -> None:
    """The normalised mean of all tokens."""
    base = "sentence_transformers.models."
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": base + kind}
        for number, (path, kind) in enumerate(kinds)
    ]
    _write(folder / "modules.json", modules)
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": size, "pooling_mode_mean_tokens": True})
    _write(folder / "sentence_bert_config.json", {"max_seq_length": MAX_LENGTH, "do_lower_case": False})
    _write(folder / "config_sentence_transformers.json", {"prompts": {}, "similarity_fn_name": "cosine"})


def mean_of_tokens(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask[..., None].to(states.dtype)
    return torch.nn.functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
