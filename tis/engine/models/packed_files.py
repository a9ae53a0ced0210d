"""Reads a repository whose weights are packed (GPTQ, AWQ, compressed-tensors, FP8) into a model of Transformers.

No package of those who wrote it is needed. On a CPU with the native kernels matrices stay as they are saved until they
are packed (`BlockTensor`); elsewhere they become plain weights, one at a time.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tis.engine.errors import LoadFailed
from tis.engine.kernels.grouped_rows import SMALLEST_GROUP, span_of
from tis.engine.kernels.integer_product import takes_integers
from tis.engine.kernels.native import native_kernels
from tis.engine.models.load_progress import StoredTensor
from tis.engine.models.packed_formats import FP8_TYPES, BlockFp8, PackedFormat
from tis.engine.models.packed_numbers import Described, WrongWeights
from tis.engine.models.safetensor_files import SafetensorFiles, TensorHeader
from tis.engine.weights.block_tensor import BlockTensor

log = logging.getLogger("tis.engine")

_PLAIN = {"F64", "F32", "F16", "BF16"}
_NARROW = (torch.bfloat16, torch.float16)
_SCALED_ACTIVATIONS = ".act.scales"  # AWQ, of a few old families
# Of the KV cache, which has the type of the model.
_OF_CACHES = ("k_scale", "v_scale", "q_scale", "k_zero_point", "v_zero_point", "q_zero_point")


class PackedFiles:
    def __init__(self, folder: Path, config: Any, form: PackedFormat) -> None:
        """`config` says nothing of the way in which weights are packed. Reads the headers of all files."""
        self._folder, self._config, self._form = folder, config, form
        self._files = SafetensorFiles(folder)
        self._saved = self._files.tensors
        self._layers = self._described()
        self._fault: LoadFailed | None = None

    def read(
        self, model_class: Any, wanted_dtype: str, *, may_stay_packed: bool, trust_remote_code: bool, **options: Any
    ) -> Any:
        stays = may_stay_packed and has_kernels_for_packed()
        with torch.device("meta"):
            empty = model_class.from_config(self._config, trust_remote_code=trust_remote_code)
        self._require_fit({name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()})
        dtype = self._dtype(wanted_dtype)
        self._report(dtype, stays=stays)
        try:
            model, info = type(empty).from_pretrained(
                None,
                config=self._config,
                state_dict=self._state(dtype, stays=stays),
                dtype=dtype,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are refused below, by name
                **options,
            )
        except Exception:
            if self._fault:
                raise self._fault from None
            raise
        self._require_complete(info)
        self._adopt_generation_config(model)
        return model

    def num_bytes(self, *, stays: bool, bytes_of_plain: int) -> int:
        """In memory, once it is loaded. `bytes_of_plain`: of a weight that has become a plain one."""
        packed = {f"{layer}.{part}" for layer in self._layers for part in self._of_layer(layer)}
        others = sum(one.num_bytes for name, one in self._saved.items() if name not in packed)
        return others + sum(_bytes_of(one, bytes_of_plain, stays=stays) for one in self._layers.values())

    def _described(self) -> dict[str, Described]:
        found: dict[str, Described] = {}
        scaled = next((name for name in self._saved if name.endswith(_SCALED_ACTIVATIONS)), None)
        if scaled:
            raise LoadFailed(f"{self._folder.name} divides activations by {scaled}, which this server does not do.")
        for name in self._saved:
            layer, _, part = name.rpartition(".")
            if not layer or part not in self._form.marks or layer in found:
                continue
            saved = self._of_layer(layer)
            if "weight" in saved and saved["weight"].dtype in _PLAIN:
                continue
            try:
                found[layer] = self._form.describe(saved)
            except WrongWeights as error:
                raise self._wrong(layer, error) from error
        if not found:
            raise LoadFailed(
                f"{self._folder.name}: its config.json says that weights are packed by {self._form.name}, and no "
                f"tensor is named {' or '.join(self._form.marks)}."
            )
        return found

    def _of_layer(self, layer: str) -> dict[str, TensorHeader]:
        names = ((part, f"{layer}.{part}") for part in self._form.parts)
        return {part: self._saved[name] for part, name in names if name in self._saved}

    def _wrong(self, layer: str, error: WrongWeights) -> LoadFailed:
        name = next(f"{layer}.{part}" for part in self._of_layer(layer))
        return LoadFailed(f"{self._saved[name].file}: the layer {layer} has {error}.")

    def _require_fit(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Of layers that Transformers calls as the file does."""
        for layer, described in self._layers.items():
            wanted, found = shapes.get(f"{layer}.weight"), (described.outputs, described.inputs)
            if wanted not in (None, found):
                raise self._wrong(layer, WrongWeights(f"weights of {list(found)}, and config.json asks for {wanted}"))
        for name, saved in self._saved.items():  # Transformers would make up what does not fit, of any size
            if saved.dtype in _PLAIN and shapes.get(name, saved.shape) != saved.shape:
                raise LoadFailed(
                    f"{saved.file}: {name} is {list(saved.shape)}, and config.json asks for {list(shapes[name])}."
                )

    def _dtype(self, wanted: str) -> Any:
        if wanted != "auto":
            return getattr(torch, wanted)
        configured = getattr(self._config, "dtype", None) or getattr(self._config.get_text_config(), "dtype", None)
        if isinstance(configured, str):
            configured = getattr(torch, configured, None)
        return configured if configured in (*_NARROW, torch.float32) else torch.bfloat16

    def _state(self, dtype: Any, *, stays: bool) -> dict[str, StoredTensor]:
        state = {
            f"{layer}.weight": StoredTensor(partial(self._weight, layer, dtype, stays=stays)) for layer in self._layers
        }
        for name in self._saved:
            layer, _, part = name.rpartition(".")
            is_taken = part in self._form.parts and layer in self._layers
            is_left = part != "weight" and (part in self._form.parts or part in _OF_CACHES)
            if not is_taken and not is_left:
                state[name] = StoredTensor(partial(self._files.tensor, name))
        return state

    def _weight(self, layer: str, dtype: Any, *, stays: bool) -> Any:
        described = self._layers[layer]
        tensors = {part: self._files.tensor(f"{layer}.{part}") for part in self._of_layer(layer)}
        try:
            rows = self._form.rows(tensors, described)
        except WrongWeights as error:
            self._fault = self._wrong(layer, error)
            raise self._fault from error
        if described.is_float and dtype in _NARROW:
            rows = replace(rows, rounded_to=dtype)
        return BlockTensor([rows], dtype) if stays else rows.floats().to(dtype)

    def _require_complete(self, info: Mapping[str, Any]) -> None:
        missing, mismatched = sorted(info["missing_keys"]), sorted(str(one[0]) for one in info["mismatched_keys"])
        for names, what in ((missing, "has no weights for"), (mismatched, "has weights of another shape for")):
            if names:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                raise LoadFailed(f"{self._folder.name} {what} {names[0]}{more}.")

    def _adopt_generation_config(self, model: Any) -> None:
        from transformers import GenerationConfig

        if (self._folder / "generation_config.json").exists():
            model.generation_config = GenerationConfig.from_pretrained(self._folder)

    def _report(self, dtype: Any, *, stays: bool) -> None:
        """Once at the start: what stays as it is, and what does not."""
        kinds = Counter(_kind_of(layer, dtype, stays=stays) for layer in self._layers.values())
        told = [f"{number} matrices {kind}" for kind, number in sorted(kinds.items())]
        if self._form.unused:
            told.append(f"what it says of {' and '.join(self._form.unused)} is not used")
        log.info("%s, %s: %s", self._folder.name, self._form.name, "; ".join(told))


