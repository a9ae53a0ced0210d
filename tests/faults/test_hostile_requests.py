"""A table of hostile requests over all routes runs beside 20 streams, which do not notice."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.checker import check_connection
from tests.faults.forms import short_or_long
from tests.faults.history import Client
from tests.faults.hostile.measured_server import measuring
from tests.faults.hostile.row import ADA, EVE, EXPIRED, HELLO, NARROW, Names, Row
from tests.faults.hostile.sender import Sender
from tests.faults.hostile.table import all_rows
from tests.faults.mortal_server import MortalServer, get, running, until
from tests.http.keys import entry, write_key_file
from tests.loop_pauses import MAX_CROWDED_PAUSE_SECONDS
from tests.marketplace.accounts import bearer, made, register_supplier, register_user
from tests.serving import NO_RATE_LIMITS, REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

NUM_SENDERS = 8
MIN_ROWS = 300
EVERY = short_or_long(3, 1)  # of 1,900 rows
MAX_GROWTH_MB = 450  # caches of prefixes, grammars and templates, whose sizes are set; the streams of ten minutes
_JWT_SECRET = "a-secret-that-signs-tokens-of-the-market"
_MODELS = """
models:
  demo:
    repo: {folder}/models/demo
  paced:
    repo: echo?tokens_per_second=25
