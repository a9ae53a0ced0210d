"""The first tokens of the cache lie in memory before a request writes them, as far as there is memory to spare."""

import ctypes
import sys
import weakref

import psutil  # type: ignore[import-untyped]  # comes with accelerate
import pytest
import torch

from tis.engine.batching.kv_cache import CacheShape, LayerCache, PagedCache
from tis.engine.batching.memory import spare_bytes
from tis.engine.batching.touched_cache import touch_cache, touch_in_background

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system is asked in the way of Linux")

_PAGE, _TOKENS, _READY = 4096, 65_536, 16_384
_LIBC, _DONT_NEED = ctypes.CDLL(None), 4  # MADV_DONTNEED
_LAYER = LayerCache(num_heads=2, key_size=128, value_size=128)


def new_cache(*, has_8_bits: bool = False) -> PagedCache:
    shape = CacheShape((_LAYER, _LAYER), torch.float32, torch.device("cpu"), has_8_bits=has_8_bits)
    cache = PagedCache(shape, _TOKENS // 16, 16)
    for tensor in cache.tensors:  # may lie where an earlier test has been
        assert _LIBC.madvise(*_pages_of(tensor), _DONT_NEED) == 0
    return cache


def _pages_of(rows: torch.Tensor) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    """Those that lie wholly in contiguous rows."""
    first = -(-rows.data_ptr() // _PAGE) * _PAGE
    return ctypes.c_void_p(first), ctypes.c_size_t((rows.data_ptr() + rows.nbytes - first) // _PAGE * _PAGE)


def pages_in_memory(rows: torch.Tensor) -> float:
    first, size = _pages_of(rows)
    count = size.value // _PAGE
    found = (ctypes.c_ubyte * count)()
    assert _LIBC.mincore(first, size, found) == 0
    return len([one for one in found if one & 1]) / count


def test_the_first_tokens_lie_in_memory_and_the_others_do_not() -> None:
    cache = new_cache()
    touch_in_background(cache, _READY).join()
    for tensor in cache.tensors:
        for head in tensor:
            assert pages_in_memory(head[:_READY]) == 1
            # The system may put some there by itself, to make huge pages.
            assert pages_in_memory(head[2 * _READY :]) < 0.5


def test_what_requests_have_written_stays() -> None:
    cache = new_cache(has_8_bits=True)
    rows, slots = torch.randn(1, 2, 3, 128), torch.tensor([0, 5000, _TOKENS - 1])
    cache.write(1, slots, rows, -rows)
    written = (cache.keys[1], cache.values[1], *(cache.scales[1] or ()))
    before = [tensor[:, slots] for tensor in written]  # copies
    assert touch_cache(lambda: cache, _TOKENS) > 0
    assert all(torch.equal(tensor[:, slots], old) for tensor, old in zip(written, before, strict=True))


def test_scarce_memory_is_left_to_others() -> None:
    cache, piece = new_cache(), 1024 * 2 * _LAYER.num_numbers * 4
    left = [3 * piece + piece // 2]

    def spare() -> int:
        now, left[0] = left[0], left[0] - piece
        return now

    assert touch_cache(lambda: cache, _READY, spare) == 3 * piece
    assert touch_cache(lambda: cache, _READY, lambda: -1) == 0


def test_a_cache_that_is_gone_is_not_kept_alive() -> None:
    cache = new_cache()
    reference = weakref.ref(cache)
    del cache
    assert reference() is None and touch_cache(reference, _READY) == 0


def test_a_small_cache_is_touched_to_its_end() -> None:
    shape = CacheShape((_LAYER,), torch.float32, torch.device("cpu"))
    assert touch_cache(lambda: PagedCache(shape, 3, 16), _READY, lambda: 2**40) == 3 * 16 * _LAYER.num_numbers * 4


def test_a_quarter_of_the_memory_is_never_taken() -> None:
    memory = psutil.virtual_memory()
    assert spare_bytes(0.25) < memory.total - memory.total // 5
