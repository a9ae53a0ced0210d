"""Tiny random embedding models and rerankers, saved as sentence-transformers and Transformers save them."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from tests.engine.vision.cases import DEMO

LAST = {"pooling_mode_lasttoken": True}
TEXTS = [
    "Halo, apa kabar?",
    "kopi Gayo 250 gram dari Aceh",
    "A cup of coffee, please.",
    "Laptop gaming 15 inch dengan RTX 4050, layar 144 Hz dan pendingin ganda",
    "x",
    "Where can I buy a mechanical keyboard near Bandung?",
    "kopi",
    " ".join(["panjang sekali"] * 30),
]
_SIZES: Mapping[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 160,
}
_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]


def tokenizer(*, causal: bool = False) -> Any:
    """Words of the texts above. `causal`: nothing is put around a text but its end."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    letters = sorted(
        {letter for text in TEXTS for letter in text if not letter.isspace()} | set("abcdefghijklmnopqrstuvwxyz")
    )
    made.train_from_iterator(
        [*TEXTS, "yes no"] * 4,
        trainers.WordPieceTrainer(
            vocab_size=400, special_tokens=_TOKENS, initial_alphabet=letters, show_progress=False
        ),
    )
    ids = {token: made.token_to_id(token) for token in _TOKENS}
    around = "$A [SEP]" if causal else "[CLS] $A [SEP]"
    pair = None if causal else "[CLS] $A [SEP] $B:1 [SEP]:1"
    made.post_processor = processors.TemplateProcessing(
        single=around, pair=pair, special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        additional_special_tokens=_TOKENS[4:6], model_max_length=128,
        model_input_names=["input_ids", "attention_mask", *([] if causal else ["token_type_ids"])],
    )  # fmt: skip


def save(folder: Path, kind: str, **options: Any) -> Path:
    """`kind`: the name of a class of Transformers, such as `BertModel`."""
    model_class = getattr(transformers, kind)
    causal = issubclass(model_class.config_class, transformers.Qwen3Config | transformers.Gemma3TextConfig)
    words = tokenizer(causal=causal)
    torch.manual_seed(7)
    config = model_class.config_class(**{**_SIZES, "vocab_size": len(words), "pad_token_id": 0, **options})
    model_class(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def add_sentence_files(folder: Path, pooling: Mapping[str, Any], *, normalises: bool = True, **config: Any) -> Path:
    """As version 3 of sentence-transformers wrote them."""
    base = "sentence_transformers.models."
    modules = [("", f"{base}Transformer"), ("1_Pooling", f"{base}Pooling")]
    if "dense" in config:
        modules.append(("2_Dense", f"{base}Dense"))
        _save_dense(folder / "2_Dense", *config.pop("dense"))
    if normalises:
        modules.append((f"{len(modules)}_Normalize", f"{base}Normalize"))
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": kind} for number, (path, kind) in enumerate(modules)
    ]
    _write(folder / "modules.json", listed)
    read = json.loads((folder / "config.json").read_text())
    size = read.get("hidden_size") or read["dim"]
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": size, **pooling})
    _write(
        folder / "sentence_bert_config.json", {"max_seq_length": 100, "do_lower_case": config.pop("lower_case", False)}
    )
    _write(folder / "config_sentence_transformers.json", config)
    return folder


def _save_dense(folder: Path, inputs: int, outputs: int) -> None:
    from safetensors.torch import save_file

    torch.manual_seed(3)
    activation = "torch.nn.modules.activation.Tanh"
    _write(
        folder / "config.json",
        {"in_features": inputs, "out_features": outputs, "bias": True, "activation_function": activation},
    )
    save_file(
        {"linear.weight": torch.randn(outputs, inputs), "linear.bias": torch.randn(outputs)},
        folder / "model.safetensors",
    )


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def save_seeing_model(made: Path) -> Path:
    """A random model of Qwen3-VL's kind with the tokenizer and the template of the demo model."""
    shutil.copytree(DEMO, made, ignore=shutil.ignore_patterns("*.safetensors"))
    config = transformers.AutoConfig.from_pretrained(made)
    torch.manual_seed(3)
    model = transformers.AutoModel.from_config(config)
    for name, parameter in model.named_parameters():
        if "visual" in name and parameter.ndim > 1:  # so that the vector depends on the picture
            torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(made)
    # What it says of sizes stands in the part of the text.
    config.hidden_size = config.text_config.hidden_size
    config.save_pretrained(made)
    add_sentence_files(made, LAST, prompts={"query": "Cari barang yang cocok."})
    options = {"processing_kwargs": {"chat_template": {"add_generation_prompt": True}}}
    (made / "sentence_bert_config.json").write_text(json.dumps(options))
    return made
