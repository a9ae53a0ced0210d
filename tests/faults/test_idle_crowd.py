"""Connections that ask for nothing, more than the server may have open files: those that ask are answered."""

import socket
import sys
from contextlib import ExitStack
from urllib.parse import urlsplit
from urllib.request import urlopen

import httpx2
import psutil  # type: ignore[import-untyped]  # comes with accelerate
import pytest

from tests.serving import server_process, wait_until_live

pytestmark = pytest.mark.slow
pytest.importorskip("resource")  # Windows counts no open files

NUM_IDLE = 1100
MAX_OPEN_FILES = 512
CHAT = {"messages": [{"role": "user", "content": "Halo " * 40}], "stream": True}


def test_idle_connections_close_when_open_files_run_short_and_streams_go_on() -> None:
    command = ("sh", "-c", f"ulimit -n {MAX_OPEN_FILES}; exec {sys.executable} main.py")
    with (
        server_process(*command, MODEL_REPO_ID="echo?tokens_per_second=100", HEADER_TIMEOUT_SECONDS="600") as process,
        ExitStack() as opened,
    ):
        wait_until_live(process.url)
        address = ("127.0.0.1", urlsplit(process.url).port)
        with httpx2.stream("POST", f"{process.url}/v1/chat/completions", json=CHAT, timeout=30) as answer:
            blocks = answer.iter_lines()
            next(blocks)
            for number in range(NUM_IDLE):
                sock = opened.enter_context(socket.create_connection(address, timeout=10))
                if number % 2:
                    sock.sendall(b"GET /live HTTP/1.1\r\n")  # and no more
                if number % 25 == 0:
                    with urlopen(f"{process.url}/ready", timeout=10) as ready:
                        assert ready.status == 200
            assert psutil.Process(process.popen.pid).num_fds() < MAX_OPEN_FILES
            assert [line for line in blocks if line][-1] == "data: [DONE]"
        with urlopen(f"{process.url}/metrics", timeout=10) as page:
            text = page.read().decode()
        [shed] = [line for line in text.splitlines() if line.startswith('tis_transport_refusals_total{reason="idle')]
        assert float(shed.split()[1]) > NUM_IDLE - MAX_OPEN_FILES
