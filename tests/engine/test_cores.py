"""How many cores and parts of the memory a process may use, on machines that are not here."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.engine.conftest import DEMO
from tis.arguments.catalogue import served_models_of
from tis.arguments.loading import loader_of
from tis.engine import cores
from tis.engine.cores import best_threads, is_interleaved, memory_nodes, physical_cores, use_threads
from tis.engine.machine import crowded_threads, sockets
from tis.settings import Settings


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def write_cpus(folder: Path, siblings: list[str]) -> Path:
    for cpu, text in enumerate(siblings):
        topology = folder / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{text}\n")
    return folder


def test_two_hardware_threads_of_a_core_are_one(tmp_path: Path) -> None:
    folder = write_cpus(tmp_path, ["0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"])
    assert physical_cores(frozenset(range(8)), folder) == 4
    assert physical_cores(frozenset({0, 4, 5}), folder) == 2


def test_where_the_system_does_not_say_there_are_no_more_than_may_be_used(tmp_path: Path) -> None:
    assert physical_cores(frozenset({0}), tmp_path) == 1


@pytest.mark.parametrize(("quota", "expected"), [(None, 4), (2.5, 2), (0.5, 1), (64, 4)])
def test_models_have_as_many_threads_as_the_container_has_whole_cores(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, expected: int
) -> None:
    monkeypatch.setattr(cores, "allowed_cpus", lambda: frozenset(range(8)))
    monkeypatch.setattr(cores, "physical_cores", lambda cpus: 4)
    monkeypatch.setattr(cores, "container_cores", lambda: quota)
    assert best_threads() == expected


@pytest.mark.usefixtures("threads")
def test_the_setting_counts_then_openmp_then_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen_by_a_new_thread() -> int:
        seen: list[int] = []
        thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        return seen[0]

    monkeypatch.setattr(cores, "best_threads", lambda: 2)
    torch.set_num_threads(3)
    use_threads(0, are_set=True)
    assert seen_by_a_new_thread() == 3
    use_threads(0, are_set=False)
    assert seen_by_a_new_thread() == 2
    torch.set_num_threads(1)
    use_threads(0, are_set=False)
    assert seen_by_a_new_thread() == 1
    use_threads(7, are_set=True)
    assert seen_by_a_new_thread() == 7


@pytest.mark.model
@pytest.mark.usefixtures("threads")
def test_a_model_that_is_loaded_computes_with_the_threads_of_the_setting() -> None:
    settings = Settings(model_repo_id=DEMO, cpu_threads=3)
    [entry] = served_models_of(settings)
    loader_of(settings)(entry, lambda stage, share: None)
    assert torch.get_num_threads() == 3


def test_a_part_of_the_memory_counts_if_one_of_its_cores_may_be_used(tmp_path: Path) -> None:
    for node, text in enumerate(["0-3,8", "4-7", ""]):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{text}\n")
    assert memory_nodes(frozenset(range(8)), tmp_path) == 2
    assert memory_nodes(frozenset({8}), tmp_path) == 1
    assert memory_nodes(frozenset({1}), tmp_path / "nothing") == 1


def test_memory_that_lies_on_all_sockets_in_turn_is_recognised(tmp_path: Path) -> None:
    maps = tmp_path / "numa_maps"
    maps.write_text("00400000 interleave:0-1 file=/usr/bin/python3\n")
    assert is_interleaved(maps)
    maps.write_text("00400000 default file=/usr/bin/python3\n")
    assert not is_interleaved(maps) and not is_interleaved(tmp_path / "nothing")


def test_what_is_slow_with_many_threads_and_sockets_is_said() -> None:
    [finding] = crowded_threads(8, 2.5)
    assert (finding.verdict, finding.values) == ("slow", {"threads": 8, "cores": "2.5"})
    assert not [*crowded_threads(2, 2.5), *crowded_threads(None, 1), *crowded_threads(1, 0.5)]
    [finding] = sockets(2, interleaved=False)
    assert finding.verdict == "slow" and "numactl --interleave=all" in finding.text
    assert not [*sockets(1, interleaved=False), *sockets(2, interleaved=True)]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_the_affinity_of_this_process_counts() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert best_threads() == 1
    finally:
        os.sched_setaffinity(0, before)
