"""How GPTQ, AWQ, compressed-tensors and FP8 write the weights of a layer, and the rows that they stand for.

A layer has no plain weight, but the tensors that `parts` names. Their shapes are checked before anything is read, and
their numbers when they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from tis.engine.kernels.grouped_rows import GroupedRows
from tis.engine.models.safetensor_files import SavedTensor

_INTEGERS = {"I32"}
FP8_TYPES = {"F8_E4M3", "F8_E5M2"}
_FLOATS = {"F32", "F16", "BF16", "F8_E8M0"}
# AutoAWQ: the i-th four bits of a word are this one of eight outputs.
_AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


class WrongWeights(ValueError):
    """What is wrong with the tensors of one layer."""


@dataclass(frozen=True, slots=True)
class Described:
    """A layer."""

    outputs: int
    inputs: int
    bits: int
    group: int  # inputs that share a scale
    rows_of_scale: int = 1  # outputs that do
    is_float: bool = False


class PackedFormat(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def marks(self) -> Sequence[str]:
        """A layer has one of these tensors."""
        ...

    @property
    def parts(self) -> Sequence[str]: ...

    def describe(self, saved: Mapping[str, SavedTensor]) -> Described:
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
    name: str = "GPTQ"
    marks: Sequence[str] = ("qweight",)
    parts: Sequence[str] = ("qweight", "qzeros", "scales", "g_idx")

    def describe(self, saved: Mapping[str, SavedTensor]) -> Described:
        words, outputs = _matrix(saved, "qweight", _INTEGERS)
        groups, scaled = _matrix(saved, "scales", _FLOATS)
        zeros = _matrix(saved, "qzeros", _INTEGERS)
        order = saved.get("g_idx")
        for bits in dict.fromkeys((self.bits, 4, 8)):  # single layers may have more
            inputs = order.shape[0] if order and len(order.shape) == 1 else words * 32 // bits
            if words == _words(inputs, bits) and zeros == (groups, _words(outputs, bits)) and scaled == outputs:
                return Described(outputs, inputs, bits, _group(inputs, groups, self.group_size))
        raise _misfit(saved)

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        qzeros = tensors["qzeros"]
        if self.zeros_are_less_one:  # a word at once: what one zero has borrowed of the next goes back
            qzeros = qzeros + (0x11111111 if layer.bits == 4 else 0x01010101)
        zeros = _unpacked(qzeros, layer.bits)[:, : layer.outputs].T.contiguous()
        words = tensors["qweight"].T.contiguous()
        return _integer_rows(words, _scales(tensors["scales"].T), zeros, tensors.get("g_idx"), layer)


@dataclass(frozen=True, slots=True)
class Awq:
    """qweight [inputs, outputs / 8], of which a word has eight outputs; qzeros [groups, outputs / 8]."""

    group_size: int
    name: str = "AWQ"
    marks: Sequence[str] = ("qweight",)
    parts: Sequence[str] = ("qweight", "qzeros", "scales")

    def describe(self, saved: Mapping[str, SavedTensor]) -> Described:
        inputs, words = _matrix(saved, "qweight", _INTEGERS)
        groups, outputs = _matrix(saved, "scales", _FLOATS)
        if outputs != 8 * words or _matrix(saved, "qzeros", _INTEGERS) != (groups, words):
            raise _misfit(saved)
        return Described(outputs, inputs, 4, _group(inputs, groups, self.group_size))

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        numbers, zeros = (_of_outputs(tensors[name]) for name in ("qweight", "qzeros"))
        scales = _scales(tensors["scales"].T)
        return GroupedRows(_packed(numbers), scales, layer.group, layer.inputs, zeros, has_four_bits=True)


@dataclass(frozen=True, slots=True)
class CompressedTensors:
    """weight_packed [outputs, inputs / 8], or a weight of 8 bits; weight_scale [outputs, groups], or one of a block.

    What it says of activations is not used: rows are rounded as the kernels do it, if at all.
    """

    block: tuple[int, int] | None = None  # outputs and inputs that share a scale
    name: str = "compressed-tensors"
    marks: Sequence[str] = ("weight_packed", "weight_scale")
    parts: Sequence[str] = (
        *("weight", "weight_packed", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx"),
        *("input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    )

    def describe(self, saved: Mapping[str, SavedTensor]) -> Described:
        if "weight_packed" not in saved:
            return _bytes_of(saved, "weight_scale", self.block)
        outputs, words = _matrix(saved, "weight_packed", _INTEGERS)
        shape, order = saved.get("weight_shape"), saved.get("weight_g_idx")
        if shape is None or len(shape.numbers) != 2 or shape.numbers[0] != outputs:
            raise _misfit(saved)
        inputs = shape.numbers[1]
        for bits in (4, 8):
            if inputs > 0 and words == _words(inputs, bits) and (order is None or order.shape == (inputs,)):
                layer = _with_scales(Described(outputs, inputs, bits, inputs), saved, "weight_scale", self.block)
                break
        else:
            raise WrongWeights(f"numbers that have neither 4 bits nor 8 ({_shapes(saved)})")
        if zeros := saved.get("weight_zero_point"):
            groups = -(-inputs // layer.group)
            packed = zeros.dtype == "I32" and zeros.shape == (_words(outputs, bits), groups)
            if layer.rows_of_scale > 1 or not packed and (zeros.shape, zeros.dtype) != ((outputs, groups), "I8"):
                raise _misfit(saved)
        return layer

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        scales, zeros = _of_rows(_scales(tensors["weight_scale"]), layer), tensors.get("weight_zero_point")
        if "weight_packed" not in tensors:
            return _rows_of_bytes(tensors["weight"], scales, layer, zeros)
        middle = 8 if layer.bits == 4 else 128  # numbers and zeros are saved as so much more
        if zeros is None:
            zeros = torch.full(scales.shape, middle, dtype=torch.uint8)
        elif zeros.dtype is torch.int32:
            zeros = _unpacked(zeros.T.contiguous(), layer.bits)[:, : layer.outputs].T.contiguous()
        else:
            zeros = (zeros.short() + middle).to(torch.uint8)
        return _integer_rows(tensors["weight_packed"], scales, zeros, tensors.get("weight_g_idx"), layer)


@dataclass(frozen=True, slots=True)
class BlockFp8:
    """As DeepSeek and Qwen publish it: a weight of 8 bits, and a scale for each block of it."""

    block: tuple[int, int] | None
    name: str = "FP8"
    marks: Sequence[str] = ("weight_scale_inv",)
    parts: Sequence[str] = ("weight", "weight_scale_inv", "activation_scale", "input_scale")

    def describe(self, saved: Mapping[str, SavedTensor]) -> Described:
        return _bytes_of(saved, "weight_scale_inv", self.block)

    def rows(self, tensors: Mapping[str, Any], layer: Described) -> GroupedRows:
        return _rows_of_bytes(tensors["weight"], _of_rows(_scales(tensors["weight_scale_inv"]), layer), layer)


def _matrix(saved: Mapping[str, SavedTensor], name: str, dtypes: set[str]) -> tuple[int, int]:
    tensor = saved.get(name)
    if tensor is None:
        raise WrongWeights(f"no {name}")
    if len(tensor.shape) != 2 or 0 in tensor.shape or tensor.dtype not in dtypes:
        raise WrongWeights(f"a tensor {name} of {tensor.dtype} {list(tensor.shape)}")
    return tensor.shape[0], tensor.shape[1]


def _bytes_of(saved: Mapping[str, SavedTensor], scales: str, block: tuple[int, int] | None) -> Described:
    outputs, inputs = _matrix(saved, "weight", {"I8", *FP8_TYPES})
    layer = Described(outputs, inputs, 8, inputs, is_float=saved["weight"].dtype in FP8_TYPES)
    layer = _with_scales(layer, saved, scales, block)
    if zeros := saved.get("weight_zero_point"):
        groups = -(-inputs // layer.group)
        if layer.is_float or layer.rows_of_scale > 1 or zeros.shape != (outputs, groups) or zeros.dtype != "I8":
            raise _misfit(saved)
    return layer


def _with_scales(
    layer: Described, saved: Mapping[str, SavedTensor], name: str, block: tuple[int, int] | None
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


def _integer_rows(words: Any, scales: Any, zeros: Any, g_idx: Any | None, layer: Described) -> GroupedRows:
    """`words` [outputs, words], each of eight or four inputs. Inputs are put in the order of their groups."""
    order = None if g_idx is None else _order_of(g_idx, layer, scales.shape[1])
    numbers = words.contiguous().view(torch.uint8)
    if layer.bits == 8:
        numbers = numbers[:, : layer.inputs]
    if order is not None:
        unpacked = numbers if layer.bits == 8 else _unpacked(words, 4)[:, : layer.inputs]
        unpacked = unpacked.index_select(1, order.long())
        numbers = unpacked if layer.bits == 8 else _packed(unpacked)
    return GroupedRows(numbers, scales, layer.group, layer.inputs, zeros, order, has_four_bits=layer.bits == 4)


def _order_of(g_idx: Any, layer: Described, groups: int) -> Any | None:
    """By group, where groups are not inputs that follow each other (`desc_act`). None: they do."""
    usual = torch.arange(layer.inputs) // layer.group
    given = g_idx.long()
    if torch.equal(given, usual) or not given.any():  # some writers leave zeros where there is no order
        return None
    order = given.argsort(stable=True)
    if int(given.min()) < 0 or int(given.max()) >= groups or not torch.equal(given[order], usual):
        raise WrongWeights("a g_idx that does not divide its inputs into groups of one size")
    return order.to(torch.int32)


def _rows_of_bytes(weight: Any, scales: Any, layer: Described, zeros: Any | None = None) -> GroupedRows:
    if zeros is not None:
        # Numbers and zeros from -128 to 127 as those from 0 to 255.
        weight, zeros = ((one.short() + 128).to(torch.uint8) for one in (weight, zeros))
    return GroupedRows(weight, scales, layer.group, layer.inputs, zeros)


def _scales(tensor: Any) -> Any:
    scales = tensor.float().contiguous()
    if not scales.isfinite().all():
        raise WrongWeights("scales that are no numbers, or infinite")
    return scales


def _of_rows(scales: Any, layer: Described) -> Any:
    """[outputs, groups]"""
    scales = scales.reshape(-1, -(-layer.inputs // layer.group))
    if len(scales) == layer.outputs:
        return scales
    return scales.repeat_interleave(layer.rows_of_scale, 0)[: layer.outputs].contiguous()


def _of_outputs(words: Any) -> Any:
    """[outputs, inputs], of words in which AutoAWQ has eight outputs."""
    numbers = torch.empty(8 * words.shape[1], len(words), dtype=torch.uint8)
    for place, output in enumerate(_AWQ_ORDER):
        numbers[output::8] = (words >> 4 * place & 15).to(torch.uint8).T
    return numbers


def _unpacked(words: Any, bits: int) -> Any:
    """Numbers of 4 or 8 bits, one by one: the first is in the lowest bits of a word."""
    numbers = words.contiguous().view(torch.uint8)
    if bits == 8:
        return numbers
    return torch.stack([numbers & 15, numbers >> 4], -1).flatten(1)


def _packed(numbers: Any) -> Any:
    """Two in a byte, as in `GroupedRows`."""
    if numbers.shape[1] % 2:
        numbers = torch.nn.functional.pad(numbers, (0, 1))
    return numbers[:, ::2] | numbers[:, 1::2] << 4


def _words(numbers: int, bits: int) -> int:
    return -(-numbers * bits // 32)


def _misfit(saved: Mapping[str, SavedTensor]) -> WrongWeights:
    return WrongWeights(f"tensors that do not fit each other ({_shapes(saved)})")


def _shapes(saved: Mapping[str, SavedTensor]) -> str:
    return ", ".join(f"{name} {one.dtype} {list(one.shape)}" for name, one in saved.items())
