"""POST /mcp as HTTP: what is refused, in the form of JSON-RPC."""

import json
from typing import Any

import httpx2
import pytest

from tests.mcp_server.conftest import McpShop
from tests.serving import served, settings_with


def error_of(answer: httpx2.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body.keys() == {"jsonrpc", "id", "error"} and body["jsonrpc"] == "2.0"
    return dict(body["error"])


def raw(shop: McpShop, content: bytes | str, **headers: str) -> httpx2.Response:
    return shop.http.post(shop.mcp_url, content=content, headers={"Content-Type": "application/json", **headers})


def test_an_old_client_gets_json_and_no_session(mcp_shop: McpShop) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    answer = mcp_shop.post("initialize", client)
    assert answer.headers["content-type"] == "application/json" and "mcp-session-id" not in answer.headers
    result = answer.json()["result"]
    assert result["protocolVersion"] == "2025-06-18" and result["capabilities"] == {"tools": {"listChanged": False}}
    ready = raw(mcp_shop, '{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    assert (ready.status_code, ready.content) == (202, b"")
    assert len(mcp_shop.post("tools/list").json()["result"]["tools"]) == 3  # without the handshake, too
    assert mcp_shop.post("ping").json()["result"] == {}


def test_a_client_need_not_accept_streams(mcp_shop: McpShop) -> None:
    for accept in ("application/json", "*/*", "text/html, application/*;q=0.5"):
        assert mcp_shop.post("ping", Accept=accept).status_code == 200
    assert "application/json" in error_of(mcp_shop.post("ping", Accept="text/html"), 406)["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", -32700),
        ("", -32700),
        ("\xff", -32700),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "x": "\\ud800"}', -32700),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "x": NaN}', -32700),
        ("[" * 60_000, -32700),
        ("[]", -32600),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        ("7", -32600),
        ('{"id": 1, "method": "ping"}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
        ('{"jsonrpc": "2.0", "id": 1}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "result": {}}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}', -32600),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        ('{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
    ],
)
def test_what_is_no_message_is_a_400(mcp_shop: McpShop, body: str, code: int) -> None:
    assert error_of(raw(mcp_shop, body.encode("latin-1")), 400)["code"] == code


@pytest.mark.parametrize(
    "params",
    [None, 7, [], {}, {"name": 7}, {"name": "search_catalog", "arguments": 7}, {"name": "search_catalog", "_meta": 7}],
)
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28", "1999-01-01", "\u00e9"])
def test_wrong_params_are_an_error_and_never_a_500(mcp_shop: McpShop, params: Any, version: str) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = httpx2.Headers([(b"content-type", b"application/json"), (b"mcp-protocol-version", version.encode())])
    answer = mcp_shop.http.post(mcp_shop.mcp_url, content=message, headers=headers)
    assert answer.status_code in (200, 400) and answer.json()["error"]["code"] != -32603, answer.text
    assert "pydantic" not in answer.text


def test_a_method_that_is_not_there_is_told_by_its_id(mcp_shop: McpShop) -> None:
    answer = mcp_shop.post("resources/list").json()
    assert answer["error"]["code"] == -32601 and answer["id"]


def test_a_large_body_is_refused(mcp_shop: McpShop) -> None:
    assert "65,536 bytes" in error_of(raw(mcp_shop, " " * 70_000), 413)["message"]
    assert error_of(raw(mcp_shop, (b"x" * 40_000 for _ in range(2))), 413)  # type: ignore[arg-type]  # in chunks


def test_only_json_is_read(mcp_shop: McpShop) -> None:
    answer = mcp_shop.http.post(mcp_shop.mcp_url, content="{}", headers={"Content-Type": "text/plain"})
    assert "Content-Type" in error_of(answer, 415)["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_stream_to_open_and_no_session_to_end(mcp_shop: McpShop, method: str) -> None:
    answer = mcp_shop.http.request(method, mcp_shop.mcp_url, headers={"Accept": "text/event-stream"})
    assert error_of(answer, 405) and answer.headers["allow"] == "POST"


def test_a_slash_at_the_end_is_no_redirect(mcp_shop: McpShop) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert mcp_shop.http.post(f"{mcp_shop.mcp_url}/", json=message).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_names_and_pages_of_others_are_refused(mcp_shop: McpShop) -> None:
    assert "ALLOWED_HOSTS" in error_of(mcp_shop.post("ping", Host="rebound.example"), 403)["message"]
    for origin in ("https://evil.example", "null", f"{mcp_shop.url}0"):
        assert "CORS_ORIGINS" in error_of(mcp_shop.post("ping", Origin=origin), 403)["message"]
    for origin in ("https://shop.example", mcp_shop.url):
        assert mcp_shop.post("ping", Origin=origin).status_code == 200


def test_a_bad_token_is_a_401_that_names_its_kind(mcp_shop: McpShop) -> None:
    for header in ("Bearer stale", "Bearer", "Basic abc"):
        answer = mcp_shop.post("tools/list", Authorization=header)
        assert "Without a token" in error_of(answer, 401)["message"]
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert mcp_shop.post("tools/list", Authorization=f"Bearer {mcp_shop.token()}").status_code == 200


def test_a_server_can_do_without() -> None:
    with served(settings_with(mcp_server=0)) as running:
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert httpx2.post(f"{running.url}/mcp", json=message).status_code == 404


def test_calls_are_counted_as_searches() -> None:
    settings = settings_with(searches_per_minute=1)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as http:
        call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "search_catalog"}}
        first = http.post("/mcp", json=call).json()
        assert first["result"]["isError"] and "Say what to look for" in first["result"]["content"][0]["text"]
        refused = http.post("/mcp", json=call)
        assert error_of(refused, 429) and refused.json()["id"] == 5 and int(refused.headers["retry-after"]) > 0
        assert http.get("/api/products/search?q=x").status_code == 429
        assert http.post("/mcp", json={**call, "method": "tools/list"}).status_code == 200


def test_without_a_database_tools_are_listed_and_calls_say_why_they_fail() -> None:
    settings = settings_with(database_url="sqlite:////nowhere/at/all.db")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as http:
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Authorization": "Bearer any"}
        tools = http.post("/mcp", json=listing, headers=headers).json()["result"]["tools"]
        assert "enum" not in tools[0]["inputSchema"]["properties"]["category"]
        params = {"name": "lookup_catalog", "arguments": {"ids": [1]}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = http.post("/mcp", json=call, headers=headers).json()["result"]
    assert result["isError"] and "database does not answer" in result["content"][0]["text"]
