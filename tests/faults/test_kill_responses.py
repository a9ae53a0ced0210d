"""kill -9 under /v1/responses: what was shown stays, the rest follows, and a client only says where it was."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import httpx2
import pytest

from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, SharedServer, get, post, until
from tests.openai_api.media_requests import data_uri, picture_file
from tests.openai_api.responses.event_order import Event, check_events
from tests.openai_api.responses.response_requests import CONVERSATIONS, RESPONSES, events_in, text_of

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PACED = "echo?tokens_per_second=80"
STORY = "The ferry left at nine with nine goats, a judge and 你好 😀 on board; nobody slept. " * 2
CALLS = (
    "<think>\nThe judge asks for the weather, twice.\n</think>\n\nI look.\n"
    '<tool_call>\n{"name": "look", "arguments": {"city": "Ambon", "days": "3"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "look", "arguments": {"city": "Banda Neira and all islands around it, near and far away"}}'
    "\n</tool_call>"
)
TOOL = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
}


class ResumingReader:
    """Reads one response, and resumes it after every restart of the server."""

    def __init__(self, server: MortalServer, given: Any, **more: Any) -> None:
        self.server = server
        self.body = {"input": given, "stream": True, **more}
        self.events: list[Event] = []

    @property
    def response_id(self) -> str:
        return str(self.events[0]["response"]["id"])

    @property
    def is_over(self) -> bool:
        return bool(self.events) and check_ends(self.events[-1])

    async def read(self, num_events: int = 10**9) -> "ResumingReader":
        """Until so many are there, or the connection is gone."""
        method, url, body = "POST", RESPONSES, self.body
        if self.events:
            last = self.events[-1]["sequence_number"]
            method, url, body = "GET", f"{RESPONSES}/{self.response_id}?stream=true&starting_after={last}", {}
        text, before = "", list(self.events)
        try:
            async with (
                httpx2.AsyncClient(base_url=self.server.url, timeout=60, verify=False) as http,
                http.stream(method, url, json=body or None) as answer,
            ):
                assert answer.status_code == 200, await answer.aread()
                async for piece in answer.aiter_text():
                    text += piece
                    self.events = before + list(events_in(text[: text.rfind("\n\n") + 2]))
                    if len(self.events) >= num_events:
                        break
        except httpx2.TransportError:
            pass
        return self

    async def follow(self) -> Event:
        async with asyncio.timeout(60):
            while not self.is_over:
                await self.read()
        return check_events(self.events)


def check_ends(event: Event) -> bool:
    return str(event["type"]) in ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


async def replayed(server: MortalServer, response_id: str) -> Sequence[Event]:
    return events_in((await get(server.url, f"{RESPONSES}/{response_id}?stream=true")).text)


async def now(server: MortalServer, response_id: str) -> Event:
    return dict((await get(server.url, f"{RESPONSES}/{response_id}")).json())


async def test_after_a_kill_every_reader_gets_exactly_the_missing_events(shared: SharedServer) -> None:
    chance = Random(3)
    more: list[dict[str, Any]] = [{}, {"background": True}, {"include": ["message.output_text.logprobs"]}]
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        for _ in range(short_or_long(2, 20)):
            readers = [ResumingReader(server, f"{number}: {STORY}", **more[number % 3]) for number in range(6)]
            await asyncio.gather(*(reader.read(chance.randrange(1, 120)) for reader in readers))
            server.kill()
            await server.start()
            for number, reader in enumerate(readers):
                assert text_of(await reader.follow()) == f"{number}: {STORY}"
                assert list(await replayed(server, reader.response_id)) == reader.events


@pytest.mark.parametrize("more", [{}, {"reasoning": {"summary": "auto"}}], ids=str)
async def test_repeated_kills_do_not_change_reasoning_and_calls(shared: SharedServer, more: dict[str, Any]) -> None:
    model = "echo?tool_format=hermes&thinks=1&tokens_per_second=100"
    async with shared.running(MODEL_REPO_ID=model) as server:
        expected = await ResumingReader(server, CALLS, tools=[TOOL], **more).follow()
        assert [item["type"] for item in expected["output"]] == ["reasoning", "message", *["function_call"] * 2]
        reader = ResumingReader(server, CALLS, tools=[TOOL], **more)
        for num_events in (12, 30, 48, 55):
            await reader.read(num_events)
            server.kill()
            await server.start()
        response = await reader.follow()
        assert comparable(response) == comparable(expected)
        assert len(reader.events) == len(await replayed(server, response["id"]))


def comparable(response: Event) -> Any:
    """Ids are made from that of the response."""
    output = [{name: item[name] for name in item if name not in ("id", "call_id")} for item in response["output"]]
    return response["status"], output, response["usage"]["output_tokens"], response["usage"]["output_tokens_details"]


async def test_a_background_response_is_resumed_without_readers(shared: SharedServer) -> None:
    variables = {"MODEL_REPO_ID": PACED, "EAGER_LOAD_MODEL": "1", "CANCEL_AFTER_DISCONNECT_SECONDS": "0.1"}
    async with shared.running(**variables) as server:
        asked = (await post(server.url, RESPONSES, {"input": STORY, "background": True})).json()
        for _ in range(2):
            server.kill()
            await server.start()

        async def is_over() -> bool:
            return (await now(server, asked["id"]))["status"] not in ("queued", "in_progress")

        await until(is_over)
        response = await now(server, asked["id"])
        assert (response["status"], text_of(response)) == ("completed", STORY)
        assert check_events(await replayed(server, asked["id"])) == response


async def test_a_cancel_that_was_answered_is_not_undone(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        reader = await ResumingReader(server, STORY, background=True).read(20)
        cancelled = (await post(server.url, f"{RESPONSES}/{reader.response_id}/cancel")).json()
        server.kill()
        await server.start()
        assert cancelled["status"] == "cancelled"
        assert await now(server, reader.response_id) == cancelled == await reader.follow()


async def test_with_resume_off_a_response_fails_with_a_named_error(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        reader = await ResumingReader(server, STORY).read(30)
        server.kill()
        await server.start(RESUME_GENERATION="0")
        response = await reader.follow()
        assert (response["status"], response["error"]["type"]) == ("failed", "generation_interrupted")
        assert STORY.startswith(text_of(response)) and text_of(response)
        assert await now(server, response["id"]) == response


async def test_deletions_and_history_survive_a_kill(shared: SharedServer) -> None:
    async with shared.running() as server:
        conversation = (await post(server.url, CONVERSATIONS, {"items": [{"role": "user", "content": "zero"}]})).json()
        asked = {"input": "one", "conversation": conversation["id"]}
        first, gone = [(await post(server.url, RESPONSES, asked)).json() for _ in range(2)]
        async with httpx2.AsyncClient(base_url=server.url, verify=False) as http:
            assert (await http.delete(f"{RESPONSES}/{gone['id']}")).status_code == 200
        server.kill()
        await server.start()
        assert (await get(server.url, f"{RESPONSES}/{gone['id']}")).status_code == 404
        assert await now(server, first["id"]) == first
        items = (await get(server.url, f"{CONVERSATIONS}/{conversation['id']}/items?order=asc")).json()["data"]
        assert [item["content"][0]["text"] for item in items] == ["zero", *["one"] * 4]  # those of the deleted one stay
        second = await post(server.url, RESPONSES, {"input": "two", "previous_response_id": first["id"]})
        assert second.json()["status"] == "completed"


HISTORY = [{"role": "user", "content": "I am Sari."}, {"role": "assistant", "content": STORY * 3}]
COMPACTS: dict[str, Any] = {"context_management": [{"type": "compaction", "compact_threshold": 256}]}


async def test_kills_within_a_summary_and_behind_it_change_nothing(shared: SharedServer) -> None:
    asked = [*HISTORY, {"role": "user", "content": STORY * 2}]
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        expected = await ResumingReader(server, asked, **COMPACTS).follow()
        assert [item["type"] for item in expected["output"]] == ["compaction", "message"]
        readers = [ResumingReader(server, asked, **COMPACTS, **more) for more in ({}, {"store": True})]
        for num_events in (4, 5, 30):  # the fourth says that the model is writing the summary
            await asyncio.gather(*(reader.read(num_events) for reader in readers))
            server.kill()
            await server.start()
        for reader in readers:
            response = await reader.follow()
            assert comparable(response) == comparable(expected)
            assert response["usage"]["input_tokens"] == expected["usage"]["input_tokens"]
            assert list(await replayed(server, reader.response_id)) == reader.events
        behind = await post(server.url, RESPONSES, {"input": "two", "previous_response_id": readers[0].response_id})
        assert text_of(behind.json()) == "two"


@pytest.mark.model
async def test_the_demo_model_writes_the_same_summary_after_a_kill(shared_demo: SharedServer) -> None:
    more: dict[str, Any] = {"max_output_tokens": 60, "ignore_eos": True, "seed": 5, "temperature": 1.3, **COMPACTS}
    asked = [*HISTORY * 2, {"role": "user", "content": "Tell me a long story."}]
    async with shared_demo.running() as server:
        expected = await ResumingReader(server, asked, **more).follow()
        reader = ResumingReader(server, asked, **more)
        await reader.read(4)
        server.kill()
        await server.start()
        assert comparable(await reader.follow()) == comparable(expected)
        assert list(await replayed(server, reader.response_id)) == reader.events


@pytest.mark.model
async def test_the_demo_model_resumes_with_the_same_tokens(shared_demo: SharedServer) -> None:
    more: dict[str, Any] = {"max_output_tokens": 150, "ignore_eos": True, "seed": 5, "temperature": 1.3}
    async with shared_demo.running() as server:
        expected = await ResumingReader(server, "Tell me a long story.", **more).follow()
        reader = await ResumingReader(server, "Tell me a long story.", **more).read(40)
        server.kill()
        await server.start()
        response = await reader.follow()
        assert comparable(response) == comparable(expected)
        assert list(await replayed(server, response["id"])) == reader.events


@pytest.mark.model
async def test_the_pictures_of_a_response_survive_a_kill(shared_demo: SharedServer) -> None:
    def showing(colour: str) -> list[dict[str, Any]]:
        url = data_uri(picture_file(colour))
        parts = [{"type": "input_image", "image_url": url}, {"type": "input_text", "text": "Apa ini?"}]
        return [{"role": "user", "content": parts}]

    more: dict[str, Any] = {"max_output_tokens": 100, "ignore_eos": True, "temperature": 0}
    async with shared_demo.running() as server:
        expected = await ResumingReader(server, showing("red"), **more).follow()
        first = await ResumingReader(server, showing("red"), **more).read(20)
        server.kill()
        await server.start()
        assert comparable(await first.follow()) == comparable(expected)
        server.kill()
        await server.start()
        behind = [
            await ResumingReader(server, "Apa warnanya?", previous_response_id=one, **more).follow()
            for one in (first.response_id, expected["id"])
        ]
        assert comparable(behind[0]) == comparable(behind[1])
