"""The small operations of a step in C, for CPU tensors in float32 or bfloat16."""

import ctypes
import logging
import platform
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import torch

log = logging.getLogger("tis.engine")

_VERSION = 1  # of the interface, as in kernels.c
_LEVELS = ["scalar", "avx2", "avx512", "avx512_bf16"]
_TYPES = {torch.float32: 0, torch.bfloat16: 1}
_MAX_HEAD_SIZE = 512
# Numbers for which a second thread is worth the waking: about ten microseconds of work.
_MIN_FOR_THREADS = 65_536
# The same for attention, in numbers of keys and values that are read.
_MIN_READ_FOR_THREADS = 32_768

_i64, _pointer = ctypes.c_int64, ctypes.c_void_p


class _AttentionArguments(ctypes.Structure):
    """`struct attention` of kernels.h."""

    _fields_ = [
        *((name, _pointer) for name in ("query", "keys", "values", "out", "runs")),
        *((name, _i64) for name in ("num_runs", "tokens", "heads", "key_heads", "slots", "size")),
        *((name, _i64) for name in ("query_head_stride", "query_token_stride", "key_head_stride", "key_slot_stride")),
        *((name, _i64) for name in ("value_head_stride", "value_slot_stride", "window")),
        *((name, ctypes.c_float) for name in ("scale", "softcap")),
    ]


