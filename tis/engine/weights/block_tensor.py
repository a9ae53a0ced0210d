"""Weights that a file has in blocks, as a tensor that has numbers only while something is computed with them.

A model is prepared by comparing modules, merging matrices and packing them (decision 0083). With these in place of its
parameters, none of that needs the model in floats: rows and merged matrices stay blocks, which lie in the mapped file.
Blocks are those of GGUF (`BlockRows`), or of GPTQ, AWQ, compressed-tensors and FP8 (`GroupedRows`).
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from tis.engine.kernels.gguf_blocks import BlockRows
from tis.engine.kernels.grouped_rows import GroupedRows, may_be_grouped

_aten = torch.ops.aten
_NUMBERS_AT_ONCE = 2**20


Rows = BlockRows | GroupedRows


class BlockTensor(torch.Tensor):  # type: ignore[misc]
    """[outputs, inputs]. What it has no other way for is computed with its numbers, which are forgotten then."""

    parts: Sequence[Rows]

    @staticmethod
    def __new__(cls, parts: Sequence[Rows], dtype: Any) -> "BlockTensor":
        shape = (sum(len(part) for part in parts), parts[0].inputs)
        with torch.inference_mode(False):  # else it could not be a view of one that was made outside of that mode
            new: BlockTensor = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device="cpu")
        new.parts = parts
        return new

    def __init__(self, parts: Sequence[Rows], dtype: Any) -> None:
        super().__init__()

    def __repr__(self, **options: Any) -> str:
        return f"BlockTensor({tuple(self.shape)}, kinds {sorted(self.kinds)}, {self.dtype})"

    @property
    def kinds(self) -> set[str]:
        return {part.kind for part in self.parts}

    @property
    def has_four_bits(self) -> bool:
        """Whether a native product keeps its numbers of 4 bits."""
        return all(isinstance(part, BlockRows) and part.has_four_bits for part in self.parts) or self.keeps_scales

    @property
    def keeps_scales(self) -> bool:
        """Whether a `GroupedProduct` is these weights without another rounding."""
        return may_be_grouped(self.parts)

    @property
    def has_floats(self) -> bool:
        """Of 8 bits."""
        return any(isinstance(part, GroupedRows) and part.numbers.dtype.is_floating_point for part in self.parts)

    def numbers(self, dtype: Any = None) -> Any:
        """As a plain tensor."""
        with torch.inference_mode(False):  # as above: views of it are views of this tensor
            parts = [part.floats() for part in self.parts]
            return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(dtype or self.dtype)

    def pack_int4(self, out: Any, scales: Any, width: int) -> bool:
        """Puts numbers of 4 bits into blocks of `Int4Product`, which are zero before, and again if they do not fit."""
        first = num_left_out = 0
        for part in self.parts:
            if not isinstance(part, BlockRows) or not part.has_four_bits:
                return False
            num_left_out += part.kernels.pack_int4(part.blocks, part.ggml_type, out, scales, first, width)
            first += len(part)
        if num_left_out:
            out.zero_()
        return not num_left_out

    def integers_of_outputs(self) -> tuple[Any, Any] | None:
        """int8 [outputs, inputs], and a scale of each output, if that is what these weights are."""
        parts = [isinstance(part, GroupedRows) and part.integers_of_outputs() for part in self.parts]
        if not all(parts):
            return None
        integers, scales = zip(*parts, strict=True)
        return torch.cat(integers), torch.cat(scales)

    def with_parts(self, parts: Sequence[Rows], dtype: Any = None) -> "BlockTensor":
        return BlockTensor(parts, dtype or self.dtype)

    def rows(self, begin: int, end: int) -> list[Rows]:
        found, at = [], 0
        for part in self.parts:
            size = len(part)
            if begin < at + size and end > at:
                found.append(part[max(0, begin - at) : end - at])
            at += size
        return found

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            if func is torch.nn.functional.linear and isinstance(args[1], BlockTensor):
                return _linear(*args, **kwargs)
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (way := _WAYS.get(func)) and (result := way(*args, **kwargs)) is not NotImplemented:
            return result
        return func(*(_plain(one) for one in args), **{name: _plain(one) for name, one in kwargs.items()})


class BlockStack(torch.Tensor):  # type: ignore[misc]
    """[experts, outputs, inputs], of a `BlockTensor` for each."""

    experts: Sequence[BlockTensor]

    @staticmethod
    def __new__(cls, experts: Sequence[BlockTensor]) -> "BlockStack":
        shape = (len(experts), *experts[0].shape)
        with torch.inference_mode(False):
            new: BlockStack = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=experts[0].dtype, device="cpu")
        new.experts = experts
        return new

    def __init__(self, experts: Sequence[BlockTensor]) -> None:
        super().__init__()

    def __repr__(self, **options: Any) -> str:
        return f"BlockStack({tuple(self.shape)}, {self.dtype})"

    @property
    def keeps_scales(self) -> bool:
        """Whether those of all experts are alike."""
        kinds = {one.parts[0].kind for one in self.experts}
        return len(kinds) == 1 and all(one.keeps_scales for one in self.experts)

    @property
    def has_floats(self) -> bool:
        return any(one.has_floats for one in self.experts)

    def numbers(self) -> Any:
        with torch.inference_mode(False):
            return torch.stack([one.numbers() for one in self.experts])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (way := _WAYS_OF_STACKS.get(func)) and (result := way(*args, **kwargs)) is not NotImplemented:
            return result
        return func(*(_plain(one) for one in args), **{name: _plain(one) for name, one in kwargs.items()})

    __torch_function__ = torch._C._disabled_torch_function_impl


def _plain(value: Any) -> Any:
    if isinstance(value, BlockTensor | BlockStack):
        return value.numbers()
    return type(value)(_plain(one) for one in value) if isinstance(value, list | tuple) else value


def _linear(x: Any, weight: BlockTensor, bias: Any = None) -> Any:
    """A few rows of weights at a time, which stay in the cache of the CPU."""
    rows = x.reshape(-1, x.shape[-1])
    out = rows.new_empty(len(rows), len(weight))
    at_once = max(1, _NUMBERS_AT_ONCE // weight.shape[1])
    for begin in range(0, len(weight), at_once):
        end = min(begin + at_once, len(weight))
        out[:, begin:end] = rows @ weight[begin:end].numbers().T
    if bias is not None:
        out += bias
    return out.view(*x.shape[:-1], len(weight))


def _same(tensor: BlockTensor, *shape: Any) -> Any:
    return tensor.with_parts(tensor.parts)


def _slice(tensor: BlockTensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    begin, end, step = slice(start, end, step).indices(len(tensor))
    return tensor.with_parts(rows) if dim == 0 and step == 1 and (rows := tensor.rows(begin, end)) else NotImplemented


def _cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    first = tensors[0]
    if dim or not all(
        isinstance(one, BlockTensor) and one.shape[1:] == first.shape[1:] and one.dtype is first.dtype
        for one in tensors
    ):
        return NotImplemented
    return first.with_parts([part for one in tensors for part in one.parts])


def _to(tensor: BlockTensor, *, dtype: Any = None, device: Any = None, **options: Any) -> Any:
    dtype = dtype or tensor.dtype
    if device is not None and torch.device(device).type == "meta":
        return torch.empty(tensor.shape, dtype=dtype, device="meta")
    if device is not None and torch.device(device).type != "cpu":
        return NotImplemented
    return tensor.with_parts(tensor.parts, dtype) if dtype.is_floating_point else NotImplemented


def _zeros(tensor: BlockTensor, size: Sequence[int], *, dtype: Any = None, device: Any = None, **options: Any) -> Any:
    return torch.zeros(size, dtype=dtype or tensor.dtype, device=device or "cpu")


def _embedding(tensor: Any, indices: Any, *options: Any) -> Any:
    flat = indices.reshape(-1)
    if not isinstance(tensor, BlockTensor) or len(tensor.parts) != 1 or not prod(flat.shape):
        return NotImplemented
    [part] = tensor.parts
    rows = tensor.with_parts([part[flat]]).numbers()
    return rows.view(*indices.shape, tensor.shape[1])


# In inference mode these arrive whole.
_ARRIVE_WHOLE = {one: one.decompose for one in (_aten.to.dtype, _aten.to.device, _aten.to.dtype_layout, _aten.to.other)}


def _stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    first = tensors[0]
    is_alike = all(
        isinstance(one, BlockTensor) and (one.shape, one.dtype) == (first.shape, first.dtype) for one in tensors
    )
    return BlockStack(list(tensors)) if dim == 0 and is_alike else NotImplemented


def _same_stack(stack: BlockStack, *shape: Any) -> Any:
    return BlockStack(stack.experts)


def _expert(stack: BlockStack, dim: int, index: int) -> Any:
    return _same(stack.experts[index]) if dim == 0 else NotImplemented


def _experts(stack: BlockStack, dim: int = 0) -> Any:
    return [_same(one) for one in stack.experts] if dim == 0 else NotImplemented


def _cat_experts(stacks: Sequence[Any], dim: int = 0) -> Any:
    """Outputs behind outputs, of each expert."""
    if dim != 1 or not all(isinstance(one, BlockStack) and len(one) == len(stacks[0]) for one in stacks):
        return NotImplemented
    both = [_cat(of_expert) for of_expert in zip(*(one.experts for one in stacks), strict=True)]
    return NotImplemented if any(one is NotImplemented for one in both) else BlockStack(both)


def _to_stack(stack: BlockStack, **options: Any) -> Any:
    moved = [_to(one, **options) for one in stack.experts]
    if all(isinstance(one, BlockTensor) for one in moved):
        return BlockStack(moved)
    return NotImplemented if any(one is NotImplemented for one in moved) else torch.stack(moved)


_WAYS: dict[Any, Callable[..., Any]] = {
    _aten.detach.default: _same,
    _aten.alias.default: _same,
    _aten.slice.Tensor: _slice,
    _aten.cat.default: _cat,
    _aten._to_copy.default: _to,
    _aten.new_zeros.default: _zeros,
    _aten.embedding.default: _embedding,
    _aten.stack.default: _stack,
    **_ARRIVE_WHOLE,
}
_WAYS_OF_STACKS: dict[Any, Callable[..., Any]] = {
    _aten.detach.default: _same_stack,
    _aten.alias.default: _same_stack,
    _aten.select.int: _expert,
    _aten.unbind.int: _experts,
    _aten.cat.default: _cat_experts,
    _aten._to_copy.default: _to_stack,
    **_ARRIVE_WHOLE,
}
