"""Disks that are full, slow, broken, locked or gone, for real: answers go on, it is said, and it is made up for."""

import asyncio
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from random import Random
from shutil import which

import pytest

from tests.faults.checker import Reference, check
from tests.faults.forms import short_or_long
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import (
    MortalServer,
    SharedServer,
    durability,
    durable,
    get,
    post,
    running,
    store_errors,
    until,
    until_durability,
    until_market_runs,
)
from tests.openai_api.test_chat import CHAT, said

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PACED = "echo?tokens_per_second=300"
LINE = "Of all that was written down that night, this line is kept. "
NUM_TOKENS = short_or_long(1500, 9000)
BUSY_SECONDS = 5.0  # how long the store waits for a lock before it says so

needs_root = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root may mount a small disk")
needs_strace = pytest.mark.skipif(which("strace") is None, reason="strace is not here")


_numbers = itertools.count()


def teller(server: MortalServer, name: str, num_tokens: int = NUM_TOKENS) -> Client:
    """In a session of its own."""
    name = f"{name}-{next(_numbers)}"
    body = said(f"{name}: {LINE}", session_id=name, ignore_eos=True, max_tokens=num_tokens)
    return Client(server.url, body)


def reference(client: Client) -> Reference:
    text, length = str(client.body["messages"][0]["content"]), int(client.body["max_tokens"])
    return Reference((text * (length // len(text) + 1))[:length], finish_reason="length")


def verdict(*clients: Client) -> None:
    check(connections_of(clients), {(client.session, 0): reference(client) for client in clients})


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """A small one of its own."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)


def fill(folder: Path) -> Path:
    """Takes what is left, to the last byte."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


@asynccontextmanager
async def injected(server: MortalServer, calls: str, fault: str) -> AsyncIterator[None]:
    """Done to the system calls of the running server by strace, until the end of the block."""
    command = ["strace", "-f", "-q", "-p", str(server.pid), "-o", "/dev/null"]
    command += ["-e", f"trace={calls}", "-e", f"inject={calls}:{fault}"]
    strace = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    tracer = Path(f"/proc/{server.pid}/status")
    await until(lambda: f"TracerPid:\t{strace.pid}" in tracer.read_text(), what="strace at the server")
    try:
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        await strace.wait()


async def told_on_the_way(
    server: MortalServer, break_it: Callable[[], object], mend_it: Callable[[], object], num_tokens: int = NUM_TOKENS
) -> None:
    """What every loss of the disk looks like to those who listen."""
    stays, comes_back = (teller(server, name, num_tokens) for name in ("stays", "comes-back"))
    await asyncio.gather(stays.connect(), comes_back.connect())
    await asyncio.gather(stays.read(blocks=20), comes_back.read(blocks=20))
    staying = asyncio.create_task(stays.read())
    break_it()
    await until_durability(server, "degraded")
    assert sum((await store_errors(server)).values()) >= 1
    beyond = len(stays.blocks) + 1  # of what was kept, all was shown by now
    await comes_back.read(blocks=beyond - len(comes_back.blocks))
    comes_back.leave()
    await refused_beyond_what_is_kept(comes_back)
    assert await durability(server) == "degraded"
    mend_it()
    await until_durability(server, "durable")
    await comes_back.follow()
    await staying
    assert stays.last.end == "whole"
    verdict(stays, comes_back)
    await is_all_there_after_a_kill(server, stays, comes_back)


async def refused_beyond_what_is_kept(client: Client) -> None:
    await client.connect()
    await client.read(blocks=1)
    assert (client.last.status, client.last.error_code) == (503, "durability_degraded"), client.last
    assert int(client.last.headers["retry-after"]) > 0
    await client.connect("GET")
    await client.read(blocks=1)
    assert (client.last.status, client.last.error_code) == (503, "durability_degraded"), client.last


async def is_all_there_after_a_kill(server: MortalServer, *clients: Client) -> None:
    server.kill()
    await server.start()
    again = [Client(server.url, client.body) for client in clients]
    await asyncio.gather(*(client.follow() for client in again))
    verdict(*clients)
    check(connections_of([*clients, *again]), {(client.session, 0): reference(client) for client in clients})
    assert "Traceback" not in server.log.read_text()


@needs_root
async def test_a_full_disk(tmp_path: Path) -> None:
    with disk(tmp_path / "disk", "16m") as small:
        async with running(tmp_path, **durable(small, MODEL_REPO_ID=PACED)) as server:
            await told_on_the_way(server, lambda: fill(small), lambda: (small / "ballast").unlink())


@needs_root
async def test_a_full_disk_is_counted_by_the_name_of_its_error(tmp_path: Path) -> None:
    with disk(tmp_path / "disk", "2m") as small:
        async with running(tmp_path, **durable(small)) as server:
            fill(small)
            client = teller(server, "unkept", 3000)
            await client.follow()
            verdict(client)
            await until_durability(server, "degraded")
            assert (await store_errors(server))["SQLITE_FULL"] >= 1
            ready = await get(server.url, "/ready")
            assert (ready.status_code, ready.json()["ok"]) == (200, True)


async def test_a_file_that_may_not_grow(shared: SharedServer) -> None:
    """What a quota does; needs no rights."""
    resource = pytest.importorskip("resource")
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)

        def limit(size: int) -> None:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, unlimited[1]))

        await told_on_the_way(server, lambda: limit(4096), lambda: limit(unlimited[0]))


