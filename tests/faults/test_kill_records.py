"""kill -9 right behind each kind of record of a run: what follows is, byte for byte, what would have followed."""

import json
import re
from typing import Any

import pytest

from tests.faults.history import DONE, Client
from tests.faults.mortal_server import SharedServer
from tests.faults.test_kill_calls import without_names
from tests.faults.test_kill_mcp import allowing, rest_of
from tests.faults.test_kill_responses import ResumingReader
from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.responses.event_order import Event
from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of, server_tool
from tests.openai_api.test_chat import said

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

# The first event of each kind of record, and how many of its kind come before the kill.
RECORDS = {
    "begun": ("response.created", 1),
    "listing": ("response.mcp_list_tools.in_progress", 1),
    "listed": ("response.mcp_list_tools.completed", 1),
    "piece of a call": ("response.mcp_call_arguments.delta", 2),
    "called": ("response.mcp_call.completed", 1),
    "round": ("response.mcp_call.in_progress", 2),
    "called in the second round": ("response.mcp_call.completed", 2),
    "piece of text": ("response.output_text.delta", 2),
    "ended": ("response.completed", 1),
}


_MAX_TRIES = 3  # of a kill that may come while the call behind the record is in flight


def has_failed_calls(reader: ResumingReader) -> bool:
    return any(event["type"] == "response.mcp_call.failed" for event in reader.events)


def comparable(events: list[Event]) -> list[str]:
    """Without what differs from one response to the next: its id, its times, and the digest of the server's URL."""
    texts = []
    for event in events:
        text = re.sub(r"_[0-9a-f]{32}", "_ID", json.dumps(event))
        text = re.sub(r"(mcpl_ID_\d+)_[0-9a-f]{16}", r"\1", text)
        texts.append(re.sub(r'"(created|completed)_at": \d+', r'"\1_at": 0', text))
    return texts


async def test_a_response_resumes_behind_each_kind_of_record(shared: SharedServer, weather: McpProcess) -> None:
    """But for a call in flight, which is not made again: `test_kill_mcp` has that."""
    text = a_call("say", text=an_array_of(a_call("order", item="tea")))
    async with shared.running(**allowing(weather)) as server:
        expected = ResumingReader(server, text, tools=[server_tool(weather)])
        await rest_of(expected)
        kinds = [event["type"] for event in expected.events]
        for record, (kind, count) in RECORDS.items():
            assert kinds.count(kind) >= count, record
            at = [number for number, one in enumerate(kinds) if one == kind][count - 1]
            for _ in range(_MAX_TRIES):
                reader = await ResumingReader(server, text, tools=[server_tool(weather)]).read(at + 1)
                server.kill()
                await server.start()
                await rest_of(reader)
                if not has_failed_calls(reader):
                    break
                assert "not repeated" in json.dumps(reader.events), record
            assert comparable(reader.events) == comparable(expected.events), record
        assert "Traceback" not in server.log.read_text()
        assert weather.calls.count("order tea") <= _MAX_TRIES * len(RECORDS) + 1


async def test_an_approved_call_resumes_behind_its_record(shared: SharedServer, weather: McpProcess) -> None:
    async with shared.running(**allowing(weather)) as server:
        tools = [server_tool(weather, require_approval="always")]

        async def approving() -> ResumingReader:
            first = await rest_of(ResumingReader(server, a_call("order", item="rice"), tools=tools))
            [request] = [item for item in first["output"] if item["type"] == "mcp_approval_request"]
            reader = ResumingReader(server, "", tools=tools, previous_response_id=first["id"])
            approval = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
            reader.body["input"] = [approval]
            return reader

        expected = await approving()
        await rest_of(expected)
        kinds = [event["type"] for event in expected.events]
        assert weather.calls.count("order rice") == 1
        reader = await (await approving()).read(kinds.index("response.output_item.added") + 1)
        server.kill()
        await server.start()
        await rest_of(reader)
        # The call follows its approval at once: the kill comes before, after, or while it is in flight.
        if has_failed_calls(reader):
            assert "not repeated" in json.dumps(reader.events)
        else:
            assert comparable(reader.events) == comparable(expected.events)
        assert weather.calls.count("order rice") <= 2


@pytest.mark.parametrize("num_blocks", [1, 2, 3, 9])
async def test_a_chat_of_two_choices_resumes_behind_its_records(shared: SharedServer, num_blocks: int) -> None:
    """Its roles, its first pieces, and an error, which is the last record."""
    body: dict[str, Any] = said("Halo, dunia!", n=2, stream=True)
    async with shared.running(MODEL_REPO_ID="echo?tokens_per_second=60") as server:
        expected = await Client(server.url, {**body, "session_id": f"whole-{num_blocks}"}).follow()
        client = Client(server.url, {**body, "session_id": f"cut-{num_blocks}"})
        await client.connect()
        await client.read(blocks=num_blocks)
        server.kill()
        client.leave()
        await server.start()
        await client.connect()
        await client.follow("POST")
        by_choice = [sorted(without_names(one.blocks), key=index_of) for one in (client, expected)]
        assert by_choice[0] == by_choice[1] and client.blocks[-1].payload == DONE


def index_of(chunk: dict[str, Any]) -> int:
    """How choices take turns may change."""
    return chunk["choices"][0]["index"] if chunk["choices"] else 99


async def test_an_answer_that_failed_before_the_kill_fails_the_same_way_after_it(shared: SharedServer) -> None:
    body = said("Halo, dunia!", stream=True, session_id="failed-record")
    async with shared.running(MODEL_REPO_ID="echo?fail_after=5") as server:
        client = await Client(server.url, body).follow()
        server.kill()
        await server.start()
        again = Client(server.url, {"session_id": "failed-record", "stream": True})
        await again.follow("GET")
        assert [block.payload for block in again.blocks] == [block.payload for block in client.blocks]
        assert "error" in again.blocks[-1].chunk
