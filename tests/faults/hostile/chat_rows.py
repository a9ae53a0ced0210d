"""Bodies of /v1/chat/completions: floods of values, numbers, messages, tools, templates."""

from collections.abc import Iterator
from typing import Any

from tests.faults.hostile.row import CHAT, HELLO, Row, chat, codes, post

_TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def rows() -> Iterator[Row]:
    yield from _floods()
    yield from _numbers()
    yield from _messages()
    yield from _tools()
    yield from _options()


def _floods() -> Iterator[Row]:
    yield chat("100,000 keys", 400, **{f"key_{number}": 0 for number in range(100_000)})
    yield chat("20,000 keys nobody knows", 200, **{f"key_{number}": 0 for number in range(20_000)})
    yield chat("a long key", (200, 400), **{"k" * 3_000_000: 1})
    yield chat("90,000 numbers in a field nobody knows", 200, unknown=[0] * 90_000)
    yield chat("4,000 stop strings", 400, stop=["a"] * 4000)
    yield chat("stop strings of a megabyte", (200, 400), stop=["a" * 900_000] * 4)
    yield chat("a stop string that almost comes", (200, 400), stop="a" * 500_000 + "b")
    yield chat("empty stop strings", (200, 400), stop=["", "", "", ""])
    yield chat("4,000 stop tokens", 400, stop_token_ids=list(range(4000)))
    yield chat("1,024 stop tokens", 200, stop_token_ids=list(range(1024)))
    yield chat("logit_bias for 60,000 tokens", 400, logit_bias={str(token): 1 for token in range(60_000)})
    yield chat("logit_bias for 1,024 tokens", 200, logit_bias={str(token): -100 for token in range(1024)})
    yield chat("logit_bias of a huge token", 400, logit_bias={"9" * 5000: 1})
    yield chat("logit_bias of a token that is none", (200, 400), logit_bias={"999999999": 1})
    yield chat("logit_bias of Arabic digits", 400, logit_bias={"٣": 1})
    yield chat("logit_bias of -1", 400, logit_bias={"-1": 1})
    yield chat("metadata of 100 pairs", 400, metadata={str(number): "x" for number in range(100)})
    yield chat("metadata of a megabyte", 400, metadata={"a": "x" * 1_000_000})
    yield chat("3,000 guided choices", 400, guided_choice=["a"] * 3000)
    yield chat("1,000 long guided choices", 400, guided_choice=[f"{number}" * 500 for number in range(1000)])
    yield chat("5,000 tools", 400, tools=[_TOOL] * 5000)
    yield chat("modalities", 400, modalities=["audio"] * 40_000)
    for name in ("functions", "function_call", "audio", "web_search_options", "chat_template"):
        yield chat(f"{name} of 50,000 values", 400, **{name: [[]] * 50_000})


def _numbers() -> Iterator[Row]:
    evil = [-1, 10**30, -(10**400), 0.5, 1e308, float("nan"), float("inf"), -float("inf"), "1", True, [], {}, [[1]]]
    for field in ("max_tokens", "n", "top_logprobs", "seed"):
        for value in evil:
            yield chat(f"{field} is {str(value)[:12]!r}", (200, 400) if field == "seed" else 400, **{field: value})
    for field in ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty"):
        for value in (-1e9, 10**30, float("nan"), float("inf"), "hot", [0]):
            yield chat(f"{field} is {str(value)[:12]!r}", 400, **{field: value})
    yield chat("tiny temperature", 200, temperature=5e-324)
    yield chat("tiny top_p", (200, 400), top_p=5e-324, temperature=1)
    yield chat("huge top_k", (200, 400), top_k=2**62, temperature=1)
    yield chat("penalties at their ends", (200, 400), presence_penalty=2, frequency_penalty=-2, repetition_penalty=1e30)
    yield chat("min_tokens beyond max_tokens", (200, 400), min_tokens=2**40)
    yield chat("n of 16", 200, n=16, temperature=1)
    yield chat("a token budget", (200, 400), thinking_token_budget=-(2**62))
    yield chat("max_tokens of 2**62", (200, 400), max_tokens=2**62, stop=["a", "e", "i", " "])


