"""Another process goes on from every event, and never makes a call that one before it may have made."""

import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.openai_api.responses.mcp.mcp_requests import a_call, an_array_of
from tis.chat.resume import resume_with
from tis.chat.run import Run
from tis.chat.run_spec import McpSpec, RunSpec, Services
from tis.engine.errors import GenerationInterrupted
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.echo import load_echo
from tis.engine.prompt import ChatPrompt
from tis.mcp_client.client import McpClient
from tis.mcp_client.errors import McpOperationFailed
from tis.mcp_client.limits import McpLimits
from tis.mcp_client.tool_types import McpServer, McpTool, McpToolResult
from tis.media.loader import MediaLimits, MediaLoader
from tis.openai_api.routes import DIALECTS
from tis.openai_api.wire.response_request import ResponseRequest
from tis.openai_api.wire.response_writer import DIALECT, ResponseWriter, new_response
from tis.openai_api.wire.tools import requested_servers
from tis.streaming.source import Block, Source

pytestmark = pytest.mark.anyio
URL = "http://127.0.0.1:1/mcp"
TOOL = McpTool("say", "Says it.", {"type": "object", "properties": {"text": {"type": "string"}}})
ORDERS = an_array_of(a_call("say", text="one"), a_call("say", text="two"))
NESTED = a_call("say", text=ORDERS)


class Says(McpClient):
    """A server that says what it is told to say, and counts."""

    def __init__(self) -> None:
        super().__init__(McpLimits(allowed_hosts=["127.0.0.1:1"]))
        self.said: list[str] = []

    async def list_tools(
        self, server: McpServer, is_wanted: Callable[[McpTool], bool] = lambda tool: True
    ) -> list[McpTool]:
        return [TOOL]

    async def call(self, server: McpServer, name: str, arguments: Mapping[str, Any]) -> McpToolResult:
        self.said.append(arguments["text"])
        return McpToolResult(arguments["text"], False)


async def kept() -> bool:
    return True


async def not_kept() -> bool:
    return False


async def nothing_attached(names: Collection[str]) -> Mapping[str, bytes]:
    return {}


@asynccontextmanager
async def a_desk() -> AsyncIterator[LocalEngine]:
    desk = LocalEngine([CatalogueEntry("m", "echo")], lambda entry, report: load_echo(entry.repo), EngineLimits())
    await desk.open()
    try:
        yield desk
    finally:
        await desk.close()


async def source_of(desk: LocalEngine, text: str, mcp_client: McpClient, **more: Any) -> Run:
    given = {"type": "mcp", "server_label": "s", "server_url": URL, "require_approval": "never", **more}
    [asked] = requested_servers([given], mcp_client)
    prompt = ChatPrompt([{"role": "user", "content": text}], emit_markers=True)
    prepared = await desk.prepare("m", prompt, {})
    body = ResponseRequest.model_validate({"input": text, "tools": [given]})
    response = new_response(f"resp_{'0' * 32}", "m", body, [asked.shown], prepared.params)
    mcp = McpSpec(prompt, [asked.server], form=None, forced_call=None)
    spec = RunSpec(DIALECT, response["id"], response, prepared.resumable, mcp=mcp)
    return Run(spec, services_of(desk, mcp_client), ResponseWriter(response))


def services_of(engine: LocalEngine, mcp_client: McpClient, media: MediaLoader | None = None) -> Services:
    return Services(engine, media or MediaLoader(MediaLimits()), mcp_client, kept)


async def blocks_of(source: Source) -> list[Block]:
    return [block async for blocks in source.events() for block in blocks]


def told(blocks: Sequence[Block]) -> list[Any]:
    events = [json.loads(block.data) for block in blocks]
    for event in events:
        event.get("response", {}).pop("completed_at", None)
    return events


def kinds(blocks: Sequence[Block]) -> list[str]:
    return [json.loads(block.data)["type"] for block in blocks]


@pytest.mark.slow
async def test_a_run_resumed_after_any_event_ends_the_same_way() -> None:
    media = MediaLoader(MediaLimits())
    async with a_desk() as first, a_desk() as second:
        before = Says()
        source = await source_of(first, NESTED, before)
        whole = await blocks_of(source)
        assert before.said == [ORDERS, "one", "two"]
        begins = [at for at, block in enumerate(whole) if block.resume_state] + [len(whole)]
        for at in begins:
            mcp_client = Says()
            resume_source = resume_with(services_of(second, mcp_client, media), DIALECTS, resume=True)
            continued = resume_source(source.request, [block.resume_state for block in whole[:at]], nothing_attached)
            rest = await blocks_of(continued)
            num_begun = kinds(whole[:at]).count("response.mcp_call_arguments.done")
            assert mcp_client.said == before.said[num_begun:] or was_in_flight(whole[:at])
            assert not set(mcp_client.said) & set(before.said[:num_begun])
            if was_in_flight(whole[:at]):
                assert "not repeated" in str(told(rest)[1]["item"]["error"])
                assert json.loads(rest[-1].data)["response"]["status"] == "completed"
            else:
                assert told([*whole[:at], *rest]) == told(whole)
    await media.close()


def was_in_flight(blocks: Sequence[Block]) -> bool:
    return bool(blocks) and kinds(blocks)[-1] == "response.mcp_call_arguments.done"


async def test_a_run_that_an_older_version_began_is_interrupted() -> None:
    """The same records made other events then."""
    media = MediaLoader(MediaLimits())
    async with a_desk() as desk:
        source, mcp_client = await source_of(desk, ORDERS, Says()), Says()
        old = json.dumps(json.loads(source.request) | {"version": 0}).encode()
        resume_source = resume_with(services_of(desk, mcp_client, media), DIALECTS, resume=True)
        continued = resume_source(old, [], nothing_attached)
        with pytest.raises(GenerationInterrupted, match="cannot read the stored part"):
            await blocks_of(continued)
    assert mcp_client.said == []
    await media.close()


async def test_a_call_is_not_made_if_its_start_cannot_be_saved() -> None:
    media = MediaLoader(MediaLimits())
    async with a_desk() as desk:
        source = await source_of(desk, ORDERS, Says())
        mcp_client = Says()
        resume_source = resume_with(Services(desk, media, mcp_client, not_kept), DIALECTS, resume=True)
        response = told(await blocks_of(resume_source(source.request, [], nothing_attached)))[-1]["response"]
        calls = [item for item in response["output"] if item["type"] == "mcp_call"]
        assert [call["status"] for call in calls] == ["failed", "failed"] and mcp_client.said == []
        assert "could not save its start" in calls[0]["error"]["message"]
    await media.close()


async def test_stored_requests_contain_no_headers() -> None:
    async with a_desk() as desk:
        source = await source_of(desk, "Halo", Says(), headers={"X-Key": "a-secret"}, authorization="a-secret")
        assert b"a-secret" not in source.request and URL.encode() in source.request
        assert "a-secret" not in repr(source.__dict__)


async def test_a_failed_connection_reports_its_error() -> None:
    class Fails(Says):
        async def call(self, server: McpServer, name: str, arguments: Mapping[str, Any]) -> McpToolResult:
            raise McpOperationFailed("It did not answer within 3 s.", "http", 504)

    async with a_desk() as desk:
        blocks = await blocks_of(await source_of(desk, a_call("say", text="x"), Fails()))
    [call] = [item for item in told(blocks)[-1]["response"]["output"] if item["type"] == "mcp_call"]
    assert call["error"] == {"type": "http_error", "code": 504, "message": "It did not answer within 3 s."}
