"""Rounds as Codex CLI plays them: all tools on auto, nothing stored, and the reasoning comes back sealed."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import pytest

from tests.engine.batching.grammars import tokenizer
from tests.openai_api.responses.event_order import Event, check_events
from tests.openai_api.responses.response_requests import RESPONSES, events_in
from tests.openai_api.responses.test_event_types import check_strictly
from tests.openai_api.test_custom_tools import call
from tests.serving import Served, served, settings_with
from tis.openai_api.wire.as_chat import messages_of
from tis.openai_api.wire.input_items import checked_items
from tis.openai_api.wire.sealed_text import sealed

pytestmark = pytest.mark.long

PATCH_GRAMMAR = r"""
start: "*** Begin Patch" LF hunk+ "*** End Patch" LF?
hunk: add | delete | update
add: "*** Add File: " name LF ("+" text LF)+
delete: "*** Delete File: " name LF
update: "*** Update File: " name LF ("*** Move to: " name LF)? change+
change: (("+" | "-" | " ") text LF) -> line
name: /[^\n]+/
text: /[^\n]*/
%import common.LF
"""
_LINE = r"[^\n]*\n"
_HUNK = (
    rf"(\*\*\* Add File: {_LINE}(\+{_LINE})+|\*\*\* Delete File: {_LINE}"
    rf"|\*\*\* Update File: {_LINE}(\*\*\* Move to: {_LINE})?([+ -]{_LINE})+)"
)
PATCH = re.compile(rf"\*\*\* Begin Patch\n{_HUNK}+\*\*\* End Patch\n?")
EXEC: dict[str, Any] = {
    "type": "function",
    "name": "exec_command",
    "description": "Runs a command in a PTY, returning output or a session ID for ongoing interaction.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {
            "cmd": {"type": "string", "description": "Shell command to execute."},
            "workdir": {"type": "string"},
            "yield_time_ms": {"type": "number"},
        },
        "required": ["cmd"],
        "additionalProperties": False,
    },
}
PLAN: dict[str, Any] = {
    "type": "function",
    "name": "update_plan",
    "description": "Updates the task plan.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {
            "plan": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"step": {"type": "string"}, "status": {"type": "string"}},
                    "required": ["step", "status"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["plan"],
        "additionalProperties": False,
    },
}
APPLY_PATCH: dict[str, Any] = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Use the `apply_patch` tool to edit files. This is a FREEFORM tool.",
    "format": {"type": "grammar", "syntax": "lark", "definition": PATCH_GRAMMAR},
}
TEXT_PATCH = {**APPLY_PATCH, "format": {"type": "text"}}


def said(role: str, text: str) -> Event:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def turn(http: httpx2.Client, history: Sequence[Event], *, patch: Any = None, **more: Any) -> Sequence[Event]:
    """The events of a request with all that Codex sends."""
    body = {
        "model": "gpt-5-codex",
        "instructions": "You are a coding agent running in the Codex CLI.",
        "input": [said("developer", "<permissions>The sandbox is read-only.</permissions>"), *history],
        "tools": [EXEC, PLAN, patch or APPLY_PATCH],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199a213-81c0-7800-8aa1-bbab2a035a53",
        "text": {"verbosity": "low"},
        "client_metadata": {"x-codex-installation-id": "1f0c"},
        **more,
    }
    headers = {"Accept": "text/event-stream", "session_id": "0199a213", "originator": "codex_cli_rs"}
    answer = http.post(RESPONSES, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    events = events_in(answer.text)
    check_strictly(events)
    assert check_events(events)["store"] is False
    return events


def sent_back(events: Sequence[Event]) -> list[Event]:
    """The items of an answer as Codex keeps them: of reasoning, the summary and what is sealed."""
    items = []
    for event in events:
        if event["type"] == "response.output_item.done":
            item = {name: value for name, value in event["item"].items() if name not in ("id", "status")}
            items.append({**item, "content": None} if item["type"] == "reasoning" else item)
    return items


@pytest.fixture(scope="module")
def demo(demo_server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=demo_server.url, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def hermes() -> Iterator[httpx2.Client]:
    settings = settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


@pytest.mark.model
def test_a_session_with_a_patch(demo: httpx2.Client) -> None:
    history = [said("user", "Halo! Siapa kamu?")]
    history += sent_back(turn(demo, history, max_output_tokens=60, temperature=0))
    history.append(said("user", "Write a file."))
    # A model that knows nothing of patches has to be told to write one, and to end its lines.
    backslash, line_break = (tokenizer().encode_text(one)[0] for one in ("\\", "n"))
    told = {"tool_choice": {"type": "custom", "name": "apply_patch"}, "logit_bias": {backslash: 6, line_break: 4}}
    for seed in range(6):
        events = turn(demo, history, **told, max_output_tokens=300, temperature=1, seed=seed)
        if events[-1]["type"] == "response.completed":
            break
    *_, made = sent_back(events)
    assert made["type"] == "custom_tool_call" and PATCH.fullmatch(made["input"]), made
    output = "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess. Updated the following files:\nA a.txt\n"
    history += [*sent_back(events), {"type": "custom_tool_call_output", "call_id": made["call_id"], "output": output}]
    last = turn(demo, history, max_output_tokens=60, temperature=0)
    assert last[-1]["type"] in ("response.completed", "response.incomplete")


def test_reasoning_and_calls_come_back(hermes: httpx2.Client) -> None:
    patch = '*** Begin Patch\n*** Add File: a.txt\n+Halo "dunia"\n*** End Patch'
    arguments = '{"input": "' + patch.replace('"', '\\"').replace("\n", "\\n") + '"}'
    text = f"<think>I need a file.</think>\n\nOn it.\n{call('apply_patch', arguments)}"
    history = [said("user", text)]
    events = turn(hermes, history, patch=TEXT_PATCH)
    reasoning, message, made = events[-1]["response"]["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "I need a file."}]
    assert reasoning["encrypted_content"] and message["content"][0]["text"] == "On it."
    assert (made["type"], made["name"], made["input"]) == ("custom_tool_call", "apply_patch", patch)
    history += [
        *sent_back(events),
        {"type": "custom_tool_call_output", "call_id": made["call_id"], "output": "Success."},
    ]
    again = turn(hermes, history, patch=TEXT_PATCH)
    assert again[-1]["response"]["output"][0]["content"][0]["text"] == "Success."
    command = call("exec_command", '{"cmd": "cat a.txt"}')
    history += [*sent_back(again), said("user", command)]
    [item] = turn(hermes, history, patch=TEXT_PATCH)[-1]["response"]["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "exec_command", '{"cmd": "cat a.txt"}')


def test_sealed_reasoning_reaches_the_model() -> None:
    """What another server sealed cannot be read, and is no error."""
    foreign = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABo"}
    own: Event = {"type": "reasoning", "summary": [], "content": None, "encrypted_content": sealed("Hm. é")}
    for item, text in ((own, "Hm. é"), (foreign, None), ({**own, "encrypted_content": "tis1.é"}, None)):
        [checked] = checked_items([item], "resp_1", "input")
        [message], _ = messages_of([("input.0", checked)], {})
        assert message == {"role": "assistant", "reasoning_content": text}


def test_nothing_is_sealed_without_being_asked_for(hermes: httpx2.Client) -> None:
    events = turn(hermes, [said("user", "<think>Hm.</think>Ya.")], patch=TEXT_PATCH, include=[])
    assert events[-1]["response"]["output"][0]["encrypted_content"] is None
