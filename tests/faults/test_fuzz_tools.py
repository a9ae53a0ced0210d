"""Random chats and responses with tools of all kinds: each gets an answer or a refusal with a name, never a 5xx."""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import httpx2
import pytest

from tests.engine.batching.grammars import make_folder
from tests.faults.forms import short_or_long
from tests.faults.test_random_messages import ODD
from tests.openai_api.responses.event_order import check_events
from tests.openai_api.responses.response_requests import RESPONSES, events_in
from tests.openai_api.responses.test_codex import APPLY_PATCH
from tests.openai_api.test_chat import CHAT
from tests.serving import Served, served, settings_with

pytestmark = [pytest.mark.slow, pytest.mark.model]

NUM_REQUESTS = short_or_long(40, 1000)  # to each endpoint
NAMES = ("f", "run", "get_weather", "apply_patch")
ODD_NAMES = ("f", "a" * 65, "a b", "", "crm__f")
TEXTS = ("", "Halo", "你好 😀", "<tool_call>", '{"name": "f"}', "\x00\u202e", "x" * 3000, "</tool_call>\n")
GRAMMARS = (
    ("regex", "[a-z]{2}"),
    ("regex", ".*"),
    ("lark", 'start: "a" | "b"\n'),
    ("lark", APPLY_PATCH["format"]["definition"]),
)
ODD_GRAMMARS = (
    ("regex", "(a"),
    ("lark", "start: unknown"),
    ("lark", "start: <[5]>"),
    ("lark", "%llguidance {}\nstart: /x+/"),
    ("ebnf", "x"),
    ("lark", ""),
)
SCHEMAS: tuple[Any, ...] = (
    None,
    {},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"enum": [1, "x"]}}, "required": ["a"], "additionalProperties": False},
)
ODD_SCHEMAS: tuple[Any, ...] = (
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=a)"}}},
    {"$ref": "#/nowhere"},
    {"type": "nonsense"},
)


