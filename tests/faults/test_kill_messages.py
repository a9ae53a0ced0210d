"""kill -9 under /v1/messages: what was shown stays, and who comes back gets the rest, byte for byte."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import httpx2
import pytest

from tests.anthropic_api.message_requests import MESSAGES, WEATHER, check_order, message_of, read_events
from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, SharedServer, get, post, until
from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

AGENT = "echo?tool_format=hermes&thinks=1&tokens_per_second=100"
STORY = "The ferry left at nine with nine goats, a judge and 你好 😀 on board; nobody slept. " * 2
CALLS = (
    "<think>\nThe judge asks for the weather, twice.\n</think>\n\nI look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ambon"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Banda Neira and all islands around it, near and far"}}'
    "\n</tool_call>"
)
KINDS: Sequence[tuple[str, dict[str, Any]]] = (
    (STORY, {}),
    (CALLS, {"tools": [WEATHER]}),
    (CALLS, {"tools": [WEATHER], "thinking": {"type": "adaptive", "display": "omitted"}}),
    (STORY, {"stop_sequences": ["nobody slept"]}),
    (STORY, {"max_tokens": 60}),
)


class MessageReader:
    """Follows one message over all restarts of the server, and keeps the bytes that it got."""

    def __init__(self, server: MortalServer, session_id: str, body: dict[str, Any]) -> None:
        self.server = server
        self.session_id = session_id
        self.body = {**body, "session_id": session_id, "stream": True}
        self.data = b""

    @property
    def whole_events(self) -> bytes:
        return self.data[: self.data.rfind(b"\n\n") + 2] if b"\n\n" in self.data else b""

    @property
    def is_over(self) -> bool:
        return self.data.endswith((b'{"type":"message_stop"}\n\n',)) or b"\nevent: error\n" in self.data

    async def read(self, num_events: int = 10**9, *, by_get: bool = False) -> None:
        """Until so many are there, or the connection is gone."""
        self.data = without_pings(self.whole_events)
        seen = self.data.count(b"\n\n")
        headers = {"Last-Event-ID": f"{self.session_id}:{seen - 1}"} if seen else {}
        request: dict[str, Any] = {"method": "POST", "url": MESSAGES, "json": self.body}
        if by_get and seen:
            request = {"method": "GET", "url": f"/v1/stream/{self.session_id}"}
        try:
            async with (
                httpx2.AsyncClient(base_url=self.server.url, timeout=60, verify=False) as http,
                http.stream(**request, headers=headers) as answer,
            ):
                assert answer.status_code in (200, 503), await answer.aread()
                async for piece in answer.aiter_bytes():
                    self.data += piece
                    if self.data.count(b"\n\n") >= num_events:
                        break
        except httpx2.TransportError:
            pass

    async def follow(self, *, by_get: bool = False) -> None:
        async with asyncio.timeout(60):
            while not self.is_over:
                await self.read(by_get=by_get)
                await asyncio.sleep(0.02)
        self.data = without_pings(self.data)

    async def read_again(self) -> bytes:
        """What a reader gets who was not there before."""
        return (await get(self.server.url, f"/v1/stream/{self.session_id}")).content


def without_pings(data: bytes) -> bytes:
    return data.replace(b'event: ping\ndata: {"type":"ping"}\n\n', b"")


async def test_after_a_kill_every_reader_gets_exactly_the_missing_bytes(shared: SharedServer) -> None:
    """30 kills in the long form, as for chats."""
    chance = Random(11)
    async with shared.running(MODEL_REPO_ID=AGENT) as server:
        for number in range(short_or_long(3, 30)):
            readers = [
                MessageReader(server, f"message-{number}-{kind}", message_of(f"{text}", **more))
                for kind, (text, more) in enumerate(KINDS)
            ]
            await asyncio.gather(*(reader.read(chance.randrange(1, 90)) for reader in readers))
            server.kill()
            await server.start()
            await asyncio.gather(*(reader.follow(by_get=at % 2 == 0) for at, reader in enumerate(readers)))
            for reader in readers:
                assert reader.data == await reader.read_again()
                check_order(read_events(reader.data.decode()))


async def test_repeated_kills_do_not_change_the_message(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=AGENT) as server:
        for kind, (text, more) in enumerate(KINDS):
            whole = MessageReader(server, f"whole-{kind}", message_of(text, **more))
            await whole.follow()
            reader = MessageReader(server, f"again-{kind}", message_of(text, **more))
            for num_events in (4, 12, 20):
                await reader.read(num_events)
                server.kill()
                await server.start()
            await reader.follow()
            assert comparable(reader) == comparable(whole)


def comparable(reader: MessageReader) -> dict[str, Any]:
    """Ids are made from that of the message."""
    message = check_order(read_events(reader.data.decode()))
    content = [{name: value for name, value in block.items() if name != "id"} for block in message["content"]]
    return {**message, "id": "", "content": content}


async def test_an_interrupted_unstreamed_message_can_be_requested_again(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=AGENT) as server:
        body = message_of(STORY, session_id="unstreamed-message")
        witness = MessageReader(server, "unstreamed-message", message_of(STORY))
        asking = asyncio.create_task(post(server.url, MESSAGES, body))

        async def is_found() -> bool:
            return (await post(server.url, "/v1/stream/unstreamed-message/read_token")).status_code == 200

        await until(is_found, what="the session")
        await witness.read(20)
        server.kill()
        lost = await asyncio.gather(asking, return_exceptions=True)
        assert isinstance(lost[0], Exception)
        await server.start()
        message = (await post(server.url, MESSAGES, body)).json()
        await witness.follow()
        assert message["content"] == [{"type": "text", "text": STORY}]
        assert message["id"] == read_events(witness.data.decode())[0].data["message"]["id"]


async def test_with_resume_off_every_reader_gets_one_error(shared: SharedServer) -> None:
    async with shared.running(MODEL_REPO_ID=AGENT) as server:
        reader = MessageReader(server, "cut-message", message_of(STORY))
        await reader.read(20)
        server.kill()
        await server.start(RESUME_GENERATION="0")
        await reader.follow()
        last = read_events(reader.data.decode())[-1]
        assert last.name == "error" and last.data["error"]["details"]["error_code"] == "generation_interrupted"
        assert reader.data == await reader.read_again()
        whole = await post(server.url, MESSAGES, {"session_id": "cut-message"})
        assert (whole.status_code, whole.json()["error"]) == (500, last.data["error"])


async def test_a_kill_at_any_time_repeats_no_call(shared: SharedServer, weather: McpProcess) -> None:
    chance = Random(5)
    variables = {"MODEL_REPO_ID": "echo?tokens_per_second=150", "MCP_ALLOWED_HOSTS": weather.host}
    async with shared.running(**variables) as server:
        for number in range(short_or_long(2, 30)):
            items = (f"tea {number}", f"rice {number}")
            text = a_call("say", text=an_array_of(*(a_call("order", item=item) for item in items)))
            servers = [{"type": "url", "name": "weather", "url": weather.url}]
            reader = MessageReader(server, f"orders-{number}", message_of(text, mcp_servers=servers))
            for _ in range(2):
                try:
                    async with asyncio.timeout(chance.random() * 2):
                        await reader.read(chance.randrange(1, 20))
                except TimeoutError:
                    pass
                server.kill()
                await server.start()
            await reader.follow()
            assert reader.data == await reader.read_again()
            content = check_order(read_events(reader.data.decode()))["content"]
            calls = {block["id"]: block for block in content if block["type"] == "mcp_tool_use"}
            results = [block for block in content if block["type"] == "mcp_tool_result"]
            assert [block["tool_use_id"] for block in results] == list(calls)
            for result in results:
                call = calls[result["tool_use_id"]]
                if call["name"] == "order":
                    made = weather.calls.count(f"order {call['input']['item']}")
                    assert made <= 1 if result["is_error"] else made == 1


@pytest.mark.model
async def test_a_sampled_answer_of_a_model_goes_on_with_the_same_bytes(shared_demo: SharedServer) -> None:
    async with shared_demo.running() as server:
        body = message_of("Tell me a short story.", model="demo", temperature=1.2, seed=4, max_tokens=150)
        whole = MessageReader(server, "sampled-whole", body)
        await whole.follow()
        for number in range(short_or_long(1, 5)):
            reader = MessageReader(server, f"sampled-{number}", body)
            await reader.read(6 + 4 * number)
            server.kill()
            await server.start()
            await reader.follow()
            assert comparable(reader) == comparable(whole)
            assert reader.data == await reader.read_again()
