"""What a fault of one step does to the requests, to the process and to the others."""

import pytest
import torch

from tis.engine.faults import StallClock, device_answers, is_out_of_memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"
        ),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_memory_that_runs_out_is_recognised(error: Exception) -> None:
    assert is_out_of_memory(error)


def test_another_error_that_quotes_the_words_is_not_taken_for_it() -> None:
    assert not is_out_of_memory(ValueError("out of memory")) and not is_out_of_memory(RuntimeError("shape mismatch"))


def test_a_real_allocation_that_fails_is_recognised() -> None:
    with pytest.raises(RuntimeError) as failed:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(failed.value) and device_answers(torch.device("cpu"))


def test_a_step_that_is_seen_too_often_is_stalled() -> None:
    clock = StallClock(3)
    assert [clock.is_stalled(7) for _ in range(4)] == [False, False, False, True]


def test_steps_that_end_and_pauses_between_them_are_not_stalled() -> None:
    clock = StallClock(2)
    assert not any(clock.is_stalled(step) for step in (1, 1, 2, 2, 3, None, 3, 3, None, None, None, None))
