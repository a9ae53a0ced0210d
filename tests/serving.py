"""Real servers for tests: in a thread of this process, or as a process of their own."""

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

import tis.marketplace.router  # noqa: F401  here, as imports in threads meet pytest's filters for warnings
from tests.databases import new_sqlite
from tis.app import create_app
from tis.arguments.limits import transport_limits_of
from tis.http.transport.limits import TransportLimits
from tis.http.transport.protocol import guarded_protocol
from tis.marketplace.settings import RateSettings
from tis.setting_types import variable_name
from tis.settings import OTHER_NAMES, Settings

REPOSITORY = Path(__file__).parent.parent
NO_RATE_LIMITS = dict.fromkeys(map(variable_name, RateSettings.model_fields), "0")  # for processes


@dataclass(frozen=True)
class Served:
    url: str
    app: FastAPI


def settings_with(**values: object) -> Settings:
    return Settings.model_validate(
        {
            "model_repo_id": "echo",
            "log_level": "warning",
            "drain_seconds": 0.2,
            "database_url": _database_of_its_own(),
            "pictures_url": pictures_url(),
            **dict.fromkeys(RateSettings.model_fields, 0),
            **values,
        }
    )


def pictures_url() -> str:
    """Of servers in threads, whatever their database."""
    return (Path(_databases().name) / "pictures").as_uri()


def _database_of_its_own() -> str:
    return new_sqlite(Path(_databases().name), f"{next(_numbers)}.db")


@cache
def _databases() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="tis-tests-")


_numbers = itertools.count()


class MovedClock:
    """A monotonic clock that a test can move forward."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def move(self, seconds: float) -> None:
        self._ahead += seconds


@contextmanager
def served(
    settings: Settings, limits: TransportLimits | None = None, *, loop: str = "auto", **parts: Any
) -> Iterator[Served]:
    """Runs the app on a free port; `loop` is uvicorn's, `parts` are keyword arguments of `create_app`."""
    app = create_app(settings, **parts)
    with listening(app, limits or transport_limits_of(settings), loop) as url:
        yield Served(url, app)


@contextmanager
def listening(app: ASGIApp, limits: TransportLimits, loop: str = "auto") -> Iterator[str]:
    """Runs any app in a thread, behind the limits of connections; yields its URL."""
    server = PromptServer(
        uvicorn.Config(
            app,
            port=0,
            http=guarded_protocol(limits),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=1,
            loop=loop,
        )
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        _until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.end()
        thread.join()


class PromptServer(uvicorn.Server):
    """Ends when it is told to. uvicorn looks for that again and again, in each of the servers of a process."""

    _loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """From any thread."""
        self.should_exit = True
        if self._loop:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._told.set)

    async def main_loop(self) -> None:
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), 1)  # then it writes a new date into its headers


@dataclass(frozen=True)
class Process:
    url: str
    popen: "subprocess.Popen[str]"


@contextmanager
def server_process(*command: str, **variables: str) -> Iterator[Process]:
    """Runs `python main.py`, or another command, with no settings but these variables."""
    port = variables.setdefault("PORT", str(free_port()))
    arguments = command or (sys.executable, "main.py")
    popen = subprocess.Popen(
        arguments,
        cwd=REPOSITORY,
        env={
            **bare_environment(),
            "MODEL_REPO_ID": "echo",
            "DATABASE_URL": _database_of_its_own(),
            "PICTURES_URL": pictures_url(),
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Process(f"http://127.0.0.1:{port}", popen)
    finally:
        popen.kill()
        popen.communicate()


def bare_environment() -> dict[str, str]:
    """The environment without the settings of the person who runs the tests."""
    ours = {*Settings.variables().values(), *OTHER_NAMES}
    return {name: value for name, value in os.environ.items() if name not in ours}


# Below the ports that the kernel gives to clients. One of those may be given to a client of the test beside this one
# before the server has bound it, and a client that tries it while the server is down may connect to itself.
_PORTS = range(12000, 32000)


def free_port() -> int:
    for port in Random().sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")


def until_listening(port: int, timeout: float = 60) -> None:
    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    _until(is_listening, timeout)


def wait_until_loaded(url: str, timeout: float = 120) -> None:
    """The first model of the server at `url` is ready."""

    def is_loaded() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
                return bool(json.load(answer)["modelReady"])
        except (urllib.error.URLError, OSError):
            return False

    _until(is_loaded, timeout)


def wait_until_live(url: str, timeout: float = 20) -> None:
    def is_live() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/live", timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    _until(is_live, timeout)


def _until(fact: object, timeout: float = 20) -> None:
    assert callable(fact)
    end = time.monotonic() + timeout
    while not fact():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.01)
