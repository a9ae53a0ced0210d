"""Writes a Qwen3 and its tokenizer from a folder of Transformers into the one file that llama.cpp reads (GGUF 3).

llama.cpp's own converter wants its repository and a tokenizer that it knows by hash; the random model has neither.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_ALIGNMENT = 32
_FLOAT32, _BFLOAT16 = 0, 30
_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5
_IN_A_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OUTSIDE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


@dataclass(frozen=True, slots=True)
class SavedTensor:
    name: str
    shape: Sequence[int]
    begin: int
    end: int

    @property
    def is_norm(self) -> bool:
        return len(self.shape) == 1

    @property
    def written_bytes(self) -> int:
        return (self.end - self.begin) * (2 if self.is_norm else 1)


def write_gguf(folder: Path) -> Path:
    target = folder / "model.gguf"
    if target.exists():
        return target
    print(f"writing {target}", flush=True)
    unfinished = target.with_suffix(".part")
    with (folder / "model.safetensors").open("rb") as source:
        tensors = list(_saved_tensors(source))
        header = _header(_facts(folder), tensors)
        with unfinished.open("wb") as out:
            out.write(header)
            for tensor in tensors:
                out.write(b"\0" * (-out.tell() % _ALIGNMENT))
                source.seek(tensor.begin)
                data = source.read(tensor.end - tensor.begin)
                out.write(_as_float32(data) if tensor.is_norm else data)
    unfinished.rename(target)
    return target


def _saved_tensors(source: BinaryIO) -> Iterator[SavedTensor]:
    (length,) = struct.unpack("<Q", source.read(8))
    for name, saved in json.loads(source.read(length)).items():
        if name == "__metadata__":
            continue
        if saved["dtype"] != "BF16":
            raise ValueError(f"{name} is {saved['dtype']}; only bfloat16 is written")
        begin, end = (8 + length + offset for offset in saved["data_offsets"])
        yield SavedTensor(_gguf_name(name), saved["shape"], begin, end)


def _gguf_name(name: str) -> str:
    module = name.removesuffix(".weight")
    if module in _OUTSIDE:
        return f"{_OUTSIDE[module]}.weight"
    layer, _, inside = module.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{_IN_A_LAYER[inside]}.weight"


def _as_float32(bfloat16: bytes) -> bytes:
    """llama.cpp multiplies with norms in float32 only; the upper half of a float32 is the bfloat16."""
    return b"".join(b"\0\0" + bfloat16[at : at + 2] for at in range(0, len(bfloat16), 2))


def _facts(folder: Path) -> dict[str, Any]:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    generation = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    return {
        "general.architecture": "qwen3",
        "general.alignment": _ALIGNMENT,
        "qwen3.block_count": config["num_hidden_layers"],
        "qwen3.context_length": config["max_position_embeddings"],
        "qwen3.embedding_length": config["hidden_size"],
        "qwen3.feed_forward_length": config["intermediate_size"],
        "qwen3.attention.head_count": config["num_attention_heads"],
        "qwen3.attention.head_count_kv": config["num_key_value_heads"],
        "qwen3.attention.key_length": config["head_dim"],
        "qwen3.attention.value_length": config["head_dim"],
        "qwen3.attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "qwen3.rope.freq_base": float(config["rope_parameters"]["rope_theta"]),
        "tokenizer.ggml.eos_token_id": generation["eos_token_id"][0],
        "tokenizer.ggml.padding_token_id": generation["pad_token_id"],
        **_tokenizer_facts(folder, config["vocab_size"]),
    }


def _tokenizer_facts(folder: Path, vocabulary: int) -> dict[str, Any]:
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokens = [f"[unused {number}]" for number in range(vocabulary)]
    types = [_UNUSED] * vocabulary
    for text, number in tokenizer["model"]["vocab"].items():
        tokens[number], types[number] = text, _NORMAL
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = _CONTROL if added["special"] else _USER_DEFINED
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [" ".join(pair) for pair in tokenizer["model"]["merges"]],
    }


def _header(facts: Mapping[str, Any], tensors: Sequence[SavedTensor]) -> bytes:
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(facts))]
    for name, value in facts.items():
        kind, data = _value(value)
        parts += [_text(name), struct.pack("<I", kind), data]
    offset = 0
    for tensor in tensors:
        dimensions = list(reversed(tensor.shape))
        kind = _FLOAT32 if tensor.is_norm else _BFLOAT16
        parts.append(_text(tensor.name))
        parts.append(struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset))
        offset += -(-tensor.written_bytes // _ALIGNMENT) * _ALIGNMENT
    return b"".join(parts)


def _value(value: Any) -> tuple[int, bytes]:
    """The number that GGUF has for its type, and its bytes."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, _text(value)
    if value and isinstance(value[0], int):
        return 9, struct.pack(f"<IQ{len(value)}i", 5, len(value), *value)
    return 9, struct.pack("<IQ", 8, len(value)) + b"".join(map(_text, value))


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded
