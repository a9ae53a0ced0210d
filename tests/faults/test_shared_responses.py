"""Responses and conversations of two servers on one Redis: each finds and changes what the other has made."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.mortal_server import MortalServer, get, post, until
from tests.faults.replicas import replicas
from tests.marketplace.postgres import Postgres
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
LONG = "The ferry to the island left at noon with four goats and a judge on board; nobody slept. " * 4
RESPONSES, CONVERSATIONS = "/v1/responses", "/v1/conversations"
Pair = list[MortalServer]


@pytest.fixture(params=["redis", "postgresql"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> AsyncIterator[Pair]:
    """What is stored is in Redis, too, or lasts in PostgreSQL."""
    url = ""  # as if it were not set
    if request.param == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.new_database(tmp_path.name)
    async with replicas(tmp_path, redis_server, RESPONSES_URL=url) as servers:
        yield servers


async def delete(server: MortalServer, path: str) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
        return await http.delete(path)


async def made(server: MortalServer, path: str, **body: object) -> dict[str, Any]:
    answer = await post(server.url, path, {"model": "echo", **body} if path == RESPONSES else body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def read(server: MortalServer, path: str) -> dict[str, Any]:
    answer = await get(server.url, path)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def statuses(servers: Pair, path: str) -> list[int]:
    return [(await get(server.url, path)).status_code for server in servers]


def text_of(response: dict[str, Any]) -> str:
    return "".join(part["text"] for item in response["output"] for part in item["content"])


def texts_of(listed: dict[str, Any]) -> list[str]:
    return ["".join(part["text"] for part in item["content"]) for item in listed["data"]]


def message(text: str) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": text}


async def until_status(server: MortalServer, response_id: str, wanted: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_so() -> bool:
        found.update(await read(server, f"{RESPONSES}/{response_id}"))
        return bool(found["status"] == wanted)

    await until(is_so)
    return found


async def test_a_response_of_one_server_is_read_continued_and_deleted_at_the_other(pair: Pair) -> None:
    a, b = pair
    first = await made(a, RESPONSES, input="one")
    path = f"{RESPONSES}/{first['id']}"
    assert await read(b, path) == await read(a, path) == first
    second = await made(b, RESPONSES, input="two", previous_response_id=first["id"])
    third = await made(a, RESPONSES, input="three", previous_response_id=second["id"])
    for server in pair:
        listed = await read(server, f"{RESPONSES}/{third['id']}/input_items?order=asc")
        assert texts_of(listed) == ["one", text_of(first), "two", text_of(second), "three"]
    assert (await delete(b, path)).json() == {"id": first["id"], "object": "response", "deleted": True}
    assert await statuses(pair, path) == [404, 404]
    assert (await post(a.url, RESPONSES, {"input": "x", "previous_response_id": first["id"]})).status_code == 400


async def test_a_server_that_was_restarted_finds_what_it_had_made(pair: Pair) -> None:
    a, _ = pair
    first = await made(a, RESPONSES, input="one")
    conversation = await made(a, CONVERSATIONS, items=[message("hello")])
    await a.start_again()
    assert await read(a, f"{RESPONSES}/{first['id']}") == first
    assert texts_of(await read(a, f"{CONVERSATIONS}/{conversation['id']}/items")) == ["hello"]


async def test_a_conversation_goes_on_at_whichever_server(pair: Pair) -> None:
    a, b = pair
    conversation = (await made(a, CONVERSATIONS, metadata={"topic": "ferries"}, items=[message("zero")]))["id"]
    path = f"{CONVERSATIONS}/{conversation}"
    first = await made(b, RESPONSES, input="one", conversation=conversation)
    second = await made(a, RESPONSES, input="two", conversation=conversation)
    await made(b, f"{path}/items", items=[message("three")])
    await made(a, path, metadata={"topic": "goats"})
    expected = ["zero", "one", text_of(first), "two", text_of(second), "three"]
    for server in pair:
        assert texts_of(await read(server, f"{path}/items?order=asc")) == expected
        assert (await read(server, path))["metadata"] == {"topic": "goats"}
    assert (await delete(a, f"{RESPONSES}/{first['id']}")).status_code == 200  # the conversation keeps its items
    for server in pair:
        assert texts_of(await read(server, f"{path}/items?order=asc")) == expected
    unstored = await made(b, RESPONSES, input="four", conversation=conversation, store=False)
    for server in pair:
        assert texts_of(await read(server, f"{path}/items?order=asc")) == [*expected, "four", text_of(unstored)]
    assert (await delete(b, path)).status_code == 200
    assert await statuses(pair, path) == [404, 404]


async def test_of_changes_at_both_servers_at_once_none_is_lost(pair: Pair) -> None:
    conversation = (await made(pair[0], CONVERSATIONS))["id"]
    path = f"{CONVERSATIONS}/{conversation}/items"
    texts = [f"number {number}" for number in range(40)]
    answers = await asyncio.gather(
        *(post(pair[number % 2].url, path, {"items": [message(text)]}) for number, text in enumerate(texts))
    )
    added = [text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 200]
    refused = [answer for answer in answers if answer.status_code != 200]
    assert added
    assert {(one.status_code, one.json()["error"]["code"]) for one in refused} <= {(409, "conversation_locked")}
    listed = [await read(server, f"{path}?limit=100&order=asc") for server in pair]
    assert listed[0] == listed[1]
    assert sorted(texts_of(listed[0])) == sorted(added)
    assert len({item["id"] for item in listed[0]["data"]}) == len(added)


async def test_two_servers_do_not_answer_in_one_conversation_at_once(pair: Pair) -> None:
    conversation = (await made(pair[0], CONVERSATIONS))["id"]
    asked = [{"model": "echo", "input": f"{number} {LONG}", "conversation": conversation} for number in range(8)]
    answers = await asyncio.gather(*(post(pair[at % 2].url, RESPONSES, body) for at, body in enumerate(asked)))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 7]
    [won] = [answer.json() for answer in answers if answer.status_code == 200]
    for server in pair:
        listed = texts_of(await read(server, f"{CONVERSATIONS}/{conversation}/items?order=asc"))
        assert listed[1:] == [text_of(won)] and len(listed) == 2


async def test_a_response_in_the_background_is_polled_and_cancelled_at_the_other_server(pair: Pair) -> None:
    a, b = pair
    begun = await made(a, RESPONSES, input=LONG, background=True)
    path = f"{RESPONSES}/{begun['id']}"
    assert {"queued", "in_progress"} >= {(await read(b, path))["status"]}
    polled = await until_status(b, begun["id"], "in_progress")
    assert polled["id"] == begun["id"]
    refused = await post(b.url, RESPONSES, {"input": "x", "previous_response_id": begun["id"]})
    assert refused.json()["error"]["code"] == "response_in_progress"
    assert (await post(b.url, f"{path}/cancel")).json()["status"] == "cancelled"
    assert [(await read(server, path))["status"] for server in pair] == ["cancelled"] * 2


async def test_a_response_goes_on_at_the_other_server_when_its_own_is_killed(pair: Pair) -> None:
    a, b = pair
    begun = await made(a, RESPONSES, input=LONG, background=True)
    path = f"{RESPONSES}/{begun['id']}"
    shown = b""
    async with httpx2.AsyncClient(base_url=b.url, timeout=60) as http:
        async with http.stream("GET", f"{path}?stream=true") as answer:
            async for data in answer.aiter_bytes():
                shown += data
                if len(shown) > 5000 and a.is_running:
                    a.kill()
    assert b"response.completed" in shown
    finished = await until_status(b, begun["id"], "completed")
    assert LONG.strip() in text_of(finished)
    await a.start()
    assert await read(a, path) == finished


async def test_a_response_that_a_client_waits_for_is_whole_though_its_server_was_paused_beyond_its_lease(
    pair: Pair,
) -> None:
    a, b = pair
    asking = asyncio.create_task(post(a.url, RESPONSES, {"model": "echo", "input": LONG}))

    async def runs_at(server: MortalServer) -> bool:
        return 'tis_sessions{state="running"} 1.0' in (await get(server.url, "/metrics")).text

    await until(lambda: runs_at(a))
    os.kill(a.pid, signal.SIGSTOP)
    try:
        await until(lambda: runs_at(b))
    finally:
        os.kill(a.pid, signal.SIGCONT)
    answer = (await asking).json()
    assert (answer["status"], text_of(answer)) == ("completed", LONG)
