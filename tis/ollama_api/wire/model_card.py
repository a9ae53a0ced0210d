"""What `/api/tags`, `/api/show` and `/api/ps` say of a model, from its small files on this machine."""

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.kernels.gguf_types import name_of
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import ModelDescription, read_object
from tis.engine.models.gguf_file import read_gguf_header
from tis.engine.models.hub_files import find_local_folder

_MAX_HEADER_BYTES = 32 * 2**20  # of a file of weights
_MAX_TEMPLATE_CHARS = 2**20
_MAX_MODELS = 64  # whose files are remembered
# Ollama's names of what stands in a config.json.
_SIZES: Mapping[str, str] = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
# Our names of sampling parameters, where Ollama's differ.
_PARAMETERS: Mapping[str, str] = {"max_tokens": "num_predict", "repetition_penalty": "repeat_penalty"}


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What the files say; empty for a model that is not on this machine, or has none."""

    config: Mapping[str, Any] = field(default_factory=dict)
    template: str = ""
    num_parameters: int = 0
    dtype: str = ""  # of most of the weights, as safetensors or GGUF calls it
    form: str = "safetensors"

    @property
    def family(self) -> str:
        return str(self.config.get("model_type") or "")

    @property
    def quantization(self) -> str:
        quantized = self.config.get("quantization_config")
        method = quantized.get("quant_method") if isinstance(quantized, dict) else None
        return str(method or self.dtype).upper()


def read_model_files(entry: CatalogueEntry, known: ModelDescription) -> ModelFiles:
    """Blocks while it reads, which is once as long as the weights are the same."""
    if not entry.has_files:
        return ModelFiles()
    if known.weights_time is None:
        return _read_files(entry.repo, entry.revision)
    return _read_once(entry.repo, entry.revision, known.weights_time, known.weights_bytes)


@lru_cache(_MAX_MODELS)
def _read_once(repo: str, revision: str | None, weights_time: float, weights_bytes: int | None) -> ModelFiles:
    return _read_files(repo, revision)


def _read_files(repo: str, revision: str | None) -> ModelFiles:
    folder = find_local_folder(repo, revision)
    if folder is None:
        return ModelFiles()
    if folder.is_file():
        return _read_gguf(folder)
    sizes: dict[str, int] = {}
    for path in sorted(folder.glob("*.safetensors")):
        for dtype, num_weights in _tensors_in(path):
            sizes[dtype] = sizes.get(dtype, 0) + num_weights
    return ModelFiles(
        read_object(folder / "config.json"),
        _template_in(folder)[:_MAX_TEMPLATE_CHARS],
        sum(sizes.values()),
        max(sizes, key=lambda dtype: sizes[dtype], default=""),
    )


def _read_gguf(path: Path) -> ModelFiles:
    try:
        header = read_gguf_header(path)
    except LoadFailed:  # the load reports the reason
        return ModelFiles()
    sizes: dict[str, int] = {}
    for tensor in header.tensors.values():
        sizes[name_of(tensor.kind)] = sizes.get(name_of(tensor.kind), 0) + prod(tensor.shape)
    template = header.metadata.get("tokenizer.chat_template")
    found = {ours: header.of_architecture(theirs) for theirs, ours in _SIZES.items()}
    return ModelFiles(
        {"model_type": header.architecture, **found},
        template[:_MAX_TEMPLATE_CHARS] if isinstance(template, str) else "",
        sum(sizes.values()),
        max(sizes, key=lambda dtype: sizes[dtype], default=""),
        "gguf",
    )


def details(files: ModelFiles, entry: CatalogueEntry) -> dict[str, Any]:
    return {
        "parent_model": entry.base or "",
        "format": files.form if files.num_parameters else "",
        "family": files.family,
        "families": [files.family] if files.family else None,
        "parameter_size": human_number(files.num_parameters) if files.num_parameters else "",
        "quantization_level": files.quantization,
    }


def digest(entry: CatalogueEntry, known: ModelDescription) -> str:
    """Another one when the files are others. It is made of their names, times and sizes, and not of what is in them."""
    told = (entry.id, entry.repo, entry.revision, known.weights_time, known.weights_bytes)
    return hashlib.sha256(repr(told).encode()).hexdigest()


def model_info(files: ModelFiles, known: ModelDescription) -> dict[str, Any]:
    family = files.family or "unknown"
    inner = files.config.get("text_config")
    texts = {**files.config, **inner} if isinstance(inner, dict) else files.config
    found = {f"{family}.{theirs}": texts.get(name) for theirs, name in _SIZES.items()}
    info = {
        "general.architecture": family,
        "general.parameter_count": files.num_parameters or None,
        f"{family}.context_length": known.context_length,
        **found,
    }
    return {name: value for name, value in info.items() if isinstance(value, int | float | str)}


def parameters(entry: CatalogueEntry) -> str:
    """The defaults of the catalogue, a line each, as a Modelfile has them."""
    lines = []
    for name, value in entry.defaults.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            shown = json.dumps(one) if isinstance(one, str) else one
            lines.append(f"{_PARAMETERS.get(name, name):<30} {shown}")
    return "\n".join(lines)


def capabilities(entry: CatalogueEntry, known: ModelDescription) -> list[str]:
    if entry.task != "chat":
        return ["embedding"] if entry.task == "embedding" else []
    given = {"vision": "image" in known.media, "tools": known.calls_tools, "thinking": known.reasons}
    return ["completion", *(name for name, is_there in given.items() if is_there)]


def human_number(number: int) -> str:
    """As Ollama prints a number of parameters: 8.0B, 494.03M."""
    if number >= 10**9:
        return f"{number / 10**9:.1f}B"
    if number >= 10**6:
        return f"{number / 10**6:.2f}M"
    return f"{number / 1000:.2f}K" if number >= 1000 else str(number)


def _tensors_in(path: Path) -> Iterator[tuple[str, int]]:
    """The type and size of each tensor: the header says both."""
    try:
        with path.open("rb") as file:
            (num_bytes,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(num_bytes)) if num_bytes <= _MAX_HEADER_BYTES else {}
        tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
        yield from [(str(tensor["dtype"]), prod(tensor["shape"])) for tensor in tensors]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError):
        return  # the load reports what is wrong with it


def _template_in(folder: Path) -> str:
    path = folder / "chat_template.jinja"
    try:
        if path.exists():
            return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for name in ("chat_template.json", "tokenizer_config.json"):
        template = read_object(folder / name).get("chat_template")
        if template:
            return template if isinstance(template, str) else json.dumps(template)
    return ""
