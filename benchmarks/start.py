"""How soon the server lives: from the start of the process to the first 200 of /live; with --ready, to that of /ready.

    python benchmarks/start.py [--rounds 5] [--ready]

Without --ready there is no model. With it, the demo model is loaded at the start, as by `make demo`. From the first
200 of /live on, /live is asked again and again: its slowest answer is the longest time that nobody gets one. CPU
seconds are those of the process; on a machine that others use they say more than the clock. The first start is not
counted: it compiles what was changed.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Without compiled modules, which some shells forbid, half of the time goes into compiling.
_COMPILE = {"PYTHONDONTWRITEBYTECODE": ""}
_ECHO = {"MODEL_REPO_ID": "echo"}
_DEMO = {"MODEL_REPO_ID": "models/demo", "EAGER_LOAD_MODEL": "1"}


@dataclass(frozen=True, slots=True)
class Start:
    live_seconds: float
    live_cpu_seconds: float
    ready_seconds: float = 0.0
    ready_cpu_seconds: float = 0.0
    slowest_answer: float = 0.0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--ready", action="store_true", help="load the demo model, and wait for /ready")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="tis-bench-") as folder:
        variables = {"DATABASE_URL": f"sqlite:///{folder}/market.db", **(_DEMO if given.ready else _ECHO)}
        starts = [_one_start(variables, given.ready) for _ in range(given.rounds + 1)][1:]
    print(f"{given.rounds} starts, fastest / median / slowest")
    _print("to /live", [start.live_seconds for start in starts])
    _print("to /live, CPU", [start.live_cpu_seconds for start in starts])
    if given.ready:
        _print("to /ready", [start.ready_seconds for start in starts])
        _print("to /ready, CPU", [start.ready_cpu_seconds for start in starts])
        _print("slowest answer of /live meanwhile", [start.slowest_answer for start in starts])


def _print(name: str, seconds: list[float]) -> None:
    print(f"{name}: {min(seconds):.2f} / {statistics.median(seconds):.2f} / {max(seconds):.2f} s")


def _one_start(variables: Mapping[str, str], ready: bool) -> Start:
    port = _free_port()
    environment = {**os.environ, **_COMPILE, **variables, "PORT": str(port), "LOG_LEVEL": "error"}
    began = time.perf_counter()
    server = subprocess.Popen([sys.executable, "main.py"], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        while not _answers(port, "/live"):
            time.sleep(0.005)
        live, live_cpu = time.perf_counter() - began, _cpu_seconds(server.pid)
        if not ready:
            return Start(live, live_cpu)
        slowest = 0.0
        while not _answers(port, "/ready"):
            asked = time.perf_counter()
            _answers(port, "/live")
            slowest = max(slowest, time.perf_counter() - asked)
            time.sleep(0.005)
        return Start(live, live_cpu, time.perf_counter() - began, _cpu_seconds(server.pid), slowest)
    finally:
        server.terminate()
        server.wait()


def _cpu_seconds(pid: int) -> float:
    """Of a process on Linux; elsewhere 0."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _answers(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
