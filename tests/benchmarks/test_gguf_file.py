"""The file that llama.cpp reads has the tensors and the tokens of the folder that it was written from."""

import json
import struct
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from benchmarks.gguf_file import write_gguf

MATRIX = bytes(range(2 * 3 * 2))  # 2 rows of 3 bfloat16
NORM = struct.pack("<3H", 0x3F80, 0x4000, 0xBF80)  # 1, 2 and -1 in bfloat16
TEXT, ARRAY = 8, 9
FORMATS = {4: "<I", 5: "<i", 6: "<f", 7: "<?"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_tensors(tmp_path, {"model.layers.0.mlp.up_proj.weight": ([2, 3], MATRIX), "model.norm.weight": ([3], NORM)})
    config = {
        "num_hidden_layers": 1,
        "max_position_embeddings": 64,
        "hidden_size": 3,
        "intermediate_size": 2,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 2,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 10000.0},
        "vocab_size": 5,
    }
    tokenizer = {
        "model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
        "added_tokens": [{"id": 3, "content": "<|im_end|>", "special": True}],
    }
    for name, content in {
        "config": config,
        "tokenizer": tokenizer,
        "generation_config": {"eos_token_id": [3], "pad_token_id": 3},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def save_tensors(folder: Path, tensors: dict[str, tuple[list[int], bytes]], kind: str = "BF16") -> None:
    header, data = {}, b""
    for name, (shape, content) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    encoded = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)


def test_tensors_and_tokens_are_read_back(folder: Path) -> None:
    with write_gguf(folder).open("rb") as file:
        facts, tensors = read_gguf(file)

    assert tensors == {
        "blk.0.ffn_up.weight": ([3, 2], MATRIX),
        "output_norm.weight": ([3], struct.pack("<3f", 1, 2, -1)),  # llama.cpp wants norms in float32
    }
    assert facts["general.architecture"] == "qwen3"
    assert facts["tokenizer.ggml.tokens"] == ["a", "b", "ab", "<|im_end|>", "[unused 4]"]
    assert facts["tokenizer.ggml.token_type"] == [1, 1, 1, 3, 5]
    assert facts["tokenizer.ggml.merges"] == ["a b"]
    assert facts["tokenizer.ggml.eos_token_id"] == 3


def test_weights_of_another_type_are_refused(folder: Path) -> None:
    save_tensors(folder, {"model.norm.weight": ([3], NORM * 2)}, kind="F32")

    with pytest.raises(ValueError, match=r"model\.norm\.weight is F32"):
        write_gguf(folder)
    assert not (folder / "model.gguf").exists()


def read_gguf(file: BinaryIO) -> tuple[dict[str, Any], dict[str, tuple[list[int], bytes]]]:
    assert file.read(4) == b"GGUF"
    version, num_tensors, num_facts = struct.unpack("<IQQ", file.read(20))
    assert version == 3
    facts = {text(file): value(file, number(file, "<I")) for _ in range(num_facts)}
    places = []
    for _ in range(num_tensors):
        name = text(file)
        shape = [number(file, "<Q") for _ in range(number(file, "<I"))]
        places.append((name, shape, number(file, "<I"), number(file, "<Q")))
    begin = -(-file.tell() // 32) * 32
    tensors = {}
    for name, shape, kind, offset in places:
        assert offset % 32 == 0
        file.seek(begin + offset)
        size = {0: 4, 30: 2}[kind]
        for length in shape:
            size *= length
        tensors[name] = (shape, file.read(size))
    return facts, tensors


def number(file: BinaryIO, form: str) -> Any:
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def text(file: BinaryIO) -> str:
    return bytes(file.read(number(file, "<Q"))).decode()


def value(file: BinaryIO, kind: int) -> Any:
    if kind == ARRAY:
        kind, length = number(file, "<I"), number(file, "<Q")
        return [value(file, kind) for _ in range(length)]
    return text(file) if kind == TEXT else number(file, FORMATS[kind])
