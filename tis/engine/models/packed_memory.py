"""What packed weights take in memory, before they are loaded: less than their numbers, not always as their files."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

from tis.engine.kernels.gguf_types import BF16, F16, F32, FLOAT_TYPES, FOUR_BIT_TYPES
from tis.engine.models.description import read_object
from tis.engine.models.entry_fields import DType
from tis.engine.models.gguf_file import GgufTensor, is_gguf, read_gguf_header
from tis.engine.models.torch_preload import preload_torch

_EMBEDDING, _HEAD = "token_embd.weight", "output.weight"
# Tensors of a layer that become one matrix, which has 4 bits if all of them have.
_MERGED = (("attn_q", "attn_k", "attn_v"), ("ffn_gate", "ffn_up"))


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

    is_cpu: bool
    stays_packed: bool
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
    bytes_of_plain = 1 if place.stays_packed and options.rounded_to else place.bytes_of_plain
    return PackedFiles(folder, config, form).num_bytes(stays=place.stays_packed, bytes_of_plain=bytes_of_plain)


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
    if options.dtype == "auto" and all(one.kind == F32 for one in tensors.values() if len(one.shape) > 1):
        place = _Destination(place.is_cpu, place.stays_packed, 4)
    total = sum(_bytes_of_tensor(one, tensors, place, options) for one in tensors.values())
    embedding = tensors.get(_EMBEDDING)
    if (
        embedding and _HEAD not in tensors and place.is_cpu
    ):  # the head is packed beside the embedding that it is tied to
        if not _is_rounded_embedding(embedding, place, options):  # else both read the same integers
            total += _bytes_of_matrix(embedding, tensors, place, options)
    return total


def _is_rounded_embedding(tensor: GgufTensor, place: _Destination, options: WeightOptions) -> bool:
    if not place.stays_packed or options.rounded_to:
        return place.stays_packed and options.rounded_to == "int4"
    return tensor.kind not in FLOAT_TYPES and _has_kernel(tensor, options)


def _bytes_of_tensor(
    tensor: GgufTensor, tensors: Mapping[str, GgufTensor], place: _Destination, options: WeightOptions
) -> int:
    if tensor.name == _EMBEDDING and not _is_rounded_embedding(tensor, place, options):
        return prod(tensor.shape) * place.bytes_of_plain
    return _bytes_of_matrix(tensor, tensors, place, options)


def _bytes_of_matrix(
    tensor: GgufTensor, tensors: Mapping[str, GgufTensor], place: _Destination, options: WeightOptions
) -> int:
    number, outputs = prod(tensor.shape), tensor.shape[0]
    if len(tensor.shape) != 2 or not place.stays_packed or not _has_kernel(tensor, options):
        return number * place.bytes_of_plain
    if tensor.kind in FLOAT_TYPES and not options.rounded_to:
        return number * (2 if tensor.kind == BF16 else place.bytes_of_plain)
    if tensor.name in (_EMBEDDING, _HEAD):
        return number + 8 * outputs  # with scales
    has_four_bits = all(one.kind in FOUR_BIT_TYPES for one in _merged_with(tensor, tensors))
    return number * 9 // 16 if (options.rounded_to == "int4" if options.rounded_to else has_four_bits) else number


def _has_kernel(tensor: GgufTensor, options: WeightOptions) -> bool:
    """Else its numbers become plain weights first, which QUANTIZE rounds."""
    from tis.engine.kernels.gguf_blocks import GgufKernels
    from tis.engine.kernels.native import native_kernels

    kernels = native_kernels()
    assert kernels is not None
    return options.rounded_to is not None or tensor.kind in (F32, F16, BF16) or GgufKernels(kernels).takes(tensor.kind)


def _merged_with(tensor: GgufTensor, tensors: Mapping[str, GgufTensor]) -> list[GgufTensor]:
    layer, _, part = tensor.name.removesuffix(".weight").rpartition(".")
    together = next((parts for parts in _MERGED if part in parts), (part,))
    names = (f"{layer}.{one}.weight".removeprefix(".") for one in together)
    return [tensors[name] for name in names if name in tensors]


def _json_config(folder: Path) -> _JsonConfig:
    read = read_object(folder / "config.json") if folder.is_dir() else {}
    parts = [part.get("quantization_config") for part in (read, read.get("text_config")) if isinstance(part, dict)]
    found = next((part for part in parts if isinstance(part, dict)), None)
    return _JsonConfig(found)
