"""Touches the first tokens of the KV cache in the background, so that no request waits for their memory.

The system gives memory page by page when it is written for the first time, and clears it. Requests may write to the
cache meanwhile: the system is asked for pages that can be written, and no byte changes.
"""

import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tis.engine.batching.kv_cache import PagedCache
from tis.engine.batching.memory import spare_bytes
from tis.engine.kernels.memory_advice import prefer_huge_pages, touch

log = logging.getLogger("tis.engine")

_PIECE_TOKENS = 1024
_LEFT_SHARE = 0.25  # of the memory


def touch_in_background(cache: PagedCache, num_tokens: int) -> threading.Thread:
    """The thread ends early when memory is scarce, or the cache is gone."""
    arguments = (weakref.ref(cache), num_tokens)
    thread = threading.Thread(target=touch_cache, args=arguments, name="touch-cache", daemon=True)
    thread.start()
    return thread


def touch_cache(
    cache_of: Callable[[], PagedCache | None], num_tokens: int, spare: Callable[[], int] | None = None
) -> int:
    """Returns how many bytes were touched. `spare` is what may still be taken."""
    _prefer_huge_pages(cache_of(), num_tokens)
    num_bytes = 0
    for begin in range(0, num_tokens, _PIECE_TOKENS):
        # The cache is let go between two pieces, so that it can be unloaded.
        touched = _touch_piece(
            cache_of(), begin, min(begin + _PIECE_TOKENS, num_tokens), spare or partial(spare_bytes, _LEFT_SHARE)
        )
        if not touched:
            break
        num_bytes += touched
    log.debug("%d MiB of the cache are touched", num_bytes >> 20)
    return num_bytes


def _prefer_huge_pages(cache: PagedCache | None, num_tokens: int) -> None:
    """Of this part alone: elsewhere a short answer would get 2 MiB in each head of each layer."""
    for head in _heads_of(cache, 0, num_tokens) if cache else ():
        prefer_huge_pages(head.data_ptr(), head.nbytes)


def _touch_piece(cache: PagedCache | None, begin: int, end: int, spare: Callable[[], int]) -> int:
    if cache is None or spare() < (end - begin) * cache.bytes_per_token:
        return 0
    num_bytes = 0
    for head in _heads_of(cache, begin, end):
        if not touch(head.data_ptr(), head.nbytes):
            return 0
        num_bytes += head.nbytes
    return num_bytes


def _heads_of(cache: PagedCache, begin: int, end: int) -> Iterator[Any]:
    """The rows of these tokens, in each head of each layer."""
    for tensor in cache.tensors:
        rows = tensor[:, begin:end]
        yield from rows if rows.numel() else ()
