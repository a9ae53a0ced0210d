"""The experts of a layer in native products. Rows are grouped by the experts that the model's router chose for them."""

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Any

import torch

from tis.engine.kernels.grouped_product import way_of
from tis.engine.kernels.integer_product import WeightBits, integers_of_row
from tis.engine.kernels.memory_advice import in_huge_pages
from tis.engine.kernels.native import TYPES, NativeKernels, Scratch, check_code
from tis.engine.kernels.product import BlockFormat, PackedWeights, address_of, is_bfloat16

_EXPERTS = Struct("@36q")  # `struct experts` of experts.c
_UP, _DOWN = 1, 2
# Products of a step for which a second thread is worth the waking.
_MIN_FOR_THREADS = 262_144


@dataclass(frozen=True, slots=True)
class ExpertMatrices:
    """Of all experts of a layer. Views will do: they are read expert by expert."""

    gate_up: Any  # [experts, outputs, hidden]
    down: Any  # [experts, hidden, inner]
    gate_up_bias: Any | None = None  # [experts, outputs]
    down_bias: Any | None = None

    @property
    def inner(self) -> int:
        return int(self.down.shape[2])


class NativeExperts:
    """`sum of share * down(activation(gate_up(x)))` over the experts that each row has chosen.

    `activation` None is SiLU of the first half of the outputs, times the second. Only one thread may call.
    """

    def __init__(
        self,
        matrices: ExpertMatrices,
        kernels: NativeKernels,
        activation: Callable[[Any], Any] | None,
        scratch: Scratch,
        *,
        bits: WeightBits | None = None,
    ) -> None:
        self.num_experts, self._up_width, self._hidden = matrices.gate_up.shape
        self._inner = matrices.inner
        self._activation, self._scratch = activation, scratch
        self._level = kernels.level
        self._compute = kernels.library.tis_experts
        self._compute.argtypes, self._compute.restype = [ctypes.c_char_p], ctypes.c_int64
        first, second = (matrices.gate_up, matrices.gate_up_bias), (matrices.down, matrices.down_bias)
        self._integer_level = 0
        if bits:
            self._gate_up, self._integer_level = _rounded(*first, kernels, bits)
            self._down, _ = _rounded(*second, kernels, bits)
        else:
            self._gate_up = _packed(*first, kernels, in_turn=activation is None)
            self._down = _packed(*second, kernels, in_turn=False)

    @property
    def num_bytes(self) -> int:
        """Of the matrices."""
        return self._gate_up.num_bytes + self._down.num_bytes

    def __call__(self, x: Any, chosen: Any, shares: Any) -> Any:
        """x [tokens, hidden], chosen and shares [tokens, number]. An expert that is `num_experts` adds nothing."""
        if chosen.shape != shares.shape or len(chosen) != len(x) or x.shape[1] != self._hidden:
            raise ValueError(f"{[*x.shape]} rows, {[*chosen.shape]} chosen experts and {[*shares.shape]} shares")
        x = x if x.stride(1) == 1 else x.contiguous()
        chosen, shares = chosen.to(torch.int64).contiguous(), shares.float().contiguous()
        out = x.new_empty(x.shape)
        pairs = chosen.numel()
        if not pairs:
            return out.zero_()
        rows, integers, row_scales = self._buffers(pairs, x.dtype)
        up = inner = None
        if self._activation is not None or self._integer_level:
            up = self._scratch.get("up", pairs * self._up_width, x.dtype)[: pairs * self._up_width]
        if self._activation is None:
            inner = self._scratch.get("inner", pairs * self._inner, x.dtype)
        is_large = pairs * self._hidden * (self._up_width + self._inner) >= _MIN_FOR_THREADS
        threads = torch.get_num_threads() if is_large else 1

        def compute(stages: int, inner: Any | None) -> None:
            check_code(
                self._compute(
                    _EXPERTS.pack(
                        *(self._level, TYPES[x.dtype], threads, self._integer_level, stages, self._activation is None),
                        *(*self._gate_up.fields(), *self._down.fields()),
                        *(x.data_ptr(), x.stride(0), chosen.data_ptr(), shares.data_ptr()),
                        *(*chosen.shape, self.num_experts, self._hidden, self._inner, self._up_width),
                        *(rows.data_ptr(), address_of(up), address_of(inner)),
                        *(integers.data_ptr(), row_scales.data_ptr(), out.data_ptr()),
                    )
                )
            )

        if self._activation is None:
            compute(_UP | _DOWN, inner)
        else:
            compute(_UP, None)
            assert up is not None
            compute(_DOWN, self._activation(up.view(pairs, self._up_width)).contiguous())
        return out

    def _buffers(self, pairs: int, dtype: Any) -> tuple[Any, Any, Any]:
        rows = self._scratch.get("rows", pairs * self._hidden, dtype)
        num_integers = pairs * integers_of_row(max(self._hidden, self._inner)) if self._integer_level else 0
        integers = self._scratch.get("integers", num_integers, torch.uint8)
        return rows, integers, self._scratch.get("row_scales", pairs if self._integer_level else 0, torch.float32)


def _packed(matrix: Any, bias: Any | None, kernels: NativeKernels, *, in_turn: bool) -> PackedWeights:
    """The matrices [experts, outputs, inputs] behind one another, as `BlockFormat` packs one."""
    form = BlockFormat(kernels, matrix.dtype)
    if matrix.dtype is torch.float32:
        narrow = BlockFormat(kernels, matrix.dtype, torch.bfloat16)
        form = narrow if narrow.takes(matrix.shape[2]) and all(is_bfloat16(one) for one in matrix) else form

    def of(expert: int, values: Any) -> Any:
        return form.interleave(*values[expert].chunk(2)) if in_turn else values[expert]

    experts = range(len(matrix))
    blocks = _stacked(len(matrix), (form.pack(of(expert, matrix)) for expert in experts))
    biases = None if bias is None else _stacked(len(matrix), (form.pack_bias(of(expert, bias)) for expert in experts))
    return PackedWeights(blocks, biases)


def _rounded(matrix: Any, bias: Any | None, kernels: NativeKernels, bits: WeightBits) -> tuple[PackedWeights, int]:
    """The same as integers, and how they are multiplied."""
    level = group = 0
    stacks: dict[str, Any] = {}
    make = way_of([*matrix], bits)
    for expert, weight in enumerate(matrix):
        product = make(weight, None if bias is None else bias[expert], kernels)
        level, group = product.level, product.group
        for name in ("blocks", "bias", "scales", "sums"):
            if (tensor := getattr(product, name)) is not None:
                stacks.setdefault(name, in_huge_pages((len(matrix), *tensor.shape), tensor.dtype))[expert] = tensor
        if product.order is not None:  # experts before it, and behind it, may be in order
            in_order = torch.arange(product.inputs, dtype=torch.int32).repeat(len(matrix), 1)
            stacks.setdefault("order", in_order)[expert] = product.order
    tensors = (stacks["blocks"], stacks.get("bias"), stacks["scales"], stacks.get("sums"))
    return PackedWeights(*tensors, level, group, stacks.get("order")), level


def _stacked(number: int, tensors: Iterable[Any]) -> Any:
    """One at a time, so that no second copy of all is held."""
    stacked: Any = None
    for index, tensor in enumerate(tensors):
        if stacked is None:
            stacked = in_huge_pages((number, *tensor.shape), tensor.dtype)
        stacked[index] = tensor
    return stacked
