"""Bodies of /v1/messages: wrong blocks, floods, forged signatures, cursors."""

from collections.abc import Iterator
from typing import Any

from tests.faults.hostile.row import HELLO, MESSAGES, Row, codes, post

COUNT = f"{MESSAGES}/count_tokens"
_TOOL = {"name": "f", "input_schema": {"type": "object"}}
_CALL = {"type": "tool_use", "id": "x", "name": "f", "input": {}}


def message(name: str, statuses: int | tuple[int, ...], **fields: Any) -> Row:
    given = {"model": "demo", "messages": [HELLO], "max_tokens": 2, **fields}
    body = {key: value for key, value in given.items() if value is not ...}
    return Row(f"message: {name}", codes(statuses), "POST", MESSAGES, body)


def of_user(*blocks: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(blocks)}]


def nested(depth: int) -> Any:
    block: Any = {"type": "text", "text": "x"}
    for _ in range(depth):
        block = {"type": "document", "source": {"type": "content", "content": [block]}}
    return block


def rows() -> Iterator[Row]:
    yield from _fields()
    yield from _blocks()
    yield from _tools()
    yield from _changes()
    for name, body in {"nothing": {}, "a list": [], "no messages": {"model": "demo", "max_tokens": 2}}.items():
        yield post(name, 400, MESSAGES, body)
        yield post(name, 400, COUNT, body)
    long = [{"role": role, "content": "a b c d " * 400} for role in ("user", "assistant") * 500]
    yield message("1,000 long messages", (200, 400), messages=long)
    yield post("1,000 long messages, counted", (200, 400), COUNT, {"model": "demo", "messages": long})
    yield post("3 MB, counted", (200, 400), COUNT, {"model": "demo", "messages": of_user(_text("a b " * 750_000))})
    for cursor in ("x", ":", "a:-1", "a:" + "9" * 400, "$foreign_session:3", "a:b:c:1"):
        headers = {"Last-Event-ID": cursor}
        yield Row(f"message: cursor {cursor[:20]!r}", (400, 404, 410), "POST", MESSAGES, {"max_tokens": 2}, headers)
    for session in ("a b", "x" * 200, "../x", "ä"):
        headers = {"X-Session-Id": session.encode().decode("latin-1")}
        yield Row(f"message: session {session[:20]!r}", (400,), "POST", MESSAGES, {"messages": [HELLO]}, headers)
    yield message("a session of somebody else", 200, session_id="$foreign_session")
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        yield Row(f"message: {method}", (405,), method, MESSAGES)
    for query in ("limit=0", "limit=1e9", "after_id=" + "x" * 600, "before_id=%00", "limit=" + "9" * 5000):
        headers = {"anthropic-version": "2023-06-01"}
        yield Row(f"models of Anthropic: {query[:20]}", (400,), path=f"/v1/models?{query}", headers=headers)


def _fields() -> Iterator[Row]:
    for field, value in {
        "max_tokens": "many",
        "messages": 5,
        "system": {"type": "text"},
        "stop_sequences": ["x"] * 5000,
        "temperature": "NaN",
        "top_k": 10**30,
        "tools": [{}] * 5000,
        "tool_choice": "any",
        "thinking": {"type": "enabled", "budget_tokens": 10**30},
        "output_config": {"format": {"type": "json_schema", "schema": {"$ref": "#"}}},
        "output_format": {"type": "exec"},
        "mcp_servers": [{"type": "url", "name": "x", "url": "http://169.254.169.254/"}],
        "session_id": "../x",
        "metadata": ["x"],
        "model": ["demo"],
        "thread": {"type": "continue"},
    }.items():
        yield message(f"{field} {str(value)[:16]!r}", 400, **{field: value})
    for field, value in {
        "service_tier": {"a": "b"},
        "container": ["x"] * 1000,
        "cache_control": "\ud800",
        "\ud800": 1,
        "output_config": {"effort": "\ud800"},
        "context_management": {"edits": [{}] * 1000},
    }.items():
        yield message(f"hint {field!r} {str(value)[:16]!r}", 200, **{field: value})
    yield message("half a surrogate", 400, messages=of_user(_text("\ud800")))
    yield message("half a surrogate as a stop", 400, stop_sequences=["\ud800"])
    yield message("20,000 messages", 400, messages=[HELLO] * 20_000)
    yield message("100,000 keys", 400, **{f"key_{number}": 0 for number in range(100_000)})
    yield message("a system of 3 MB", 400, system="a b " * 750_000)
    yield message("a system of 4,000 blocks", (200, 400), system=[_text("x")] * 4000)


