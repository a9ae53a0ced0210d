"""kill -9 while it thinks or calls a tool: what comes after the restart is what would have come."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from scripts.demo_model.checks import GET_WEATHER, SEARCH_PRODUCTS
from tests.faults.history import DONE, Client, Seen
from tests.faults.mortal_server import MortalServer, SharedServer
from tests.openai_api.responses.test_codex import APPLY_PATCH, PATCH
from tests.openai_api.test_chat import said
from tests.openai_api.test_tools import BOOK
from tis.openai_api.wire.chat_writer import GrowingMessage

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bandung", "days": "3", "why": "%s"}}\n</tool_call>'
ANSWER = f"<think>\nHm, <b>.\n</think>\n\nLet me see. \n{CALL % ('x' * 90)}\n{CALL % 'y'}"
PACED = "echo?thinks=1&tool_format=hermes&tokens_per_second=150"


def without_names(blocks: Sequence[Seen]) -> list[Any]:
    """All but what differs from one answer to the next."""
    chunks = [block.chunk for block in blocks if block.payload != DONE]
    for chunk in chunks:
        del chunk["id"], chunk["created"]
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                call.pop("id", None)
    return chunks


def message_in(blocks: Sequence[Seen]) -> dict[str, Any]:
    message = GrowingMessage()
    for block in blocks:
        if block.payload != DONE:
            message.add(block.chunk["choices"][0]["delta"])
    return message.whole()


async def uncut(server: MortalServer, body: dict[str, Any]) -> list[Any]:
    client = await Client(server.url, body).follow()
    return without_names(client.blocks)


async def cut(server: MortalServer, body: dict[str, Any], *, after: Sequence[int]) -> Client:
    """A reader whose server is killed when it has seen so many blocks, and so many more."""
    client = Client(server.url, body)
    await client.connect()
    for count in after:
        await client.read(blocks=count)
        server.kill()
        client.leave()
        await server.start()
        await client.connect()
    await client.follow("POST")
    return client


@pytest.mark.parametrize("after", [(8,), (13, 9), (22, 60), (30, 2, 2)])
async def test_reasoning_and_calls_are_resumed_in_the_middle(shared: SharedServer, after: Sequence[int]) -> None:
    body = said(ANSWER, tools=[GET_WEATHER], stream=True)
    name = "-".join(map(str, after))
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        expected = await uncut(server, {**body, "session_id": f"uncut-{name}"})
        client = await cut(server, {**body, "session_id": f"cut-{name}"}, after=after)
        assert without_names(client.blocks) == expected
        again = await Client(server.url, client.body).follow()
        assert [block.payload for block in again.blocks] == [block.payload for block in client.blocks]
        message = message_in(client.blocks)
        assert message["reasoning_content"] == "Hm, <b>." and message["content"] == "Let me see."
        assert len({call["id"] for call in message["tool_calls"]}) == 2


@pytest.mark.model
async def test_calls_of_the_demo_model_are_resumed(shared_demo: SharedServer) -> None:
    """One of its own, behind which it is made to talk on until the server is killed; and one that it is held to."""
    tools = [GET_WEATHER, SEARCH_PRODUCTS, BOOK]
    own = said(
        "Search for Chair Royal under 50000",
        tools=tools[:2],
        **{"stream": True, "max_tokens": 400, "ignore_eos": True, "seed": 5, "temperature": 0.7},
    )
    named = {"type": "function", "function": {"name": "book"}}
    held = said("Halo!", tools=tools, tool_choice=named, stream=True, seed=3, temperature=2.0, max_tokens=400)
    async with shared_demo.running() as server:
        for number, body in enumerate((own, held)):
            expected = await uncut(server, {**body, "session_id": f"call-uncut-{number}"})
            client = await cut(server, {**body, "session_id": f"call-cut-{number}"}, after=(3,))
            assert without_names(client.blocks) == expected
            function = message_in(client.blocks)["tool_calls"][0]["function"]
            if body is own:
                assert function["arguments"] == '{"query": "Chair Royal", "max_price": 50000}'
            else:
                assert set(json.loads(function["arguments"])) >= {"seats", "class", "names", "note"}


async def test_the_call_of_a_custom_tool_is_resumed_in_the_middle(shared: SharedServer) -> None:
    """Cut within an escape, too: the client gets the text, not the JSON that the model wrote."""
    text = 'a\n"b"\t\\é' * 12
    written = f'<tool_call>\n{{"name": "run", "arguments": {json.dumps({"input": text})}}}\n</tool_call>'
    body = said(written, tools=[{"type": "custom", "custom": {"name": "run"}}], stream=True)
    async with shared.running(MODEL_REPO_ID=PACED) as server:
        expected = await uncut(server, {**body, "session_id": "custom-uncut"})
        for after in ((3,), (4, 5, 7)):
            client = await cut(server, {**body, "session_id": f"custom-cut-{len(after)}"}, after=after)
            assert without_names(client.blocks) == expected
            [call] = message_in(client.blocks)["tool_calls"]
            assert call["custom"] == {"name": "run", "input": text}


@pytest.mark.model
async def test_a_call_that_is_held_to_a_grammar_of_text_is_resumed(shared_demo: SharedServer) -> None:
    form = {"type": "grammar", "grammar": {name: APPLY_PATCH["format"][name] for name in ("syntax", "definition")}}
    tool = {"type": "custom", "custom": {"name": "apply_patch", "format": form}}
    choice = {"type": "custom", "custom": {"name": "apply_patch"}}
    body = said("Write a file.", tools=[tool], tool_choice=choice, stream=True, seed=3, temperature=1.0, max_tokens=300)
    async with shared_demo.running() as server:
        expected = await uncut(server, {**body, "session_id": "patch-uncut"})
        client = await cut(server, {**body, "session_id": "patch-cut"}, after=(4, 8))
        assert without_names(client.blocks) == expected
        [call] = message_in(client.blocks)["tool_calls"]
        is_whole = client.blocks[-2].chunk["choices"][0]["finish_reason"] == "tool_calls"
        assert call["custom"]["input"].startswith("*** Begin Patch\n")
        assert bool(PATCH.fullmatch(call["custom"]["input"])) == is_whole