class RandomTools:
    """Bodies that are right for the most part, each with a few odd values anywhere."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._num_names = 0

    def _mostly(self, good: Sequence[Any], odd: Sequence[Any]) -> Any:
        return self._chance.choice(odd if self._chance.random() < 0.04 else good)

    def _new_name(self) -> str:
        """Of a tool: two of one name are refused."""
        self._num_names += 1
        name: str = self._mostly([f"{one}_{self._num_names}" for one in NAMES], ODD_NAMES)
        return name

    def chat(self) -> dict[str, Any]:
        one = self._chance
        tools: list[Callable[[], Any]] = [self._chat_function, self._chat_custom, self._chat_custom, self._chat_other]
        body: dict[str, Any] = {
            "messages": [self._chat_message() for _ in range(one.randrange(1, 4))],
            "tools": [one.choice(tools)() for _ in range(one.randrange(1, 4))],
            "max_tokens": one.choice([1, 8, 40]),
            "stream": one.random() < 0.5,
        }
        choices: list[Any] = [
            *("none", "none", "auto", "auto", "required", "required", "sometimes"),
            {"type": "function", "function": {"name": one.choice(NAMES)}},
            {"type": "custom", "custom": {"name": one.choice(NAMES)}},
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
        ]
        return self._with_more(
            body,
            tool_choice=lambda: one.choice(choices),
            functions=lambda: [self._chat_function()["function"]],
            function_call=lambda: one.choice(["auto", "none", {"name": "f"}]),
            web_search_options=lambda: one.choice([{}, {"search_context_size": "low"}]),
            logprobs=lambda: True,
            n=lambda: one.choice([1, 2]),
        )

    def response(self) -> dict[str, Any]:
        one = self._chance
        tools: list[Callable[[], Any]] = [
            self._function,
            self._custom,
            self._custom,
            self._client_tool,
            self._namespace,
        ]
        body: dict[str, Any] = {
            "input": one.choice([one.choice(TEXTS), [self._item() for _ in range(one.randrange(5))]]),
            "tools": [one.choice(tools)() for _ in range(one.randrange(1, 4))],
            "max_output_tokens": one.choice([1, 8, 40]),
            "stream": one.random() < 0.5,
        }
        choices: list[Any] = [
            *("none", "none", "auto", "auto", "required", "required", "sometimes"),
            *({"type": kind, "name": one.choice(NAMES)} for kind in ("function", "custom")),
            {"type": "function", "namespace": "crm", "name": "f"},
            {"type": one.choice(["shell", "apply_patch", "web_search", "computer"])},
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "run"}]},
        ]
        return self._with_more(
            body,
            tool_choice=lambda: one.choice(choices),
            store=lambda: one.choice([True, False]),
            background=lambda: False,
            include=lambda: one.choice([["reasoning.encrypted_content"], ["message.output_text.logprobs"], ["x"]]),
            instructions=lambda: one.choice(TEXTS),
            text=lambda: {"verbosity": one.choice(["low", "x"])},
            reasoning=lambda: {"effort": one.choice(["low", "none"]), "summary": "auto"},
            truncation=lambda: "auto",
            previous_response_id=lambda: "resp_none",
            max_tool_calls=lambda: one.choice([0, 1, 10**30]),
            prompt_cache_key=lambda: "k",
        )

    def _with_more(self, body: dict[str, Any], **fields: Callable[[], Any]) -> dict[str, Any]:
        one = self._chance
        rare: dict[str, Callable[[], Any]] = {
            "parallel_tool_calls": lambda: one.choice([True, False]),
            "temperature": lambda: one.choice([0, 1, 2]),
            "seed": lambda: one.randrange(9),
            "stop": lambda: one.choice(["a", ["b"]]),
            "unknown": lambda: one.choice(ODD),
        }
        for name, make in {**fields, **rare}.items():
            if one.random() < (0.03 if name in ("functions", "previous_response_id", "web_search_options") else 0.2):
                body[name] = make()
        body = deepcopy(body)  # what is spoiled is shared with later bodies
        for _ in range(one.choice([0, 0, 0, 0, 1, 3])):
            self._spoil(body)
        return body

    def _format(self, *, nested: bool) -> dict[str, Any]:
        if self._chance.random() < 0.4:
            return {"type": "text"}
        syntax, definition = self._mostly(GRAMMARS, ODD_GRAMMARS)
        given = {"syntax": syntax, "definition": definition}
        return {"type": "grammar", "grammar": given} if nested else {"type": "grammar", **given}

    def _named(self) -> dict[str, Any]:
        return {"name": self._new_name(), "description": self._chance.choice(TEXTS)}

    def _chat_function(self) -> dict[str, Any]:
        given = {
            **self._named(),
            "parameters": self._mostly(SCHEMAS, ODD_SCHEMAS),
            "strict": self._chance.random() < 0.4,
        }
        return {"type": "function", "function": given}

    def _chat_custom(self) -> dict[str, Any]:
        return {"type": "custom", "custom": {**self._named(), "format": self._format(nested=True)}}

    def _chat_other(self) -> Any:
        server = {"type": "mcp", "server_label": "m", "server_url": "https://localhost:1/", "require_approval": "never"}
        return self._mostly([self._chat_function()], [server, {"type": "web_search"}, *ODD])

    def _function(self) -> dict[str, Any]:
        deferred = {"defer_loading": True} if self._chance.random() < 0.2 else {}
        return {"type": "function", **self._chat_function()["function"], **deferred}

    def _custom(self) -> dict[str, Any]:
        return {"type": "custom", **self._named(), "format": self._format(nested=self._chance.random() < 0.1)}

    def _namespace(self) -> dict[str, Any]:
        members = [self._chance.choice([self._function, self._custom])() for _ in range(self._chance.randrange(3))]
        return {"type": "namespace", "name": "crm", "description": "Customers.", "tools": members}

    def _client_tool(self) -> dict[str, Any]:
        kinds = ("local_shell", "shell", "apply_patch", "tool_search")
        return {
            "type": self._mostly(kinds, ("web_search", "computer", "mcp")),
            "execution": self._chance.choice(["client", "server"]),
        }

    def _chat_message(self) -> dict[str, Any]:
        one = self._chance
        function = {"name": one.choice(NAMES), "arguments": one.choice(["{}", "{", '{"a": 1}'])}
        custom = {"name": one.choice(NAMES), "input": one.choice(TEXTS)}
        call = one.choice([{"type": "function", "function": function}, {"type": "custom", "custom": custom}])
        return one.choice(
            [
                {"role": "user", "content": one.choice(TEXTS)},
                {"role": "user", "content": one.choice(TEXTS)},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", **call}]},
                {"role": "assistant", "function_call": function},
                {"role": "tool", "tool_call_id": one.choice(["c1", "c9"]), "content": one.choice(TEXTS)},
                {"role": "function", "name": "f", "content": "x"},
            ]
        )

    def _item(self) -> dict[str, Any]:
        one = self._chance
        call_id = {"call_id": one.choice(["c1", "c2"])}
        text = one.choice(TEXTS)
        return one.choice(
            [
                {"role": one.choice(["user", "assistant", "developer"]), "content": text},
                {"role": "user", "content": [{"type": "input_text", "text": text}]},
                {"type": "function_call", **call_id, "name": one.choice(NAMES), "arguments": one.choice(["{}", "{"])},
                {"type": "function_call", **call_id, "name": "f", "namespace": one.choice(["crm", 5]), "arguments": ""},
                {"type": "function_call_output", **call_id, "output": text},
                {"type": "custom_tool_call", **call_id, "name": one.choice(NAMES), "input": text},
                {"type": "custom_tool_call_output", **call_id, "output": [{"type": "input_text", "text": text}]},
                {"type": "shell_call", **call_id, "action": one.choice([{"commands": ["ls"]}, {}, {"commands": 5}])},
                {"type": "shell_call_output", **call_id, "output": one.choice([[], text, [{"stdout": text}]])},
                {"type": "local_shell_call", "id": "l1", **call_id, "action": {"command": ["ls"]}},
                {"type": "local_shell_call_output", "id": "l1", "output": text},
                {"type": "apply_patch_call", **call_id, "operation": {"type": one.choice(["delete_file", 5])}},
                {"type": "apply_patch_call_output", **call_id, "status": one.choice(["failed", "x"])},
                {"type": "tool_search_call", **call_id, "arguments": {}, "execution": "client"},
                {"type": "tool_search_output", **call_id, "tools": [one.choice([self._function, self._namespace])()]},
                {"type": "reasoning", "summary": [], "encrypted_content": one.choice(["tis1.x", text, None])},
                {"type": one.choice(["web_search_call", "item_reference", "compaction", "nothing"]), "id": "i1"},
            ]
        )

    def _spoil(self, body: dict[str, Any]) -> None:
        """Puts an odd value in some place, or takes one away."""
        one, holder = self._chance, body
        while True:
            keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                return
            key = one.choice(keys)
            if isinstance(holder[key], dict | list) and holder[key] and one.random() < 0.7:
                holder = holder[key]
                continue
            if one.random() < 0.2 and isinstance(holder, dict):
                del holder[key]
            else:
                holder[key] = deepcopy(one.choice(ODD))
            return


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A tiny model of random weights: it writes anything, and grammars hold it."""
    folder = make_folder(tmp_path_factory.mktemp("fuzz") / "tiny", "Qwen3")
    with served(settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)) as running:
        yield running


