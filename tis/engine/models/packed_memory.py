"""What packed weights take in memory, before they are loaded: less than their numbers, not always as their files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tis.engine.kernels.gguf_types import F32
from tis.engine.models.description import read_object
from tis.engine.models.entry_fields import DType
from tis.engine.models.gguf_file import is_gguf, read_gguf_header
from tis.engine.models.gguf_memory import GgufMemory
from tis.engine.models.torch_preload import preload_torch


@dataclass(frozen=True, slots=True)
class WeightOptions:
    """What the weights become."""

    device_map: str = "auto"
    native_kernels: bool = True
    dtype: DType = "auto"
    rounded_to: Literal["int8", "int4"] | None = None  # QUANTIZE


@dataclass(frozen=True, slots=True)
class _JsonConfig:
    """config.json, as far as `quantised_files` asks for it: that of Transformers takes seconds to import."""

    quantization_config: dict[str, Any] | None

    def get_text_config(self) -> "_JsonConfig":
        return self


@dataclass(frozen=True, slots=True)
class _Destination:
    """Where weights go, and what a number takes that becomes a plain one."""

    is_on_cpu: bool
    is_packed: bool
    bytes_of_plain: int


def packed_bytes_of(folder: Path, options: WeightOptions) -> int | None:
    """Of a folder or a GGUF file. None: as many as its files have. Raises LoadFailed for what cannot be read."""
    if is_gguf(folder):
        return _gguf_bytes_of(folder, options)
    config = _json_config(folder)
    if config.quantization_config is None:
        return None
    preload_torch()

    from tis.engine.models.packed_files import PackedFiles, is_read_here
    from tis.engine.models.quantised_files import packed_format_of

    form = packed_format_of(config)
    if form is None or not is_read_here(folder, form):
        return None
    place = _place_of(options)
    bytes_of_plain = 1 if place.is_packed and options.rounded_to else place.bytes_of_plain
    return PackedFiles(folder, config, form).num_bytes(stays=place.is_packed, bytes_of_plain=bytes_of_plain)


def _place_of(options: WeightOptions) -> _Destination:
    import torch

    from tis.engine.models.packed_files import has_kernels_for_packed
    from tis.engine.weights.cpu_dtype import computes_in_bfloat16

    on_cpu = options.device_map == "cpu" or not torch.accelerator.is_available()
    stays = on_cpu and options.native_kernels and has_kernels_for_packed()
    is_wide = options.dtype == "float32" or on_cpu and not stays and not computes_in_bfloat16()
    return _Destination(on_cpu, stays, 4 if is_wide else 2)


def _gguf_bytes_of(path: Path, options: WeightOptions) -> int:
    tensors = read_gguf_header(path).tensors
    preload_torch()
    place = _place_of(options)
    is_wide = options.dtype == "auto" and all(one.kind == F32 for one in tensors.values() if len(one.shape) > 1)
    bytes_of_plain = 4 if is_wide else place.bytes_of_plain
    return GgufMemory(tensors, place.is_on_cpu, place.is_packed, bytes_of_plain, options.rounded_to).num_bytes


def _json_config(folder: Path) -> _JsonConfig:
    read = read_object(folder / "config.json") if folder.is_dir() else {}
    parts = [part.get("quantization_config") for part in (read, read.get("text_config")) if isinstance(part, dict)]
    found = next((part for part in parts if isinstance(part, dict)), None)
    return _JsonConfig(found)
