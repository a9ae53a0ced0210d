"""How large caches are: several models share a machine, and a restart never shortens the context."""

import pytest
import torch

from tis.engine.batching import memory
from tis.engine.batching.memory import MemoryBudget
from tis.engine.errors import LoadFailed

CPU, GIB = torch.device("cpu"), 2**30
PER_TOKEN = 2**16


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    sizes = {"total": 16 * GIB, "free": 12 * GIB}
    monkeypatch.setattr(memory, "_total_bytes", lambda device: sizes["total"])
    monkeypatch.setattr(memory, "_free_bytes", lambda device: sizes["free"])
    return sizes


def tokens(budget: MemoryBudget, context_length: int, weights: int = 2 * GIB) -> int:
    return budget.cache_tokens(CPU, weights, PER_TOKEN, context_length)


def test_the_context_does_not_depend_on_the_memory_that_is_free(machine: dict[str, int]) -> None:
    plenty = tokens(MemoryBudget(), 32768)
    machine["free"] = GIB // 4
    assert plenty > tokens(MemoryBudget(), 32768) == 32768


def test_a_context_that_the_machine_cannot_hold_is_as_long_after_a_restart(machine: dict[str, int]) -> None:
    before = tokens(MemoryBudget(), 10**6)
    machine["free"] = GIB // 4
    assert before == tokens(MemoryBudget(), 10**6) == 7 * GIB // PER_TOKEN


def test_models_share_the_machine(machine: dict[str, int]) -> None:
    machine["free"] = 64 * GIB
    assert tokens(MemoryBudget(num_models=2), 10**6) == 3 * GIB // PER_TOKEN


def test_a_declared_budget_is_for_weights_and_cache(machine: dict[str, int]) -> None:
    assert tokens(MemoryBudget(declared_bytes=3 * GIB, num_models=5), 10**6) == GIB // PER_TOKEN
    with pytest.raises(LoadFailed, match="memory_mb is 1024, and the weights alone take 2048 MiB"):
        tokens(MemoryBudget(declared_bytes=GIB), 1000)


def test_no_cache_is_larger_than_is_useful(machine: dict[str, int]) -> None:
    assert tokens(MemoryBudget(), 1000) == 16 * 1024
