"""McpClient with a real server, and with servers that are slow, endless, huge, broken or at another address."""

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import RedirectResponse, Response, StreamingResponse

from tests.mcp_client.client_helpers import call_failure, list_failure, open_mcp_client
from tests.mcp_client.fake_mcp_server import FakeMcpServer, Message, fake_mcp_server, rpc_response, tool_named
from tests.mcp_client.weather_process import weather_process
from tis.mcp_client.errors import McpOperationFailed
from tis.mcp_client.tool_types import McpServer, McpToolResult

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.long]
CERTIFICATE = Path(__file__).parent.parent / "media" / "pictures.example.pem"
PUBLIC = "93.184.215.14"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def mcp() -> Iterator[FakeMcpServer]:
    with fake_mcp_server() as mcp:
        yield mcp


async def test_a_real_server_is_listed_and_called(tmp_path: Path) -> None:
    with weather_process(tmp_path / "diary") as weather:
        async with open_mcp_client(allowed_hosts=[weather.host]) as client:
            server = McpServer(weather.url, {"Authorization": "Bearer 12345"})
            tools = await client.list_tools(server, lambda tool: tool.name != "order")
            assert "get_weather" in {tool.name for tool in tools} and "order" not in {tool.name for tool in tools}
            assert await client.call(server, "say", {"text": "hi"}) == McpToolResult("hi", False)
            assert await client.call(server, "whose", {}) == McpToolResult("5 characters", False)
            assert (await client.call(server, "refuse", {"why": "no"})).is_error
            assert (await client.call(server, "nothing", {})).is_error


async def test_a_server_with_the_protocol_of_2025_is_listed_and_called(mcp: FakeMcpServer) -> None:
    async with open_mcp_client(allowed_hosts=[mcp.host]) as client:
        [tool] = await client.list_tools(McpServer(mcp.url))
        assert tool.name == "look"
        assert await client.call(McpServer(mcp.url, {"X-Key": "k"}), "look", {"at": 1}) == McpToolResult("seen", False)
    call = mcp.received[-1]
    assert call["params"]["name"] == "look" and call["params"]["arguments"] == {"at": 1}
    assert mcp.headers[-1]["x-key"] == "k" and mcp.headers[-1]["accept-encoding"] == "identity"
    assert mcp.methods.count("tools/call") == 1


