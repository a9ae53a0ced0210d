"""Stored responses and conversations in PostgreSQL: what a client was told is there, whoever is killed afterwards."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, get, post, running, until
from tests.faults.replicas import replicas
from tests.faults.test_shared_responses import (
    CONVERSATIONS,
    LONG,
    RESPONSES,
    delete,
    made,
    message,
    read,
    statuses,
    text_of,
    texts_of,
    until_status,
)
from tests.marketplace.postgres import Postgres
from tests.redis_server import RedisServer, running_redis

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
Pair = list[MortalServer]


@pytest.fixture
async def pair(tmp_path: Path, redis_server: RedisServer, postgres: Postgres) -> AsyncIterator[Pair]:
    url = postgres.new_database(tmp_path.name)
    async with replicas(tmp_path, redis_server, RESPONSES_URL=url, RESPONSES_TIMEOUT_SECONDS="2") as servers:
        yield servers


@asynccontextmanager
async def killed(postgres: Postgres) -> AsyncIterator[None]:
    await asyncio.to_thread(postgres.kill)
    try:
        yield
    finally:
        await asyncio.to_thread(postgres.start)


async def state(server: MortalServer) -> str:
    return str((await get(server.url, "/health")).json()["responses"])


async def until_state(server: MortalServer, wanted: str) -> None:
    async def is_so() -> bool:
        return await state(server) == wanted

    await until(is_so, what=f"responses: {wanted}")


async def events_of(server: MortalServer, begun: asyncio.Event | None = None, **body: object) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
        asked = {"model": "echo", "stream": True, **body}
        async with http.stream("POST", RESPONSES, json=asked) as answer:
            assert answer.status_code == 200
            if begun:
                begun.set()
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    events.append(json.loads(line.removeprefix("data: ")))
    return events


async def test_what_was_acknowledged_is_there_after_all_of_them_were_killed(
    pair: Pair, redis_server: RedisServer, postgres: Postgres
) -> None:
    a, b = pair
    whole = await made(a, RESPONSES, input="one")
    streamed = (await events_of(b, input="two", previous_response_id=whole["id"]))[-1]["response"]
    conversation = (await made(a, CONVERSATIONS, items=[message("zero")]))["id"]
    in_it = await made(b, RESPONSES, input="three", conversation=conversation)
    await made(a, f"{CONVERSATIONS}/{conversation}/items", items=[message("four")])
    for server in pair:
        server.kill()
    redis_server.ask("FLUSHALL")
    async with killed(postgres):
        pass
    for server in pair:
        await server.start()
    for server in pair:
        await until_state(server, "ready")
        for response in (whole, streamed, in_it):
            assert await read(server, f"{RESPONSES}/{response['id']}") == response
        listed = await read(server, f"{CONVERSATIONS}/{conversation}/items?order=asc")
        assert texts_of(listed) == ["zero", "three", text_of(in_it), "four"]
        inputs = await read(server, f"{RESPONSES}/{streamed['id']}/input_items?order=asc")
        assert texts_of(inputs) == ["one", text_of(whole), "two"]
    for path in (
        f"{RESPONSES}/{streamed['id']}?stream=true&starting_after=1",
        f"/v1/stream/{streamed['id']}?last_event_id=1",
    ):
        lines = (await get(a.url, path)).text.splitlines()
        numbers = [json.loads(line[6:])["sequence_number"] for line in lines if line[:6] == "data: "]
        assert numbers and numbers == list(range(2, 2 + len(numbers)))


async def test_a_running_answer_outlives_the_database_and_its_end_waits_for_it(pair: Pair, postgres: Postgres) -> None:
    a, b = pair
    kept = await made(a, RESPONSES, input="kept")
    answering = asyncio.create_task(events_of(a, input=LONG[:100]))
    background = await made(b, RESPONSES, input=LONG[:60], background=True)
    async with killed(postgres):
        for server in pair:
            refused = await get(server.url, f"{RESPONSES}/{kept['id']}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "durability_degraded")
            assert int(refused.headers["Retry-After"]) > 0
            await until_state(server, "waiting")
            refused = await post(server.url, RESPONSES, {"input": "x"})
            assert refused.status_code == 503 and refused.headers["Retry-After"]
            assert (await post(server.url, CONVERSATIONS, {})).status_code == 503
            assert (await delete(server, f"{RESPONSES}/{kept['id']}")).status_code == 503
            assert (await post(server.url, RESPONSES, {"input": "x", "store": False})).status_code == 200
            assert (await get(server.url, "/ready")).status_code == 200
    last = (await answering)[-1]
    assert last["type"] == "response.completed" and last["response"]["store"] is True
    finished = await until_status(b, background["id"], "completed")
    for server in pair:
        await until_state(server, "ready")
        for response in (kept, last["response"], finished):
            assert await read(server, f"{RESPONSES}/{response['id']}") == response


async def test_a_response_that_could_not_be_stored_says_so(pair: Pair, postgres: Postgres) -> None:
    a, b = pair
    await a.start_again(RESPONSES_STORE_SECONDS="0.2")
    answering = asyncio.create_task(events_of(a, input=LONG))
    whole = asyncio.create_task(post(a.url, RESPONSES, {"model": "echo", "input": LONG}))

    async def both_run() -> bool:
        return 'tis_sessions{state="running"} 2.0' in (await get(a.url, "/metrics")).text

    await until(both_run)
    async with killed(postgres):
        last = (await answering)[-1]
        assert (last["type"], last["response"]["store"]) == ("response.completed", False)
        assert LONG.strip() in text_of(last["response"])
        assert (await whole).json()["store"] is False
    await until_state(a, "ready")
    await until_state(b, "ready")
    path = f"{RESPONSES}/{last['response']['id']}"
    for server in pair:  # as long as a stream can be replayed
        assert (await read(server, path))["store"] is False
    assert (await delete(b, path)).status_code == 200
    assert await statuses(pair, path) == [404, 404]


async def test_an_unstored_response_says_whether_its_conversation_has_it(pair: Pair, postgres: Postgres) -> None:
    a, b = pair
    await a.start_again(RESPONSES_STORE_SECONDS="0.2")
    names = [(await made(server, CONVERSATIONS, items=[message("zero")]))["id"] for server in pair]
    begun = [asyncio.Event() for _ in pair]
    answering = [
        asyncio.create_task(events_of(server, one, input=LONG, store=False, conversation=name))
        for server, one, name in zip(pair, begun, names, strict=True)
    ]
    await asyncio.gather(*(one.wait() for one in begun))
    async with killed(postgres):
        outside = (await answering[0])[-1]["response"]
    inside = (await answering[1])[-1]["response"]
    assert (outside["status"], outside["conversation"]) == ("completed", None)
    assert (inside["status"], inside["conversation"]) == ("completed", {"id": names[1]})
    for server in pair:
        await until_state(server, "ready")
    assert texts_of(await read(a, f"{CONVERSATIONS}/{names[0]}/items?order=asc")) == ["zero"]
    expected = ["zero", LONG, text_of(inside)]
    assert texts_of(await read(a, f"{CONVERSATIONS}/{names[1]}/items?order=asc")) == expected


async def test_what_is_deleted_while_redis_is_away_does_not_come_back(pair: Pair, redis_server: RedisServer) -> None:
    a, b = pair
    gone = await made(a, RESPONSES, input="gone")
    kept = await made(a, RESPONSES, input="kept")
    path = f"{RESPONSES}/{gone['id']}"
    redis_server.pause()
    try:
        answer = await delete(b, path)
        assert answer.status_code in (200, 503)
    finally:
        redis_server.go_on()
    if answer.status_code == 503:  # the server could not ask whether it runs

        async def is_deleted() -> bool:
            return (await delete(b, path)).status_code in (200, 404)

        await until(is_deleted)
    for server in pair:
        server.kill()
        await server.start()
    assert await statuses(pair, path) == [404, 404]
    assert await read(b, f"{RESPONSES}/{kept['id']}") == kept


async def until_completed(server: MortalServer, response_id: str) -> dict[str, Any]:
    """503: no server has it yet. It is never a 404."""
    found: dict[str, Any] = {}

    async def is_so() -> bool:
        answer = await get(server.url, f"{RESPONSES}/{response_id}")
        assert answer.status_code in (200, 503), answer.text
        found.update(answer.json())
        assert found.get("status") != "failed", answer.text
        return bool(found.get("status") == "completed")

    await until(is_so)
    return found


@pytest.mark.parametrize("num_servers", [1, 2])
async def test_a_queued_response_is_answered_though_its_server_and_redis_lose_all_that_they_have(
    num_servers: int, tmp_path: Path, postgres: Postgres
) -> None:
    """By another server, or by the same one after its start."""
    url = postgres.new_database(f"queued_{num_servers}")
    with running_redis() as redis:  # it keeps nothing
        async with replicas(tmp_path, redis, num_servers, RESPONSES_URL=url) as servers:
            conversation = (await made(servers[0], CONVERSATIONS))["id"]
            asked = {"background": True, "conversation": conversation}
            queued = await made(servers[0], RESPONSES, input=LONG.strip(), **asked)
            assert queued["status"] == "queued"
            redis.kill()
            servers[0].kill()
            redis.start()
            if num_servers == 1:
                await servers[0].start()
            finished = await until_completed(servers[-1], queued["id"])
            assert text_of(finished) == LONG.strip()
            path = f"{CONVERSATIONS}/{conversation}/items?order=asc"
            assert texts_of(await read(servers[-1], path)) == [LONG.strip()] * 2
            assert await read(servers[-1], f"{RESPONSES}/{queued['id']}") == finished


async def test_without_redis_a_queued_response_is_answered_after_a_kill(tmp_path: Path, postgres: Postgres) -> None:
    shared = {"RESPONSES_URL": postgres.new_database("queued_in_memory"), "SESSION_LEASE_SECONDS": "2"}
    model = {"MODEL_REPO_ID": "echo?tokens_per_second=80", "DATABASE_URL": f"sqlite:///{tmp_path}/market.db"}
    async with running(tmp_path, **shared, **model) as server:
        queued = await made(server, RESPONSES, input=LONG.strip(), background=True)
        server.kill()
        await server.start()
        assert text_of(await until_completed(server, queued["id"])) == LONG.strip()


async def test_a_database_that_hangs_is_a_503_and_holds_up_nothing_else(pair: Pair, postgres: Postgres) -> None:
    a, _ = pair
    kept = await made(a, RESPONSES, input="kept")
    await asyncio.to_thread(postgres.pause)
    try:
        answers = await asyncio.gather(*(get(a.url, f"{RESPONSES}/{kept['id']}") for _ in range(40)))
        assert {answer.status_code for answer in answers} == {503}
        assert (await get(a.url, "/live")).status_code == 200
        assert (await post(a.url, RESPONSES, {"input": "x", "store": False})).status_code == 200
    finally:
        await asyncio.to_thread(postgres.go_on)
    await until_state(a, "ready")
    assert await read(a, f"{RESPONSES}/{kept['id']}") == kept


async def test_a_dump_of_the_running_database_has_what_was_acknowledged(
    pair: Pair, tmp_path: Path, postgres: Postgres
) -> None:
    a, _ = pair
    response = await made(a, RESPONSES, input="one")
    conversation = (await made(a, CONVERSATIONS, items=[message("zero")]))["id"]
    running_one = await made(a, RESPONSES, input=LONG[:100], background=True)
    dump, at = tmp_path / "responses.dump", ("--host", str(postgres.folder), "--username", "postgres")

    def run(program: str, *arguments: str) -> None:
        subprocess.run([postgres.programs / program, *at, *arguments], check=True)

    taken = ("--format", "custom", "--table", "stored_*", "--file", str(dump))
    await asyncio.to_thread(run, "pg_dump", *taken, tmp_path.name)
    url = postgres.new_database("restored", "template0")
    put_back = ("--exit-on-error", "--no-owner", "--single-transaction", "--dbname", "restored", str(dump))
    await asyncio.to_thread(run, "pg_restore", *put_back)
    own = tmp_path / "restored"
    own.mkdir()
    ours = {"DATABASE_URL": f"sqlite:///{own}/market.db", "SESSION_LEASE_SECONDS": "1"}
    same_model = a.variables["MODEL_REPO_ID"]
    async with running(own, RESPONSES_URL=url, MODEL_REPO_ID=same_model, **ours) as server:
        assert await read(server, f"{RESPONSES}/{response['id']}") == response
        assert texts_of(await read(server, f"{CONVERSATIONS}/{conversation}/items")) == ["zero"]
        assert text_of(await until_completed(server, running_one["id"])) == LONG[:100]  # it is begun anew
        assert await made(server, RESPONSES, input="two", previous_response_id=response["id"])


async def test_without_redis_another_server_reads_what_is_stored_and_a_kill_loses_none_of_it(
    tmp_path: Path, postgres: Postgres
) -> None:
    shared = {"RESPONSES_URL": postgres.new_database("no_redis")}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    own = [{**shared, "DATABASE_URL": f"sqlite:///{tmp_path}/{name}/market.db"} for name in ("a", "b")]
    async with running(tmp_path / "a", **own[0]) as a, running(tmp_path / "b", **own[1]) as b:
        first = await made(a, RESPONSES, input="one")
        assert await read(b, f"{RESPONSES}/{first['id']}") == first
        second = await made(b, RESPONSES, input="two", previous_response_id=first["id"])
        assert (await delete(b, f"{RESPONSES}/{first['id']}")).status_code == 200
        assert await statuses([a, b], f"{RESPONSES}/{first['id']}") == [404, 404]
        b.kill()
        assert await read(a, f"{RESPONSES}/{second['id']}") == second


async def test_at_home_a_file_of_sqlite_does_the_same(tmp_path: Path) -> None:
    async with running(tmp_path, RESPONSES_URL=f"sqlite:///{tmp_path}/responses.db") as server:
        first = await made(server, RESPONSES, input="one")
        conversation = await made(server, CONVERSATIONS, items=[message("hello")])
        server.kill()
        await server.start()
        assert await read(server, f"{RESPONSES}/{first['id']}") == first
        assert texts_of(await read(server, f"{CONVERSATIONS}/{conversation['id']}/items")) == ["hello"]


@dataclass
class Ledger:
    """What clients were told."""

    responses: dict[str, dict[str, Any]] = field(default_factory=dict)
    items: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)  # items whose request got no answer
    num_not_stored: int = 0


async def client(number: int, pair: Pair, conversation: str, ledger: Ledger, rounds: int, random: Random) -> None:
    for turn in range(rounds):
        server, text = pair[random.randrange(2)], f"client {number} turn {turn}"
        try:
            if number % 3 == 0:
                answer = await post(server.url, f"{CONVERSATIONS}/{conversation}/items", {"items": [message(text)]})
                if answer.status_code == 200:
                    ledger.items.append(text)
                elif answer.status_code != 409:
                    ledger.unsure.add(text)
                continue
            body: dict[str, Any] = {"model": "echo", "input": text, "stream": number % 3 == 1}
            async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
                answer = await http.post(RESPONSES, json=body)
            if answer.status_code != 200:
                continue
            if body["stream"]:
                data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
                response = json.loads(data[-1]).get("response", {}) if data else {}
            else:
                response = answer.json()
            if response.get("status") == "completed":
                ledger.num_not_stored += not response["store"]
                if response["store"]:
                    ledger.responses[response["id"]] = response
        except httpx2.TransportError:  # its server was killed
            ledger.unsure.add(text)


async def test_nothing_that_was_acknowledged_is_lost_whatever_is_killed(
    pair: Pair, redis_server: RedisServer, postgres: Postgres
) -> None:
    random, ledger = Random(128), Ledger()
    conversation = (await made(pair[0], CONVERSATIONS))["id"]
    rounds = short_or_long(6, 60)
    clients = [
        asyncio.create_task(client(number, pair, conversation, ledger, rounds, Random(number))) for number in range(12)
    ]
    while not all(one.done() for one in clients):
        before = len(ledger.responses)
        what = random.choice(["server", "database", "redis"])
        if what == "server":
            server = pair[random.randrange(2)]
            server.kill()
            await server.start()
        elif what == "database":
            await asyncio.to_thread(postgres.kill)
            await asyncio.to_thread(postgres.start)
        else:
            redis_server.ask("FLUSHALL")
        await until(lambda: len(ledger.responses) > before or all(one.done() for one in clients), timeout=60)  # noqa: B023
    await asyncio.gather(*clients)
    assert ledger.responses and ledger.items
    for server in pair:
        server.kill()
    redis_server.ask("FLUSHALL")
    async with killed(postgres):
        pass
    for server in pair:
        await server.start()
        await until_state(server, "ready")
        for response_id, response in ledger.responses.items():
            assert await read(server, f"{RESPONSES}/{response_id}") == response
        listed = texts_of(await read(server, f"{CONVERSATIONS}/{conversation}/items?limit=100&order=asc"))
        assert len(set(listed)) == len(listed)
        assert set(ledger.items) <= set(listed) <= {*ledger.items, *ledger.unsure}
