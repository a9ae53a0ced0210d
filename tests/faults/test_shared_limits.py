"""Two servers on one Redis are one server to a key: its limits, use, tokens and end. Also when one is killed."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.checker import check
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import MortalServer, get, post, until
from tests.faults.replicas import replicas
from tests.faults.test_replicas import references_of, story
from tests.http.keys import bearer, entry, write_key_file
from tests.openai_api.test_chat import CHAT, said
from tests.redis_server import RedisServer, running_redis

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
KEYS = [
    entry("calls", "sk-calls", requests_per_minute=6),
    entry("claude", "sk-claude", requests_per_minute=3),
    entry("tokens", "sk-tokens", tokens_per_day=1000),
    entry("streams", "sk-streams", running_requests=2),
    entry("plain", "sk-plain"),
]
LONG = "The ferry to the island left at noon with four goats and a judge on board. " * 60


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return write_key_file(tmp_path / "keys.json", *KEYS)


@pytest.fixture
async def pair(tmp_path: Path, key_file: Path, redis_server: RedisServer) -> AsyncIterator[list[MortalServer]]:
    async with replicas(tmp_path, redis_server, API_KEYS_FILE=str(key_file)) as servers:
        yield servers


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    with running_redis("--appendonly", "yes") as running:
        yield running


async def call(server: MortalServer, name: str, text: str = "Halo", path: str = CHAT, **more: Any) -> httpx2.Response:
    return await post(server.url, path, said(text, **more), **bearer(f"sk-{name}"))


async def usage(server: MortalServer, name: str) -> Any:
    return (await get(server.url, "/v1/usage", **bearer(f"sk-{name}"))).json()


async def begin(server: MortalServer, name: str, session_id: str) -> int:
    """Reads the beginning of a long stream, and leaves it running."""
    async with (
        httpx2.AsyncClient(base_url=server.url, timeout=60) as http,
        http.stream(
            "POST",
            CHAT,
            json=said(LONG, stream=True, session_id=session_id, max_tokens=4000),
            headers=bearer(f"sk-{name}"),
        ) as answer,
    ):
        if answer.status_code == 200:
            await anext(answer.aiter_bytes())
        return int(answer.status_code)


async def running_of(server: MortalServer, name: str, wanted: int) -> None:
    async def is_so() -> bool:
        return bool((await usage(server, name))["running"] == wanted)

    await until(is_so, what=f"{wanted} running calls of {name}")


async def test_two_servers_allow_a_key_what_one_may(pair: list[MortalServer]) -> None:
    answers = await asyncio.gather(*(call(pair[number % 2], "calls") for number in range(20)))
    assert sorted(one.status_code for one in answers) == [200] * 6 + [429] * 14
    for one in answers:
        assert one.headers["x-ratelimit-limit-requests"] == "6"
        if one.status_code == 429:
            assert 0 < int(one.headers["retry-after"]) <= 60 and one.headers["x-ratelimit-remaining-requests"] == "0"
            assert one.json()["error"]["type"] == "rate_limit_error"
    turns = [await call(pair[number % 2], "claude", path="/v1/messages", max_tokens=5) for number in range(4)]
    assert [one.headers["anthropic-ratelimit-requests-remaining"] for one in turns] == ["2", "1", "0", "0"]
    assert [one.status_code for one in turns] == [200, 200, 200, 429]


async def test_tokens_and_use_of_a_key_are_those_of_all_servers(pair: list[MortalServer]) -> None:
    a, b = pair
    for server in (a, b, a):
        assert (await call(server, "tokens", "x" * 100)).status_code == 200
    made = 3 * 100

    async def is_counted() -> bool:
        used = [await usage(server, "tokens") for server in pair]
        return all(one["completion_tokens"] == made and one["requests"] == 3 for one in used)

    await until(is_counted, what="the sums of both servers")
    shown = [await usage(server, "tokens") for server in pair]
    assert shown[0] == shown[1] | {"limits": shown[0]["limits"]} and shown[0]["prompt_tokens"] >= made
    left = shown[1]["limits"]["tokens_per_day"]["remaining"]
    assert left == 1000 - made - shown[1]["prompt_tokens"]
    assert (await call(b, "tokens", "x" * 500)).status_code == 200

    async def is_used_up() -> bool:
        refused = await call(a, "tokens")
        return refused.status_code == 429 and refused.headers["x-ratelimit-remaining-tokens"] == "0"

    await until(is_used_up, what="a refusal at the server that made the fewer tokens")
    b.kill()
    await b.start()
    assert (await call(b, "tokens")).status_code == 429  # also after a restart
    assert (await usage(b, "tokens"))["requests"] >= 4


async def test_running_streams_count_at_all_servers_and_those_of_a_killed_one_are_given_back(
    pair: list[MortalServer],
) -> None:
    a, b = pair
    assert [await begin(one, "streams", f"s{number}") for number, one in enumerate((a, b, b, a))] == [
        200,
        200,
        429,
        429,
    ]
    await running_of(b, "streams", 2)
    # Nobody can go on with an answer that is neither streamed nor named.
    lost = asyncio.create_task(call(a, "plain", LONG, max_tokens=4000))
    await running_of(b, "plain", 1)
    a.kill()
    with pytest.raises(httpx2.TransportError):
        await lost
    await running_of(b, "plain", 0)
    await running_of(b, "streams", 2)  # the one of the killed server runs here now
    assert (await call(b, "streams")).status_code == 429
    for number in range(2):
        cancelled = await post(b.url, f"/v1/cancel/s{number}", **bearer("sk-streams"))
        assert cancelled.json()["status"] == "cancelled"
    await running_of(b, "streams", 0)
    assert (await call(b, "streams")).status_code == 200


async def test_without_redis_calls_are_answered_and_limited_by_each_server_alone(
    tmp_path: Path, key_file: Path, own_redis: RedisServer
) -> None:
    async with replicas(tmp_path, own_redis, API_KEYS_FILE=str(key_file), SESSION_STORE="memory") as pair:
        assert [(await call(one, "calls")).status_code for one in (pair[0], pair[1], pair[0])] == [200] * 3
        own_redis.pause()
        answers = await asyncio.gather(*(call(pair[number % 2], "calls") for number in range(20)))
        assert {one.status_code for one in answers} == {200, 429}
        assert 6 - 3 <= [one.status_code for one in answers].count(200) <= 2 * 6
        own_redis.go_on()
        await until(lambda: are_sharing(pair))
        own_redis.kill()
        answers = await asyncio.gather(*(call(pair[number % 2], "plain") for number in range(10)))
        assert {one.status_code for one in answers} == {200}
        assert (await usage(pair[0], "plain"))["requests"] >= 5
        own_redis.start()
        await until(lambda: are_sharing(pair))
        for server in pair:
            await running_of(server, "plain", 0)
            assert (await call(server, "plain")).status_code == 200


async def are_sharing(servers: Sequence[MortalServer]) -> bool:
    pages = [(await get(one.url, "/metrics", **bearer("sk-plain"))).text for one in servers]
    return all("tis_limits_shared 1.0" in page for page in pages)


async def test_a_server_starts_without_the_redis_of_its_limits(tmp_path: Path, own_redis: RedisServer) -> None:
    own_redis.kill()
    async with replicas(tmp_path, own_redis, 1, SESSION_STORE="memory", REQUESTS_PER_MINUTE="1") as [server]:
        statuses = [(await post(server.url, CHAT, said("Halo"))).status_code for _ in range(2)]
        assert statuses == [200, 429]
        own_redis.start()

        async def is_shared() -> bool:
            return "tis_limits_shared 1.0" in (await get(server.url, "/metrics")).text

        await until(is_shared)


async def test_a_revoked_key_ends_at_all_servers_and_a_read_token_opens_its_stream_at_each(
    pair: list[MortalServer], key_file: Path, redis_server: RedisServer
) -> None:
    a, b = pair
    whole = (await call(a, "plain", "Halo, dunia", stream=True, session_id="read")).text
    given = (await post(a.url, "/v1/stream/read/read_token", **bearer("sk-plain"))).json()
    for server in pair:
        assert (await get(server.url, given["url"])).text == whole
        assert (await get(server.url, given["url"].replace("read?", "other?"))).status_code == 401
    assert await begin(a, "plain", "runs") == 200
    running = (await post(a.url, "/v1/stream/runs/read_token", **bearer("sk-plain"))).json()
    async with (
        httpx2.AsyncClient(base_url=b.url, timeout=60) as http,
        http.stream("GET", running["url"]) as reading,
    ):
        assert reading.status_code == 200
        lines = reading.aiter_lines()
        assert await anext(lines)
        a.kill()
        await b.start_again()
    assert (await get(b.url, given["url"])).text == whole  # also after a restart
    await a.start()
    assert (await get(a.url, given["url"])).text == whole
    write_key_file(key_file, *(one for one in KEYS if one["name"] != "plain"))

    async def is_closed_everywhere() -> bool:
        answers = [await get(server.url, given["url"]) for server in pair]
        answers += [await call(server, "plain") for server in pair]
        return all(one.status_code == 401 for one in answers)

    await until(is_closed_everywhere, what="the end of a revoked key at both servers")

    async def is_cancelled() -> bool:
        metas = [redis_server.ask("HGETALL", name) for name in redis_server.ask("KEYS", "tis:*:meta")]
        return all(json.dumps(meta).count('"run": "1"') == 0 for meta in metas)

    await until(is_cancelled, what="the end of its running answer, wherever it ran")


async def test_the_same_request_at_two_servers_at_the_same_moment_is_one_answer(pair: list[MortalServer]) -> None:
    for number in range(5):
        body = said(story(number), session_id=f"twice-{number}")
        clients = [Client(server.url, body, key="sk-plain") for server in pair for _ in range(2)]
        await asyncio.gather(*(client.follow() for client in clients))
        check(connections_of(clients), references_of(clients[:1], finish_reason="stop"))


async def test_sign_ins_from_an_address_are_counted_at_all_servers(tmp_path: Path, redis_server: RedisServer) -> None:
    variables = {
        "LOGINS_PER_MINUTE": "3",
        "JWT_SECRET_KEY": "a-secret-of-two-servers-" + "0123456789",
        "SEARCHES_PER_MINUTE": "4",
    }
    async with replicas(tmp_path, redis_server, 2, **variables) as pair:
        body = {"email": "nobody@example.com", "password": "a long sentence for you"}
        answers = [await post(pair[number % 2].url, "/api/auth/login", body) for number in range(5)]
        assert [one.status_code for one in answers] == [401, 401, 401, 429, 429]
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        # The search of suppliers by name counts two: as a list, and as a search.
        found = [await get(pair[number % 2].url, "/api/suppliers?q=toko") for number in range(3)]
        assert [one.status_code for one in found] == [200, 200, 429]


async def test_a_model_is_loaded_and_unloaded_at_all_servers(tmp_path: Path, redis_server: RedisServer) -> None:
    async with replicas(tmp_path, redis_server, 3, SESSION_STORE="memory", SERVED_MODEL_NAME="toy") as (a, b, late):
        late.kill()

        async def all_say(servers: Sequence[MortalServer], wanted: str) -> None:
            async def is_so() -> bool:
                found = [(await get(one.url, "/v1/models")).json()["data"][0]["status"] for one in servers]
                return set(found) == {wanted}

            await until(is_so, what=f"{wanted} everywhere")

        await all_say([a, b], "unloaded")
        loaded = await post(a.url, "/load_model", {"model": "toy"})
        assert '"status": "ready"' in loaded.text
        await all_say([a, b], "loaded")
        await late.start()  # it loads what the others have
        await all_say([late], "loaded")
        unloaded = await post(b.url, "/v1/models/toy/unload")
        assert unloaded.json()["status"] == "unloaded"
        await all_say([a, b, late], "unloaded")
        late.kill()
        await late.start()
        busy = Client(late.url, said(LONG[:800], session_id="busy", max_tokens=800))
        await busy.connect()
        await busy.read(blocks=2)
        await post(a.url, "/load_model", {"model": "toy"})
        await all_say([a, b], "loaded")
        await post(a.url, "/v1/models/toy/unload")
        await all_say([a, b], "unloaded")
        await busy.read()  # where it is in use, the answer is whole
        assert busy.is_over
        await all_say([late], "unloaded")