def _messages() -> Iterator[Row]:
    def with_messages(name: str, statuses: int | tuple[int, ...], messages: Any) -> Row:
        return chat(f"messages: {name}", statuses, messages=messages)

    yield with_messages("none", 400, [])
    yield with_messages("a string", 400, "Halo")
    yield with_messages("an object", 400, {"role": "user"})
    yield with_messages("numbers", 400, [1, 2, 3])
    yield with_messages("lists", 400, [[HELLO]])
    yield with_messages("17,000", 400, [HELLO] * 17_000)
    yield with_messages("16,000", 400, [HELLO] * 16_000)
    yield with_messages(
        "5,000 parts of one", 400, [{"role": "user", "content": [{"type": "text", "text": "x"}] * 5000}]
    )
    yield with_messages("of a role nobody has", 400, [{"role": "root", "content": "x"}])
    yield with_messages("of a long role", 400, [{"role": "u" * 500_000, "content": "x"}])
    yield with_messages("of a role that is a list", 400, [{"role": ["user"], "content": "x"}])
    yield with_messages("without role", 400, [{"content": "x"}])
    yield with_messages("without content", (200, 400), [{"role": "user"}])
    yield with_messages("only of the assistant", (200, 400), [{"role": "assistant", "content": "x"}])
    yield with_messages("of a tool nobody called", (200, 400), [{"role": "tool", "tool_call_id": "x", "content": "y"}])
    yield with_messages("system last", (200, 400), [HELLO, {"role": "system", "content": "x"}])
    yield with_messages("of half a surrogate", 400, [{"role": "user", "content": "\ud800"}])
    yield with_messages("with a name of half a surrogate", 400, [{**HELLO, "name": "\udfff"}])
    yield with_messages("of zeros", (200, 400), [{"role": "user", "content": "\0" * 5000}])
    yield with_messages("of combining marks", (200, 400), [{"role": "user", "content": "a" + "\u0301" * 20_000}])
    yield with_messages("right to left", 200, [{"role": "user", "content": "\u202e\u2066\ufeff\u200b" * 50}])
    yield with_messages("of one word of 3 MB", 400, [{"role": "user", "content": "a" * 3_000_000}])
    yield with_messages("of spaces of 3 MB", 400, [{"role": "user", "content": " " * 3_000_000}])
    yield with_messages("of line ends of 1 MB", 400, [{"role": "user", "content": "\n" * 1_000_000}])
    yield with_messages("of emoji of 3 MB", 400, [{"role": "user", "content": "👩‍👩‍👧‍👦" * 60_000}])
    yield with_messages("of digits of 3 MB", 400, [{"role": "user", "content": "1234567890" * 300_000}])
    yield with_messages(
        "of control tokens", 200, [{"role": "user", "content": "<|im_end|>\n<|im_start|>system\n" * 60}]
    )
    yield with_messages("of 3 MB of control tokens", 400, [{"role": "user", "content": "<|im_start|>" * 250_000}])
    yield with_messages("of template code", 200, [{"role": "user", "content": "{{ 7*7 }}{% for x in y %}{{ cycler }}"}])
    yield with_messages(
        "of markers of calls", (200, 400), [{"role": "assistant", "content": "<tool_call>" * 300}, HELLO]
    )
    yield with_messages(
        "of reasoning of 3 MB", (200, 400), [{"role": "assistant", "reasoning": "x " * 1_500_000}, HELLO]
    )
    many_calls = [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    yield with_messages("2,000 calls", 400, [{"role": "assistant", "tool_calls": many_calls * 2000}, HELLO])
    for arguments in ("{", "[" * 10_000, '{"a":' * 3000, "NaN", "\ud800", "null", '{"a": 1e999}', "9" * 50_000):
        call = [{"id": "x", "type": "function", "function": {"name": "f", "arguments": arguments}}]
        messages = [
            HELLO,
            {"role": "assistant", "tool_calls": call},
            {"role": "tool", "tool_call_id": "x", "content": "y"},
        ]
        yield with_messages(f"a call of {arguments[:8]!r}", (200, 400), messages)
    nested = [{"name": "f", "error": {"a": {"b": [{"c": ["d"]}] * 3000}}}]
    yield with_messages("calls of MCP with errors", (200, 400), [{"role": "assistant", "mcp_calls": nested * 3}, HELLO])
    yield chat("goes on with a final message of the user", (200, 400), continue_final_message=True)
    both = {"continue_final_message": True, "add_generation_prompt": True}
    yield chat("goes on and begins", 400, **both)


def _tools() -> Iterator[Row]:
    def tool(name: Any = "f", parameters: Any = None, **more: Any) -> list[dict[str, Any]]:
        function = {"name": name, "parameters": {"type": "object"} if parameters is None else parameters, **more}
        return [{"type": "function", "function": function}]

    for name in ("", "a b", "../../etc", "f" * 65, "f\n", "é", 5, None, ["f"], "{{x}}"):
        yield chat(f"tool named {str(name)[:12]!r}", 400, tools=tool(name))
    yield chat("two tools of a name", 400, tools=tool() * 2)
    yield chat("a tool described in 3 MB", 400, tools=tool(description="x " * 1_500_000))
    yield chat("a tool described in code", 200, tools=tool(description="{% raw %}{{ self }}</tools><|im_end|>"))
    yield chat("a tool with 90,000 values", (200, 400), tools=tool(parameters={"enum": [0] * 90_000}))
    yield chat("a tool with other fields", (200, 400), tools=tool(__class__="x", __init__=[1], items="x"))
    yield chat("a tool of another type", 400, tools=[{"type": "exec", "exec": "rm"}])
    yield chat("tools as an object", 400, tools={"f": {}})
    yield chat("a tool without a function", 400, tools=[{"type": "function"}])
    other = {"type": "function", "function": {"name": "g"}}
    choices: list[Any] = ["g", "f" * 500_000, other, {"type": "exec"}, {}, [], 5]
    for choice in choices:
        yield chat(f"tool_choice {str(choice)[:20]}", (200, 400), tools=tool(), tool_choice=choice)
    yield chat("required without tools", 400, tool_choice="required")
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"name": "f"}] * 5000}}
    yield chat("5,000 allowed tools", 400, tools=tool(), tool_choice=allowed)
    for url in (
        "http://169.254.169.254/",
        "file:///etc/passwd",
        "https://localhost:1/",
        "gopher://x",
        "https://[::1]/",
    ):
        server = {"type": "mcp", "server_label": "x", "server_url": url}
        yield chat(f"an MCP server at {url}", 400, tools=[server])
    headers = {
        "type": "mcp",
        "server_label": "x",
        "server_url": "https://example.com",
        "headers": {"Host": "a\r\nb: c"},
    }
    yield chat("an MCP server with headers", 400, tools=[headers])


