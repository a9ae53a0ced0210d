"""What a packed repository takes in memory, before it is loaded: less than its numbers, and not always as its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tis.engine.models.description import read_object
from tis.engine.models.entry_fields import DType
from tis.engine.models.quantised_files import method_of, packed_format_of


@dataclass(frozen=True, slots=True)
class WeightOptions:
    """What the weights become."""

    device_map: str = "auto"
    native_kernels: bool = True
    dtype: DType = "auto"
    is_rounded: bool = False  # QUANTIZE


@dataclass(frozen=True, slots=True)
class _JsonConfig:
    """config.json, as far as `quantised_files` asks for it: that of Transformers takes seconds to import."""

    quantization_config: dict[str, Any] | None

    def get_text_config(self) -> "_JsonConfig":
        return self


def packed_bytes_of(folder: Path, options: WeightOptions) -> int | None:
    """None: as many as its files have. Raises LoadFailed for files that cannot be read."""
    config = _json_config(folder)
    if method_of(config) is None:
        return None
    import torch

    from tis.engine.models.packed_files import PackedFiles, has_kernels_for_packed, is_read_here
    from tis.engine.weights.cpu_dtype import computes_in_bfloat16

    form = packed_format_of(config)
    if form is None or not is_read_here(folder, form):
        return None
    on_cpu = options.device_map == "cpu" or not torch.accelerator.is_available()
    stays = on_cpu and options.native_kernels and has_kernels_for_packed()
    is_wide = options.dtype == "float32" or on_cpu and not stays and not computes_in_bfloat16()
    bytes_of_plain = 1 if stays and options.is_rounded else 4 if is_wide else 2
    return PackedFiles(folder, config, form).num_bytes(stays=stays, bytes_of_plain=bytes_of_plain)


def _json_config(folder: Path) -> _JsonConfig:
    read = read_object(folder / "config.json") if folder.is_dir() else {}
    parts = [part.get("quantization_config") for part in (read, read.get("text_config")) if isinstance(part, dict)]
    found = next((part for part in parts if isinstance(part, dict)), None)
    return _JsonConfig(found)