"""
_PACED: dict[str, Any] = {"model": "paced", "messages": [{"role": "user", "content": "Satu dua tiga empat lima. " * 8}]}
_DEMO: dict[str, Any] = {"model": "demo", "messages": [HELLO], "seed": 7, "max_tokens": 40, "ignore_eos": True}
# All limits are on, and everything is counted against them; nobody but the narrow key reaches one.
_LIMITS = {
    "requests_per_minute": 10**6,
    "tokens_per_minute": 10**9,
    "tokens_per_day": 10**10,
    "running_requests": 10**4,
}
_RATES = {name.upper(): str(limit) for name, limit in _LIMITS.items()} | dict.fromkeys(NO_RATE_LIMITS, str(10**6))
STREAMS = [{**_PACED, "logprobs": number % 2 == 0} for number in range(16)] + [_DEMO] * 4


@asynccontextmanager
async def measured_server(folder: Path) -> AsyncIterator[MortalServer]:
    (folder / "models.yaml").write_text(_MODELS.format(folder=REPOSITORY))
    keys = write_key_file(
        folder / "keys.yaml",
        entry("ada", ADA, **_LIMITS),
        entry("eve", EVE),
        entry("narrow", NARROW, models=["paced"], requests_per_minute=1),
        entry("yore", EXPIRED, expires="2020-01-01"),
    )
    async with running(
        folder,
        program=measuring(folder),
        MODEL_CONFIG=str(folder / "models.yaml"),
        MODEL_REPO_ID="demo",
        MODELS="paced",
        TORCH_DTYPE="float32",
        EAGER_LOAD_MODEL="1",
        LOAD_WAIT_SECONDS="120",
        API_KEYS_FILE=str(keys),
        **_RATES,
        DATABASE_URL=f"sqlite:///{folder}/market.db",
        JWT_SECRET_KEY=_JWT_SECRET,
        PERSIST_SESSIONS="1",
        SESSIONS_DB_PATH=str(folder / "sessions.db"),
        HEADER_TIMEOUT_SECONDS="4",
        BODY_TIMEOUT_SECONDS="4",
        MAX_CONTEXT_TOKENS="2048",
        VISION_CACHE_MB="32",
        MEDIA_TIMEOUT_SECONDS="3",
        ADMISSION_WAIT_SECONDS="20",
        MAX_QUEUE_SIZE="200",
    ) as server:
        yield server


def prepared_names(server: MortalServer) -> Names:
    """Accounts and goods, and a session and a response of Ada's, whom Eve's requests name."""
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        user, mallory, supplier = register_user(http), register_user(http), register_supplier(http)
        goods = {"name": "Kipas meja", "price": 1000, "stock_quantity": 9, "category": "fan"}
        product = made(http.post(f"/api/suppliers/{supplier['id']}/products", json=goods, headers=bearer(supplier)))
        ada, eve = {"Authorization": f"Bearer {ADA}"}, {"Authorization": f"Bearer {EVE}"}
        foreign = {"model": "demo", "input": "Halo", "max_output_tokens": 16}
        response = made(http.post("/v1/responses", json=foreign, headers=ada))
        conversation = made(http.post("/v1/conversations", json={"items": [HELLO]}, headers=ada))
        own = made(http.post("/v1/conversations", json={}, headers=eve))
        made(http.post("/v1/chat/completions", json={**_DEMO, "session_id": "of-ada"}, headers=ada))
    values = {
        "user": str(user["id"]),
        "supplier": str(supplier["id"]),
        "product": str(product["id"]),
        "port": str(server.port),
        "foreign_response": response["id"],
        "foreign_conversation": conversation["id"],
        "foreign_session": "of-ada",
        "conversation": own["id"],
        "refresh": "x",
        "narrow": NARROW,
        "expired": EXPIRED,
        "digest": entry("eve", EVE)["digest"],
        "none": "key-of-nobody",
    }
    accounts = {"user": user, "mallory": mallory, "supplier": supplier}
    return Names(values, {name: account["access_token"] for name, account in accounts.items()})


async def test_hostile_requests_change_nothing_for_anybody(tmp_path: Path) -> None:
    async with measured_server(tmp_path) as server:
        names = await asyncio.to_thread(prepared_names, server)
        references = [bytes_of(await followed(server, body, f"alone-{n}")) for n, body in enumerate((_PACED, _DEMO))]
        described = await get(server.url, "/openapi.json", Authorization=f"Bearer {ADA}")
        rows = islice(all_rows(described.text), 0, None, EVERY)
        sender = Sender(server.url, names, [str(tmp_path), str(REPOSITORY), ADA, EVE, NARROW, _JWT_SECRET])
        over = asyncio.Event()
        streams = [asyncio.create_task(streaming(server, n, references, over)) for n in range(len(STREAMS))]
        rss = server.rss_mb
        (tmp_path / "pauses").write_text("")
        faults = await sent(sender, rows)
        over.set()
        counted = await asyncio.gather(*streams, return_exceptions=True)
        broken = [repr(one)[:1000] for one in counted if isinstance(one, BaseException)]
        num_streams = sum(one for one in counted if isinstance(one, int))
        peak = server.rss_mb
        await until(
            lambda: server.rss_mb < rss + MAX_GROWTH_MB,
            what=f"RSS of {rss:.0f} + {MAX_GROWTH_MB} MB, not {peak:.0f}",
            timeout=30,
        )
        log = server.log.read_text()
        pauses = sorted((json.loads(line) for line in (tmp_path / "pauses").read_text().splitlines()), key=spent)
        report = f"{len(sender.slowest)} rows, {num_streams} streams, slowest {slowest(sender)}"
        report += f"; RSS {rss:.0f} MB before, {peak:.0f} MB behind them, {server.rss_mb:.0f} MB at the end"
        long = "\n".join(map(str, pauses[-25:]))
        assert not faults, "\n".join([report, f"{len(faults)} faults:", *faults])
        assert not broken, "\n".join([report, *broken])
        assert "Traceback" not in log, log[-5000:]
        assert not pauses or spent(pauses[-1]) <= MAX_CROWDED_PAUSE_SECONDS, f"{report}\n{long}"
        assert len(sender.slowest) >= MIN_ROWS and num_streams >= len(STREAMS), report


async def sent(sender: Sender, rows: Iterable[Row]) -> list[str]:
    left, faults, making = iter(rows), [], asyncio.Lock()

    async def next_row() -> Row | None:
        """In a thread: some files take seconds to make."""
        async with making:
            return await asyncio.to_thread(next, left, None)

    async def send_some() -> None:
        while row := await next_row():
            if fault := await sender.fault(row):
                faults.append(fault)

    await asyncio.gather(*(send_some() for _ in range(NUM_SENDERS)))
    return faults


async def followed(server: MortalServer, body: dict[str, Any], session_id: str) -> Client:
    client = Client(server.url, {**body, "session_id": session_id}, key=ADA)
    await client.connect()
    await client.read()
    return client


async def streaming(server: MortalServer, number: int, references: Sequence[list[str]], over: asyncio.Event) -> int:
    """One stream after the other until the table is over; each as it was alone, on one connection."""
    body, count = STREAMS[number], 0
    while not over.is_set():
        client = await followed(server, {**body, "logprobs": False}, f"beside-{number}-{count}")
        assert client.last.status == 200 and client.last.end == "whole", client.last
        check_connection(client.last)
        assert bytes_of(client) == references[0 if body["model"] == "paced" else 1]
        count += 1
    return count


def bytes_of(client: Client) -> list[str]:
    """What the client got, without what names this answer among others."""
    return [re.sub(r'"id":"[^"]*"|"created":\d+', "", block.payload) for block in client.blocks]


def spent(pause: dict[str, Any]) -> float:
    return float(pause["seconds"])


def slowest(sender: Sender) -> str:
    return ", ".join(f"{name} {seconds:.1f} s" for seconds, name in sorted(sender.slowest)[-5:])
