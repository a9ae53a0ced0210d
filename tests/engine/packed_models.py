"""Writes tiny models as GPTQ, AWQ, compressed-tensors and FP8 do, with packing code of its own.

Decision 0123 says with which libraries its tensors were compared.
"""

import copy
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tests.engine.conftest import DEMO

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
BLOCK = 128


@dataclass(frozen=True, slots=True)
class Written:
    """A layer in the file, and the numbers that it stands for."""

    tensors: dict[str, Any]
    meant: Any


Write = Callable[[Any], Written]  # of a float32 matrix [outputs, inputs]


@dataclass(frozen=True, slots=True)
class Packing:
    config: Mapping[str, Any]  # quantization_config
    write: Write
    bits: int


def rounded(weight: Any, bits: int, group: int, *, symmetric: bool, order: Any | None = None) -> tuple[Any, ...]:
    """Numbers [outputs, inputs] from 0, scales and zeros [outputs, groups], and what they stand for."""
    outputs, inputs = weight.shape
    group = inputs if group < 1 else group
    sorted_weight = weight if order is None else weight[:, order]
    grouped = sorted_weight.view(outputs, -1, group)
    most, middle = 2**bits - 1, 2 ** (bits - 1)
    if symmetric:
        scales = grouped.abs().amax(-1) / (middle - 1)
        zeros = torch.full(scales.shape, middle)
    else:
        low, high = grouped.amin(-1).clamp(max=0), grouped.amax(-1).clamp(min=0)
        scales = (high - low) / most
        zeros = (-low / scales).round().clamp(1, most).int()
    scales = scales.half().float()
    numbers = (grouped / scales[..., None]).round().int() + zeros[..., None]
    numbers = numbers.clamp(0, most)
    meant = ((numbers - zeros[..., None]) * scales[..., None]).view(outputs, inputs)
    numbers = numbers.view(outputs, inputs)
    if order is not None:
        back = torch.argsort(order)
        numbers, meant = numbers[:, back], meant[:, back]
    return numbers, scales, zeros, meant


def packed_columns(numbers: Any, bits: int) -> Any:
    """[rows, columns] into words of 32 bits [rows, columns * bits / 32], the first column in the lowest bits."""
    each = 32 // bits
    missing = -numbers.shape[1] % each
    padded = torch.nn.functional.pad(numbers.long(), (0, missing)).view(len(numbers), -1, each)
    words = (padded << bits * torch.arange(each)).sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def gptq(
    bits: int = 4, group: int = 128, *, symmetric: bool = True, act_order: bool = False, layout: str = "gptq"
) -> Packing:
    def write(weight: Any) -> Written:
        inputs = weight.shape[1]
        size = inputs if group < 1 else group
        seed = torch.Generator().manual_seed(inputs)  # layers that have one input have one order
        order = torch.randperm(inputs, generator=seed) if act_order else torch.arange(inputs)
        g_idx = torch.empty(inputs, dtype=torch.int32)
        g_idx[order] = (torch.arange(inputs) // size).to(torch.int32)
        numbers, scales, zeros, meant = rounded(weight, bits, group, symmetric=symmetric, order=order)
        less = 1 if layout == "gptq" else 0
        tensors = {
            "qweight": packed_columns(numbers, bits).T.contiguous(),
            "qzeros": packed_columns((zeros - less).T, bits),
            "scales": scales.T.contiguous().half(),
            "g_idx": g_idx,
        }
        return Written(tensors, meant)

    config = {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": symmetric, "desc_act": act_order}
    return Packing({**config, "checkpoint_format": layout}, write, bits)


def awq(group: int = 128) -> Packing:
    def write(weight: Any) -> Written:
        numbers, scales, zeros, meant = rounded(weight, 4, group, symmetric=False)

        def in_its_order(columns: Any) -> Any:
            return packed_columns(columns.view(len(columns), -1, 8)[..., AWQ_ORDER].reshape(len(columns), -1), 4)

        tensors = {
            "qweight": in_its_order(numbers.T),
            "qzeros": in_its_order(zeros.T),
            "scales": scales.T.contiguous().half(),
        }
        return Written(tensors, meant)

    return Packing(
        {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm"}, write, 4
    )


def _compressed(layout: str, weights: dict[str, Any], **more: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None, **more}
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
    }


def compressed_integers(bits: int = 4, group: int = 128, *, symmetric: bool = True, act_order: bool = False) -> Packing:
    """`pack-quantized`"""

    def write(weight: Any) -> Written:
        inputs = weight.shape[1]
        seed = torch.Generator().manual_seed(inputs)
        order = torch.randperm(inputs, generator=seed) if act_order else None
        numbers, scales, zeros, meant = rounded(weight, bits, group, symmetric=symmetric, order=order)
        tensors = {
            "weight_packed": packed_columns(numbers, bits),
            "weight_scale": scales.half(),
            "weight_shape": torch.tensor(weight.shape),
        }
        if not symmetric:
            tensors["weight_zero_point"] = packed_columns(zeros.T, bits).T.contiguous()
        if order is not None:
            g_idx = torch.empty(inputs, dtype=torch.int32)
            g_idx[order] = (torch.arange(inputs) // group).to(torch.int32)
            tensors["weight_g_idx"] = g_idx
        return Written(tensors, meant)

    strategy = {"strategy": "channel"} if group < 1 else {"strategy": "group", "group_size": group}
    kind = {"num_bits": bits, "type": "int", "symmetric": symmetric, **strategy}
    config = _compressed("pack-quantized", {**kind, "actorder": "group" if act_order else None})
    return Packing(config, write, bits)


def compressed_bytes(*, symmetric: bool = True) -> Packing:
    """`int-quantized`, whose activations have 8 bits, too."""

    def write(weight: Any) -> Written:
        numbers, scales, zeros, meant = rounded(weight, 8, 0, symmetric=symmetric)
        tensors = {"weight": (numbers - 128).to(torch.int8), "weight_scale": scales.bfloat16()}
        scales = scales.bfloat16().float()
        meant = (numbers - zeros) * scales
        if not symmetric:
            tensors["weight_zero_point"] = (zeros - 128).to(torch.int8)
        return Written(tensors, meant)

    activations = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True}
    weights = {"num_bits": 8, "type": "int", "symmetric": symmetric, "strategy": "channel"}
    return Packing(_compressed("int-quantized", weights, input_activations=activations), write, 8)


def _eighths(blocks: Any, scales: Any) -> Any:
    return (blocks / scales).to(torch.float8_e4m3fn)


def compressed_fp8(strategy: str) -> Packing:
    """`float-quantized`"""

    def write(weight: Any) -> Written:
        if strategy == "block":
            written = _in_blocks(weight)
            return Written({"weight": written[0], "weight_scale": written[1]}, written[2])
        size = weight.abs().amax(1, keepdim=True) if strategy == "channel" else weight.abs().amax().reshape(1)
        scales = (size / 448).bfloat16()
        eighths = _eighths(weight, scales.float())
        return Written({"weight": eighths, "weight_scale": scales}, eighths.float() * scales.float())

    weights = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": strategy}
    if strategy == "block":
        weights["block_structure"] = [BLOCK, BLOCK]
    return Packing(_compressed("float-quantized", weights), write, 16)


def _in_blocks(weight: Any) -> tuple[Any, Any, Any]:
    outputs, inputs = weight.shape
    blocks = torch.nn.functional.pad(weight, (0, -inputs % BLOCK, 0, -outputs % BLOCK))
    blocks = blocks.unflatten(1, (-1, BLOCK)).unflatten(0, (-1, BLOCK))  # [rows, BLOCK, columns, BLOCK]
    scales = blocks.abs().amax((1, 3)) / 448
    eighths = _eighths(blocks, scales[:, None, :, None])
    meant = eighths.float() * scales[:, None, :, None]
    return (
        *(
            one.flatten(2).flatten(0, 1)[:outputs, :inputs].contiguous() if one.ndim == 4 else one
            for one in (eighths, scales, meant)
        ),
    )


def block_fp8() -> Packing:
    def write(weight: Any) -> Written:
        eighths, scales, meant = _in_blocks(weight)
        return Written({"weight": eighths, "weight_scale_inv": scales}, meant)

    config = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [BLOCK, BLOCK]}
    return Packing(config, write, 16)


PACKINGS: dict[str, Packing] = {
    "gptq": gptq(),
    "gptq of 32": gptq(group=32),
    "gptq with zeros": gptq(group=64, symmetric=False),
    "gptq of outputs": gptq(group=-1),
    "gptq in the order of activations": gptq(act_order=True),
    "gptq v2": gptq(symmetric=False, layout="gptq_v2"),
    "gptq of 8 bits": gptq(bits=8, group=32),
    "gptq of 8 bits and outputs": gptq(bits=8, group=-1),
    "gptq of 8 bits in the order of activations": gptq(bits=8, group=64, act_order=True),
    "gptq of 8 bits with zeros": gptq(bits=8, symmetric=False),
    "awq": awq(),
    "awq of 32": awq(32),
    "compressed": compressed_integers(),
    "compressed with zeros": compressed_integers(group=32, symmetric=False),
    "compressed of outputs": compressed_integers(group=0),
    "compressed in the order of activations": compressed_integers(group=64, act_order=True),
    "compressed of 8 bits": compressed_integers(bits=8, group=128),
    "compressed of 8 bits with zeros": compressed_integers(bits=8, group=32, symmetric=False),
    "compressed of 8 bits and outputs": compressed_integers(bits=8, group=0, symmetric=False),
    "w8a8": compressed_bytes(),
    "w8a8 with zeros": compressed_bytes(symmetric=False),
    "fp8": block_fp8(),
    "compressed fp8 of outputs": compressed_fp8("channel"),
    "compressed fp8 of a matrix": compressed_fp8("tensor"),
    "compressed fp8 of blocks": compressed_fp8("block"),
}


def write_packed(
    folder: Path,
    model: Any,
    packing: Packing,
    *,
    packed: Callable[[str], bool] = lambda name: name.endswith("proj.weight"),
    dtype: str = "float32",
    change: Callable[[dict[str, Any]], None] = lambda tensors: None,
    **config: Any,
) -> Any:
    """Returns the model with the numbers of the file. `change`: of the tensors before they are written."""
    folder.mkdir(exist_ok=True, parents=True)
    plain, tensors = copy.deepcopy(model), dict[str, Any]()
    for name, weight in plain.state_dict().items():
        matrices = of_experts(name, weight) if weight.ndim == 3 else {name: weight}
        for matrix_name, matrix in matrices.items():
            if not packed(matrix_name):
                tensors[matrix_name] = matrix.to(getattr(torch, dtype))
                continue
            written = packing.write(matrix.detach().float())
            matrix.copy_(written.meant)
            stem = matrix_name.removesuffix(".weight")
            tensors |= {f"{stem}.{part}": tensor for part, tensor in written.tensors.items()}
    if model.config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    change(tensors)
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    described = {**model.config.to_dict(), "architectures": [type(model).__name__], "dtype": dtype}
    (folder / "config.json").write_text(json.dumps({**described, "quantization_config": packing.config, **config}))
    for path in (*Path(DEMO).glob("*token*"), Path(DEMO) / "chat_template.jinja"):
        shutil.copy(path, folder)
    return plain


def of_experts(name: str, weight: Any) -> dict[str, Any]:
    """Views of matrices that lie behind one another in a model, and one by one in a file."""
    stem, _, kind = name.rpartition(".")
    parts = weight.chunk(2, 1) if kind == "gate_up_proj" else (weight,)
    names = ("gate_proj", "up_proj") if kind == "gate_up_proj" else (kind,)
    return {
        f"{stem}.{expert}.{part_name}.weight": part[expert]
        for part_name, part in zip(names, parts, strict=True)
        for expert in range(len(weight))
    }
