"""A Ray cluster whose nodes are processes of this machine, with the server as a Serve deployment on it."""

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.serving import NO_RATE_LIMITS, REPOSITORY, bare_environment, free_port

BIN = REPOSITORY / ".venv-clients" / "ray" / "bin"
CONFIG = REPOSITORY / "deploy" / "ray_serve.yaml"
_STORE_BYTES = 80 * 2**20
_OF_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # the machine is others' as well: nothing is killed for its memory
    "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1",
    "RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1",
    "PYTHONDONTWRITEBYTECODE": "",
}


class RayNode:
    """What `ray start` runs, and the processes that its raylet starts."""

    def __init__(self, name: str, folder: Path, variables: Mapping[str, str], *options: str) -> None:
        self._log = folder / f"{name}.log"
        ports = ("object-manager", "node-manager", "dashboard-agent-listen", "metrics-export", "runtime-env-agent")
        command = [str(BIN / "ray"), "start", "--block", "--num-cpus=1", "--min-worker-port=0", "--max-worker-port=0"]
        command += [f"--{port}-port={free_port()}" for port in ports]
        command += [f"--object-store-memory={_STORE_BYTES}", "--disable-usage-stats", *options]
        with self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env={**bare_environment(), **_OF_RAY, **NO_RATE_LIMITS, **variables},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_up(self) -> bool:
        if self._popen.poll() is not None:
            raise AssertionError(f"`ray start` ended:\n{self._log.read_text()[-3000:]}")
        return "Ray runtime started" in self._log.read_text()

    @property
    def replicas(self) -> dict[int, str]:
        """The processes of the deployment that have started, by their ids. Their title has the method that runs."""
        raylet = self.raylet
        found = {pid: name for pid, parent, name in _processes() if parent == raylet}
        return {
            pid: name
            for pid, name in found.items()
            if name.startswith("ray::ServeReplica:tis:") and ".initialize_" not in name
        }

    @property
    def raylet(self) -> int:
        group = os.getpgid(self._popen.pid)
        raylets = {pid: parent for pid, parent, name in _processes() if _is_raylet(name) and _group_of(pid) == group}
        [raylet] = [
            pid for pid, parent in raylets.items() if parent not in raylets
        ]  # a child that it forks has its name
        return raylet

    def kill(self) -> list[int]:
        """As a machine that is lost: nobody is asked. Returns the replicas that were on it."""
        replicas = [*self.replicas]
        os.kill(self.raylet, signal.SIGKILL)
        return replicas

    def stop(self) -> None:
        """All that it has started, also what outlives its raylet."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()


class RayCluster:
    def __init__(self, folder: Path, **variables: str) -> None:
        """`folder` has a short name: Ray's sockets lie in it."""
        self._folder = folder
        self._variables = {"PYTHONPATH": str(REPOSITORY), "LOG_LEVEL": "warning", **variables}
        self._port, self._http_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self._http_port}"
        self.nodes: list[RayNode] = []
        self._numbers = itertools.count()

    @property
    def address(self) -> str:
        return f"{_address_of(0)}:{self._port}"

    def start_node(self) -> RayNode:
        """The first one has the cluster's store and Serve's controller."""
        number = next(self._numbers)
        where = [f"--address={self.address}"]
        if number == 0:
            where = ["--head", f"--port={self._port}", f"--temp-dir={self._folder}", "--include-dashboard=false"]
            where.append(f"--ray-client-server-port={free_port()}")
        own = self._folder / f"node-{number}"
        own.mkdir()
        market = {"DATABASE_URL": f"sqlite:///{own}/marketplace.db"}
        where.append(f"--node-ip-address={_address_of(number)}")
        node = RayNode(f"node-{number}", self._folder, {**self._variables, **market}, *where)
        self.nodes.append(node)
        wait_for(lambda: node.is_up, f"node {number}")
        return node

    def deploy(self, **args: Any) -> None:
        """deploy/ray_serve.yaml with other arguments."""
        config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
        config["http_options"] = {"host": "127.0.0.1", "port": self._http_port}
        [application] = config["applications"]
        application["args"] = {"num_cpus": 1, "health_seconds": 1, "upscale_seconds": 0, **args}
        file = self._folder / "serve.yaml"
        file.write_text(yaml.safe_dump(config), encoding="utf-8")
        done = self.run("serve", "run", "--non-blocking", f"--address={self.address}", str(file))
        assert done.returncode == 0, done.stdout

    def run(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [BIN / program, *arguments],
            cwd=self._folder,
            env={**bare_environment(), **_OF_RAY, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=170,
        )

    @property
    def replicas(self) -> dict[int, RayNode]:
        return {pid: node for node in self.nodes for pid in node.replicas}

    def stop(self) -> None:
        for node in reversed(self.nodes):
            node.stop()


def wait_for(fact: Any, what: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > end:
            raise AssertionError(f"this never came: {what}")
        time.sleep(0.1)


def is_alive(pid: int) -> bool:
    return any(pid == found for found, _, _ in _processes())


@contextmanager
def running_cluster(folder: Path, **variables: str) -> Iterator[RayCluster]:
    cluster = RayCluster(folder, **variables)
    try:
        for _ in range(2):
            cluster.start_node()
        yield cluster
    finally:
        cluster.stop()


def _address_of(number: int) -> str:
    """127.0.0.1 would not do: Ray takes the address of the network in its place."""
    return f"127.0.0.{number + 2}"


def _is_raylet(name: str) -> bool:
    return name.partition(" ")[0].endswith("/raylet")


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _processes() -> Sequence[tuple[int, int, str]]:
    """Process, parent and title of all that live; not of those that are dead and not yet waited for."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                state, parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:2]
                title = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if state != "Z":
                    found.append((int(entry), int(parent), title))
    return found
