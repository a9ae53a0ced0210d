"""The small operations of a step in C, for CPU tensors in float32 or bfloat16."""

import ctypes
import logging
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Any

import torch

from tis.engine.kernels.build import library_path, why_not_here

log = logging.getLogger("tis.engine")

ISAS = ("scalar", "avx2", "avx512", "avx512_bf16", "amx")
_VERSION = 18  # of the interface, as in kernels.c
TYPES = {torch.float32: 0, torch.bfloat16: 1}
_MAX_HEAD_SIZE = 576  # a latent of 512 and what is rotated of a key
# Below so many numbers the waking of a second thread takes longer than their computation.
_MIN_FOR_THREADS = 65_536

# The structures of kernels.h. Packing one costs less than passing its fields through ctypes one by one.
_RMS_NORM = Struct("@3q 4q 4q f")
_SILU_MUL = Struct("@3q 4q 4q 3q")
_ROTARY = Struct("@3q 6q 4q")
_WRITE_CACHE = Struct("@3q 9q 9q 4q")
_ATTENTION = Struct("@3q 8q 7q 10q 2f")


class NativeKernels:
    """Tensors are on the CPU, in float32 or bfloat16, all of one type, with a contiguous last axis.

    Results are new tensors. Nothing is recorded for gradients. Any thread may call.
    """

    def __init__(self, library: Any, isa: str) -> None:
        self.isa = isa
        self.level = ISAS.index(isa)
        self._library = library

    @property
    def library(self) -> Any:
        """For functions that another file of this package declares."""
        return self._library

    def takes(self, dtype: Any, *head_sizes: int) -> bool:
        """Whether `attend` computes heads of these sizes; the other operations take any size."""
        return dtype in TYPES and all(size % 16 == 0 and 0 < size <= _MAX_HEAD_SIZE for size in head_sizes)

    def rms_norm(self, x: Any, weight: Any, eps: float) -> Any:
        """x [..., size]: normalised in float32, rounded to its type, then multiplied by the weight."""
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        if not (count := out.numel()):
            return out
        x, *rows = _as_rows(x)
        size = x.shape[-1]
        self._library.tis_rms_norm(
            _RMS_NORM.pack(
                *(self.level, TYPES[x.dtype], _num_threads(count), x.data_ptr(), *rows),
                *(weight.data_ptr(), out.data_ptr(), count // size, size, eps),
            )
        )
        return out

    def silu_mul(self, gate: Any, up: Any) -> Any:
        """[..., size]: silu(gate), rounded to its type, times up. Both may be halves of one tensor."""
        out = torch.empty_like(gate, memory_format=torch.contiguous_format)
        if not (count := out.numel()):
            return out
        gate, *gate_rows = _as_rows(gate)
        up, *up_rows = _as_rows(up)
        size = gate.shape[-1]
        self._library.tis_silu_mul(
            _SILU_MUL.pack(
                *(self.level, TYPES[gate.dtype], _num_threads(count), gate.data_ptr(), *gate_rows),
                *(up.data_ptr(), *up_rows, out.data_ptr(), count // size, size),
            )
        )
        return out

    def rotary_(self, x: Any, cos: Any, sin: Any) -> None:
        """Turns x [heads, tokens, size] in place, in whatever order its memory is.

        cos and sin [tokens, size] have equal halves.
        """
        self._library.tis_rotary(
            _ROTARY.pack(
                *(self.level, TYPES[x.dtype], _num_threads(x.numel()), x.data_ptr(), *x.shape, *x.stride()[:2]),
                *(cos.data_ptr(), sin.data_ptr(), cos.stride(0), sin.stride(0)),
            )
        )

    def write_cache(
        self, keys: Any, values: Any, key: Any, value: Any, slots: Any, scales: tuple[Any, Any] | None = None
    ) -> None:
        """Writes key and value [heads, tokens, size] to the rows `slots` of keys and values [heads, slots, size].

        Values may have another size than keys. With `scales` [heads, slots] of both, keys and values have 8 bits.
        """
        key_scales, value_scales = scales or (None, None)
        check_code(
            self._library.tis_write_cache(
                _WRITE_CACHE.pack(
                    *(self.level, TYPES[key.dtype], _num_threads(key.numel())),
                    *(keys.data_ptr(), *keys.stride()[:2], *_fields_of(key_scales)),
                    *(key.data_ptr(), *key.stride()[:2], keys.shape[2]),
                    *(values.data_ptr(), *values.stride()[:2], *_fields_of(value_scales)),
                    *(value.data_ptr(), *value.stride()[:2], values.shape[2]),
                    *(slots.data_ptr(), len(slots), *keys.shape[:2]),
                )
            )
        )

    def attend(
        self,
        query: Any,
        keys: Any,
        values: Any,
        runs: Any,
        scale: float,
        window: int | None = None,
        softcap: float | None = None,
        chunk: int | None = None,
        sinks: Any | None = None,
        *,
        is_bidirectional: bool = False,
        scales: tuple[Any, Any] | None = None,
    ) -> Any:
        """Causal attention of query [heads, tokens, size] over keys and values [key_heads, slots, size] of the cache.

        `is_bidirectional`: tokens see those behind them in their run, too. With `scales` [key_heads, slots] of both,
        keys and values have 8 bits.

        `runs` [number, 4] of int64: begin, length, first_slot and num_before of each `QueryRun`. Values may have
        another size. Returns [tokens, heads, size of values]; tokens of no run are not set.
        """
        heads, tokens, _ = query.shape
        out = query.new_empty((tokens, heads, values.shape[2]))
        sinks = None if sinks is None else sinks.detach().float().contiguous()
        key_scales, value_scales = scales or (None, None)
        (of_keys, scale_stride), (of_values, _) = _fields_of(key_scales), _fields_of(value_scales)
        check_code(
            self._library.tis_attend(
                _ATTENTION.pack(
                    *(self.level, TYPES[query.dtype], torch.get_num_threads(), query.data_ptr(), keys.data_ptr()),
                    *(values.data_ptr(), out.data_ptr(), runs.data_ptr(), of_keys, of_values),
                    0 if sinks is None else sinks.data_ptr(),
                    *(len(runs), tokens, heads, *keys.shape, values.shape[2]),
                    *(
                        *query.stride()[:2],
                        *keys.stride()[:2],
                        *values.stride()[:2],
                        scale_stride,
                        window or 0,
                        chunk or 0,
                        int(is_bidirectional),
                        scale,
                        softcap or 0.0,
                    ),
                )
            )
        )
        return out


class Scratch:
    """Memory that the layers of a model share, as they are computed one after the other."""

    def __init__(self) -> None:
        self._buffers: dict[str, Any] = {}

    def get(self, name: str, size: int, dtype: Any) -> Any:
        buffer = self._buffers.get(name)
        if buffer is None or buffer.dtype is not dtype or len(buffer) < size:
            buffer = self._buffers[name] = torch.empty(size, dtype=dtype)
        return buffer


def _num_threads(count: int) -> int:
    return torch.get_num_threads() if count >= _MIN_FOR_THREADS else 1


def _fields_of(scales: Any | None) -> tuple[int, int]:
    """The address of scales [heads, slots] of a cache of 8 bits, and from one head to the next."""
    return (0, 0) if scales is None else (scales.data_ptr(), scales.stride(0))


def _as_rows(x: Any) -> tuple[Any, int, int, int]:
    """Returns the tensor, or a contiguous copy, with how its rows lie (`struct rows` of kernels.h)."""
    if x.is_contiguous():
        return x, 1, x.shape[-1], 0
    levels: list[tuple[int, int]] = []  # length and stride, from the outside
    for length, stride in zip(x.shape[:-1], x.stride()[:-1], strict=True):
        if length == 1:
            continue
        if levels and levels[-1][1] == stride * length:
            levels[-1] = (levels[-1][0] * length, stride)
        else:
            levels.append((length, stride))
    if len(levels) > 2 or x.stride(-1) != 1:
        return x.contiguous(), 1, x.shape[-1], 0
    if len(levels) == 2:
        return x, levels[1][0], levels[0][1], levels[1][1]
    return x, 1, levels[0][1] if levels else 0, 0


def check_code(code: int) -> None:
    if code == 2:
        raise MemoryError("There is no memory for the scratch of the attention.")
    if code:
        raise IndexError("A run or a slot lies outside of the row or of the cache.")


@cache
def native_kernels() -> NativeKernels | None:
    """Loads the library once. Without it, one line of the log says why: a warning, if it was built and is of no use."""
    path = library_path()
    try:
        return load_kernels(path)
    except OSError as error:
        level = logging.WARNING if path.exists() else logging.INFO
        log.log(level, "torch alone computes, more slowly, as there are no native kernels: %s", error)
        return None


def load_kernels(path: Path, isa: str | None = None) -> NativeKernels:
    """Raises OSError with the reason. `isa` is for tests: an instruction set below the best of this CPU."""
    if reason := why_not_here():
        raise OSError(reason)
    if not path.exists():
        raise OSError("they are not built; `make setup` builds them where there is a C compiler")
    # The library names no OpenMP of its own: it finds the one that torch brings, once that is visible to all.
    for openmp in sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*")):
        ctypes.CDLL(str(openmp), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(path))
    library.tis_version.restype = library.tis_best_level.restype = ctypes.c_int64
    if library.tis_version() != _VERSION:
        raise OSError("they were built from other sources; `make setup` builds them again")
    best = library.tis_best_level()
    if isa is None and best == 0:
        raise OSError("this CPU has no AVX2")
    level = best if isa is None else ISAS.index(isa)
    if level > best:
        raise OSError(f"this CPU has no {isa}")
    for function in (library.tis_rms_norm, library.tis_silu_mul, library.tis_rotary):
        function.argtypes, function.restype = [ctypes.c_char_p], None
    for function in (library.tis_write_cache, library.tis_attend):
        function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_int64
    return NativeKernels(library, ISAS[level])
