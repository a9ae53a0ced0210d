"""Random requests of the Messages API: each is answered or refused in its shape, and none breaks the server."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import httpx2
import pytest

from tests.anthropic_api.message_requests import COUNT, MESSAGES, check_order, read_events
from tests.faults.forms import short_or_long
from tests.faults.mortal_server import SharedServer

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

NUM_REQUESTS = short_or_long(60, 1000)
CALL = json.dumps({"name": "f", "arguments": {"a": 1}})
TEXTS = (
    "",
    "Halo",
    "你好 😀",
    "<think>x</think>",
    CALL,
    f"<tool_call>{CALL}</tool_call>",
    "\x00\u202e",
    "x" * 5000,
    "{",
    " ",
)
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**30,
    "",
    "x",
    [],
    {},
    [[]],
    {"type": "x"},
    "\ud800",
    {"a": {"b": []}},
    1e308,
)
NAMES = ("f", "f", "g", "g", "h", "bash", "a_b", "F-1", "f" * 100, "a b")


class RandomMessages:
    """Bodies that are right for the most part, each with a few odd values anywhere."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)

    def body(self) -> dict[str, Any]:
        one = self._chance
        body: dict[str, Any] = {
            "model": one.choice(["echo", "claude-9"]),
            "max_tokens": one.choice([1, 5, 50, 64_000]),
            "messages": [self._message() for _ in range(one.randrange(1, 6))],
        }
        fields: dict[str, Callable[[], Any]] = {
            "system": lambda: one.choice([one.choice(TEXTS), [self._text() for _ in range(one.randrange(3))]]),
            "stream": lambda: one.random() < 0.6,
            "temperature": lambda: one.choice([0, 0.5, 1, 1.9]),
            "top_p": lambda: one.choice([0.1, 0.5, 1]),
            "top_k": lambda: one.choice([-1, 1, 40]),
            "stop_sequences": lambda: [one.choice(TEXTS[1:]) for _ in range(one.randrange(4))],
            "tools": lambda: [self._tool() for _ in range(one.randrange(4))],
            "tool_choice": self._choice,
            "thinking": self._thinking,
            "output_config": lambda: {"effort": one.choice(["low", "max", "x"])},
            "output_format": lambda: {"type": "json_schema", "schema": {"type": "object"}},
            "metadata": lambda: {"user_id": "u"},
            "service_tier": lambda: one.choice(["auto", "standard_only", "x"]),
            "cache_control": lambda: {"type": "ephemeral"},
            "mcp_servers": lambda: [{"type": "url", "name": "m", "url": one.choice(["https://localhost:1/", "x"])}],
            "session_id": lambda: one.choice(["one", "two", "a b"]),
            "context_management": lambda: {"edits": []},
            "unknown": lambda: one.choice(ODD),
        }
        for name, make in fields.items():
            if one.random() < (0.02 if name in ("mcp_servers", "output_format") else 0.2):
                body[name] = make()
        for _ in range(one.choice([0, 0, 0, 1, 1, 3])):
            self._spoil(body)
        return body

    def _message(self) -> dict[str, Any]:
        one = self._chance
        role = one.choice(["user", "user", "assistant", "system"])
        if one.random() < 0.4:
            return {"role": role, "content": one.choice(TEXTS)}
        if role == "system" and one.random() < 0.5:
            changes = [self._tool_change() for _ in range(one.randrange(3))]
            more: list[dict[str, Any]] = [{}, {"clear_at": "next_user_message"}, {"output_config": {"effort": "low"}}]
            return {"role": role, "content": changes, **one.choice(more)}
        return {"role": role, "content": [self._block(role) for _ in range(one.randrange(4))]}

    def _block(self, role: str) -> dict[str, Any]:
        one = self._chance
        ids = {"id": one.choice(["t1", "t2"]), "name": one.choice(NAMES), "input": {"a": one.choice(TEXTS)}}
        of_users: list[Callable[[], dict[str, Any]]] = [
            self._text,
            self._text,
            self._text,
            lambda: {"type": "document", "title": one.choice(TEXTS), "source": self._source()},
            lambda: {"type": "search_result", "source": "s", "title": "t", "content": [self._text()]},
            self._result,
        ]
        of_assistants: list[Callable[[], dict[str, Any]]] = [
            self._text,
            lambda: {"type": "tool_use", **ids},
            lambda: {"type": "mcp_tool_use", "server_name": "m", **ids},
            lambda: {"type": "mcp_tool_result", "tool_use_id": ids["id"], "content": one.choice(TEXTS)},
            lambda: {
                "type": "thinking",
                "thinking": one.choice(TEXTS),
                "signature": one.choice(["", "tis1.x", "tis1t.QUI"]),
            },
            lambda: {"type": "redacted_thinking", "data": "x"},
            lambda: {
                "type": "compaction",
                "content": one.choice([None, *TEXTS]),
                "tool_changes": [self._tool_change() for _ in range(one.randrange(2))],
            },
        ]
        if one.random() < 0.03:  # the echo does not see
            return one.choice([*of_users, *of_assistants, _image])()
        right = {"assistant": of_assistants, "user": of_users}.get(role, [self._text])
        return one.choice(right)()

    def _tool_change(self) -> dict[str, Any]:
        one = self._chance
        reference = {"type": one.choice(["tool_reference", "mcp_toolset_reference"]), "name": "f", "server_name": "m"}
        tool = one.choice([reference, {"type": "tool_definition", "definition": self._tool()}])
        return {"type": one.choice(["tool_addition", "tool_removal"]), "tool": tool}

    def _source(self) -> dict[str, Any]:
        kind = self._chance.choice(["text"] * 5 + ["content"] * 4 + ["base64"])
        content = [self._text(), {"type": "image", "source": {"type": "url", "url": "https://localhost:1/x.png"}}]
        return {
            "type": kind,
            "data": "some text",
            "media_type": "text/plain",
            "content": content[: self._chance.choice([0, 1, 1, 1, 2])],
        }

    def _result(self) -> dict[str, Any]:
        one = self._chance
        content = one.choice([one.choice(TEXTS), [self._text()], [], None])
        return {
            "type": "tool_result",
            "tool_use_id": one.choice(["t1", "t9"]),
            "content": content,
            "is_error": one.random() < 0.3,
        }

    def _text(self) -> dict[str, Any]:
        return {"type": "text", "text": self._chance.choice(TEXTS)}

    def _tool(self) -> dict[str, Any]:
        one = self._chance
        hosted = one.choice(["bash_20250124", "text_editor_20250728", "memory_20250818", "web_search_20250305"])
        own = {"name": one.choice(NAMES), "description": one.choice(TEXTS), "input_schema": {"type": "object"}}
        return {"type": hosted, "name": "bash"} if one.random() < 0.1 else {**own, "strict": False}

    def _choice(self) -> dict[str, Any]:
        return {
            "type": self._chance.choice(["auto"] * 4 + ["none"] * 4 + ["any", "tool"]),
            "name": "f",
            "disable_parallel_tool_use": True,
        }

    def _thinking(self) -> dict[str, Any]:
        one = self._chance
        kind = one.choice(["enabled", "adaptive", "disabled", "between_tools"])
        return {"type": kind, "budget_tokens": one.choice([0, 1024]), "display": one.choice(["omitted", "summarized"])}

    def _spoil(self, body: dict[str, Any]) -> None:
        """Puts an odd value in some place, or takes one away."""
        one = self._chance
        holder: Any = body
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                return
            key = one.choice(keys)
            if isinstance(holder[key], dict | list) and holder[key] and one.random() < 0.7:
                holder = holder[key]
                continue
            if one.random() < 0.2 and isinstance(holder, dict):
                del holder[key]
            else:
                holder[key] = one.choice(ODD)
            return