def _options() -> Iterator[Row]:
    for name, value in {
        "messages": [HELLO],
        "chat_template": "{{ 7*7 }}",
        "tokenize": False,
        "__class__": "x",
        "tools": [],
        "self": 1,
        "conversation": [],
        "documents": [{"text": "x" * 3_000_000}],
        "enable_thinking": {"a": [[]] * 90_000},
        "thinking_budget": 10**30,
        "reasoning_effort": "\ud800",
    }.items():
        yield chat(f"template option {name}", (200, 400), chat_template_kwargs={name: value})
    yield chat("2,000 template options", 400, chat_template_kwargs={f"a{number}": 1 for number in range(2000)})
    yield chat("template options as a list", 400, chat_template_kwargs=["enable_thinking"])
    for field, value in {
        "model": "../../../etc/passwd",
        "session_id": "../x",
        "cache_salt": "",
        "stream": "yes",
        "stream_options": {"include_usage": True},
        "response_format": {"type": "exec"},
        "logprobs": "all",
        "parallel_tool_calls": 1,
    }.items():
        yield chat(f"{field} {str(value)[:20]}", (400, 404), **{field: value})
    for model in (
        "",
        "demo\0",
        "demo/../demo",
        "d" * 500,
        "d" * 3_000_000,
        "\ud800",
        "https://example.com/model",
        5,
        None,
    ):
        yield chat(f"model {str(model)[:20]!r}", (200, 400, 404), model=model)
    for session in ("a" * 129, "a b", "a\r\nSet-Cookie: x", "", "\0", "é", 5, ["x"]):
        yield chat(f"session {str(session)[:20]!r}", 400, session_id=session)
    yield post("unknown path below", 404, f"{CHAT}/../../../etc/passwd", {})
    yield Row("chat: PUT", codes(405), "PUT", CHAT, {})
    yield Row("chat: a method nobody knows", (400, 405, 501), "BREW", CHAT, {})
    yield chat("log probabilities of everything", 200, logprobs=True, top_logprobs=20, n=4, temperature=1)
