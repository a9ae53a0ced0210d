"""What the system is told about large parts of memory: where huge pages are worth it, and what to get at once.

Elsewhere than on Linux, and where the system does not know the advice, nothing happens.
"""

import ctypes
import math
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

_HUGE_PAGE, _POPULATE_WRITE = 14, 23  # MADV_HUGEPAGE; MADV_POPULATE_WRITE, since Linux 5.14
_PAGE_BYTES, _HUGE_PAGE_BYTES = 4096, 2**21


def in_huge_pages(shape: Sequence[int], dtype: Any) -> Any:
    """An empty tensor. A page of 2 MiB is found and cleared at once, and its address is looked up once.

    It begins where such a page does. What is behind its last whole one is in small pages, so that none is wasted.
    """
    num_bytes = math.prod(shape) * dtype.itemsize
    if num_bytes < _HUGE_PAGE_BYTES or sys.platform != "linux":
        return torch.empty(*shape, dtype=dtype)
    memory = torch.empty(num_bytes + _HUGE_PAGE_BYTES, dtype=torch.uint8)
    begin = -memory.data_ptr() % _HUGE_PAGE_BYTES
    memory = memory[begin : begin + num_bytes]
    prefer_huge_pages(memory.data_ptr(), num_bytes)
    return memory.view(dtype).view(*shape)


def prefer_huge_pages(address: int, size: int) -> None:
    """Of those that lie wholly in this part of memory."""
    first = -(-address // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES
    whole = (address + size - first) // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES
    if whole > 0 and sys.platform == "linux":
        _advise()(first, whole, _HUGE_PAGE)


def touch(address: int, size: int) -> bool:
    """Gets all pages of this part of memory, as writes would, and changes no byte. Returns whether it could."""
    first = address // _PAGE_BYTES * _PAGE_BYTES
    pages = -(-(address + size - first) // _PAGE_BYTES)
    return sys.platform == "linux" and not _advise()(first, pages * _PAGE_BYTES, _POPULATE_WRITE)


@cache
def _advise() -> Any:
    advise = ctypes.CDLL(None).madvise
    advise.argtypes, advise.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int], ctypes.c_int
    return advise
