"""Bodies and paths of responses, conversations and sessions: wrong types, foreign ids, forged cursors."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.faults.hostile.row import ADA, CHAT, HELLO, RESPONSES, Row, chat, codes, escaped, get, post, response
from tis.openai_api.wire.sealed_text import sealed

COUNT, CONVERSATIONS = f"{RESPONSES}/input_tokens", "/v1/conversations"
_EVIL_IDS = [
    "..",
    "x",
    "resp_" + "0" * 32,
    "conv_" + "0" * 32,
    "a" * 600,
    "%00",
    "%ff%fe",
    "%2e%2e%2f%2e%2e",
    "a%0d%0ab",
]
_EVIL_IDS += ["'%20or%201=1--", "%F0%9F%92%A9", "$foreign_response", "$foreign_conversation", "$foreign_session"]


def rows() -> Iterator[Row]:
    yield from _bodies()
    yield from _tools()
    yield from _items()
    yield from _compactions()
    yield from _conversations()
    yield from _ids()
    yield from _cursors()


def _bodies() -> Iterator[Row]:
    for field, value in {
        "input": 5,
        "instructions": ["x"],
        "store": "no",
        "background": 1,
        "include": ["everything"],
        "metadata": {"a": {"b": 1}},
        "truncation": "later",
        "max_output_tokens": -1,
        "max_tool_calls": 10**30,
        "top_logprobs": 10**9,
        "prompt": {"id": "x"},
        "text": {"format": {"type": "exec"}},
        "tools": [{"type": "computer_use"}],
        "tool_choice": {"type": "file_search"},
        "temperature": "NaN",
        "model": "nobody",
        "cache_salt": "x" * 600,
        "context_management": [{"type": "compaction", "compact_threshold": -(2**80)}],
    }.items():
        yield response(f"{field} {str(value)[:16]!r}", (400, 404), **{field: value})
    for field, value in {
        "service_tier": ["x"],
        "user": "u" * 600,
        "prompt_cache_key": {"a": "b"},
        "reasoning": {"effort": "\ud800"},
        "\ud800": 1,
    }.items():
        yield response(f"hint {field!r} {str(value)[:16]!r}", 200, **{field: value})
    yield response("no input", 400, input=...)
    yield response("empty input", (200, 400), input=[])
    yield response("half a surrogate", 400, input="\ud800")
    yield response("metadata of half a surrogate", 400, metadata={"\ud800": "x"})
    yield response("100,000 keys", 400, **{f"key_{number}": 0 for number in range(100_000)})
    yield response("includes", 400, include=["message.output_text.logprobs"] * 5000)
    yield response("in the background, not stored", 400, background=True, store=False)
    both = {"previous_response_id": "resp_x", "conversation": "conv_x"}
    yield response("behind two", 400, **both)
    yield response("behind a foreign one", (400, 404), previous_response_id="$foreign_response")
    yield response("behind itself", (400, 404), previous_response_id="../responses")
    yield response("behind a long name", (400, 404), previous_response_id="x" * 3_000_000)
    yield response("in a foreign conversation", 404, conversation="conv_" + "0" * 32)
    yield response("long text, truncated", (200, 400), input="a b " * 900_000, truncation="auto")
    long = [{"role": "user", "content": "a b c d " * 400}] * 1000
    yield response("1,000 long messages, truncated", (200, 400), input=long, truncation="auto")
    yield replace(response("1,000 long messages, counted", (200, 400), input=long), path=COUNT)
    yield replace(response("3 MB, counted", (200, 400), input="a b " * 750_000), path=COUNT)
    yield replace(response("nothing, counted", 400, input=...), path=COUNT)
    yield response("instructions of 3 MB", 400, instructions="a b " * 750_000)
    yield response("streamed and in the background", 200, stream=True, background=True)
    for url in (
        "http://169.254.169.254/",
        "https://localhost:1/",
        "ftp://x",
        "https://user:secret@example.com/",
        "x" * 9000,
    ):
        tool = {"type": "mcp", "server_label": "x", "server_url": url}
        yield response(f"an MCP server at {url[:40]}", 400, tools=[tool])
    yield response("100 MCP servers", 400, tools=[{"type": "mcp", "server_label": "x"}] * 100)
    yield response("tools of nothing", 400, tools=[{}] * 128)
    yield response("custom tools", (200, 400), tools=[{"type": "custom", "name": "x", "format": {"type": "grammar"}}])


_SUMMARY = {"role": "assistant", "content": "x"}
_NAMELESS = {"type": "function"}


def _compactions() -> Iterator[Row]:
    one = {"type": "compaction"}
    wrong: list[Any] = [[{}], one, [[]], [{"type": ["compaction"]}], [one] * 5000]
    for entries in wrong:
        yield response(f"context_management {str(entries)[:24]}", 400, context_management=entries)
    long = [HELLO, {"role": "assistant", "content": "a b c d " * 4000}] * 50
    few = [{"type": "compaction", "compact_threshold": 256}]
    yield response("a long history, compacted", (200, 400), input=[*long, HELLO], context_management=few)
    yield response("3 MB, compacted", (200, 400), input="a b " * 750_000, context_management=few)
    for name, form in {
        "no messages": {"compaction": 1, "replaces": True, "messages": []},
        "tools that are none": {"compaction": 1, "replaces": True, "messages": [_SUMMARY], "tools": [5]},
        "a tool without a name": {"compaction": 1, "replaces": True, "messages": [_SUMMARY], "tools": [_NAMELESS]},
        "300 tools": {
            "compaction": 1,
            "replaces": True,
            "messages": [_SUMMARY],
            "tools": [{"type": "function", "name": f"f{number}"} for number in range(300)],
        },
        "40,000 values": {"compaction": 1, "replaces": True, "messages": [_SUMMARY], "call_ids": {"a": ["b"] * 40_000}},
    }.items():
        forged = {"type": "compaction", "encrypted_content": sealed(json.dumps(form))}
        yield response(f"a forged compaction: {name}", 400, input=[forged, HELLO])
    yield response("300 triggers", 400, input=[{"type": "compaction_trigger"}] * 300)
    for name, body in {
        "nothing": {},
        "a number": {"input": 5},
        "a foreign response": {"previous_response_id": "$foreign_response"},
        "half a surrogate": {"input": "\ud800"},
        "a trigger": {"input": [{"type": "compaction_trigger"}]},
        "11,000 items": {"input": [HELLO] * 11_000},
    }.items():
        yield post(name, (400, 404), f"{RESPONSES}/compact", body)
    yield post("a long history", (200, 400), f"{RESPONSES}/compact", {"input": long})


def _compaction(context: Any) -> dict[str, Any]:
    return {
        "type": "compaction",
        "encrypted_content": sealed(context if isinstance(context, str) else json.dumps(context)),
    }


_CONTEXTS: dict[str, Any] = {
    "no JSON": "{",
    "100,000 levels": "[" * 100_000,
    "200,000 values": '{"compaction":1,"replaces":true,"messages":[' + "0," * 200_000 + "0]}",
    "infinity": '{"compaction":1,"replaces":true,"messages":[{"role":"user","content":Infinity}]}',
    "half a surrogate": {"compaction": 1, "replaces": True, "messages": [{"role": "user", "content": "\ud800"}]},
    "no messages": {"compaction": 1, "replaces": True, "messages": []},
    "messages of nothing": {"compaction": 1, "replaces": True, "messages": [{}]},
    "a role nobody has": {"compaction": 1, "replaces": False, "messages": [{"role": "root", "content": "x"}]},
    "calls of numbers": {
        "compaction": 1,
        "replaces": False,
        "messages": [{"role": "assistant", "tool_calls": [5]}, {"role": "tool", "content": "x"}],
    },
    "no content": {"compaction": 1, "replaces": True, "messages": [{"role": "user"}]},
    "a picture": {
        "compaction": 1,
        "replaces": True,
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "http://169.254.169.254/"}]}],
    },
    "a half": '{"compaction":1,"replaces":true,"',
}


def _tools() -> Iterator[Row]:
    for name, tool in {
        "of a type that is a list": {"type": ["custom"]},
        "custom without a name": {"type": "custom"},
        "custom of lists": {"type": "custom", "name": "c", "format": []},
        "custom of a form": {"type": "custom", "name": "c", "format": {"type": {"type": "text"}}},
        "custom with numbers": {
            "type": "custom",
            "name": "c",
            "format": {"type": "grammar", "syntax": 1, "definition": 2},
        },
        "a search of lists": {"type": "tool_search", "execution": "client", "parameters": [[]]},
        "a search with a schema": {"type": "tool_search", "execution": "client", "parameters": {"type": "exec"}},
        "a hosted one": {"type": "web_search", "filters": {"allowed_domains": ["x"] * 1000}},
    }.items():
        yield response(f"tool: {name}", (200, 400), tools=[tool])
    shell = [{"type": "shell"}]
    for choice in (
        {"type": ["shell"]},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": {}}]},
        {"type": "shell"},
    ):
        yield response(f"tool_choice: {str(choice)[:24]}", (200, 400), tools=shell, tool_choice=choice)


def _items() -> Iterator[Row]:
    for name, item in {
        "of nothing": {},
        "of a type nobody has": {"type": "exec"},
        "of a type that is a list": {"type": ["message"]},
        "without content": {"type": "message", "role": "user"},
        "with a number as content": {"role": "user", "content": 5},
        "with nested content": {"role": "user", "content": [[[[]]]]},
        "of a role nobody has": {"role": "root", "content": "x"},
        "a call without a name": {"type": "function_call", "call_id": "x", "arguments": "{}"},
        "a call with objects": {"type": "function_call", "call_id": {}, "name": [], "arguments": {}},
        "an output nobody asked for": {"type": "function_call_output", "call_id": "x", "output": "y"},
        "an output of numbers": {"type": "function_call_output", "call_id": "x", "output": [1, 2]},
        "reasoning that is encrypted": {
            "type": "reasoning",
            "id": "rs_x",
            "encrypted_content": "x" * 9000,
            "summary": [],
        },
        "reasoning of nothing": {"type": "reasoning"},
        "reasoning that is half sealed": {"type": "reasoning", "summary": [], "encrypted_content": "tis1.\ud800"},
        "reasoning sealed in bytes": {"type": "reasoning", "summary": [], "encrypted_content": "tis1._w=="},
        "a custom call without input": {"type": "custom_tool_call", "call_id": "x", "name": "f"},
        "a custom call with objects": {"type": "custom_tool_call", "call_id": [], "name": {}, "input": 5},
        "a custom output of numbers": {"type": "custom_tool_call_output", "call_id": "x", "output": [1]},
        "a shell of numbers": {
            "type": "shell_call",
            "call_id": "x",
            "action": {"commands": [1, {}], "timeout_ms": "x"},
        },
        "a shell of nothing": {"type": "shell_call", "call_id": "x", "action": [[]]},
        "outputs of a shell": {"type": "shell_call_output", "call_id": "x", "output": [{"stdout": 5}]},
        "many outputs": {"type": "shell_call_output", "call_id": "x", "output": [{}] * 9000},
        "a patch of a type nobody has": {"type": "apply_patch_call", "call_id": "x", "operation": {"type": ["x"]}},
        "a local shell without a call": {"type": "local_shell_call_output", "id": "x", "output": "y"},
        "found tools": {"type": "tool_search_output", "call_id": "x", "tools": [{"type": ["custom"]}]},
        "found tools of tools": {
            "type": "tool_search_output",
            "call_id": "x",
            "tools": [{"type": "tool_search"}] * 128,
        },
        "a reference": {"type": "item_reference", "id": "msg_x"},
        "a reference to itself": {"type": "item_reference", "id": "$foreign_response"},
        "a long reference": {"type": "item_reference", "id": "x" * 100_000},
        "a file": {"role": "user", "content": [{"type": "input_file", "file_data": "x", "filename": "../../x"}]},
        "audio": {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}]},
        "tools of MCP": {"type": "mcp_list_tools", "server_label": "x", "tools": [{"name": 5}]},
        "a compaction of nothing": {"type": "compaction"},
        "a compaction of another server": {"type": "compaction", "encrypted_content": "gAAAA"},
        **{f"a compaction: {name}": _compaction(context) for name, context in _CONTEXTS.items()},
        "a trigger": {"type": "compaction_trigger"},
        "an approval": {"type": "mcp_approval_response", "approval_request_id": "x", "approve": True},
        "keys": {f"key_{number}": 0 for number in range(5000)},
        "half a surrogate": {"role": "user", "content": "\ud800"},
    }.items():
        yield response(f"item: {name}", (200, 400, 404), input=[item])
        yield post(f"item: {name}", (200, 400, 404), CONVERSATIONS, {"items": [item]})
    yield response("11,000 items", 400, input=[HELLO] * 11_000)
    yield response("10,000 items", (200, 400), input=[HELLO] * 10_000)
    yield response("9,000 wrong items", 400, input=[{"type": "x"}] * 9000)
    references = [{"type": "item_reference", "id": f"msg_{'0' * 32}_{number}"} for number in range(300)]
    yield response("300 references", (400, 404), input=references)
    yield response("200 references", (400, 404), input=references[:200])
    yield response(
        "references to a foreign session", (400, 404), input=[{"type": "item_reference", "id": "$foreign_session"}]
    )


def _conversations() -> Iterator[Row]:
    for name, body in {
        "a list": [],
        "items of nothing": {"items": [{}]},
        "items as an object": {"items": {}},
        "20,000 items": {"items": [HELLO] * 20_000},
        "metadata of 100": {"metadata": {str(number): "x" for number in range(100)}},
        "metadata of lists": {"metadata": {"a": []}},
        "metadata of half a surrogate": {"metadata": {"\ud800": "\ud800"}},
        "many values": {"metadata": {"a": [[]] * 110_000}},
        "more text than may be": {"items": [{"role": "user", "content": "x" * 5_000_000}]},
    }.items():
        yield post(name, (400, 413), CONVERSATIONS, body)
    yield post("10,000 items", (200, 400), CONVERSATIONS, {"items": [HELLO] * 9999})
    yield post("metadata of nothing", (200, 400), "/v1/conversations/$conversation", {"metadata": None})
    yield post("no items", 400, "/v1/conversations/$conversation/items", {"items": []})
    yield post("9,000 items", (200, 400), "/v1/conversations/$conversation/items", {"items": [HELLO] * 9000})
    for query in ("limit=0", "limit=1e9", "limit=" + "9" * 5000, "order=sideways", "after=nobody", "include=x"):
        yield get("a wrong page", 400, f"/v1/conversations/$conversation/items?{query}")
    yield get("5,000 includes", 400, "/v1/conversations/$conversation/items?" + "include[]=x&" * 2500)


def _ids() -> Iterator[Row]:
    for number, evil in enumerate(_EVIL_IDS):
        missing = (307, 400, 404, 405) if evil == ".." else (400, 404)
        for path in (f"{RESPONSES}/{evil}", f"{CONVERSATIONS}/{evil}/items", f"/v1/stream/{evil}"):
            yield get(f"id {number}", missing, path)
        yield Row(f"DELETE {RESPONSES}/{evil[:30]}: id {number}", missing, "DELETE", f"{RESPONSES}/{evil}")
        unknown = (200, *missing)  # to cancel what is not there is no error
        yield Row(f"POST /v1/cancel/{evil[:30]}: id {number}", unknown, "POST", f"/v1/cancel/{evil}")
    for method, path in (
        ("DELETE", "/v1/conversations/$foreign_conversation"),
        ("DELETE", "/v1/conversations/$conversation/items/msg_x"),
        ("GET", "/v1/conversations/$conversation/items/..%2f"),
        ("POST", "/v1/responses/$foreign_response/cancel"),
        ("GET", "/v1/responses/$foreign_response/input_items"),
        ("GET", "/v1/responses/$foreign_response?stream=true"),
        ("POST", "/v1/stream/$foreign_session/read_token"),
    ):
        yield Row(f"{method} {path}: of somebody else", (400, 404), method, path)
    yield chat("a session of somebody else", 200, session_id="$foreign_session")
    for path in ("/v1/models/nobody", "/v1/models/..%2f..%2fetc", "/v1/models/" + "m" * 5000, "/v1/models/%00"):
        yield get("no model", (400, 404), path)


def _cursors() -> Iterator[Row]:
    good = {"model": "demo", "messages": [HELLO], "stream": True, "session_id": "eve-cursors", "max_tokens": 2}
    yield post("a session for cursors", 200, CHAT, good)
    for cursor in (
        "",
        "x",
        ":",
        "eve-cursors:",
        "eve-cursors:-1",
        "eve-cursors:1e3",
        "eve-cursors:" + "9" * 400,
        "eve-cursors:٣",
        "$foreign_session:3",
        "other:3",
        "eve-cursors:5000",
        "a:b:c:1",
        "x" * 600,
        "../../etc/passwd:1",
        "\xff\xfe:1",
    ):
        given = escaped(cursor) if "$" not in cursor else cursor
        body = {**good, "messages": None}
        yield Row(
            f"cursor {cursor[:20]!r}", (200, 204, 400, 404, 410), path=f"/v1/stream/eve-cursors?last_event_id={given}"
        )
        sent = cursor.encode().decode("latin-1")
        headers = {"Last-Event-ID": sent}
        yield Row(f"POST, cursor {cursor[:20]!r}", (200, 400, 404, 410), "POST", CHAT, body, headers)
        yield Row(f"responses, cursor {cursor[:20]!r}", (200, 400, 404), "POST", RESPONSES, {"input": 5}, headers)
    for token in ("x", "a.b.c", "e30.e30.", "x" * 600, "%00", "eyJhbGciOiJub25lIn0.e30."):
        headers = {"Authorization": "-"}
        yield Row(
            f"read token {token[:9]!r}", codes((400, 401)), path=f"/v1/stream/x?read_token={token}", headers=headers
        )
    for key in (
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic a2V5",
        "Bearer " + "k" * 20_000,
        "Bearer \xff",
        f"Bearer {ADA[:-1]}",
    ):
        yield Row(f"key {key[:14]!r}", (401,), path="/v1/models", headers={"Authorization": key})
    yield Row("key: two headers that differ", (200, 401), path="/v1/models", headers={"x-api-key": "wrong"})
    yield Row("key in the query", (401,), path="/v1/models?api_key=x&key=y", headers={"Authorization": "-"})
    for options in ({"stream": "maybe"}, {"starting_after": "x"}, {"starting_after": 10**30}, {"include": ["x"] * 900}):
        yield get(f"of a response {str(options)[:20]}", (400, 404), _with_query("/v1/responses/resp_x", options))


def _with_query(path: str, options: dict[str, Any]) -> str:
    pairs = [(name, one) for name, value in options.items() for one in (value if isinstance(value, list) else [value])]
    return path + "?" + "&".join(f"{name}={escaped(str(value))}" for name, value in pairs)