def has_kernels_for_packed() -> bool:
    native = native_kernels()
    return takes_integers(native, 8, 1) and takes_integers(native, 4, 1)


def _kind_of(layer: Described, dtype: Any, *, stays: bool) -> str:
    groups = "outputs" if layer.group == layer.inputs else f"groups of {layer.group}"
    plain = str(dtype).removeprefix("torch.")
    if layer.is_float:
        return f"of FP8 become {plain}" + (" as they are packed" if stays else ", one at a time")
    kind = f"of {layer.bits} bits with scales of {groups}"
    if not stays:
        return f"{kind} become {plain}, one at a time: packed weights are for a CPU with the native kernels"
    if _keeps_scales(layer):
        return f"{kind} stay as they are"
    return f"{kind} are rounded to 8 bits with a scale for each output"


def _bytes_of(layer: Described, bytes_of_plain: int, *, stays: bool) -> int:
    number = layer.outputs * layer.inputs
    if layer.is_float or not stays:
        return number * bytes_of_plain
    if not _keeps_scales(layer) or layer.bits == 8 and layer.group == layer.inputs and not layer.has_zeros:
        return number
    if layer.bits == 8:
        spans = layer.outputs * -(-layer.inputs // span_of(layer.inputs, layer.group))
        return number + 5 * spans  # zeros and scales
    return number // 2 + number // 32 + 4 * -(-number // layer.group)  # zeros of each 32, and scales


def _keeps_scales(layer: Described) -> bool:
    """Of each group, which is some inputs of one output or of several."""
    return layer.group % SMALLEST_GROUP == 0 or layer.group == layer.inputs


def is_read_here(folder: Path, form: PackedFormat) -> bool:
    """FP8 has more layouts than the one with a scale for each block: Transformers reads the others."""
    if not isinstance(form, BlockFp8):
        return True
    tensors = SafetensorFiles(folder).tensors
    matrices = [name for name, one in tensors.items() if one.dtype in FP8_TYPES]
    scales = [tensors.get(f"{name}_scale_inv") for name in matrices]
    return bool(matrices) and all(one is not None and one.dtype != "U8" for one in scales)