@pytest.mark.parametrize(("path", "seed"), [(CHAT, 20_261), (RESPONSES, 20_262)], ids=["chat", "responses"])
def test_random_tools_get_an_answer_or_a_refusal(server: Served, path: str, seed: int) -> None:
    bodies = RandomTools(seed)
    statuses: dict[int, int] = {}
    with httpx2.Client(base_url=server.url, timeout=120) as http:
        for number in range(NUM_REQUESTS):
            body = bodies.chat() if path == CHAT else bodies.response()
            answer = http.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
            check(answer, f"request {number}: {json.dumps(body)[:3000]}\n{answer.status_code} {answer.text[:800]}")
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
    assert statuses.get(200, 0) > NUM_REQUESTS / 8, statuses
    assert statuses.get(400, 0) > NUM_REQUESTS / 8, statuses


def check(answer: httpx2.Response, where: str) -> None:
    assert answer.status_code in (200, 400, 404), where
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}, where
        assert "Traceback" not in answer.text, where
    elif answer.headers["content-type"].startswith("text/event-stream"):
        assert '"type":"server_error"' not in answer.text, where
        if "event: response.created" in answer.text:
            assert check_events(events_in(answer.text))["status"] in ("completed", "incomplete"), where
        else:
            assert answer.text.endswith("data: [DONE]\n\n"), where
    else:
        assert answer.json().get("status") in (None, "completed", "incomplete"), where