@needs_strace
async def test_a_slow_disk_does_not_slow_answers(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED, SESSIONS_SYNC="full") as server:
        clients = [teller(server, f"slow-{number}", 300) for number in range(5)]
        async with injected(server, "fdatasync,fsync", "delay_enter=200000"):
            following = asyncio.gather(*(client.follow() for client in clients))
            while not following.done():
                assert (await get(server.url, "/live")).status_code == 200
                await asyncio.sleep(0.05)
            await following
        assert not await store_errors(server)
        verdict(*clients)
        await is_all_there_after_a_kill(server, *clients)


@needs_strace
@pytest.mark.parametrize(
    ("calls", "fault", "name"),
    [
        ("fdatasync,fsync", "error=EIO", "SQLITE_IOERR"),
        ("pwrite64", "error=ENOSPC", "SQLITE_FULL"),
        ("pwrite64", "error=EIO", "SQLITE_IOERR"),
        ("pwrite64", "error=EROFS", "SQLITE_IOERR"),
    ],
)
async def test_a_disk_that_fails(shared: SharedServer, calls: str, fault: str, name: str) -> None:
    async with shared.running(MODEL_REPO_ID=PACED, SESSIONS_SYNC="full") as server:
        client = teller(server, "failing", 600)
        await client.connect()
        await client.read(blocks=20)
        reading = asyncio.create_task(client.read())
        async with injected(server, calls, fault):
            await until_durability(server, "degraded")
            assert any(error.startswith(name) for error in await store_errors(server))
        await until_durability(server, "durable")
        await reading
        verdict(client)
        await is_all_there_after_a_kill(server, client)


class Lock:
    """Another program that works on the file."""

    def __init__(self, path: Path) -> None:
        code = f"import sqlite3, sys; c = sqlite3.connect({str(path)!r}, timeout=30, isolation_level=None)"
        code += "; c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); sys.stdin.read(); c.rollback(); c.close()"
        self._popen = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._popen.stdout
        assert self._popen.stdout.readline() == b"held\n"

    def release(self) -> None:
        self._popen.communicate()


async def test_a_briefly_locked_file_delays_writes_only(shared: SharedServer) -> None:
    half_a_second = said("needs no file", ignore_eos=True, max_tokens=150)
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        client = teller(server, "waits", 1200)
        await client.connect()
        await client.read(blocks=20)
        lock = Lock(server.sessions_path)
        try:
            reading = asyncio.create_task(client.read())
            for _ in range(2):  # what cannot be come back to is answered all the same
                seen = len(client.blocks)
                assert (await post(server.url, CHAT, half_a_second)).status_code == 200
            assert len(client.blocks) == seen and not reading.done()  # nothing is shown before it is kept
        finally:
            lock.release()
        await reading
        assert await durability(server) == "durable" and not await store_errors(server)
        verdict(client)
        await is_all_there_after_a_kill(server, client)


async def test_a_file_locked_for_long(shared: SharedServer) -> None:
    locks: list[Lock] = []
    async with shared.running(MODEL_REPO_ID="echo?tokens_per_second=150") as server:
        try:

            def lock() -> None:
                locks.append(Lock(server.sessions_path))

            def unlock() -> None:
                locks.pop().release()

            await told_on_the_way(server, lock, unlock, num_tokens=1200)
        finally:
            for one in locks:
                one.release()


async def test_a_file_locked_for_a_minute_under_load(tmp_path: Path) -> None:
    """Its short form: until the store has waited for the lock once, in vain."""
    seconds = short_or_long(5, 60)
    settings = durable(tmp_path, MODEL_REPO_ID=PACED, MAX_QUEUE_SIZE="1000", LOG_LEVEL="info")
    async with running(tmp_path, MARKETPLACE_AT_START="1", **settings) as server:
        await until_market_runs(server)
        num_tokens = 300 * (seconds + short_or_long(3, 20))
        clients = [teller(server, f"minute-{number}", num_tokens) for number in range(short_or_long(10, 20))]
        following = asyncio.gather(*(client.follow(patience=seconds * 3 + 60) for client in clients))
        await until(lambda: all(len(client.blocks) > 20 for client in clients))
        threads = server.num_threads
        lock = Lock(tmp_path / "sessions.db")

        async def is_over() -> bool:
            assert (await get(server.url, "/live")).status_code == 200
            return sum((await store_errors(server)).values()) * BUSY_SECONDS >= seconds

        try:
            await until(is_over, timeout=seconds * 3 + 30)
            assert await durability(server) == "degraded"
            assert server.num_threads < threads + len(clients), "no thread waits for the lock on behalf of one client"
        finally:
            lock.release()
        await until_durability(server, "durable")
        await following
        verdict(*clients)
        await is_all_there_after_a_kill(server, *clients)


