"""kill -9 and cancel while a custom tool is called: its text goes on byte for byte, with and without a grammar."""

import asyncio
import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from tests.faults.forms import short_or_long
from tests.faults.history import Client
from tests.faults.mortal_server import SharedServer, post
from tests.faults.test_kill_calls import cut, message_in, uncut, without_names
from tests.faults.test_kill_responses import ResumingReader, comparable, now, replayed
from tests.openai_api.responses.response_requests import RESPONSES
from tests.openai_api.responses.test_codex import APPLY_PATCH, PATCH
from tests.openai_api.test_chat import said

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

PACED = "echo?thinks=1&tool_format=hermes&tokens_per_second=150"
TEXT = 'ls -l "你好 😀"\n\t\\ \u2028' * 6
WRITTEN = (
    "<think>\nTwo commands.\n</think>\n\nI look.\n"
    # Escapes of two characters and of twelve, so that a kill may come within one.
    f'<tool_call>\n{{"name": "run", "arguments": {json.dumps({"input": TEXT})}}}\n</tool_call>\n'
    '<tool_call>\n{"name": "run", "arguments": {"input": "pwd"}}\n</tool_call>'
)
RUN: dict[str, Any] = {"type": "custom", "name": "run"}
PLATE: dict[str, Any] = {
    "type": "custom",
    "name": "plates",
    "format": {"type": "grammar", "syntax": "regex", "definition": r"([A-Z]{1,2} [0-9]{4} [A-Z]{2}\n){9}"},
}
HELD = [(APPLY_PATCH, PATCH), (PLATE, re.compile(PLATE["format"]["definition"]))]
HOW: dict[str, Any] = {"seed": 3, "temperature": 1.0}


def held_to(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"tools": [tool], "tool_choice": {"type": "custom", "name": tool["name"]}, "max_output_tokens": 160, **HOW}


async def test_a_response_with_free_text_goes_on_at_any_point(shared: SharedServer) -> None:
    """30 kills in the long form."""
    chance = Random(17)
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        expected = await ResumingReader(server, WRITTEN, tools=[RUN]).follow()
        calls = [item for item in expected["output"] if item["type"] == "custom_tool_call"]
        assert [call["input"] for call in calls] == [TEXT, "pwd"]
        for _ in range(short_or_long(2, 30)):
            readers = [ResumingReader(server, WRITTEN, tools=[RUN], background=at == 1) for at in range(4)]
            await asyncio.gather(*(reader.read(chance.randrange(1, 110)) for reader in readers))
            server.kill()
            await server.start()
            for reader in readers:
                assert comparable(await reader.follow()) == comparable(expected)
                assert list(await replayed(server, reader.response_id)) == reader.events


@pytest.mark.model
@pytest.mark.parametrize(("tool", "pattern"), HELD, ids=["lark", "regex"])
async def test_a_response_that_is_held_to_a_grammar_goes_on(
    shared_demo: SharedServer, tool: dict[str, Any], pattern: re.Pattern[str]
) -> None:
    chance = Random(5)
    async with shared_demo.running() as server:
        expected = await ResumingReader(server, "Go.", **held_to(tool)).follow()
        [call] = expected["output"]
        assert bool(pattern.fullmatch(call["input"])) == (call["status"] == "completed")
        for _ in range(short_or_long(1, 10)):
            reader = ResumingReader(server, "Go.", **held_to(tool))
            for num_events in (4, chance.randrange(5, 60)):
                await reader.read(num_events)
                server.kill()
                await server.start()
            assert comparable(await reader.follow()) == comparable(expected)
            assert list(await replayed(server, reader.response_id)) == reader.events


@pytest.mark.model
async def test_a_chat_that_is_held_to_a_regular_expression_goes_on(shared_demo: SharedServer) -> None:
    form = {"type": "grammar", "grammar": {name: PLATE["format"][name] for name in ("syntax", "definition")}}
    tool = {"type": "custom", "custom": {"name": "plates", "format": form}}
    choice = {"type": "custom", "custom": {"name": "plates"}}
    body = said("Go.", tools=[tool], tool_choice=choice, stream=True, max_tokens=160, **HOW)
    async with shared_demo.running() as server:
        expected = await uncut(server, {**body, "session_id": "plates-uncut"})
        client = await cut(server, {**body, "session_id": "plates-cut"}, after=(3, 7))
        assert without_names(client.blocks) == expected
        [call] = message_in(client.blocks)["tool_calls"]
        assert re.fullmatch(PLATE["format"]["definition"], call["custom"]["input"])


async def test_a_call_that_was_cancelled_stays_as_it_is(shared: SharedServer) -> None:
    """It ends within its text, and is no call that a client may run."""
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        reader = await ResumingReader(server, WRITTEN, tools=[RUN], background=True).read(60)
        assert reader.events[-1]["type"] == "response.custom_tool_call_input.delta"
        cancelled = (await post(server.url, f"{RESPONSES}/{reader.response_id}/cancel")).json()
        server.kill()
        await server.start()
        call = cancelled["output"][-1]
        assert (cancelled["status"], call["type"], call["status"]) == ("cancelled", "custom_tool_call", "incomplete")
        assert call["input"] and TEXT.startswith(call["input"]) and call["input"] != TEXT
        assert await now(server, reader.response_id) == cancelled == await reader.follow()


async def test_a_chat_that_was_cancelled_within_a_call_stays_as_it_is(shared: SharedServer) -> None:
    tool = {"type": "custom", "custom": {"name": "run"}}
    body = said(WRITTEN, tools=[tool], stream=True, session_id="custom-cancelled")
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        client = Client(server.url, body)
        await client.connect()
        await client.read(blocks=60)
        assert (await post(server.url, "/v1/cancel/custom-cancelled")).json()["status"] == "cancelled"
        await client.read()
        server.kill()
        await server.start()
        [call] = message_in(client.blocks)["tool_calls"]
        assert call["custom"]["input"] and TEXT.startswith(call["custom"]["input"])
        again = await Client(server.url, body).follow()
        assert [block.payload for block in again.blocks] == [block.payload for block in client.blocks]
