"""kill -9 while MCP servers are visited: what was begun is never done twice, and everything else goes on."""

import asyncio
from random import Random

import pytest

from tests.faults.forms import short_or_long
from tests.faults.mortal_server import MortalServer, SharedServer, until
from tests.faults.test_kill_responses import COMPACTS, HISTORY, ResumingReader, replayed
from tests.mcp_client.weather_process import McpProcess
from tests.openai_api.media_requests import data_uri, picture_file
from tests.openai_api.responses.event_order import Event
from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of, items_of, server_tool
from tests.openai_api.responses.response_requests import text_of
from tis.openai_api.wire.compacted_context import messages_in

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PACED = "echo?tokens_per_second=150"


def allowing(weather: McpProcess, **variables: str) -> dict[str, str]:
    return {"MODEL_REPO_ID": PACED, "MCP_ALLOWED_HOSTS": weather.host, "DRAIN_SECONDS": "0.2", **variables}


async def rest_of(reader: ResumingReader) -> Event:
    async with asyncio.timeout(60):
        while not reader.is_over:
            await reader.read()
    assert [event["sequence_number"] for event in reader.events] == list(range(len(reader.events)))
    response: Event = reader.events[-1]["response"]
    assert list(await replayed(reader.server, response["id"])) == reader.events
    done = {event["output_index"]: event["item"] for event in reader.events if event["type"].endswith("item.done")}
    if response["status"] != "failed":
        assert [item for _, item in sorted(done.items())] == response["output"]
    return response


async def test_a_call_in_flight_fails_and_is_not_repeated(shared: SharedServer, weather: McpProcess) -> None:
    async with shared.running(**allowing(weather)) as server:
        reader = ResumingReader(
            server, a_call("think_long", seconds=600), tools=[server_tool(weather, headers={"X-Key": "x"})]
        )
        reading = asyncio.create_task(reader.read())
        await until(lambda: weather.calls == ["think_long 600"])
        server.kill()
        await reading
        await server.start()
        response = await rest_of(reader)
        [call] = items_of(response, "mcp_call")
        assert call["status"] == "failed" and "not repeated" in call["error"]["message"]
        assert response["status"] == "completed" and text_of(response) == f"Error: {call['error']['message']}"
        assert weather.calls == ["think_long 600"]


async def test_a_drain_during_a_call_does_not_repeat_it(shared: SharedServer, weather: McpProcess) -> None:
    async with shared.running(**allowing(weather)) as server:
        reader = ResumingReader(server, a_call("think_long", seconds=600), tools=[server_tool(weather)])
        reading = asyncio.create_task(reader.read())
        await until(lambda: weather.calls == ["think_long 600"])
        server.terminate()
        assert await server.exit_code() == 0
        await reading
        await server.start()
        [call] = items_of(await rest_of(reader), "mcp_call")
        assert call["status"] == "failed" and weather.calls == ["think_long 600"]


async def test_a_kill_at_any_time_repeats_no_call(shared: SharedServer, weather: McpProcess) -> None:
    chance = Random(6)
    async with shared.running(**allowing(weather)) as server:
        for number in range(short_or_long(3, 30)):
            both = an_array_of(a_call("order", item=f"tea {number}"), a_call("order", item=f"rice {number}"))
            reader = ResumingReader(
                server, a_call("say", text=both), tools=[server_tool(weather)], background=bool(number % 2)
            )
            for _ in range(3):
                if not reader.is_over:
                    await reader.read(len(reader.events) + chance.randrange(1, 60))
                    server.kill()
                    await server.start()
            response = await rest_of(reader)
            said, *orders = items_of(response, "mcp_call")
            if said["status"] == "failed":
                assert "not repeated" in said["error"]["message"] and not orders
            for item, call in zip((f"tea {number}", f"rice {number}"), orders, strict=False):
                assert weather.calls.count(f"order {item}") <= 1
                if call["status"] == "completed":
                    assert weather.calls.count(f"order {item}") == 1
                else:
                    assert "not repeated" in call["error"]["message"]
        assert "Traceback" not in server.log.read_text()


