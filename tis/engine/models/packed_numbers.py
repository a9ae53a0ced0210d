"""Numbers that lie several in a word, and the rows of weights that are made of them."""

from dataclasses import dataclass
from typing import Any

import torch

from tis.engine.kernels.grouped_rows import GroupedRows

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
    has_zeros: bool = False  # that are not the middle of all numbers


def integer_rows(words: Any, scales: Any, zeros: Any, g_idx: Any | None, layer: Described) -> GroupedRows:
    """`words` [outputs, words], each of eight or four inputs. Inputs are put in the order of their groups."""
    order = None if g_idx is None else _order_of(g_idx, layer, scales.shape[1])
    numbers = words.contiguous().view(torch.uint8)
    if layer.bits == 8:
        numbers = numbers[:, : layer.inputs]
    if order is not None:
        each = numbers if layer.bits == 8 else unpacked(words, 4)[:, : layer.inputs]
        each = each.index_select(1, order.long())
        numbers = each if layer.bits == 8 else packed_in_bytes(each)
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


def rows_of_bytes(weight: Any, scales: Any, layer: Described, zeros: Any | None = None) -> GroupedRows:
    if zeros is not None:
        # Numbers and zeros from -128 to 127 as those from 0 to 255.
        weight, zeros = ((one.short() + 128).to(torch.uint8) for one in (weight, zeros))
    return GroupedRows(weight, scales, layer.group, layer.inputs, zeros)


def finite_scales(tensor: Any) -> Any:
    scales = tensor.float().contiguous()
    if not scales.isfinite().all():
        raise WrongWeights("scales that are no numbers, or infinite")
    return scales


def scales_of_rows(scales: Any, layer: Described) -> Any:
    """[outputs, groups]"""
    scales = scales.reshape(-1, -(-layer.inputs // layer.group))
    if len(scales) == layer.outputs:
        return scales
    return scales.repeat_interleave(layer.rows_of_scale, 0)[: layer.outputs].contiguous()


def numbers_of_awq(words: Any) -> Any:
    """[outputs, inputs], of words in which AutoAWQ has eight outputs."""
    numbers = torch.empty(8 * words.shape[1], len(words), dtype=torch.uint8)
    for place, output in enumerate(_AWQ_ORDER):
        numbers[output::8] = (words >> 4 * place & 15).to(torch.uint8).T
    return numbers


def unpacked(words: Any, bits: int) -> Any:
    """Numbers of 4 or 8 bits, one by one: the first is in the lowest bits of a word."""
    numbers = words.contiguous().view(torch.uint8)
    if bits == 8:
        return numbers
    return torch.stack([numbers & 15, numbers >> 4], -1).flatten(1)


def packed_in_bytes(numbers: Any) -> Any:
    """Two in a byte, as in `GroupedRows`."""
    if numbers.shape[1] % 2:
        numbers = torch.nn.functional.pad(numbers, (0, 1))
    return numbers[:, ::2] | numbers[:, 1::2] << 4


def num_words(numbers: int, bits: int) -> int:
    return -(-numbers * bits // 32)