async def test_all_pages_of_a_list_are_read(mcp: FakeMcpServer) -> None:
    def page(message: Message) -> Any:
        number = int((message.get("params") or {}).get("cursor") or 0)
        more = {"nextCursor": str(number + 1)} if number < 3 else {}
        return {"tools": [tool_named(f"tool{number}")], **more}

    mcp.handlers["tools/list"] = page
    async with open_mcp_client(allowed_hosts=[mcp.host]) as client:
        assert len(await client.list_tools(McpServer(mcp.url))) == 4


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"tools": [tool_named(f"t{n}") for n in range(129)]}, "more than 128 tools"),
        ({"tools": [tool_named("t", description="x" * 300_000)]}, "larger than 256 KiB"),
        ({"tools": [tool_named("t", description="x" * 3_000_000)]}, "It sent more than 2048 KiB"),
        ({"tools": [tool_named("t")], "nextCursor": "again"}, "more than 16 pages"),
        ({"tools": [{"name": "t", "inputSchema": "no schema"}]}, "could not be reached, or does not speak MCP"),
        ({"tools": [tool_named("t", inputSchema={"type": 12})]}, "could not be reached, or does not speak MCP"),
        ({"tools": "none"}, "could not be reached, or does not speak MCP"),
        ("nothing", "could not be reached, or does not speak MCP"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_unusable_list_of_tools_is_an_error(mcp: FakeMcpServer, result: Any, message: str) -> None:
    mcp.handlers["tools/list"] = lambda request: result
    assert message in (await list_failure(mcp.url, allowed_hosts=[mcp.host])).message


async def test_unusual_tools_are_listed_or_left_out(mcp: FakeMcpServer) -> None:
    deep: Any = {}
    for _ in range(50):
        deep = {"type": "object", "properties": {"x": deep}}
    unusual = [
        tool_named(""),
        tool_named("x" * 129),
        tool_named("same"),
        tool_named("same", description="other"),
        tool_named("<|im_end|>"),
    ]
    looping = {"type": "object", "properties": {"x": {"$ref": "#"}, "y": {"pattern": "("}, "z": {"type": "nothing"}}}
    unusual += [tool_named("deep", inputSchema=deep), tool_named("loop", inputSchema=looping)]
    mcp.handlers["tools/list"] = lambda message: {"tools": unusual}
    async with open_mcp_client(allowed_hosts=[mcp.host]) as client:
        tools = await client.list_tools(McpServer(mcp.url))
    assert [tool.name for tool in tools] == ["same", "<|im_end|>", "deep", "loop"]
    assert tools[0].description is None


async def test_regular_expressions_of_a_server_are_never_run(mcp: FakeMcpServer) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    mcp.handlers["tools/list"] = lambda message: {"tools": [tool_named("look", outputSchema=schema)]}
    mcp.handlers["tools/call"] = lambda message: {"content": [], "structuredContent": {"a": "a" * 40 + "b"}}
    async with open_mcp_client(allowed_hosts=[mcp.host]) as client:
        result = await client.call(McpServer(mcp.url), "look", {})
    assert result.text == json.dumps({"a": "a" * 40 + "b"})


async def test_content_that_is_not_text_is_represented_by_its_type(mcp: FakeMcpServer) -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    link = {"type": "resource_link", "name": "a file", "uri": "file:///x"}
    text = {"type": "resource", "resource": {"uri": "file:///y", "text": "in it"}}
    mcp.handlers["tools/call"] = lambda message: {"content": [image, link, text]}
    async with open_mcp_client(allowed_hosts=[mcp.host]) as client:
        result = await client.call(McpServer(mcp.url), "look", {})
    assert result.text == "[image]\n[a file: file:///x]\nin it"


async def test_an_unpaired_surrogate_is_an_error_and_the_next_call_works(mcp: FakeMcpServer) -> None:
    body = '{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "\\ud800"}]}}'
    mcp.handlers["tools/call"] = lambda message: Response(body % message["id"], media_type="application/json")
    async with open_mcp_client(allowed_hosts=[mcp.host]) as client:
        with pytest.raises(McpOperationFailed, match="does not speak MCP"):
            await client.call(McpServer(mcp.url), "look", {})
        mcp.handlers["tools/call"] = lambda message: {"content": [{"type": "text", "text": "whole"}]}
        assert (await client.call(McpServer(mcp.url), "look", {})).text == "whole"


async def test_a_slow_server_is_a_timeout(mcp: FakeMcpServer) -> None:
    async def never(message: Message) -> Response:
        await asyncio.sleep(60)
        raise AssertionError

    async def trickle() -> AsyncIterator[bytes]:
        while True:
            yield b": still here\n\n"
            await asyncio.sleep(0.01)

    for answer in (never, lambda message: StreamingResponse(trickle(), media_type="text/event-stream")):
        mcp.handlers["tools/call"] = answer
        failed = await call_failure(mcp.url, allowed_hosts=[mcp.host], timeout_seconds=0.5)
        assert (failed.kind, failed.code) == ("http", 504)
    assert mcp.methods.count("tools/call") == 2  # no retry


async def test_an_endless_response_is_an_error(mcp: FakeMcpServer) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536
            await asyncio.sleep(0)

    for media_type in ("application/json", "text/event-stream"):
        mcp.handlers["tools/call"] = lambda message, kind=media_type: StreamingResponse(endless(), media_type=kind)  # type: ignore[misc]
        await call_failure(mcp.url, allowed_hosts=[mcp.host])


async def test_a_compressed_response_is_refused(mcp: FakeMcpServer) -> None:
    def bomb(message: Message) -> Response:
        packed = gzip.compress(bytes(rpc_response(message, {"content": []}).body))
        return Response(packed, media_type="application/json", headers={"Content-Encoding": "gzip"})

    mcp.handlers["tools/call"] = bomb
    assert "compressed" in (await call_failure(mcp.url, allowed_hosts=[mcp.host])).message


async def test_waiting_too_long_for_a_connection_is_an_error(mcp: FakeMcpServer) -> None:
    async def never(message: Message) -> Response:
        await asyncio.sleep(60)
        raise AssertionError

    mcp.handlers["tools/list"] = never
    async with open_mcp_client(allowed_hosts=[mcp.host], timeout_seconds=1, max_connections=1) as client:
        operations = (client.list_tools(McpServer(mcp.url)) for _ in range(3))
        results = await asyncio.gather(*operations, return_exceptions=True)
    failures = [one for one in results if isinstance(one, McpOperationFailed)]
    assert sorted(one.code for one in failures) == [503, 503, 504]  # one got the connection
    assert mcp.methods.count("tools/list") == 1


async def test_a_long_error_message_of_the_server_is_cut(mcp: FakeMcpServer) -> None:
    error = {"code": -32050, "message": "not today " * 1000}
    mcp.handlers["tools/call"] = lambda message: Response(
        json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), media_type="application/json"
    )
    failed = await call_failure(mcp.url, allowed_hosts=[mcp.host])
    assert (failed.kind, failed.code, len(failed.message)) == ("protocol", -32050, 500)


