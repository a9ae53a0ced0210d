"""`tis doctor` on this machine, and what it says of others."""

import json
import socket
from pathlib import Path

import pytest

from tests.cli.tis_process import tis
from tests.engine.conftest import DEMO
from tests.serving import free_port
from tis.engine.cores import container_cores
from tis.engine.machine import container_bytes, cpu_flags, crowd

pytestmark = pytest.mark.long


def found(folder: Path, code: int, **variables: str) -> dict[str, tuple[str, str]]:
    done = tis("doctor", "--json", folder=folder, **variables)
    assert done.returncode == code, done.stdout + done.stderr
    return {one["about"]: (one["verdict"], one["text"]) for one in json.loads(done.stdout)}


@pytest.mark.slow
def test_a_machine_that_can_serve(tmp_path: Path) -> None:
    said = found(tmp_path, 0, MODEL_REPO_ID=DEMO, PORT=str(free_port()), HF_HOME=str(tmp_path / "hub"))
    assert said["packages"][0] == "ok" and "torch " in said["packages"][1]
    assert said["port"][0] == "ok" and said["port"][1].endswith(" is free")
    assert said["model"][0] == "ok" and "GiB on disk" in said["model"][1]
    assert {"processor", "cores", "kernels", "gpu", "memory", "descriptors", "marketplace"} <= said.keys()


@pytest.mark.slow
def test_what_would_fail_is_said_before_it_does(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        variables = {"MODEL_REPO_ID": "nobody/nothing", "AUTO_DOWNLOAD_MODELS": "0", "HF_HOME": str(tmp_path / "hub")}
        variables |= {"CPU_THREADS": "1000"}
        said = found(tmp_path, 1, PORT=port, PERSIST_SESSIONS="1", SESSIONS_SYNC="full", **variables)
    assert said["cores"][0] == "slow" and said["cores"][1].startswith("1000 threads of models for ")
    assert said["port"][0] == "bad" and "Set PORT" in said["port"][1]
    assert said["model"][0] == "bad" and "tis download" in said["model"][1]
    assert said["sessions"] == ("slow", "SESSIONS_SYNC=full: every commit waits for the disk")
    assert found(tmp_path, 1, PORT="many")["settings"][0] == "bad"


def test_it_says_when_others_want_the_cores_too() -> None:
    [finding] = crowd(9.6, 2)
    assert (finding.verdict, finding.values) == ("slow", {"load": "10", "of": 2})
    assert not [*crowd(2.9, 2), *crowd(None, 2)]


def test_features_and_limits_are_read_from_the_system(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor: 0\nflags\t\t: fpu avx2 fma avx512f\nbugs: none\n")
    assert cpu_flags(info) == frozenset(["fpu", "avx2", "fma", "avx512f"])
    assert cpu_flags(tmp_path / "nothing") is None
    quota, memory = tmp_path / "cpu.max", tmp_path / "memory.max"
    quota.write_text("150000 100000\n")
    memory.write_text(str(2**31))
    assert (container_cores(quota), container_bytes(memory)) == (1.5, 2**31)
    quota.write_text("max 100000\n")
    memory.write_text("max\n")
    assert (container_cores(quota), container_bytes(memory)) == (None, None)