async def test_a_kill_at_any_time_of_a_compacted_run_changes_nothing_else(
    shared: SharedServer, weather: McpProcess
) -> None:
    """Within the summary, the list of tools, the call, and the answer. A call that was in flight fails."""
    chance = Random(11)

    def reading(server: MortalServer, number: int) -> ResumingReader:
        call = a_call("order", item=f"ink {number}" + " and ink" * 40)
        given = [*HISTORY, {"role": "user", "content": call}]
        reader = ResumingReader(server, "", tools=[server_tool(weather, allowed_tools=["order"])], **COMPACTS)
        reader.body["input"] = given
        return reader

    async with shared.running(**allowing(weather)) as server:
        whole = await rest_of(reading(server, 0))
        assert [item["type"] for item in whole["output"]] == ["compaction", "mcp_list_tools", "mcp_call", "message"]
        for number in range(1, 1 + short_or_long(1, 30)):
            reader = reading(server, number)
            # The third event opens the item of the summary.
            for num_events in (3, chance.randrange(5, 12), chance.randrange(12, 40)):
                if not reader.is_over:
                    await reader.read(max(num_events, len(reader.events) + 1))
                    server.kill()
                    await server.start()
            response = await rest_of(reader)
            compaction, listed, call, message = response["output"]
            expected = messages_in(whole["output"][0])
            assert messages_in(compaction)[:-1] == expected[:-1] and listed["tools"] == whole["output"][1]["tools"]
            assert response["status"] == "completed" and message["content"][0]["text"]
            num_calls = weather.calls.count(f"order ink {number}" + " and ink" * 40)
            if call["status"] == "completed":
                assert num_calls == 1
            else:
                assert num_calls <= 1 and "not repeated" in call["error"]["message"]
        assert "Traceback" not in server.log.read_text()


async def test_a_run_without_its_headers_fails_with_a_named_error(shared: SharedServer, weather: McpProcess) -> None:
    async with shared.running(**allowing(weather, MODEL_REPO_ID="echo?tokens_per_second=20")) as server:
        tool = server_tool(weather, authorization="a-token")
        reader = await ResumingReader(server, a_call("order", item="silver"), tools=[tool]).read(6)
        server.kill()
        await server.start()
        response = await rest_of(reader)
        assert response["status"] == "failed"
        assert response["error"]["type"] == "generation_interrupted" and "'weather'" in response["error"]["message"]
        assert weather.calls == []


@pytest.mark.model
async def test_after_a_call_in_flight_the_model_still_sees_the_picture(
    shared_demo: SharedServer, weather: McpProcess
) -> None:
    async with shared_demo.running() as server:
        picture = {"type": "input_image", "image_url": data_uri(picture_file("red")), "detail": "low"}
        call = {"server_label": "weather", "name": "think_long", "arguments": '{"seconds": 600}'}
        given = [
            {"role": "user", "content": [picture, {"type": "input_text", "text": "Apa ini?"}]},
            {"type": "mcp_approval_request", "id": "mcpr_1", **call},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ]
        reader = ResumingReader(server, "", tools=[server_tool(weather)], temperature=0, max_output_tokens=64)
        reader.body["input"] = given
        reading = asyncio.create_task(reader.read())
        await until(lambda: weather.calls == ["think_long 600"])
        server.kill()
        await reading
        await server.start()
        response = await rest_of(reader)
        assert items_of(response, "mcp_call")[0]["status"] == "failed"
        by_hand = ResumingReader(server, "", tools=[server_tool(weather)], temperature=0, max_output_tokens=64)
        by_hand.body["input"] = [given[0], *response["output"][:-1]]
        uninterrupted = await rest_of(by_hand)
        assert text_of(uninterrupted) == text_of(response) != ""
        assert uninterrupted["usage"]["input_tokens"] == response["usage"]["input_tokens"]
        assert weather.calls == ["think_long 600"]


async def test_an_approved_call_is_made_once(shared: SharedServer, weather: McpProcess) -> None:
    async with shared.running(**allowing(weather)) as server:
        tools = [server_tool(weather, require_approval="always")]
        first = await rest_of(ResumingReader(server, a_call("think_long", seconds=600), tools=tools))
        [request] = items_of(first, "mcp_approval_request")
        answer = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
        reader = ResumingReader(server, "", tools=tools, previous_response_id=first["id"])
        reader.body["input"] = [answer]
        reading = asyncio.create_task(reader.read())
        await until(lambda: weather.calls == ["think_long 600"])
        server.kill()
        await reading
        await server.start()
        [call] = items_of(await rest_of(reader), "mcp_call")
        assert call["status"] == "failed" and call["approval_request_id"] == request["id"]
        assert weather.calls == ["think_long 600"]
