"""How soon the server lives: from the start of the process to the first 200 of /live, without a model."""

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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    with tempfile.TemporaryDirectory(prefix="tis-bench-") as folder:
        seconds = [one_start(f"sqlite:///{folder}/market.db") for _ in range(arguments.parse_args().rounds)]
    print(f"{len(seconds)} starts: {min(seconds):.2f} / {statistics.median(seconds):.2f} / {max(seconds):.2f} s")
    print("(fastest / median / slowest, from the start of the process to /live)")


def one_start(database_url: str) -> float:
    port = _free_port()
    variables = {**os.environ, "PORT": str(port), "MODEL_REPO_ID": "echo", "LOG_LEVEL": "error"}
    variables["DATABASE_URL"] = database_url
    began = time.perf_counter()
    server = subprocess.Popen([sys.executable, "main.py"], cwd=ROOT, env=variables, stderr=subprocess.DEVNULL)
    try:
        while not _is_live(port):
            time.sleep(0.005)
        return time.perf_counter() - began
    finally:
        server.terminate()
        server.wait()


def _is_live(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/live", timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
