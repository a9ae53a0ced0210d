"""A server process that tests kill, drain and start again on the same port and the same file."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.serving import NO_RATE_LIMITS, REPOSITORY, bare_environment, free_port

_START_SECONDS = 60


class MortalServer:
    def __init__(self, folder: Path, **variables: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "server.log"
        self.program = ["main.py"]
        self.start_seconds = _START_SECONDS
        self.variables = {"MODEL_REPO_ID": "echo", "LOG_LEVEL": "warning", **variables}
        if "DATABASE_URL" not in variables:  # nobody asks for the marketplace, which is half the work of a start
            self.variables.setdefault("MARKETPLACE_AT_START", "0")
        self._popen: subprocess.Popen[bytes] | None = None
        self._may_end = True
        self.runs_with: dict[str, str] = {}

    @property
    def is_running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def pid(self) -> int:
        assert self._popen
        return self._popen.pid

    async def start(self, **variables: str) -> None:
        """What is given here stays for later starts."""
        self.variables.update(variables)
        await asyncio.to_thread(self._start)

    async def start_again(self, **variables: str) -> None:
        self.stop()
        await self.start(**variables)

    def kill(self) -> None:
        """As the kernel does when memory is short, and a power cut does worse: nobody is asked."""
        assert self._popen
        self.require_alive()
        self._may_end = True
        self._popen.kill()
        self._popen.wait()

    def terminate(self) -> None:
        assert self._popen
        self._may_end = True
        self._popen.send_signal(signal.SIGTERM)

    async def exit_code(self, timeout: float = 30) -> int:
        assert self._popen
        return await asyncio.to_thread(self._popen.wait, timeout)

    @property
    def sessions_path(self) -> Path:
        return Path(self.variables["SESSIONS_DB_PATH"])

    def require_alive(self) -> None:
        """Nothing that tests do to it but a signal may end it."""
        if self._popen and not self._may_end and self._popen.poll() is not None:
            code = self._popen.returncode
            raise AssertionError(f"the server ended by itself, with {code}:\n{self.log.read_text()[-3000:]}")

    def stop(self) -> None:
        self.require_alive()
        if self.is_running:
            self.kill()

    @property
    def rss_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    @property
    def num_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def num_threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def _start(self) -> None:
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(
                [sys.executable, *self.program],
                cwd=REPOSITORY,
                env={**bare_environment(), **NO_RATE_LIMITS, **self.variables, "PORT": str(self.port)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + self.start_seconds
        while not self._is_live():
            if self._popen.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the server does not come up:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.02)
        self._may_end = False
        self.runs_with = dict(self.variables)

    def _is_live(self) -> bool:
        try:
            return bool(httpx2.get(f"{self.url}/live", timeout=5, verify=False).status_code == 200)
        except httpx2.TransportError:
            return False


def durable(folder: Path, **variables: str) -> dict[str, str]:
    return {"PERSIST_SESSIONS": "1", "SESSIONS_DB_PATH": str(folder / "sessions.db"), **variables}


class SharedServer:
    """One server and its file, for tests that need none of their own: each finds it running as it wants it.

    It is started only if it is down or runs with other variables. The names of sessions must differ between tests.
    """

    def __init__(self, new_folder: Callable[[], Path], **variables: str) -> None:
        self._new_folder = new_folder
        self._variables = variables
        self._server: MortalServer | None = None
        self._own: dict[str, str] = {}

    @asynccontextmanager
    async def running(self, **variables: str) -> AsyncIterator[MortalServer]:
        server = await self._running_with({**self._variables, **variables})
        seen = server.log.stat().st_size
        try:
            yield server
            server.require_alive()
            assert "Traceback" not in server.log.read_bytes()[seen:].decode()
        except BaseException:
            self.close()  # nobody else is to suffer from what happened here
            raise

    async def _running_with(self, variables: dict[str, str]) -> MortalServer:
        server = self._server
        if server is None:
            folder = self._new_folder()
            server = self._server = MortalServer(folder, **durable(folder))
            self._own = dict(server.variables)
        wanted = {**self._own, **variables}
        if not server.is_running or server.runs_with != wanted:
            server.stop()
            server.variables = dict(wanted)
            await server.start()
        return server

    def close(self) -> None:
        server, self._server = self._server, None
        if server:
            server.stop()


@asynccontextmanager
async def running(
    folder: Path, *, program: Sequence[str] = ("main.py",), **variables: str
) -> AsyncIterator[MortalServer]:
    server = MortalServer(folder, **variables)
    server.program = [*program]
    try:
        await server.start()
        yield server
    finally:
        server.stop()


async def until(fact: Callable[[], Any], timeout: float = 30, what: str = "") -> None:
    """Facts of another process, which sends no events: they have to be looked at."""
    try:
        async with asyncio.timeout(timeout):
            while not (await result if inspect.isawaitable(result := fact()) else result):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"this never came: {what or fact}") from None


async def until_market_runs(server: MortalServer) -> None:
    """It opens after the start, while nobody waits for it: for those who count threads and files. LOG_LEVEL=info."""
    await until(lambda: "the jobs of the marketplace run" in server.log.read_text(), what="an open marketplace")


async def get(url: str, path: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=url, timeout=60, verify=False) as http:
        return await http.get(path, headers=headers)


async def post(url: str, path: str, json: Any = None, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=url, timeout=60, verify=False) as http:
        return await http.post(path, json=json, headers=headers)


async def durability(server: MortalServer) -> str:
    return str((await get(server.url, "/ready")).json()["durability"])


async def until_durability(server: MortalServer, wanted: str, timeout: float = 30) -> None:
    async def is_so() -> bool:
        return await durability(server) == wanted

    try:
        await until(is_so, timeout)
    except AssertionError:
        found = await durability(server)
        raise AssertionError(f"/ready says {found!r}, never {wanted!r}:\n{server.log.read_text()[-2000:]}") from None


async def store_errors(server: MortalServer) -> dict[str, float]:
    """By the name of the error."""
    lines = (await get(server.url, "/metrics")).text.splitlines()
    counted = [line for line in lines if line.startswith("tis_session_store_errors_total{")]
    return {line.partition('error="')[2].partition('"')[0]: float(line.rpartition(" ")[2]) for line in counted}
