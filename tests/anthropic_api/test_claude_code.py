"""Requests in the form in which Claude Code sends them, in its order: a count, a first answer, results of tools."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.anthropic_api.message_requests import COUNT, MESSAGES, check_order, read_events
from tests.serving import served, settings_with

HEADERS = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14",
    "anthropic-dangerous-direct-browser-access": "true",
    "authorization": "Bearer sk-local",
    "user-agent": "claude-cli/2.1.40 (external, cli)",
    "x-app": "cli",
    "x-stainless-lang": "js",
    "x-stainless-retry-count": "0",
    "x-stainless-timeout": "600",
}
CACHED = {"cache_control": {"type": "ephemeral"}}
NAMES = (
    "Task", "TaskOutput", "Bash", "Glob", "Grep", "ExitPlanMode", "Read", "Edit", "Write", "NotebookEdit", "WebFetch",
    "TodoWrite", "WebSearch", "KillShell", "AskUserQuestion", "Skill", "EnterPlanMode", "SlashCommand",
    "mcp__github__create_pull_request_review_comment", "mcp__playwright__browser_take_screenshot",
)  # fmt: skip
TOOLS = [
    {
        "name": name,
        "description": f"The tool {name}. " + "Usage notes: read before you write, and quote paths with blanks. " * 20,
        "input_schema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "The absolute path"},
                "limit": {"type": "number", "exclusiveMinimum": 0},
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"content": {"type": "string", "minLength": 1}, "status": {"enum": ["a", "b"]}},
                        "required": ["content", "status"],
                        "additionalProperties": False,
                    },
                },
            },
            "required": ["file_path"],
            "additionalProperties": False,
        },
        **({"eager_input_streaming": True} if name == "Write" else {}),
    }
    for name in NAMES
]
SYSTEM = [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.40.3f1; cc_entrypoint=cli; cch=06b1c;"},
    {"type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude.", **CACHED},
    {
        "type": "text",
        "text": "\nYou are an interactive agent that helps users. " + "Follow the rules. " * 900,
        **CACHED,
    },
]
FIRST = [
    {"type": "text", "text": "<system-reminder>\nThe files of this folder: a.py, b.py\n</system-reminder>\n"},
    {"type": "text", "text": "What is in a.py?", **CACHED},
]
READ = json.dumps({"name": "Read", "arguments": {"file_path": "/home/ada/a.py"}})


@pytest.fixture(scope="module")
def agent() -> Iterator[httpx2.Client]:
    settings = settings_with(model_repo_id="echo?tool_format=hermes&thinks=1", api_keys="sk-local")
    with served(settings) as running, httpx2.Client(base_url=running.url, headers=HEADERS) as client:
        yield client


def body_of(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "model": "claude-opus-5-5",
        "messages": list(messages),
        "system": SYSTEM,
        "tools": TOOLS,
        "metadata": {"user_id": json.dumps({"device_id": "d" * 64, "session_id": "0199-aa"})},
        "max_tokens": 64000,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "stream": True,
        **more,
    }


def sent(http: httpx2.Client, body: dict[str, Any]) -> dict[str, Any]:
    answer = http.post(MESSAGES, params={"beta": "true"}, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ignored-parameters"] == "metadata, context_management"
    return check_order(read_events(answer.text))


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_a_quota_check_is_answered(agent: httpx2.Client) -> None:
    body = {"model": "claude-haiku-5", "max_tokens": 1, "messages": [user("quota")], "metadata": {"user_id": "u"}}
    assert agent.post(MESSAGES, params={"beta": "true"}, json=body).json()["stop_reason"] == "max_tokens"


def test_tokens_are_counted_first(agent: httpx2.Client) -> None:
    for tools in (TOOLS, TOOLS[:1]):
        body = {"model": "claude-opus-5-5", "messages": [user("foo")], "tools": tools}
        assert agent.post(COUNT, params={"beta": "true"}, json=body).json()["input_tokens"] == 3


def test_a_title_is_written_as_json(agent: httpx2.Client) -> None:
    """Needs a model with grammars: here it is refused by name, so that the client writes none."""
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    form = {"format": {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}}
    answer = agent.post(MESSAGES, json=body_of(user("Halo"), output_config=form, tools=[], thinking=None))
    assert answer.json()["error"]["details"]["param"] == "output_config.format.schema"


def test_an_agent_reads_a_file_and_goes_on(agent: httpx2.Client) -> None:
    thought = f"<think>\nI read it.\n</think>\n\nLet me look.\n<tool_call>\n{READ}\n</tool_call>"
    first = sent(agent, body_of(user([*FIRST, {"type": "text", "text": thought}])))
    # The echo repeats the reminders, too.
    assert first["stop_reason"] == "tool_use" and first["content"][-1]["input"] == {"file_path": "/home/ada/a.py"}
    first = sent(agent, body_of(user(thought)))
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use"]
    call = first["content"][-1]
    result = {"tool_use_id": call["id"], "type": "tool_result", "content": "     1\tprint('a')\n", **CACHED}
    reminder = {"type": "text", "text": "<system-reminder>\nThe todo list is empty.\n</system-reminder>"}
    history = [user(thought), {"role": "assistant", "content": first["content"]}]
    second = sent(agent, body_of(*history, user([result])))
    assert second["content"] == [{"type": "text", "text": "     1\tprint('a')\n"}]
    second = sent(agent, body_of(*history, user([result, reminder])))
    assert second["content"][0]["text"] == reminder["text"] and second["stop_reason"] == "end_turn"


def test_a_tool_that_the_user_refused_is_an_error(agent: httpx2.Client) -> None:
    call = {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": "rm -rf /"}}
    refused = {"type": "tool_result", "content": "The user doesn't want to proceed.", "is_error": True}
    message = sent(
        agent,
        body_of(
            user("Clean up"), {"role": "assistant", "content": [call]}, user([{**refused, "tool_use_id": "toolu_01"}])
        ),
    )
    assert message["content"][0]["text"] == "Error: The user doesn't want to proceed."


def test_tools_that_are_found_later_and_words_of_the_system_in_between(agent: httpx2.Client) -> None:
    search = {"name": "ToolSearch", "description": "Find tools.", "input_schema": {"type": "object"}}
    deferred = [{**tool, "defer_loading": True} for tool in TOOLS if str(tool["name"]).startswith("mcp__")]
    call = {"type": "tool_use", "id": "toolu_02", "name": "ToolSearch", "input": {"query": "screenshot"}}
    reference = {"type": "tool_reference", "tool_name": deferred[-1]["name"]}
    result = {"type": "tool_result", "tool_use_id": "toolu_02", "content": [reference]}
    hint = {"role": "system", "content": [{"type": "text", "text": "The user looks."}], "clear_at": "next_user_message"}
    effort = {"role": "system", "output_config": {"effort": "low"}}
    late = {"name": "Late", "input_schema": {"type": "object"}}
    addition = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": late}}
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "Bash"}}
    changes = {"role": "system", "content": [addition, removal]}
    history = [user("Look"), hint, {"role": "assistant", "content": [call]}, user([result]), changes]
    asked = user('<tool_call>\n{"name": "Late", "arguments": {}}\n</tool_call>')
    body = body_of(*history, asked, effort, tools=[*TOOLS[:3], search, *deferred])
    message = sent(agent, body)
    assert [block.get("name") for block in message["content"]] == ["Late"] and message["stop_reason"] == "tool_use"
    counted = [agent.post(COUNT, json={**body_of(*some), "stream": None}) for some in ([asked], [*history, asked])]
    assert all(answer.status_code == 200 for answer in counted)


@pytest.mark.model
def test_two_requests_of_a_conversation_share_their_beginning(demo: httpx2.Client) -> None:
    """Though the line for the bill differs."""
    found = []
    for number in range(2):
        system = [{"type": "text", "text": f"x-anthropic-billing-header: cch={number:05x};"}, *SYSTEM[1:2]]
        body = {"model": "demo", "max_tokens": 4, "system": system, "messages": [user("Tell me a story. " * 30)]}
        found.append(demo.post(MESSAGES, json=body).json()["usage"])
    total = found[0]["input_tokens"]
    assert found[1]["cache_read_input_tokens"] > total / 2
    assert found[1]["input_tokens"] + found[1]["cache_read_input_tokens"] == total