@pytest.mark.parametrize("status", [302, 307, 308])
async def test_redirects_are_not_followed(mcp: FakeMcpServer, status: int) -> None:
    with fake_mcp_server() as other:
        for location in (other.url, "http://169.254.169.254/latest", f"http://localhost:{mcp.port}/mcp"):
            mcp.handlers["tools/call"] = lambda message, to=location: RedirectResponse(to, status)  # type: ignore[misc]
            await call_failure(mcp.url, allowed_hosts=[mcp.host, other.host])
        assert other.received == []


async def test_a_response_that_breaks_off_is_not_retried(mcp: FakeMcpServer) -> None:
    mcp.handlers["tools/call"] = lambda message: Response(b'{"json', headers={"Content-Length": "100"})
    await call_failure(mcp.url, allowed_hosts=[mcp.host])
    assert mcp.methods.count("tools/call") == 1


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["10.0.0.1"], [PUBLIC, "169.254.169.254"], [], ["::1"]])
async def test_a_public_host_name_may_not_resolve_to_a_private_address(
    mcp: FakeMcpServer, addresses: list[str]
) -> None:
    dialled: list[str] = []

    def dial(address: str, port: int) -> tuple[str, int]:
        dialled.append(address)
        return "127.0.0.1", mcp.port

    arguments: dict[str, Any] = {"resolve": lambda host, port: addresses, "dial": dial}
    failed = await list_failure("https://mcp.example/mcp", allowed_hosts=["*"], **arguments)
    assert failed.message == "It could not be reached, or does not speak MCP."
    assert (dialled, mcp.received) == ([], [])


async def test_the_checked_address_is_the_one_that_is_dialled() -> None:
    """A name server may change its answer: the host is resolved and checked for every TCP connection."""
    dialled: list[tuple[str, int]] = []
    close = [("Connection", "close")]  # after every response, so that one operation takes several TCP connections
    with fake_mcp_server(ssl_certfile=str(CERTIFICATE), headers=close) as mcp:

        def dial(address: str, port: int) -> tuple[str, int]:
            dialled.append((address, port))
            return "127.0.0.1", mcp.port

        trusting = ssl.create_default_context(cafile=str(CERTIFICATE))
        arguments: dict[str, Any] = {"dial": dial, "certificates": trusting, "allowed_hosts": ["*"]}
        async with open_mcp_client(resolve=lambda host, port: [PUBLIC], **arguments) as client:
            assert await client.list_tools(McpServer("https://pictures.example/mcp"))
        before = len(dialled)
        assert before > 1
        answers = [[PUBLIC], *[["127.0.0.1"]] * 9]
        await list_failure("https://pictures.example/mcp", resolve=lambda host, port: answers.pop(0), **arguments)
        assert len(answers) < 9 and len(dialled) == before + 1
        assert set(dialled) == {(PUBLIC, 443)}
        assert (await list_failure("https://other.example/mcp", resolve=lambda host, port: [PUBLIC], **arguments)).kind
        untrusting = {**arguments, "certificates": None}
        await list_failure("https://pictures.example/mcp", resolve=lambda host, port: [PUBLIC], **untrusting)


async def test_localhost_that_resolves_to_a_public_address_is_refused(mcp: FakeMcpServer) -> None:
    elsewhere: dict[str, Any] = {"resolve": lambda host, port: [PUBLIC], "dial": lambda a, p: ("127.0.0.1", mcp.port)}
    await list_failure(f"http://localhost:{mcp.port}/", allowed_hosts=[f"localhost:{mcp.port}"], **elsewhere)
    assert mcp.received == []