def _image() -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGFsbG8="}}


async def test_random_requests_are_answered_or_refused(shared: SharedServer) -> None:
    bodies = RandomMessages(20_260_101)
    statuses: dict[int, int] = {}
    async with (
        shared.running(MODEL_REPO_ID="echo?thinks=1", MEDIA_TIMEOUT_SECONDS="2") as server,
        httpx2.AsyncClient(base_url=server.url, timeout=60, verify=False) as http,
    ):
        for number in range(NUM_REQUESTS):
            body = bodies.body()
            path = COUNT if number % 5 == 4 else MESSAGES
            content = json.dumps(body).encode()
            answer = await http.post(path, content=content, headers={"Content-Type": "application/json"})
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            _check(answer, body)
    assert statuses[200] > NUM_REQUESTS / 6 and statuses[400] > NUM_REQUESTS / 6, statuses


def _check(answer: httpx2.Response, body: dict[str, Any]) -> None:
    where = f"{answer.status_code} {answer.text[:500]}\nfor {json.dumps(body)[:3000]}"
    assert answer.status_code in (200, 400, 404, 409, 413), where
    if answer.headers["content-type"].startswith("text/event-stream"):
        message = check_order(read_events(answer.text))
        assert message["stop_reason"] and message["usage"]["output_tokens"] >= 0, where
        return
    found = answer.json()
    if answer.status_code != 200:
        assert found["type"] == "error" and found["error"]["message"] and found["request_id"], where
        assert "Traceback" not in answer.text, where
    else:
        assert "input_tokens" in found or found["type"] == "message", where
