"""Reads the weights of a GGUF file into a model of Transformers, one tensor at a time.

Names and the ways in which llama.cpp's converter changes tensors are those of Transformers. Its own loader is not used:
it has all weights in floats at once, and takes 30 to 130 nanoseconds for each of them.

On a CPU with the native kernels, matrices stay in their blocks (`BlockTensor`) until they are packed.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tis.engine.errors import LoadFailed
from tis.engine.kernels.gguf_blocks import BlockRows, GgufKernels
from tis.engine.kernels.gguf_types import BF16, F16, F32, FLOAT_TYPES, FOUR_BIT_TYPES, name_of
from tis.engine.kernels.integer_product import takes_integers
from tis.engine.kernels.native import native_kernels
from tis.engine.models.gguf_file import GgufHeader, GgufTensor
from tis.engine.models.load_progress import StoredTensor
from tis.engine.weights.block_tensor import BlockTensor

log = logging.getLogger("tis.engine")

_DTYPES = {F32: torch.float32, F16: torch.float16, BF16: torch.bfloat16}
_ROPE_FACTORS = "rope_freqs.weight"
_UNREAD_ROPE = ("rope_factors_long.weight", "rope_factors_short.weight")
# Their converters move whole rows only, and what they change besides are norms.
_MOVES_ROWS = ("TensorProcessor", "LlamaTensorProcessor", "Gemma2TensorProcessor", "NemotronTensorProcessor")


@dataclass(frozen=True, slots=True)
class _Names:
    """As a model without children: the library would look for names in each of its modules again, for seconds."""

    config: Any
    shapes: Mapping[str, Any]

    def state_dict(self) -> Mapping[str, Any]:
        return self.shapes

    def named_children(self) -> tuple[()]:
        return ()


class GgufWeights:
    def __init__(self, header: GgufHeader, config: Any, *, may_stay_in_blocks: bool) -> None:
        self._header, self._config = header, config
        self._data = np.memmap(header.path, mode="c", dtype=np.uint8)
        native = native_kernels() if may_stay_in_blocks else None
        stays = takes_integers(native, 8, 1) and takes_integers(native, 4, 1)
        self._kernels = GgufKernels(native) if native and stays else None
        loaded = native_kernels()
        self._floats = GgufKernels(loaded) if loaded else None

    def dtype(self, wanted: str) -> Any:
        """`auto`: as the matrices of the file, or bfloat16 where they have fewer bits."""
        if wanted != "auto":
            return getattr(torch, wanted)
        kinds = Counter(one.kind for one in self._header.tensors.values() if len(one.shape) > 1)
        is_plain = kinds.keys() <= FLOAT_TYPES
        return _DTYPES[max(kinds, key=lambda kind: kinds[kind])] if kinds and is_plain else torch.bfloat16

    def read(self, model_class: Any, wanted_dtype: str, **options: Any) -> Any:
        dtype = self.dtype(wanted_dtype)
        with torch.device("meta"):
            empty = model_class.from_config(self._config)
        state = self._state_of(empty, dtype)
        self._report(dtype)
        model = type(empty).from_pretrained(None, config=self._config, state_dict=state, dtype=dtype, **options)
        self._stretch_rope(model)
        return model

    def _state_of(self, empty: Any, dtype: Any) -> dict[str, Any]:
        from transformers.modeling_gguf_pytorch_utils import (
            TENSOR_PROCESSORS,
            TensorProcessor,
            get_gguf_hf_weights_map,
        )

        header = self._header
        processor = TENSOR_PROCESSORS.get(header.architecture, TensorProcessor)(config=self._config.to_dict())
        shapes = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
        names: Mapping[str, str] = get_gguf_hf_weights_map(_Names(self._config, shapes), processor)
        by_target: dict[str, list[GgufTensor]] = {}
        left_out: list[str] = []
        for tensor in header.tensors.values():
            target = names.get(tensor.name) or names.get(tensor.name.removesuffix(".weight")) or ""
            if target in shapes:
                by_target.setdefault(target, []).append(tensor)
            elif tensor.name != _ROPE_FACTORS:
                left_out.append(tensor.name)
        self._require_all(shapes, by_target, left_out)
        moves_rows = type(processor).__name__ in _MOVES_ROWS
        state: dict[str, Any] = {}
        for target, tensors in by_target.items():
            if moves_rows and (len(tensors) > 1 or tensors[0].shape != shapes[target]):
                raise LoadFailed(
                    f"{header.path.name} has a tensor {tensors[0].name!r} of shape {list(tensors[0].shape)}, and its "
                    f"metadata ask for {list(shapes[target])}."
                )
            read = _Reading(self, processor, names, target, tensors, shapes[target], dtype, moves_rows=moves_rows)
            state[target] = StoredTensor(read)
        return state

    def _require_all(self, shapes: Mapping[str, Any], found: Mapping[str, Any], left_out: Sequence[str]) -> None:
        name = self._header.path.name
        if rope := [one for one in left_out if one in _UNREAD_ROPE]:
            raise LoadFailed(f"{name} stretches its rotary embeddings by tensors ({rope[0]}), which are not read.")
        missing = [one for one in shapes if one not in found]
        if self._config.tie_word_embeddings:
            missing = [one for one in missing if one != "lm_head.weight"]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise LoadFailed(f"{name} lacks a tensor for {missing[0]}{more}.")
        if left_out:
            log.warning("%s: %d tensors are not used, %s among them", name, len(left_out), left_out[0])

    def numbers(self, tensor: GgufTensor) -> Any:
        """A plain tensor: float32 where the file has blocks."""
        raw = self.blocks(tensor)
        if tensor.kind in FLOAT_TYPES:
            return raw.reshape(-1).view(_DTYPES[tensor.kind]).view(tensor.shape)
        if self._floats and self._floats.takes(tensor.kind):
            return self._floats.floats(raw, tensor.kind).view(tensor.shape)
        from transformers.integrations.gguf.dequant import dequantize

        return dequantize(raw.reshape(-1), tensor.kind).view(tensor.shape)

    def blocks(self, tensor: GgufTensor) -> Any:
        """uint8 [rows, bytes of a row], in the mapped file."""
        raw = self._data[tensor.begin : tensor.begin + tensor.num_bytes]
        return torch.from_numpy(raw).view(-1, tensor.row_bytes)

    def stay_in_blocks(self, tensor: GgufTensor) -> bool:
        return self._kernels is not None and len(tensor.shape) == 2 and self._kernels.takes(tensor.kind)

    def in_blocks(self, blocks: Any, kind: int, dtype: Any) -> BlockTensor:
        assert self._kernels is not None
        return BlockTensor([BlockRows(blocks, kind, self._kernels)], dtype)

    def _stretch_rope(self, model: Any) -> None:
        """Llama 3.1 and later: each frequency has a divisor of its own."""
        tensor = self._header.tensors.get(_ROPE_FACTORS)
        if tensor is None:
            return
        factors = self.numbers(tensor).float()
        for module in model.modules():
            for name in ("inv_freq", "original_inv_freq"):
                frequencies = getattr(module, name, None)
                if isinstance(frequencies, torch.Tensor):
                    if frequencies.shape != factors.shape or not (factors.isfinite() & (factors > 0)).all():
                        raise LoadFailed(f"{self._header.path.name} has a tensor {_ROPE_FACTORS!r} that does not fit.")
                    setattr(module, name, frequencies / factors.to(frequencies.device))

    def _report(self, dtype: Any) -> None:
        matrices = [one for one in self._header.tensors.values() if len(one.shape) > 1]
        kinds = Counter(one.kind for one in matrices)
        saved = ", ".join(f"{number} {name_of(kind)}" for kind, number in sorted(kinds.items()))
        quantised = [one for one in matrices if one.kind not in FLOAT_TYPES]
        kept = [one for one in quantised if self.stay_in_blocks(one)]
        told = [f"{self._header.path.name}: matrices {saved}"]
        if any(one.kind in FOUR_BIT_TYPES for one in kept):
            told.append("4-bit numbers stay, with scales of 8 bits")
        if found := [name_of(kind) for kind in sorted({one.kind for one in kept} - FOUR_BIT_TYPES)]:
            told.append(f"those of {', '.join(found)} stay as they are")
        if len(kept) < len(quantised):
            told.append(f"{len(quantised) - len(kept)} are turned into {str(dtype).removeprefix('torch.')}")
        log.info("%s", "; ".join(told))


@dataclass(frozen=True, slots=True)
class _Reading:
    """Of one parameter of the model, from one or more tensors of the file."""

    weights: GgufWeights
    processor: Any
    names: Mapping[str, str]
    target: str
    tensors: Sequence[GgufTensor]
    shape: tuple[int, ...]
    dtype: Any
    moves_rows: bool

    def __call__(self) -> Any:
        first = self.tensors[0]
        if self.moves_rows and self.weights.stay_in_blocks(first):
            blocks = self.weights.blocks(first)
            moved = self.processor.process(weights=blocks.numpy(), name=first.name).weights
            return self.weights.in_blocks(torch.from_numpy(np.ascontiguousarray(moved)), first.kind, self.dtype)
        parsed: dict[str, Any] = {"tensors": {}}
        for tensor in self.tensors:
            numbers = self.weights.numbers(tensor)
            is_bfloat16 = numbers.dtype is torch.bfloat16  # which numpy does not have
            plain = (numbers.float() if is_bfloat16 else numbers).numpy()
            result = self.processor.process(
                weights=plain, name=tensor.name, tensor_key_mapping=self.names, parsed_parameters=parsed
            )
            if result.name is not None:
                parsed["tensors"][self.target] = torch.from_numpy(np.ascontiguousarray(result.weights))
        found = parsed["tensors"].get(self.target)
        if found is None or tuple(found.shape) != self.shape:
            raise LoadFailed(f"{first.name!r} of the file has a shape that does not fit {list(self.shape)}.")
        return found.to(self.dtype)
