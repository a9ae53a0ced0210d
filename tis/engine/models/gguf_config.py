"""The config of a model, and its recommended sampling, from the metadata of a GGUF file.

Transformers has the names for each architecture. What it leaves out, and would answer with another model's default, is
added here: the size of a head, the width of experts, how rotary embeddings are stretched.
"""

import math
from collections.abc import Mapping
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.models.gguf_file import GgufHeader, texts_of

# Of architectures that are compared with their originals in tests: the model type, and the table of names.
_ARCHITECTURES = {
    "llama": ("llama", "llama"),
    "qwen2": ("qwen2", "qwen2"),
    "qwen3": ("qwen3", "qwen3"),
    "qwen2moe": ("qwen2_moe", "qwen2_moe"),
    "qwen3moe": ("qwen3_moe", "qwen3_moe"),
    "gemma2": ("gemma2", "gemma2"),
    "gemma3": ("gemma3_text", "gemma3"),
    "phi3": ("phi3", "phi3"),
}
_ADDED = {
    "attention.key_length": "head_dim",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "attention.sliding_window": "sliding_window",
}
_MAX_NUMBERS = {
    "num_hidden_layers": 1024,
    "hidden_size": 2**17,
    "intermediate_size": 2**20,
    "num_attention_heads": 2**14,
    "num_key_value_heads": 2**14,
    "head_dim": 2**13,
    "max_position_embeddings": 2**30,
    "vocab_size": 2**22,
    "num_experts": 4096,
    "num_local_experts": 4096,
    "num_experts_per_tok": 4096,
    "moe_intermediate_size": 2**20,
    "shared_expert_intermediate_size": 2**20,
}
_REQUIRED = ("num_hidden_layers", "hidden_size", "num_attention_heads", "max_position_embeddings")
_SAMPLING = {
    "temp": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "penalty_repeat": "repetition_penalty",
}
# Ends of an answer that files name by their text alone, as llama.cpp reads them.
_ENDS = frozenset({"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<EOT>"})
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_LAYERS_OF_27B = {"gemma2": 46, "gemma3_text": 62}  # the models of 27B scale queries in another way
_CONTROL = 3  # of token_type


def config_of(header: GgufHeader) -> Any:
    """A config of Transformers. Raises LoadFailed."""
    from transformers import AutoConfig
    from transformers.integrations.ggml import GGUF_CONFIG_DEFAULTS_MAPPING, GGUF_CONFIG_MAPPING

    if header.architecture not in _ARCHITECTURES:
        raise LoadFailed(
            f"{header.path.name} has the architecture {header.architecture!r}; read from GGUF files are "
            f"{', '.join(_ARCHITECTURES)}. Take the plain repository of the model."
        )
    model_type, name_of_table = _ARCHITECTURES[header.architecture]
    table = GGUF_CONFIG_MAPPING[name_of_table]
    config_class = type(AutoConfig.for_model(model_type))
    named = {key: name for key, name in {**_ADDED, **table}.items() if name}
    default = config_class()
    found: dict[str, Any] = dict(GGUF_CONFIG_DEFAULTS_MAPPING.get(model_type, {}))
    for key, name in named.items():
        value = header.of_architecture(key)
        if value is not None and (hasattr(default, name) or name == "rope_theta"):
            found[name] = _number(header, key, name, value)
    found.setdefault("vocab_size", len(texts_of(header.metadata.get("tokenizer.ggml.tokens"))))
    if missing := [name for name in _REQUIRED if name not in found and hasattr(default, name)]:
        raise LoadFailed(f"{header.path.name} does not say its {missing[0]}.")
    found["tie_word_embeddings"] = "output.weight" not in header.tensors
    found["rope_parameters"] = _rope(header, found.pop("rope_theta", None))
    if model_type in _LAYERS_OF_27B:
        found |= _of_gemma(found, default, _LAYERS_OF_27B[model_type])
    found |= {"bos_token_id": _token_id(header, "bos_token_id"), "pad_token_id": _token_id(header, "padding_token_id")}
    found["eos_token_id"] = sorted(ending_ids(header)) or None
    try:
        return config_class(**_with_biases(header, found, default))
    except Exception as error:  # the classes check what they are given, each in its own way
        raise LoadFailed(f"{header.path.name} describes no {model_type}: {' '.join(str(error).split())}") from error


def _number(header: GgufHeader, key: str, name: str, value: Any) -> int | float:
    if isinstance(value, list) and value and all(one == value[0] for one in value):
        value = value[0]  # of each layer
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise LoadFailed(f"{header.path.name} has {header.architecture}.{key}={value!r}, which is not read.")
    if not 0 <= value <= _MAX_NUMBERS.get(name, 2**40) or (name in _REQUIRED and not value):
        raise LoadFailed(f"{header.path.name} has {header.architecture}.{key}={value}, which no model has.")
    return value


def _rope(header: GgufHeader, theta: Any) -> dict[str, Any]:
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": float(theta or 10_000.0)}
    kind = header.of_architecture("rope.scaling.type")
    factor = header.of_architecture("rope.scaling.factor")
    if kind in (None, "none") or not factor:
        return rope
    if kind not in ("linear", "yarn") or not isinstance(factor, int | float):
        raise LoadFailed(f"{header.path.name} stretches its rotary embeddings by {kind!r}, which is not read.")
    rope |= {"rope_type": kind, "factor": float(factor)}
    if original := header.of_architecture("rope.scaling.original_context_length"):
        rope["original_max_position_embeddings"] = int(original)
    return rope


def _of_gemma(found: dict[str, Any], default: Any, layers_of_largest: int) -> dict[str, Any]:
    """What llama.cpp has in its code and not in the file."""
    rope = found["rope_parameters"]
    if "full_attention" in default.rope_parameters:
        rope = {**default.rope_parameters, "full_attention": rope}
    is_largest = found["num_hidden_layers"] == layers_of_largest
    scaled = found["hidden_size"] // found["num_attention_heads"] if is_largest else found.get("head_dim")
    return {"rope_parameters": rope, "query_pre_attn_scalar": scaled or default.query_pre_attn_scalar}


def _with_biases(header: GgufHeader, found: dict[str, Any], default: Any) -> dict[str, Any]:
    """Biases are not in the metadata: a file has them or not."""
    if hasattr(default, "attention_bias"):
        found["attention_bias"] = "blk.0.attn_q.bias" in header.tensors
    return found


def _token_id(header: GgufHeader, key: str) -> int | None:
    found = header.metadata.get(f"tokenizer.ggml.{key}")
    size = len(texts_of(header.metadata.get("tokenizer.ggml.tokens")))
    return found if type(found) is int and 0 <= found < size else None


def ending_ids(header: GgufHeader) -> set[int]:
    named = {token_id for key in _END_KEYS if (token_id := _token_id(header, key)) is not None}
    tokens = texts_of(header.metadata.get("tokenizer.ggml.tokens"))
    kinds = header.metadata.get("tokenizer.ggml.token_type")
    if not isinstance(kinds, list):
        return named
    pairs = enumerate(zip(tokens, kinds, strict=False))
    return named | {token_id for token_id, (token, kind) in pairs if kind == _CONTROL and token in _ENDS}


def recommended_sampling(header: GgufHeader) -> Mapping[str, Any]:
    """As the makers of the file wrote it; the caller checks it."""
    found = {name: header.metadata.get(f"general.sampling.{key}") for key, name in _SAMPLING.items()}
    return {name: value for name, value in found.items() if value is not None}