@needs_root
async def test_a_read_only_disk_refuses_the_start_in_one_line_and_changes_nothing(tmp_path: Path) -> None:
    with disk(tmp_path / "disk", "5m") as small:
        async with running(tmp_path, **durable(small)) as server:
            old = teller(server, "old", 100)
            await old.follow()
            server.kill()
            remount(small, "ro")
            with pytest.raises(AssertionError, match="Cannot start: .*sessions.db cannot be written"):
                await server.start()
            assert await server.exit_code() != 0 and "Traceback" not in server.log.read_text()
            remount(small, "rw")
            await server.start()
            await is_all_there_after_a_kill(server, old)


def delete_database(folder: Path) -> None:
    for path in folder.glob("sessions.db*"):
        path.unlink()


def set_aside(folder: Path) -> list[str]:
    names = [path.name for path in folder.glob("sessions.db.corrupt-*")]
    return [name for name in names if not name.endswith(("-wal", "-shm"))]


async def test_a_file_deleted_while_the_server_runs(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        old, live = teller(server, "old", 50), teller(server, "live", 800)
        await old.follow()
        await live.connect()
        await live.read(blocks=20)
        reading = asyncio.create_task(live.read())
        delete_database(server.sessions_path.parent)

        async def is_counted() -> bool:
            return bool(await store_errors(server))

        await until(is_counted, what="an error is counted")
        await until_durability(server, "durable")
        await until(server.sessions_path.exists, what="a new file")
        await reading
        new = teller(server, "new", 50)
        await new.follow()
        verdict(old, live, new)
        await is_all_there_after_a_kill(server, live, new)


def overwrite_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"This was a database, once upon a time. " * 20)


def overwrite_pages(path: Path) -> None:
    chance = Random(1)
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096 + chance.randrange(100))
            file.write(chance.randbytes(3000))


def only_a_text(path: Path) -> None:
    delete_database(path.parent)
    path.write_text("dear diary\n" * 1000)


@pytest.mark.parametrize("damage", [overwrite_header, overwrite_pages, only_a_text])
async def test_a_corrupted_file_is_set_aside_and_the_server_starts(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "sessions.db"
    async with running(tmp_path, **durable(tmp_path)) as server:
        lost = teller(server, "lost", 2000)
        await lost.follow()
        server.kill()
        await asyncio.to_thread(_move_all_into_the_file, path)
        damage(path)
        await server.start()
        client = teller(server, "after", 100)
        await client.follow()
        await until_durability(server, "durable")
        aside = set_aside(tmp_path)
        assert len(aside) == 1 and any(letter.isdigit() for letter in aside[0])
        assert str(path) in server.log.read_text()
        assert sum((await store_errors(server)).values()) >= 1
        await lost.connect("GET", after=3)
        await lost.read()
        assert (lost.last.status, lost.last.error_code) == (404, "session_not_found")
        await is_all_there_after_a_kill(server, client)
        assert set_aside(tmp_path) == aside  # one crash, one copy: no loop


def _move_all_into_the_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def num_events_in(path: Path, folder: Path) -> int:
    """Read from a copy: who opens the file mends it."""
    folder.mkdir()
    for part in path.parent.glob(f"{path.name}*"):
        shutil.copy(part, folder)
    with closing(sqlite3.connect(folder / path.name)) as file:
        return int(file.execute("SELECT max(idx) + 1 FROM events").fetchone()[0])


async def test_after_a_power_cut_the_lost_events_are_generated_again(tmp_path: Path) -> None:
    """SQLite stops at the first broken frame of its log: less is there than readers saw."""
    async with running(tmp_path, **durable(tmp_path, MODEL_REPO_ID=PACED)) as server:
        client = teller(server, "power-cut", 600)
        await client.connect()
        await client.read(blocks=300)
        server.kill()
        client.leave()
        log = tmp_path / "sessions.db-wal"
        os.truncate(log, log.stat().st_size * 2 // 3)
        assert client.cursor is not None and 0 < num_events_in(server.sessions_path, tmp_path / "copy") < client.cursor
        await server.start()
        early, again = Client(server.url, client.body), Client(server.url, client.body)
        await early.connect(after=1000)  # who saw more than there is yet is not let in, and misses nothing
        await early.read()
        assert (early.last.status, early.last.error_code) == (400, "invalid_last_event_id")
        await again.follow()
        await client.follow()
        assert client.last.status == 200
        verdict(client, again)
