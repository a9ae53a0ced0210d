"""How GPTQ, AWQ, compressed-tensors and FP8 write the weights of a layer, and the rows that they stand for.

A layer has no plain weight, but the tensors that `parts` names. Their shapes are checked before anything is read, and
their numbers when they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from tis.engine.kernels.grouped_rows import GroupedRows
from tis.engine.models.packed_numbers import (
    Described,
    WrongWeights,
    finite_scales,
    integer_rows,
    num_words,
    numbers_of_awq,
    packed_in_bytes,
    rows_of_bytes,
    scales_of_rows,
    unpacked,
)
from tis.engine.models.safetensor_files import TensorHeader

_INTEGERS = {"I32"}
_ORDERS = {"I16", "I32", "I64"}
FP8_TYPES = {"F8_E4M3", "F8_E5M2"}
_FLOATS = {"F32", "F16", "BF16", "F8_E8M0"}


class PackedFormat(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def marks(self) -> Sequence[str]:
        """A layer has one of these tensors."""
        ...

    @property
    def parts(self) -> Sequence[str]: ...

    @property
    def unused(self) -> Sequence[str]:
        """What the config says of more than weights."""
        ...

    def describe(self, saved: Mapping[str, TensorHeader]) -> Described:
        """By the shapes of a layer's tensors. Raises WrongWeights."""
        ...

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        """Raises WrongWeights."""
        ...


@dataclass(frozen=True, slots=True)
class Gptq:
    """qweight [inputs / 8, outputs], of which a word has eight inputs; qzeros [groups, outputs / 8]; g_idx [inputs]."""

    bits: int
    group_size: int
    zeros_are_less_one: bool  # but for `gptq_v2`
    is_symmetric: bool = True
    name: str = "GPTQ"
    marks: Sequence[str] = ("qweight",)
    parts: Sequence[str] = ("qweight", "qzeros", "scales", "g_idx")
    unused: Sequence[str] = ()

    def describe(self, saved: Mapping[str, TensorHeader]) -> Described:
        words, outputs = _matrix(saved, "qweight", _INTEGERS)
        groups, scaled = _matrix(saved, "scales", _FLOATS)
        zeros = _matrix(saved, "qzeros", _INTEGERS)
        ordered = _num_ordered(saved, "g_idx")
        for bits in dict.fromkeys((self.bits, 4, 8)):  # single layers may have more
            inputs = words * 32 // bits if ordered is None else ordered
            if words == num_words(inputs, bits) and zeros == (groups, num_words(outputs, bits)) and scaled == outputs:
                group = _group(inputs, groups, self.group_size)
                return Described(outputs, inputs, bits, group, has_zeros=not self.is_symmetric)
        raise _misfit(saved)

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        qzeros = tensors["qzeros"]
        if self.zeros_are_less_one:  # a word at once: what one zero has borrowed of the next goes back
            qzeros = qzeros + (0x11111111 if layer.bits == 4 else 0x01010101)
        zeros = unpacked(qzeros, layer.bits)[:, : layer.outputs].T.contiguous()
        words = tensors["qweight"].T.contiguous()
        return integer_rows(words, finite_scales(tensors["scales"].T), zeros, tensors.get("g_idx"), layer)


@dataclass(frozen=True, slots=True)
class Awq:
    """qweight [inputs, outputs / 8], of which a word has eight outputs; qzeros [groups, outputs / 8]."""

    group_size: int
    name: str = "AWQ"
    marks: Sequence[str] = ("qweight",)
    parts: Sequence[str] = ("qweight", "qzeros", "scales")
    unused: Sequence[str] = ()

    def describe(self, saved: Mapping[str, TensorHeader]) -> Described:
        inputs, words = _matrix(saved, "qweight", _INTEGERS)
        groups, outputs = _matrix(saved, "scales", _FLOATS)
        if outputs != 8 * words or _matrix(saved, "qzeros", _INTEGERS) != (groups, words):
            raise _misfit(saved)
        return Described(outputs, inputs, 4, _group(inputs, groups, self.group_size))

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        numbers, zeros = (numbers_of_awq(tensors[name]) for name in ("qweight", "qzeros"))
        scales = finite_scales(tensors["scales"].T)
        return GroupedRows(packed_in_bytes(numbers), scales, layer.group, layer.inputs, zeros, has_four_bits=True)


@dataclass(frozen=True, slots=True)
class CompressedTensors:
    """weight_packed [outputs, inputs / 8], or a weight of 8 bits; weight_scale [outputs, groups], or one of a block.

    What it says of activations is not used: rows are rounded as the kernels do it, if at all.
    """

    block: tuple[int, int] | None = None  # outputs and inputs that share a scale
    unused: Sequence[str] = ()
    name: str = "compressed-tensors"
    marks: Sequence[str] = ("weight_packed", "weight_scale")
    parts: Sequence[str] = (
        *("weight", "weight_packed", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx"),
        *("input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    )

    def describe(self, saved: Mapping[str, TensorHeader]) -> Described:
        if "weight_packed" not in saved:
            return _bytes_of(saved, "weight_scale", self.block)
        outputs, words = _matrix(saved, "weight_packed", _INTEGERS)
        shape, ordered = saved.get("weight_shape"), _num_ordered(saved, "weight_g_idx")
        if shape is None or len(shape.numbers) != 2 or shape.numbers[0] != outputs:
            raise _misfit(saved)
        inputs = shape.numbers[1]
        for bits in (4, 8):
            if inputs > 0 and words == num_words(inputs, bits) and ordered in (None, inputs):
                layer = _with_scales(Described(outputs, inputs, bits, inputs), saved, "weight_scale", self.block)
                break
        else:
            raise WrongWeights(f"numbers that have neither 4 bits nor 8 ({_shapes(saved)})")
        if zeros := saved.get("weight_zero_point"):
            groups = -(-inputs // layer.group)
            packed = zeros.dtype == "I32" and zeros.shape == (num_words(outputs, bits), groups)
            if layer.rows_of_scale > 1 or not packed and (zeros.shape, zeros.dtype) != ((outputs, groups), "I8"):
                raise _misfit(saved)
        return replace(layer, has_zeros=zeros is not None)

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        scales, zeros = scales_of_rows(finite_scales(tensors["weight_scale"]), layer), tensors.get("weight_zero_point")
        if "weight_packed" not in tensors:
            return rows_of_bytes(tensors["weight"], scales, layer, zeros)
        middle = 8 if layer.bits == 4 else 128  # numbers and zeros are saved as so much more
        if zeros is None:
            zeros = torch.full(scales.shape, middle, dtype=torch.uint8)
        elif zeros.dtype is torch.int32:
            zeros = unpacked(zeros.T.contiguous(), layer.bits)[:, : layer.outputs].T.contiguous()
        else:
            zeros = (zeros.short() + middle).to(torch.uint8)
        return integer_rows(tensors["weight_packed"], scales, zeros, tensors.get("weight_g_idx"), layer)


@dataclass(frozen=True, slots=True)
class BlockFp8:
    """As DeepSeek and Qwen publish it: a weight of 8 bits, and a scale for each block of it."""

    block: tuple[int, int] | None
    unused: Sequence[str] = ()
    name: str = "FP8"
    marks: Sequence[str] = ("weight_scale_inv",)
    parts: Sequence[str] = ("weight", "weight_scale_inv", "activation_scale", "input_scale")

    def describe(self, saved: Mapping[str, TensorHeader]) -> Described:
        return _bytes_of(saved, "weight_scale_inv", self.block)

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        return rows_of_bytes(
            tensors["weight"], scales_of_rows(finite_scales(tensors["weight_scale_inv"]), layer), layer
        )


def _matrix(saved: Mapping[str, TensorHeader], name: str, dtypes: set[str]) -> tuple[int, int]:
    tensor = saved.get(name)
    if tensor is None:
        raise WrongWeights(f"no {name}")
    if len(tensor.shape) != 2 or 0 in tensor.shape or tensor.dtype not in dtypes:
        raise WrongWeights(f"a tensor {name} of {tensor.dtype} {list(tensor.shape)}")
    return tensor.shape[0], tensor.shape[1]


def _num_ordered(saved: Mapping[str, TensorHeader], name: str) -> int | None:
    """The inputs that an order is of. None: there is no order."""
    tensor = saved.get(name)
    if tensor is None:
        return None
    if len(tensor.shape) != 1 or tensor.dtype not in _ORDERS:
        raise WrongWeights(f"a tensor {name} of {tensor.dtype} {list(tensor.shape)}")
    return tensor.shape[0]


def _bytes_of(saved: Mapping[str, TensorHeader], scales: str, block: tuple[int, int] | None) -> Described:
    outputs, inputs = _matrix(saved, "weight", {"I8", *FP8_TYPES})
    layer = Described(outputs, inputs, 8, inputs, is_float=saved["weight"].dtype in FP8_TYPES)
    layer = _with_scales(layer, saved, scales, block)
    if zeros := saved.get("weight_zero_point"):
        groups = -(-inputs // layer.group)
        if layer.is_float or layer.rows_of_scale > 1 or zeros.shape != (outputs, groups) or zeros.dtype != "I8":
            raise _misfit(saved)
    return replace(layer, has_zeros=zeros is not None)


def _with_scales(
    layer: Described, saved: Mapping[str, TensorHeader], name: str, block: tuple[int, int] | None
) -> Described:
    tensor = saved.get(name)
    if tensor is None or tensor.dtype not in _FLOATS or len(tensor.shape) > 2:
        raise _misfit(saved)
    rows, columns = (*tensor.shape, 1, 1)[:2]
    of_row, of_column = block or (0, 0)
    return replace(
        layer,
        group=_group(layer.inputs, columns, of_column),
        rows_of_scale=1 if rows == layer.outputs else _group(layer.outputs, rows, of_row),
    )


def _group(size: int, groups: int, usual: int) -> int:
    """How many there are in each of so many groups. `usual`: as the config says, if it does."""
    if 0 < usual <= size and -(-size // usual) == groups:
        return usual
    if groups < 1 or size % groups:
        raise WrongWeights(f"{groups} groups of {size}")
    return size // groups


def _misfit(saved: Mapping[str, TensorHeader]) -> WrongWeights:
    return WrongWeights(f"tensors that do not fit each other ({_shapes(saved)})")


def _shapes(saved: Mapping[str, TensorHeader]) -> str:
    return ", ".join(f"{name} {one.dtype} {list(one.shape)}" for name, one in saved.items())
