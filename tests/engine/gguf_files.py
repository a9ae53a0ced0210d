"""Writes models of Transformers as GGUF files, as llama.cpp's converter does, with the writer of the `gguf` package.

That package quantises Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0. Blocks of k-quants are made here by the layout of ggml, without
its search for good scales: what they stand for is what `gguf.quants.dequantize` says.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize

ARCHITECTURES = {
    **{name: name for name in ("llama", "qwen2", "qwen3", "gemma2", "phi3")},
    "gemma3_text": "gemma3",
    "qwen2_moe": "qwen2moe",
    "qwen3_moe": "qwen3moe",
}
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
PLAIN = {Kind.F32: torch.float32, Kind.F16: torch.float16, Kind.BF16: torch.bfloat16}


def quantised(weights: Any, kind: Kind) -> Any:
    """float32 [..., inputs] as the bytes of a file, [..., bytes]."""
    make = {Kind.Q4_K: _q4_k, Kind.Q5_K: _q5_k, Kind.Q6_K: _q6_k}.get(kind)
    return quantize(weights, kind) if make is None else make(weights)


def _halves(numbers: Any) -> tuple[Any, Any]:
    """As float16 in bytes, and what it stands for."""
    half = numbers.astype(np.float16)
    return half[..., None].view(np.uint8), half.astype(np.float32)


def _groups_with_minimum(weights: Any, most: int) -> tuple[Any, Any, Any, Any]:
    """Of 8 groups of 32 with scales and minima of six bits: the 16 bytes of both, and the numbers [..., 8, 32]."""
    groups = weights.reshape(*weights.shape[:-1], -1, 8, 32)
    minimum = np.maximum(-groups.min(-1), 0)
    scale = (np.maximum(groups.max(-1), 0) + minimum) / most
    d_bytes, d = _halves(scale.max(-1) / 63)
    least_bytes, least = _halves(minimum.max(-1) / 63)
    scales = np.clip(np.rint(scale / np.maximum(d, 1e-20)[..., None]), 0, 63).astype(np.uint8)
    minima = np.clip(np.rint(minimum / np.maximum(least, 1e-20)[..., None]), 0, 63).astype(np.uint8)
    steps = np.maximum(d[..., None] * scales, 1e-20)[..., None]
    numbers = np.clip(np.rint((groups + (least[..., None] * minima)[..., None]) / steps), 0, most).astype(np.uint8)
    packed = np.empty((*scales.shape[:-1], 12), np.uint8)
    packed[..., 0:4] = scales[..., :4] | (scales[..., 4:] >> 4) << 6
    packed[..., 4:8] = minima[..., :4] | (minima[..., 4:] >> 4) << 6
    packed[..., 8:12] = scales[..., 4:] & 15 | (minima[..., 4:] & 15) << 4
    return d_bytes, least_bytes, packed, numbers


def _low_halves(numbers: Any) -> Any:
    """Two groups of 32 in 32 bytes: the first in the low four bits."""
    low, high = numbers[..., 0::2, :] & 15, numbers[..., 1::2, :] & 15
    return (low | high << 4).reshape(*numbers.shape[:-2], -1)


def _rows(weights: Any, *parts: Any) -> Any:
    return np.concatenate(parts, -1).reshape(*weights.shape[:-1], -1)


def _q4_k(weights: Any) -> Any:
    d, least, scales, numbers = _groups_with_minimum(weights, 15)
    return _rows(weights, d, least, scales, _low_halves(numbers))


def _q5_k(weights: Any) -> Any:
    d, least, scales, numbers = _groups_with_minimum(weights, 31)
    fifth = ((numbers >> 4) << np.arange(8, dtype=np.uint8)[:, None]).sum(-2).astype(np.uint8)
    return _rows(weights, d, least, scales, fifth, _low_halves(numbers))


def _q6_k(weights: Any) -> Any:
    groups = weights.reshape(*weights.shape[:-1], -1, 16, 16)
    scale = np.abs(groups).max(-1) / 31
    d_bytes, d = _halves(scale.max(-1) / 127)
    scales = np.clip(np.rint(scale / np.maximum(d, 1e-20)[..., None]), 0, 127).astype(np.int8)
    steps = np.maximum(d[..., None] * scales, 1e-20)[..., None]
    numbers = (np.clip(np.rint(groups / steps), -32, 31) + 32).astype(np.uint8)
    by_32 = numbers.reshape(*numbers.shape[:-2], 2, 4, 32)  # halves, and four runs of 32 in each
    low, high = by_32 & 15, by_32 >> 4
    lows = np.concatenate([low[..., 0:2, :] | low[..., 2:4, :] << 4], -1).reshape(*numbers.shape[:-2], -1)
    shifts = 2 * np.arange(4, dtype=np.uint8)[:, None]
    highs = (high << shifts).sum(-2).astype(np.uint8).reshape(*numbers.shape[:-2], -1)
    return _rows(weights, lows, highs, scales.view(np.uint8), d_bytes)


Choose = Callable[[str], Kind]  # of a matrix, by its name in the file


def write_gguf(
    path: Path,
    model: Any,
    tokenizer: Any,
    choose: Choose | Kind,
    *,
    template: str | None = None,
    rope_factors: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """Returns the weights of the file as the official reader has them, by their names in Transformers."""
    config = model.config
    architecture = ARCHITECTURES[config.model_type]
    writer = gguf.GGUFWriter(path, architecture)
    _write_config(writer, config)
    _write_tokenizer(writer, tokenizer, template)
    for key, value in more.items():
        (writer.add_string if isinstance(value, str) else writer.add_uint32)(key.replace("__", "."), value)
    arch = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    meant: dict[str, Any] = {}
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        for in_file, part, back in _as_converted(names, name, weight.float().numpy(), config, architecture):
            is_matrix = part.ndim > 1
            kind = (choose(in_file) if callable(choose) else choose) if is_matrix else Kind.F32
            if kind in PLAIN:
                saved = torch.from_numpy(np.ascontiguousarray(part)).to(PLAIN[kind])
                raw = saved.view(torch.uint8).numpy() if kind is Kind.BF16 else saved.numpy()
                writer.add_tensor(in_file, raw, raw_dtype=kind)
                numbers = saved.float().numpy()
            else:
                raw = quantised(np.ascontiguousarray(part), kind)
                writer.add_tensor(in_file, raw, raw_dtype=kind)
                numbers = dequantize(raw, kind)
            back(meant, torch.from_numpy(np.ascontiguousarray(numbers)))
    if rope_factors is not None:
        writer.add_tensor("rope_freqs.weight", rope_factors.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return meant


def _write_config(writer: Any, config: Any) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(float(rope.get("rope_theta") or rope["full_attention"]["rope_theta"]))
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    if config.model_type == "llama":
        writer.add_rope_dimension_count(head_dim)
    if config.model_type in ("gemma2", "gemma3_text"):
        writer.add_sliding_window(config.sliding_window)
    if config.model_type == "qwen2_moe":
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if config.model_type in ("qwen2_moe", "qwen3_moe"):
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)


def _write_sentencepiece(writer: Any, tokenizer: Any) -> None:
    """Tokens and scores alone: such a file has no merges."""
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    scores = {"".join(pair): -float(rank) for rank, pair in enumerate(merges)}
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    special = set(tokenizer.all_special_tokens)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([scores.get(token, -1e6) for token in tokens])
    kinds = {**dict.fromkeys(special, _CONTROL), tokenizer.unk_token: _UNKNOWN}
    writer.add_token_types([kinds.get(token, _BYTE if token.startswith("<0x") else _NORMAL) for token in tokens])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_unk_token_id(tokenizer.unk_token_id)


def _write_tokenizer(writer: Any, tokenizer: Any, template: str | None) -> None:
    described = json.loads(tokenizer.backend_tokenizer.to_str())
    if described["pre_tokenizer"] is None or described["pre_tokenizer"]["type"] == "Metaspace":
        _write_sentencepiece(writer, tokenizer)
        return
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    kinds = [_NORMAL] * len(tokens)
    for token in described["added_tokens"]:
        kinds[token["id"]] = _CONTROL if token["special"] else _USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in described["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(False)
    if template := template or tokenizer.chat_template:
        writer.add_chat_template(template)


Back = Callable[[dict[str, Any], Any], None]


def _as_converted(names: Any, name: str, weight: Any, config: Any, architecture: str) -> list[tuple[str, Any, Back]]:
    """What llama.cpp's converter makes of a parameter, and how it is undone."""
    if name.endswith("mlp.experts.gate_up_proj"):
        number = name.split(".")[2]
        gate, up = np.split(weight, 2, axis=1)
        return [
            (f"blk.{number}.ffn_gate_exps.weight", gate, lambda meant, one: meant.__setitem__(name, one)),
            (
                f"blk.{number}.ffn_up_exps.weight",
                up,
                lambda meant, one: meant.__setitem__(name, torch.cat([meant[name], one], 1)),
            ),
        ]
    if name.endswith("mlp.experts.down_proj"):
        return [
            (f"blk.{name.split('.')[2]}.ffn_down_exps.weight", weight, lambda meant, one: meant.update({name: one}))
        ]
    stem, _, suffix = name.rpartition(".")
    in_file = f"{names.get_name(stem)}.{suffix}"
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(stem.rpartition(".")[2])
    if architecture == "llama" and heads and weight.ndim == 2:
        turned = weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)

        def back(meant: dict[str, Any], one: Any) -> None:
            meant[name] = one.view(heads, -1, 2, one.shape[1]).transpose(1, 2).reshape(one.shape)

        return [(in_file, turned, back)]
    if name.endswith("shared_expert_gate.weight"):
        return [(in_file, weight[0], lambda meant, one: meant.update({name: one[None]}))]
    if architecture in ("gemma2", "gemma3") and name.endswith("norm.weight"):
        return [(in_file, weight + 1, lambda meant, one: meant.update({name: one - 1}))]
    return [(in_file, weight, lambda meant, one: meant.update({name: one}))]


def tiny_model(transformers: Any, kind: str, vocabulary: int, **more: Any) -> Any:
    """Its sizes are whole blocks of k-quants."""
    sizes: Mapping[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "max_position_embeddings": 512,
        "initializer_range": 0.08,
        "tie_word_embeddings": False,
    }
    config = getattr(transformers, f"{kind}Config")(**{**sizes, **more})
    torch.manual_seed(3)
    return transformers.AutoModelForCausalLM.from_config(config).eval().float()
