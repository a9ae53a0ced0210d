"""Messages to the MCP server that are none, and calls of tools with arguments that nobody means."""

from collections.abc import Iterator
from typing import Any

from tests.faults.hostile.row import Row, json_bytes

_MCP = "/mcp"
_MODERN = "2026-07-28"


def rows() -> Iterator[Row]:
    for name, arguments in {
        "deep": {"text": _nested(200)},
        "keys": {str(n): n for n in range(4000)},
        "SQL": {"text": "'; DROP TABLE products; --", "category": "' OR 1=1", "sku": "%_\\"},
        "zero bytes": {"text": "\0\0", "brands": ["\0"]},
        "half a surrogate": {"text": "\ud800"},
        "NaN": {"radius_km": float("nan")},
        "large numbers": {"max_price": 10**300, "quantity": -(10**300)},
        "lists": {"brands": ["x"] * 5000, "cities": [[]] * 5000},
        "ids": {"product_ids": list(range(9000))},
        "500 words": {"text": "a " * 250},
        "another user": {"text": "laptop", "user_id": 1, "origin": {"latitude": 0, "longitude": 0}},
    }.items():
        for tool in ("search_catalog", "compare_products"):
            yield _call(f"{tool}, {name}", {"name": tool, "arguments": arguments})
    malformed: dict[str, Any] = {
        "no params": None,
        "a list": [],
        "a number for a name": {"name": 7},
        "a long name": {"name": "x" * 60_000},
        "an evil name": {"name": "../../etc/passwd\0"},
        "text for arguments": {"name": "search_catalog", "arguments": "x"},
    }
    for name, params in malformed.items():
        yield _call(name, params)
    for name, headers in {
        "an unknown version": {"MCP-Protocol-Version": "9999-99-99"},
        "a version of bytes": {"MCP-Protocol-Version": "\xff\xfe"},
        "a session that is none": {"Mcp-Session-Id": "x" * 500},
        "another method in the header": {"MCP-Protocol-Version": _MODERN, "Mcp-Method": "tools/list"},
        "a page of another origin": {"Origin": "https://evil.example"},
        "an API key for a token": {"Authorization": "Bearer key"},
    }.items():
        yield _call(name, {"name": "lookup_catalog", "arguments": {"ids": [1]}}, headers)
    yield Row("mcp: a stream of the server", (405,), "GET", _MCP, headers={"Accept": "text/event-stream"})
    yield Row("mcp: the end of a session", (405,), "DELETE", _MCP, headers={"Mcp-Session-Id": "x"})
    yield Row("mcp: a batch of 5,000", (400, 413), "POST", _MCP, json_bytes([{"jsonrpc": "2.0", "id": 1}] * 5000))
    yield Row("mcp: 20 MB", (413,), "POST", _MCP, bytes(20_000_000))


def _call(name: str, params: Any, headers: dict[str, str] | None = None) -> Row:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return Row(f"mcp: {name}", (200, 400, 401, 403, 413), "POST", _MCP, json_bytes(message), headers or {})


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value
