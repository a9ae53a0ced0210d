"""Large tensors begin where a huge page does, and have the size that was asked for."""

import sys

import pytest
import torch

from tis.engine.kernels.memory_advice import in_huge_pages, touch

_HUGE_PAGE = 2**21


@pytest.mark.parametrize("shape", [(3, 5), (0, 7), (1, 2**20), (7, 300_001), (2, 3, 2**19, 2)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8, torch.float32])
def test_a_tensor_is_as_large_as_one_of_torch_and_can_be_written(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tensor = in_huge_pages(shape, dtype)
    assert tensor.shape == shape and tensor.dtype is dtype and tensor.is_contiguous()
    numbers = torch.arange(tensor.numel(), dtype=torch.float32).remainder(100).view(shape).to(dtype)
    tensor.copy_(numbers)
    assert torch.equal(tensor, numbers)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is asked of the system")
def test_a_large_one_begins_at_a_huge_page() -> None:
    assert in_huge_pages((3, 2**20), torch.float32).data_ptr() % _HUGE_PAGE == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is asked of the system")
def test_to_touch_memory_changes_no_byte() -> None:
    memory = torch.arange(100_000, dtype=torch.int32)
    touch(memory.data_ptr() + 5, memory.nbytes - 77)
    assert torch.equal(memory, torch.arange(100_000, dtype=torch.int32))
