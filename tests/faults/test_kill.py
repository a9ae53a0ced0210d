"""kill -9 at the worst moments: whoever comes back gets exactly the rest."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.faults.checker import Reference, check, final_text
from tests.faults.forms import short_or_long
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import MortalServer, SharedServer, get, post, until
from tests.openai_api.test_chat import CHAT, said

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

NUM_SESSIONS = 20
PACED = "echo?tokens_per_second=80"
ROUNDS = short_or_long(3, 30)
STORY = "The ferry to {name} left at {hour} with {hour} goats, a judge and 你好 😀 on board; nobody slept. "


def story(number: int, length: int = 100) -> str:
    """Unlike any other, from its first letters on."""
    return (f"#{number} " + STORY.format(name=f"island {number}", hour=number % 24) * 3)[:length]


async def come_back(clients: Sequence[Client], how: Sequence[str] = ("POST", "GET")) -> None:
    await asyncio.gather(*(client.follow(how[number % len(how)]) for number, client in enumerate(clients)))


async def read_again(server: MortalServer, clients: Sequence[Client]) -> list[Client]:
    """Fresh readers that have seen nothing yet."""
    fresh = [Client(server.url, client.body, path=client.path) for client in clients]
    await come_back(fresh, ["POST"])
    return fresh


async def read_recorded(server: MortalServer, clients: Sequence[Client]) -> list[Client]:
    """The same, where a POST would begin a new turn."""
    fresh = [Client(server.url, client.body) for client in clients]
    for client in fresh:
        await client.connect("GET")
        await client.read()
    return fresh


async def seen_blocks(clients: Sequence[Client], at_least: int) -> None:
    def is_so() -> bool:
        return sum(len(client.blocks) for client in clients) >= at_least

    await until(is_so, what=f"{at_least} blocks at {len(clients)} clients")


def references_of(clients: Sequence[Client], **more: Any) -> dict[tuple[str, int], Reference]:
    return {(client.session, 0): Reference(client.body["messages"][-1]["content"], **more) for client in clients}


def is_over_in_the_file(server: MortalServer, session_id: str) -> bool:
    with closing(sqlite3.connect(f"file:{server.sessions_path}?mode=ro", uri=True)) as file:
        query = "SELECT last_index FROM turns JOIN sessions ON session = sessions.number WHERE id = ?"
        return file.execute(query, [session_id]).fetchone()[0] is not None


def different_clients(server: MortalServer, prefix: str) -> list[Client]:
    """Streams that differ in what rides on them."""
    kinds: list[dict[str, Any]] = [
        {},
        {"stream_options": {"include_usage": True}},
        {"n": 2},
        {"logprobs": True, "stream_options": {"include_usage": True}},
    ]
    return [
        Client(server.url, said(story(number), session_id=f"{prefix}-{number}", **kinds[number % len(kinds)]))
        for number in range(NUM_SESSIONS)
    ]


@pytest.mark.parametrize("sync", ["normal", "full"])
async def test_after_a_kill_every_reader_gets_exactly_the_missing_events(shared: SharedServer, sync: str) -> None:
    chance = Random(sync)
    async with shared.running(MODEL_REPO_ID=PACED, SESSIONS_SYNC=sync) as server:
        for number in range(ROUNDS if sync == "normal" else 1):
            clients = different_clients(server, f"{sync}-{number}")
            following = asyncio.gather(come_back(clients))
            await seen_blocks(clients, chance.randrange(1, NUM_SESSIONS * 80))
            server.kill()
            await server.start()
            await following
            again = await read_again(server, clients)
            check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_repeated_kills_do_not_change_the_answer(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        clients = different_clients(server, "again")
        following = asyncio.gather(come_back(clients))
        for at_least in (200, 700, 1300):
            await seen_blocks(clients, at_least)
            server.kill()
            await server.start()
        await following
        again = await read_again(server, clients)
        check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_a_session_id_is_enough_to_find_the_answer(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        body = said(story(1), session_id="unread")
        early, witness = Client(server.url, body), Client(server.url, body)
        await early.connect()
        await witness.connect()
        await witness.read(blocks=5)
        server.kill()
        early.leave()
        witness.leave()
        await server.start()
        await come_back([early, witness], ["POST"])
        assert early.blocks[0].index == 0
        check(connections_of([early, witness]), references_of([early]))


async def test_after_an_early_kill_the_same_post_gets_the_whole_answer(shared: SharedServer) -> None:
    chance = Random(4)
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        for number in range(short_or_long(2, 10)):
            clients = [Client(server.url, said(story(one), session_id=f"new-{number}-{one}")) for one in range(5)]
            for client in clients:
                await client.connect()
                await asyncio.sleep(chance.uniform(0, 0.01))
            server.kill()
            await server.start()
            await come_back(clients, ["POST"])
            check(connections_of(clients), references_of(clients))


async def test_a_reader_resumes_without_the_request(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        client = Client(server.url, said(story(7), session_id="bare"))
        await client.connect()
        await client.read(blocks=9)
        server.kill()
        await server.start()
        await client.connect(with_body=False)
        await client.read()
        assert client.is_over
        check(client.history, references_of([client]))


async def test_an_answer_is_resumed_without_readers(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED, EAGER_LOAD_MODEL="1") as server:
        client = Client(server.url, said(story(3), session_id="alone"))
        await client.connect()
        await client.read(blocks=10)
        server.kill()
        client.leave()
        await server.start()
        await until(lambda: is_over_in_the_file(server, "alone"), what="the end; to ask the server would be to read")
        server.kill()
        await server.start(RESUME_GENERATION="0")  # now nothing can be added to what is there
        await client.follow()
        check(client.history, references_of([client]))


async def test_with_resume_off_every_reader_gets_one_error(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        clients = different_clients(server, "cut")
        following = asyncio.gather(come_back(clients))
        await seen_blocks(clients, 600)
        server.kill()
        await server.start(RESUME_GENERATION="0")
        await following
        again = await read_recorded(server, clients)
        check(connections_of([*clients, *again]), references_of(clients, ends=("failed",)))
        for client in [*clients, *again]:
            assert client.blocks[-1].chunk["error"]["code"] == "generation_interrupted"
        whole = await post(server.url, CHAT, {**clients[0].body, "stream": False})
        assert whole.json()["choices"][0]["message"]["content"] == clients[0].body["messages"][-1]["content"]


@pytest.mark.parametrize("first", [True, False])
async def test_a_kill_at_the_end_leaves_both_forms_of_the_end(shared: SharedServer, first: bool) -> None:
    chance = Random(first)
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        for number in range(ROUNDS):
            ask = said(story(number, 6), session_id=f"usage-{first}-{number}")
            clients = [
                Client(server.url, {**ask, "stream_options": {"include_usage": with_usage}})
                for with_usage in (first, not first)
            ]
            await clients[0].connect()
            await clients[0].read(blocks=1)
            following = asyncio.gather(come_back(clients, ["POST"]))
            await seen_blocks(clients, chance.randrange(12, 18))
            server.kill()
            await server.start()
            await following
            again = await read_again(server, clients)
            for with_usage, *readers in zip((first, not first), clients, again, strict=True):
                check(connections_of(readers), references_of(readers))
                usage = readers[1].blocks[-2].chunk.get("usage")
                assert (usage is not None) is with_usage and readers[1].blocks[-1].index == 7 + with_usage + 1


async def test_another_model_does_not_resume_an_answer(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        finished = Client(server.url, said("short", session_id="finished"))
        await finished.follow()
        client = Client(server.url, said(story(5), session_id="other-model"))
        await client.connect()
        await client.read(blocks=10)
        server.kill()
        await server.start(MODEL_REPO_ID="echo?revision=2&tokens_per_second=80")
        await client.follow()
        [finished_again, again] = await read_recorded(server, [finished, client])
        assert client.blocks[-1].chunk["error"]["code"] == "generation_interrupted"
        clients = [finished, finished_again, client, again]
        check(connections_of(clients), {**references_of([finished]), **references_of([client], ends=("failed",))})


async def test_the_grace_period_of_an_answer_survives_a_kill(
    shared: SharedServer,
) -> None:
    slow = {"MODEL_REPO_ID": "echo?tokens_per_second=20", "CANCEL_AFTER_DISCONNECT_SECONDS": "2"}
    async with shared.running(**slow) as server:
        left, stays = (Client(server.url, said(story(n, 150), session_id=f"wait-{n}")) for n in (1, 2))
        for client in (left, stays):
            await client.connect()
            await client.read(blocks=3)
        left.leave()
        server.kill()
        await server.start()
        await stays.connect()
        await stays.read(blocks=80)  # the other waits for his reader all this time: four seconds
        await come_back([left, stays])
        ends = {**references_of([left], ends=("cancelled",)), **references_of([stays])}
        check(connections_of([left, stays]), ends)


async def test_a_cancel_that_was_answered_is_not_undone_by_a_kill(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        client = Client(server.url, said(story(8), session_id="cancelled"))
        await client.connect()
        await client.read(blocks=10)
        answer = await post(server.url, "/v1/cancel/cancelled")
        server.kill()
        assert answer.json()["status"] == "cancelled"
        await server.start()
        assert (await post(server.url, "/v1/cancel/cancelled")).json()["status"] == "cancelled"
        await client.follow()
        check(client.history, references_of([client], ends=("cancelled",)))


async def test_an_interrupted_unstreamed_answer_can_be_requested_again(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        body = said(story(9), session_id="unstreamed")
        witness = Client(server.url, body)
        asking = asyncio.create_task(post(server.url, CHAT, body))
        await until(witness.is_found, what="the session")
        await witness.read(blocks=20)
        server.kill()
        lost = await asyncio.gather(asking, return_exceptions=True)
        assert isinstance(lost[0], Exception)
        await server.start()
        answer = (await post(server.url, CHAT, body)).json()
        await witness.follow()
        assert answer["choices"][0]["message"]["content"] == story(9)
        assert answer["usage"]["completion_tokens"] == len(story(9))
        assert answer["id"] == witness.blocks[0].chunk["id"]
        check(witness.history, references_of([witness]))


async def test_the_indexes_of_the_next_turn_continue_after_a_kill(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        first = Client(server.url, said("one", session_id="turns"))
        await first.follow()
        server.kill()
        await server.start()
        second = Client(server.url, said(story(2), session_id="turns"), turn=1)
        await second.connect()
        await second.read(blocks=30)
        server.kill()
        await server.start()
        await second.follow()
        [first_again] = await read_again(server, [first])
        references = {("/turns", 0): Reference("one"), ("/turns", 1): Reference(story(2))}
        check(connections_of([first, second, first_again]), references)


async def test_a_cursor_at_the_end_gets_an_empty_stream_after_a_restart(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        client = Client(server.url, said("Halo", session_id="done"))
        await client.follow()
        server.kill()
        await server.start()
        await client.connect("GET")
        await client.read()
        assert client.last.status == 204
        await client.connect()
        await client.read()
        assert (client.last.status, client.last.blocks) == (200, [])
        await client.connect(after=999)
        await client.read()
        assert (client.last.status, client.last.error_code) == (400, "invalid_last_event_id")
        assert (await get(server.url, "/v1/stream/nobody")).status_code == 404


async def test_a_second_server_on_the_same_file_does_not_start(tmp_path: Path, shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        second = MortalServer(tmp_path, **server.variables)
        with pytest.raises(AssertionError, match="does not come up"):
            await second.start()
        assert str(server.sessions_path) in second.log.read_text()
        await Client(server.url, said("Halo", session_id="first-goes-on")).follow()


QUESTIONS: Sequence[dict[str, Any]] = [
    said("Tell me a short story.", temperature=0),
    said("Tell me a short story.", temperature=1.3, seed=5),
    said("Siapa kamu?", temperature=0.9, seed=11, n=2),
    said("Tell me a long story.", temperature=1, seed=3, stop=["zzz", ". The"]),
    said("What is 12 + 7?", temperature=0.8, top_p=0.9, seed=8, logprobs=True, top_logprobs=3),
    said("Halo!", temperature=1.5, seed=2, frequency_penalty=0.7, presence_penalty=0.3),
]


def bodies_for_the_demo(prefix: str) -> list[dict[str, Any]]:
    more = {"ignore_eos": True, "max_tokens": 150, "stream_options": {"include_usage": True}}
    return [{**more, **body, "session_id": f"{prefix}-{at}"} for at, body in enumerate(QUESTIONS)]


class TestTheDemoModel:
    pytestmark = pytest.mark.model

    async def test_kills_do_not_change_the_answer(self, shared_demo: SharedServer) -> None:
        chance = Random(1)
        async with shared_demo.running() as server:
            unkilled = [Client(server.url, body) for body in bodies_for_the_demo("unkilled")]
            await asyncio.gather(*(client.follow(patience=300) for client in unkilled))
            for number in range(short_or_long(1, 10)):
                clients = [Client(server.url, body) for body in bodies_for_the_demo(f"killed-{number}")]
                following = asyncio.gather(*(client.follow(patience=300) for client in clients))
                for at_least in sorted(chance.sample(range(50, 650), 2)):
                    await seen_blocks(clients, at_least)
                    server.kill()
                    await server.start()
                await following
                again = await read_again(server, clients)
                references = {
                    (client.session, 0): what_was_said(reference)
                    for client, reference in zip(clients, unkilled, strict=True)
                }
                check(connections_of([*clients, *again]), references)


def what_was_said(client: Client) -> Reference:
    last_chunk = client.blocks[-2].chunk
    finish_reasons = {
        part["finish_reason"]
        for block in client.blocks[:-1]
        for part in block.chunk["choices"]
        if part["finish_reason"]
    }
    return Reference(
        [final_text(client.blocks, choice) for choice in (0, 1)],
        finish_reason=finish_reasons.pop() if len(finish_reasons) == 1 else None,
        num_tokens=last_chunk["usage"]["completion_tokens"],
    )