def _blocks() -> Iterator[Row]:
    for name, block in {
        "of nothing": {},
        "of a type nobody has": {"type": "exec"},
        "of a type that is a list": {"type": ["text"]},
        "an image of nothing": {"type": "image", "source": {"type": "base64", "data": ""}},
        "an image that is none": {"type": "image", "source": {"type": "base64", "data": "x" * 100_000}},
        "an image of the disk": {"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}},
        "an image of the cloud": {"type": "image", "source": {"type": "url", "url": "http://169.254.169.254/"}},
        "a file": {"type": "document", "source": {"type": "file", "file_id": "../../x"}},
        "a PDF": {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "x"}},
        "a document with a list as title": {"type": "document", "title": [], "source": {"type": "text", "data": "x"}},
        "a document of 6 MB": {"type": "document", "source": {"type": "text", "data": "x y " * 1_500_000}},
        "documents, too deep": nested(90),
        "a result of nothing": {"type": "tool_result", "tool_use_id": "x", "content": [{}]},
        "a result of a number": {"type": "tool_result", "tool_use_id": "x", "content": 5},
        "a call of the user": _CALL,
        "thoughts of the user": {"type": "thinking", "thinking": "x", "signature": "x"},
        "a search without a source": {"type": "search_result", "title": "x", "content": []},
        "many keys": {f"key_{number}": 0 for number in range(5000)},
    }.items():
        yield message(f"block: {name}", (400, 413), messages=of_user(block))
    yield message("block: documents in documents", 200, messages=of_user(nested(40)))
    yield message("block: 5,000 of them", 400, messages=of_user(*[_text("x")] * 5000))
    for name, blocks in {
        "thoughts with a forged signature": [
            {"type": "thinking", "thinking": "x", "signature": "tis1.AAAA"},
            _text("y"),
        ],
        "thoughts in a signature of no base64": [{"type": "thinking", "thinking": "", "signature": "tis1t.é\ud800"}],
        "thoughts in a long signature": [
            {"type": "thinking", "thinking": "", "signature": "tis1t." + "QUJD" * 300_000}
        ],
        "redacted thoughts": [{"type": "redacted_thinking", "data": "x" * 100_000}, _text("y")],
        "a call of a list": [{**_CALL, "input": []}],
        "a call without its result": [_CALL],
        "5,000 calls": [_CALL] * 5000,
        "2,000 calls": [{**_CALL, "id": str(number)} for number in range(2000)],
        "a result of MCP": [
            {"type": "mcp_tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "x"}]}
        ],
    }.items():
        history = [HELLO, {"role": "assistant", "content": blocks}, HELLO]
        yield message(f"of the assistant: {name}", (200, 400), messages=history)
        yield message(f"of the assistant, last: {name}", (200, 400), messages=history[:2])


def _changes() -> Iterator[Row]:
    """Of tools by messages of the system, and compactions of clients."""

    def added(number: int) -> Any:
        definition = {"name": f"f{number}", "input_schema": {"type": "object"}}
        return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}

    def of_system(*blocks: Any) -> list[dict[str, Any]]:
        return [HELLO, {"role": "system", "content": list(blocks)}]

    many = [[HELLO, *({"role": "system", "content": [added(n * 100 + m) for m in range(100)]} for n in range(100))]]
    yield message("10,000 tools added", 400, messages=many[0])
    yield message("one tool added 10,000 times", (200, 400), messages=[HELLO, *of_system(*[added(1)] * 100) * 100])
    for tool in (5, {}, {"type": "tool_reference", "name": ["f"]}, {"type": "tool_definition", "definition": _CALL}):
        yield message(
            f"a tool added: {str(tool)[:20]}", 400, messages=of_system({"type": "tool_addition", "tool": tool})
        )
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "\ud800"}}
    yield message("a tool with half a surrogate removed", 400, messages=of_system(removal))
    contents: list[tuple[Any, int | tuple[int, ...]]]
    contents = [({"a": 1}, 400), ([_CALL], 400), ("", 200), ("x" * 300_000, (200, 400))]
    for content, statuses in contents:
        given = [{"role": "assistant", "content": [{"type": "compaction", "content": content}]}, HELLO]
        yield message(f"compacted to {str(content)[:16]}", statuses, messages=given)
    changes = [{"type": "compaction", "content": "x", "tool_changes": [{"type": "compaction", "content": "y"}] * 300}]
    yield message("a compaction in a compaction", 400, messages=[{"role": "assistant", "content": changes}, HELLO])


def _tools() -> Iterator[Row]:
    for name, tool in {
        "without a schema": {"name": "f"},
        "with a list as schema": {"name": "f", "input_schema": []},
        "with a long name": {**_TOOL, "name": "f" * 5000},
        "with half a surrogate": {**_TOOL, "description": "\ud800"},
        "of Anthropic": {"type": "web_search_20250305", "name": "web_search"},
        "of nobody": {"type": "exec_20250305", "name": "exec"},
        "of no server": {"type": "mcp_toolset", "mcp_server_name": "x"},
        "of many examples": {**_TOOL, "input_examples": [{}] * 5000},
        "strict, with a wrong schema": {"name": "f", "strict": True, "input_schema": {"type": "wizard"}},
    }.items():
        yield message(f"tool: {name}", 400, tools=[tool])
    yield message("tool: twice", 400, tools=[_TOOL, _TOOL])
    yield message("1,000 tools", (200, 400), tools=[{**_TOOL, "name": f"f{number}"} for number in range(1000)])
    yield message("a tool that is not there", 400, tools=[_TOOL], tool_choice={"type": "tool", "name": "g"})
    yield message("a long tool choice", 400, tools=[_TOOL], tool_choice={"type": "tool", "name": "g" * 100_000})
    servers = [{"type": "url", "name": f"x{number}", "url": "https://example.com/"} for number in range(100)]
    yield message("100 MCP servers", 400, mcp_servers=servers)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