class NativeKernels:
    """Tensors are on the CPU, in float32 or bfloat16, all of one type, with a contiguous last axis.

    Results are new tensors. Nothing is recorded for gradients. Any thread may call.
    """

    def __init__(self, library: Any, isa: str) -> None:
        self.isa = isa
        self._level = _LEVELS.index(isa)
        self._library = library

    def takes_heads(self, dtype: Any, head_size: int) -> bool:
        """Whether `attend` can compute with heads of this size."""
        return dtype in _TYPES and head_size % 16 == 0 and 0 < head_size <= _MAX_HEAD_SIZE

    def rms_norm(self, x: Any, weight: Any, eps: float) -> Any:
        """x [..., size]: normalised in float32, rounded to its type, then multiplied by the weight."""
        size = x.shape[-1]
        x, inner, outer_stride, inner_stride = _as_rows(x)
        out = torch.empty(x.shape, dtype=x.dtype)
        self._library.tis_rms_norm(
            *(self._level, _TYPES[x.dtype], self._threads(out)),
            *(x.data_ptr(), inner, outer_stride, inner_stride),
            *(weight.data_ptr(), out.data_ptr(), out.numel() // size if size else 0, size, eps),
        )
        return out

    def silu_mul(self, gate: Any, up: Any) -> Any:
        """[..., size]: silu(gate), rounded to its type, times up. Both may be halves of one tensor."""
        size = gate.shape[-1]
        out = torch.empty(gate.shape, dtype=gate.dtype)
        gate, gate_stride = _as_even_rows(gate)
        up, up_stride = _as_even_rows(up)
        self._library.tis_silu_mul(
            *(self._level, _TYPES[out.dtype], self._threads(out), gate.data_ptr(), gate_stride),
            *(up.data_ptr(), up_stride, out.data_ptr(), out.numel() // size if size else 0, size),
        )
        return out

    def rotary_(self, x: Any, cos: Any, sin: Any) -> None:
        """Turns x [heads, tokens, size] in place, whatever the order in its memory; cos and sin [tokens, size] have equal halves."""
        heads, tokens, size = x.shape
        head_stride, token_stride, _ = x.stride()
        self._library.tis_rotary(
            *(self._level, _TYPES[x.dtype], self._threads(x), x.data_ptr(), heads, tokens, size),
            *(head_stride, token_stride, cos.data_ptr(), cos.stride(0), sin.data_ptr(), sin.stride(0)),
        )

    def write_cache(self, keys: Any, values: Any, key: Any, value: Any, slots: Any) -> None:
        """Writes key and value [heads, tokens, size] to the rows `slots` of keys and values [heads, slots, size]."""
        for cache_, rows in ((keys, key), (values, value)):
            item = cache_.element_size()
            head_stride, slot_stride, _ = cache_.stride()
            rows_head_stride, rows_token_stride, _ = rows.stride()
            _check(
                self._library.tis_write_cache(
                    *(cache_.data_ptr(), cache_.shape[0], cache_.shape[1], head_stride * item, slot_stride * item),
                    *(rows.data_ptr(), rows_head_stride * item, rows_token_stride * item),
                    *(slots.data_ptr(), rows.shape[1], rows.shape[2] * item),
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
    ) -> Any:
        """Causal attention of query [heads, tokens, size] over keys and values [key_heads, slots, size] of the cache.

        `runs` [number, 4] of int64: begin, length, first_slot and num_before of each `QueryRun`. Returns [tokens, heads,
        size]; tokens of no run are not set.
        """
        heads, tokens, size = query.shape
        out = torch.empty((tokens, heads, size), dtype=query.dtype)
        arguments = _AttentionArguments(
            *(query.data_ptr(), keys.data_ptr(), values.data_ptr(), out.data_ptr(), runs.data_ptr()),
            *(runs.shape[0], tokens, heads, keys.shape[0], keys.shape[1], size),
            *(*query.stride()[:2], *keys.stride()[:2], *values.stride()[:2], window or 0, scale, softcap or 0.0),
        )
        threads = torch.get_num_threads()
        _check(self._library.tis_attend(self._level, _TYPES[query.dtype], threads, ctypes.byref(arguments)))
        return out

    def _threads(self, x: Any) -> int:
        return torch.get_num_threads() if x.numel() >= _MIN_FOR_THREADS else 1


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


def _as_even_rows(x: Any) -> tuple[Any, int]:
    """Returns the tensor, or a contiguous copy, with the distance between two rows."""
    x, inner, outer_stride, _ = _as_rows(x)
    return (x, outer_stride) if inner == 1 else (x.contiguous(), x.shape[-1])


def _check(code: int) -> None:
    if code == 2:
        raise MemoryError("There is no memory for the scratch of the attention.")
    if code:
        raise IndexError("A run or a slot lies outside of the cache or of the row.")


@cache
def native_kernels() -> NativeKernels | None:
    """Loads the library once. Without it, one line of the log says why."""
    try:
        return load_kernels(library_path())
    except OSError as error:
        log.info("the small operations of a step are computed by torch, not by native kernels: %s", error)
        return None


def library_path() -> Path:
    return Path(__file__).with_name("_native" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so"))


def load_kernels(path: Path, isa: str | None = None) -> NativeKernels:
    """Raises OSError with the reason. `isa` is for tests: an instruction set below the best of this CPU."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise OSError(f"they are made for x86-64, and this is {platform.machine()}")
    if not path.exists():
        raise OSError("they are not built; `make setup` builds them where there is a C compiler")
    # The library names no OpenMP of its own: its functions are found in the one of torch, once that is visible.
    folder = Path(torch.__file__).parent / "lib"
    for openmp in sorted(folder.glob("libgomp*.so*")):
        ctypes.CDLL(str(openmp), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(path))
    library.tis_version.restype = library.tis_best_level.restype = _i64
    if library.tis_version() != _VERSION:
        raise OSError("they were built from other sources; `make setup` builds them again")
    best = library.tis_best_level()
    level = best if isa is None else _LEVELS.index(isa)
    if level > best:
        raise OSError(f"this CPU has no {isa}")
    if isa is None and best == 0:
        raise OSError("this CPU has no AVX2")
    small = [_i64, _i64, _i64]
    library.tis_rms_norm.argtypes = [
        *(*small, _pointer, _i64, _i64, _i64, _pointer, _pointer, _i64, _i64, ctypes.c_float)
    ]
    library.tis_silu_mul.argtypes = [*small, _pointer, _i64, _pointer, _i64, _pointer, _i64, _i64]
    library.tis_rotary.argtypes = [*small, _pointer, *[_i64] * 5, _pointer, _i64, _pointer, _i64]
    library.tis_write_cache.argtypes = [*(_pointer, *[_i64] * 4, _pointer, _i64, _i64, _pointer, _i64, _i64)]
    library.tis_attend.argtypes = [*small, _pointer]
    library.tis_rms_norm.restype = library.tis_silu_mul.restype = library.tis_rotary.restype = None
    library.tis_write_cache.restype = library.tis_attend.restype = _i64
    return NativeKernels(library, _LEVELS[level])
