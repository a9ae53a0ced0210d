"""Two servers on one Redis: whoever comes back to either of them gets exactly the rest."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random

import httpx2
import pytest

from tests.faults.checker import Reference, check
from tests.faults.forms import short_or_long
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import MortalServer, get, post, until
from tests.faults.replicas import LEASE_SECONDS, replicas
from tests.faults.test_kill import bodies_for_the_demo, seen_blocks, what_was_said
from tests.openai_api.test_chat import CHAT, said
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
STORY = "The ferry to the island left at noon with four goats, a judge and 你好 😀 on board; nobody slept. "


def story(number: int, length: int = 200) -> str:
    return (f"#{number} " + STORY * 4)[:length]


@pytest.fixture
async def pair(tmp_path: Path, redis_server: RedisServer) -> AsyncIterator[list[MortalServer]]:
    async with replicas(tmp_path, redis_server) as servers:
        yield servers


def clients_of(server: MortalServer, prefix: str, num: int = 8) -> list[Client]:
    more: list[dict[str, object]] = [{}, {"stream_options": {"include_usage": True}}, {"n": 2}, {"logprobs": True}]
    return [
        Client(server.url, said(story(number), session_id=f"{prefix}-{number}", **more[number % 4]))
        for number in range(num)
    ]


def references_of(clients: Sequence[Client], **more: object) -> dict[tuple[str, int], Reference]:
    return {
        (client.session, 0): Reference(client.body["messages"][-1]["content"], **more)  # type: ignore[arg-type]
        for client in clients
    }


async def read_at(server: MortalServer, clients: Sequence[Client]) -> list[Client]:
    """Fresh readers, which have seen nothing yet."""
    fresh = [Client(server.url, client.body) for client in clients]
    await asyncio.gather(*(client.follow() for client in fresh))
    return fresh


async def test_a_stream_begun_at_one_server_is_resumed_at_the_other(pair: list[MortalServer]) -> None:
    a, b = pair
    clients = clients_of(a, "moved")
    for client in clients:
        await client.connect()
        await client.read(blocks=20)
    for number, client in enumerate(clients):
        client.move_to(b.url)
        await client.connect("GET" if number % 2 else "POST")
        await client.read(blocks=5)
        assert client.last.status == 200
        assert not client.is_over  # it is read while the other server makes it
    await asyncio.gather(*(client.follow() for client in clients))
    again = [*await read_at(b, clients), *await read_at(a, clients)]
    check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_the_same_post_to_the_other_server_begins_nothing(pair: list[MortalServer]) -> None:
    a, b = pair
    first, second = (Client(server.url, said(story(1), session_id="one")) for server in pair)
    await first.connect()
    await first.read(blocks=3)
    await asyncio.gather(first.follow(), second.follow())
    check(connections_of([first, second]), references_of([first]))
    other = await post(b.url, CHAT, said("another", session_id="one", stream=True))
    assert other.status_code == 200  # the next turn, at the other server
    third = Client(a.url, said("another", session_id="one"), turn=1)
    await third.follow()
    references = {("/one", 0): Reference(story(1)), ("/one", 1): Reference("another")}
    check(connections_of([first, second, third]), references)


async def test_another_question_is_refused_while_the_other_server_answers(pair: list[MortalServer]) -> None:
    a, b = pair
    client = Client(a.url, said(story(1), session_id="busy"))
    await client.connect()
    await client.read(blocks=3)
    refused = await post(b.url, CHAT, said("another", session_id="busy", stream=True))
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_conflict")
    await client.follow()


async def test_another_server_knows_nothing_of_sessions_that_are_not_there(pair: list[MortalServer]) -> None:
    for server in pair:
        assert (await get(server.url, "/v1/stream/nobody")).status_code == 404
        assert (await post(server.url, "/v1/cancel/nobody")).json()["status"] == "unknown"


async def test_a_cancel_at_one_server_ends_the_answer_of_the_other(pair: list[MortalServer]) -> None:
    a, b = pair
    clients = clients_of(a, "stop", 4)
    for client in clients:
        client.body["messages"][-1]["content"] = story(0, 390)
    following = asyncio.gather(*(client.follow() for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    paths = [f"/v1/cancel/{client.session_id}" for client in clients]
    answers = await asyncio.gather(*(post(b.url, path) for path in paths))
    for client, answer in zip(clients, answers, strict=True):
        assert answer.json() == {"ok": True, "session_id": client.session_id, "status": "cancelled"}
        assert (await post(b.url, f"/v1/cancel/{client.session_id}")).json()["status"] == "cancelled"
    await following
    again = await read_at(b, clients)
    check(connections_of([*clients, *again]), references_of(clients, ends=("cancelled",)))


async def test_when_a_server_is_killed_the_other_goes_on_with_its_answers(pair: list[MortalServer]) -> None:
    a, b = pair
    clients = clients_of(a, "killed")
    following = asyncio.gather(*(client.follow() for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    a.kill()
    for client in clients:
        client.move_to(b.url)
    await following
    again = await read_at(b, clients)
    check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_readers_at_the_other_server_see_nothing_of_the_kill(pair: list[MortalServer]) -> None:
    a, b = pair
    begun = Client(a.url, said(story(1), session_id="unseen"))
    await begun.connect()
    await begun.read(blocks=5)
    watching = Client(b.url, begun.body)
    following = asyncio.create_task(watching.follow())
    await until(lambda: len(watching.blocks) > 20)
    a.kill()
    begun.leave()
    await following
    assert len(watching.history) == 1  # one connection, from the first block to the last
    check(connections_of([begun, watching]), references_of([begun]))


async def test_an_answer_without_readers_goes_on_when_its_server_dies(
    pair: list[MortalServer], redis_server: RedisServer
) -> None:
    a, b = pair
    client = Client(a.url, said(story(1), session_id="alone"))
    await client.connect()
    await client.read(blocks=10)
    a.kill()
    client.leave()

    def is_over() -> bool:
        [meta] = redis_server.ask("KEYS", "tis:*:meta")
        return str(redis_server.ask("HGET", meta, "run")) == "0"

    await until(is_over, what="the end; to ask the server would be to read")
    client.move_to(b.url)
    await client.follow()
    check(client.history, references_of([client]))


async def test_a_server_that_was_paused_cannot_write_what_the_other_has_taken(pair: list[MortalServer]) -> None:
    a, b = pair
    clients = clients_of(a, "paused", 4)
    following = asyncio.gather(*(client.follow() for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    os.kill(a.pid, signal.SIGSTOP)
    watching = [Client(b.url, client.body) for client in clients]
    watched = asyncio.gather(*(client.follow() for client in watching))
    await until(lambda: all(len(client.blocks) > 60 for client in watching), timeout=LEASE_SECONDS + 30)
    os.kill(a.pid, signal.SIGCONT)
    await watched
    await following  # at the server that was paused: they see what the other made
    again = [*await read_at(a, clients), *await read_at(b, clients)]
    check(connections_of([*clients, *watching, *again]), references_of(clients, finish_reason="stop"))


async def test_a_server_that_is_told_to_stop_hands_its_answers_over(pair: list[MortalServer]) -> None:
    a, b = pair
    await a.start_again(DRAIN_SECONDS="0.1")
    clients = clients_of(a, "drained", 4)
    following = asyncio.gather(*(client.follow() for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    a.terminate()
    for client in clients:
        client.move_to(b.url)
    await following
    assert await a.exit_code() == 0
    check(connections_of(clients), references_of(clients, finish_reason="stop"))


async def wander(client: Client, servers: Sequence[MortalServer], chance: Random) -> None:
    """Comes to either of them, reads a little, and leaves."""
    async with asyncio.timeout(120):
        while not client.is_over:
            client.move_to(chance.choice(servers).url)
            await client.connect("POST" if client.cursor is None else chance.choice(["POST", "GET"]))
            await client.read(blocks=chance.randrange(1, 40))
            assert client.last.status in (0, 200, 503), client.last
            await asyncio.sleep(0.02)  # as clients do between two attempts
        client.leave()


async def test_wherever_clients_come_and_whoever_dies_each_gets_his_answer(pair: list[MortalServer]) -> None:
    a, b = pair
    for number in range(short_or_long(1, 10)):
        chance = Random(number)
        clients = clients_of(a, f"wanders-{number}", 16)
        wandering = asyncio.gather(*(wander(client, pair, chance) for client in clients))
        for server, at_least in ((a, 600), (b, 1800)):
            await seen_blocks(clients, at_least)
            server.kill()
            await server.start()
        await wandering
        again = [*await read_at(a, clients), *await read_at(b, clients)]
        check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


ASKED: dict[str, dict[str, object]] = {
    "/v1/completions": {"prompt": story(1), "max_tokens": 300},
    "/v1/messages": {"messages": [{"role": "user", "content": story(1)}], "max_tokens": 300},
    "/ollama/api/chat": {"messages": [{"role": "user", "content": story(1)}]},
}


async def test_answers_of_every_dialect_go_on_at_the_other_server(pair: list[MortalServer]) -> None:
    a, b = pair
    shown: dict[str, bytes] = {}

    async def begin(path: str) -> None:
        name = path.strip("/").replace("/", "-")
        body = {"model": "echo", "stream": True, **ASKED[path]}
        headers = {"X-Session-Id": name}
        if path == "/v1/completions":
            body["session_id"] = name
        async with httpx2.AsyncClient(base_url=a.url, timeout=60) as http:
            async with http.stream("POST", path, json=body, headers=headers) as answer:
                assert answer.status_code == 200, await answer.aread()
                async for data in answer.aiter_bytes():
                    shown[path] = shown.get(path, b"") + data
                    if len(shown[path]) > 5000:
                        return

    await asyncio.gather(*(begin(path) for path in ASKED))
    a.kill()
    for path, data in shown.items():
        whole = await get(b.url, f"/v1/stream/{path.strip('/').replace('/', '-')}")
        again = await get(b.url, f"/v1/stream/{path.strip('/').replace('/', '-')}")
        assert whole.status_code == 200
        assert again.content == whole.content.replace(b": ping\n", b"")
        assert b'"error"' not in whole.content
        if path != "/ollama/api/chat":  # whose POST has lines instead of events
            blocks = data[: data.rfind(b"\n\n")]
            assert blocks and whole.content.startswith(blocks)
        assert _text_of(whole.text) == story(1)


def _text_of(stream: str) -> str:
    """Of whatever dialect."""
    text = ""
    for line in stream.splitlines():
        if line.startswith("data: {"):
            event = json.loads(line.removeprefix("data: "))
            text += event.get("delta", {}).get("text", "") or event.get("message", {}).get("content") or ""
            text += "".join(choice.get("text", "") for choice in event.get("choices", ()))
    return text


@pytest.mark.model
async def test_a_model_says_at_the_other_server_what_it_would_have_said(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    demo = {"MODEL_REPO_ID": "models/demo", "TORCH_DTYPE": "float32", "EAGER_LOAD_MODEL": "1"}
    async with replicas(tmp_path, redis_server, 2, **demo, LOAD_WAIT_SECONDS="120") as (a, b):
        whole = [Client(b.url, body) for body in bodies_for_the_demo("whole")]
        await asyncio.gather(*(client.follow(patience=200) for client in whole))
        clients = [Client(a.url, body) for body in bodies_for_the_demo("moved")]
        following = asyncio.gather(*(client.follow(patience=200) for client in clients))
        await until(lambda: sum(len(client.blocks) for client in clients) > 60, timeout=100)
        a.kill()
        for client in clients:
            client.move_to(b.url)
        await following
        references = {
            (client.session, 0): what_was_said(reference) for client, reference in zip(clients, whole, strict=True)
        }
        check(connections_of(clients), references)
