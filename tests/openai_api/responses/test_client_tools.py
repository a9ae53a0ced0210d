"""Custom tools, shells, patches and tool search in responses: items, events, and what comes back in the next turn."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import httpx2
import pytest
from openai import OpenAI

from tests.openai_api.responses.event_order import Event, check_events
from tests.openai_api.responses.response_requests import RESPONSES, create, refused, stream
from tests.openai_api.responses.test_event_types import check_strictly
from tests.openai_api.test_custom_tools import PLATE, SQL, call
from tests.serving import Served, served, settings_with
from tis.engine.grammar.tool_input import InputFormat, InputReader
from tis.mcp_client.client import McpClient
from tis.openai_api.wire.as_chat import messages_of
from tis.openai_api.wire.response_tools import ResponseTools

FUNCTION = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
SHELLS: list[Any] = [{"type": "local_shell"}, {"type": "shell"}, {"type": "apply_patch"}]


def custom(name: str = "run", syntax: str | None = None, definition: str = "") -> dict[str, Any]:
    form = {"type": "grammar", "syntax": syntax, "definition": definition} if syntax else {"type": "text"}
    return {"type": "custom", "name": name, "description": "Run it.", "format": form}


@pytest.fixture(scope="module")
def hermes() -> Iterator[httpx2.Client]:
    """Says what it is told, and is taken for a model that writes calls as Hermes does."""
    settings = settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


def only_item(http: httpx2.Client, name: str, arguments: Any, tools: list[Any]) -> Event:
    """The same in a stream."""
    text = call(name, arguments if isinstance(arguments, str) else json.dumps(arguments))
    events = stream(http, text, tools=tools)
    check_strictly(events)
    [streamed] = check_events(events)["output"]
    [item] = create(http, text, tools=tools)["output"]
    hidden = {"id", "call_id"}
    assert {key: item[key] for key in item if key not in hidden} == {
        key: streamed[key] for key in streamed if key not in hidden
    }
    return dict(item)


def test_a_custom_tool_is_called_with_a_text(hermes: httpx2.Client) -> None:
    text = 'print("a")\n\\ é 😀' + "x" * 90
    item = only_item(hermes, "run", {"input": text}, [FUNCTION, custom()])
    assert item["id"].startswith("ctc_") and item["call_id"].startswith("call_")
    assert (item["type"], item["name"], item["input"], item["status"]) == ("custom_tool_call", "run", text, "completed")


def test_a_custom_call_that_is_cut_is_incomplete(hermes: httpx2.Client) -> None:
    text = call("run", json.dumps({"input": "y" * 200}))
    events = stream(hermes, text, tools=[custom()], max_output_tokens=150)
    [item] = check_events(events)["output"]
    assert item["status"] == "incomplete" and set(item["input"]) == {"y"}


def test_shells_are_called(hermes: httpx2.Client) -> None:
    local = only_item(hermes, "local_shell", {"command": ["ls", "-l"], "working_directory": "/tmp"}, SHELLS)
    assert local["type"] == "local_shell_call" and local["action"] == {
        "type": "exec",
        "command": ["ls", "-l"],
        "env": {},
        "timeout_ms": None,
        "user": None,
        "working_directory": "/tmp",
    }
    shell = only_item(hermes, "shell", {"commands": ["ls", 'echo "a"'], "timeout_ms": 500}, SHELLS)
    assert (shell["type"], shell["action"]["commands"]) == ("shell_call", ["ls", 'echo "a"'])
    assert (shell["action"]["timeout_ms"], shell["action"]["max_output_length"]) == (500, None)


@pytest.mark.parametrize(
    ("arguments", "operation"),
    [
        ({"type": "create_file", "path": "a", "diff": "+x\n"}, {"type": "create_file", "path": "a", "diff": "+x\n"}),
        ({"type": "delete_file", "path": "a", "diff": "?"}, {"type": "delete_file", "path": "a"}),
        ({"type": "update_file", "path": "a"}, {"type": "update_file", "path": "a", "diff": ""}),
    ],
)
def test_a_patch_is_called(hermes: httpx2.Client, arguments: Any, operation: Any) -> None:
    item = only_item(hermes, "apply_patch", arguments, SHELLS)
    assert (item["type"], item["operation"], item["status"]) == ("apply_patch_call", operation, "completed")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("local_shell", r'{"command": ["\ud800"]}'),
        ("shell", r'{"commands": ["ls", "\udfff"]}'),
        ("apply_patch", r'{"type": "delete_file", "path": "\ud800"}'),
        ("tool_search", '{"query": 1e999}'),
    ],
)
def test_arguments_that_are_no_json_or_no_text_make_no_whole_call(
    hermes: httpx2.Client, name: str, arguments: str
) -> None:
    tools = [*SHELLS, {"type": "tool_search", "execution": "client"}]
    item = only_item(hermes, name, arguments, tools)
    assert item["type"] == f"{name}_call"
    assert item["status"] == ("in_progress" if name == "apply_patch" else "incomplete")


def test_calls_without_readable_arguments_are_not_complete(hermes: httpx2.Client) -> None:
    text = call("shell", json.dumps({"commands": ["rm " + "x" * 100]}))
    [item] = check_events(stream(hermes, text, tools=SHELLS, max_output_tokens=120))["output"]
    assert (item["status"], item["action"]["commands"]) == ("incomplete", [])


OUTPUTS: list[tuple[Event, Event]] = [
    (
        {"type": "custom_tool_call", "call_id": "c1", "name": "run", "input": "ls\n"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "a.txt"},
    ),
    (
        {"type": "custom_tool_call", "call_id": "c1", "name": "run", "input": "ls\n"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "a.txt"}]},
    ),
    (
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "c1",
            "status": "completed",
            "action": {"command": ["ls"]},
        },
        {"type": "local_shell_call_output", "id": "lsh_1", "output": "a.txt"},
    ),
    (
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
        {
            "type": "shell_call_output",
            "call_id": "c1",
            "output": [
                {"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ],
        },
    ),
    (
        {"type": "apply_patch_call", "call_id": "c1", "operation": {"type": "delete_file", "path": "a.txt"}},
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no a.txt"},
    ),
]


@pytest.mark.parametrize(("called", "output"), OUTPUTS, ids=lambda item: item["type"])
def test_outputs_reach_the_model(hermes: httpx2.Client, called: Event, output: Event) -> None:
    """The echo answers with the last message of the prompt, which is the output."""
    question = {"role": "user", "content": "Go."}
    response = create(hermes, [question, called, output], tools=[custom(), *SHELLS])
    assert "a.txt" in response["output"][0]["content"][0]["text"]
    listed = hermes.get(f"{RESPONSES}/{response['id']}/input_items", params={"order": "asc"}).json()["data"]
    assert [item["type"] for item in listed] == ["message", called["type"], output["type"]]
    again = create(hermes, "And?", previous_response_id=response["id"])
    assert again["output"][0]["content"][0]["text"] == "And?"


def test_a_response_goes_on_from_its_own_calls(hermes: httpx2.Client) -> None:
    for name, arguments, output in (
        ("run", {"input": "ls"}, {"type": "custom_tool_call_output", "output": "a.txt"}),
        ("shell", {"commands": ["ls"]}, {"type": "function_call_output", "output": "a.txt"}),
        (
            "apply_patch",
            {"type": "delete_file", "path": "a"},
            {"type": "apply_patch_call_output", "status": "completed"},
        ),
    ):
        tools = [custom(), *SHELLS]
        first = create(hermes, call(name, json.dumps(arguments)), tools=tools)
        answered = [{**output, "call_id": first["output"][0]["call_id"]}]
        second = create(hermes, answered, tools=tools, previous_response_id=first["id"])
        text = second["output"][0]["content"][0]["text"]
        assert text == ("The patch was applied." if name == "apply_patch" else "a.txt")


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"type": "custom_tool_call", "call_id": "c", "name": "f"}, "input.0.input"),
        ({"type": "custom_tool_call_output", "call_id": "c"}, "input.0.output"),
        ({"type": "shell_call", "call_id": "c"}, "input.0.action"),
        ({"type": "shell_call_output", "call_id": "c", "output": "a"}, "input.0.output"),
        (
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "", "stderr": ""}]},
            "input.0.output.0.outcome",
        ),
        ({"type": "local_shell_call_output", "output": "a"}, "input.0.id"),
        ({"type": "apply_patch_call", "call_id": "c", "operation": []}, "input.0.operation"),
        ({"type": "tool_search_output", "call_id": "c", "tools": 5}, "input.0.tools"),
        ({"type": "tool_search_output", "call_id": "c", "tools": [{"type": "exec"}]}, "input.0.tools.0.type"),
    ],
)
def test_items_that_are_wrong_are_named(hermes: httpx2.Client, item: Event, param: str) -> None:
    assert refused(hermes, {"input": [item]})["param"] == param


@pytest.mark.parametrize(
    ("tools", "choice", "param"),
    [
        ([{"type": "custom"}], "auto", "tools.0.name"),
        ([custom("a b")], "auto", "tools.0.name"),
        ([custom(), custom()], "auto", "tools.1.name"),
        ([{"type": "shell"}, {"type": "function", "name": "shell"}], "auto", "tools.1.name"),
        ([{"type": "custom", "name": "a", "format": {"type": "xml"}}], "auto", "tools.0.format.type"),
        (
            [{"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "lark"}}],
            "auto",
            "tools.0.format.definition",
        ),
        ([custom("a", "ebnf", "x")], "auto", "tools.0.format.syntax"),
        ([custom("a", "regex", "x")], "auto", "tools.0.format.definition"),
        ([custom()], {"type": "function", "name": "run"}, "tool_choice"),
        ([FUNCTION], {"type": "custom", "name": "get_weather"}, "tool_choice"),
        ([FUNCTION], {"type": "shell"}, "tool_choice"),
        ([FUNCTION], {"type": "web_search"}, "tool_choice"),
        ([{"type": "web_search"}], "auto", "tools.0.type"),
        ([FUNCTION, {"type": "computer_use_preview"}], "auto", "tools.1.type"),
        ([{"type": "tool_search", "execution": "moon"}], "auto", "tools.0.execution"),
    ],
)
def test_tools_that_are_wrong_are_named(hermes: httpx2.Client, tools: list[Any], choice: Any, param: str) -> None:
    assert refused(hermes, {"input": "Halo", "tools": tools, "tool_choice": choice})["param"] == param


def test_the_client_searches_for_tools(hermes: httpx2.Client) -> None:
    hidden = {**FUNCTION, "defer_loading": True}
    search = {"type": "tool_search", "execution": "client", "description": "Find tools.", "parameters": None}
    weather = call("get_weather", '{"city": "Solo"}')
    tools = [hidden, search]
    # The model does not know the function yet, so what looks like a call of it is text.
    [item] = create(hermes, weather, tools=tools)["output"]
    assert item["type"] == "message"
    found = only_item(hermes, "tool_search", {"query": "weather"}, tools)
    assert (found["type"], found["arguments"], found["execution"]) == (
        "tool_search_call",
        {"query": "weather"},
        "client",
    )
    output = {"type": "tool_search_output", "call_id": found["call_id"], "execution": "client", "tools": [FUNCTION]}
    history = [found, output, {"role": "user", "content": weather}]
    [item] = create(hermes, history, tools=tools)["output"]
    assert (item["type"], item["name"]) == ("function_call", "get_weather")
    # A search on the server needs no call: the model sees every tool.
    [item] = create(hermes, weather, tools=[hidden, {"type": "tool_search"}])["output"]
    assert item["type"] == "function_call"


CRM: dict[str, Any] = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [FUNCTION, {**FUNCTION, "name": "find", "description": "Find one."}, custom()],
}


@pytest.mark.parametrize(
    ("name", "arguments", "own", "given"),
    [
        ("crm__find", '{"id": 7}', {"type": "function_call", "name": "find"}, {"arguments": '{"id": 7}'}),
        ("crm__run", '{"input": "ls"}', {"type": "custom_tool_call", "name": "run"}, {"input": "ls"}),
        ("get_weather", "{}", {"type": "function_call", "name": "get_weather"}, {"arguments": "{}"}),
    ],
)
def test_tools_of_a_namespace_are_called_in_it(
    hermes: httpx2.Client, name: str, arguments: str, own: Event, given: Event
) -> None:
    """Beside a tool of the same name that is in none."""
    tools = [CRM, FUNCTION]
    item = only_item(hermes, name, arguments, tools)
    assert item.items() >= {**own, **given, "status": "completed"}.items()
    assert item.get("namespace") == ("crm" if name.startswith("crm") else None)
    first = create(hermes, call(name, arguments), tools=tools)
    assert first["tools"][0]["name"] == "crm" and len(first["tools"][0]["tools"]) == 3
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": "Sari"}
    answer = create(hermes, [{"role": "user", "content": "Go."}, item, output], tools=tools)
    assert answer["output"][0]["content"][0]["text"] == "Sari"
    stored = {**output, "call_id": first["output"][0]["call_id"]}
    answer = create(hermes, [stored], tools=tools, previous_response_id=first["id"])
    assert answer["output"][0]["content"][0]["text"] == "Sari"


def test_the_model_reads_the_names_of_a_namespace() -> None:
    tools = ResponseTools([CRM], cast(McpClient, None))
    described = {one[one["type"]]["name"]: one[one["type"]]["description"] for one in tools.functions}
    assert described == {
        "crm__get_weather": "Customers.",
        "crm__find": "Customers.\nFind one.",
        "crm__run": "Customers.\nRun it.",
    }
    item = {"type": "function_call", "call_id": "c", "namespace": "crm", "name": "find", "arguments": "{}"}
    [message], _ = messages_of([("input.0", item)], {})
    assert message["tool_calls"][0]["function"]["name"] == "crm__find"


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({**CRM, "name": ""}, "tools.0.name"),
        ({**CRM, "name": "n" * 60}, "tools.0.tools.0.name"),
        ({**CRM, "tools": "x"}, "tools.0.tools"),
        ({**CRM, "tools": [5]}, "tools.0.tools"),
        ({**CRM, "tools": [{"type": "shell"}]}, "tools.0.tools.0.type"),
        ({**CRM, "tools": [CRM]}, "tools.0.tools.0.type"),
        ({**CRM, "tools": [{"type": "function"}]}, "tools.0.tools.0.name"),
        ({**CRM, "tools": [{"type": "function", "name": "f", "description": 5}]}, "tools.0.tools.0.description"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_namespace_is_named(hermes: httpx2.Client, tool: Event, param: str) -> None:
    assert refused(hermes, {"input": "Halo", "tools": [tool]})["param"] == param


def test_a_namespace_may_be_found_by_a_search(hermes: httpx2.Client) -> None:
    output = {"type": "tool_search_output", "call_id": "c1", "execution": "client", "tools": [CRM]}
    found = {"type": "tool_search_call", "call_id": "c1", "arguments": {"query": "x"}, "execution": "client"}
    history = [found, output, {"role": "user", "content": call("crm__find", "{}")}]
    [item] = create(hermes, history, tools=[{"type": "tool_search", "execution": "client"}])["output"]
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "crm", "find")
    choice = {"type": "function", "namespace": "crm", "name": "find"}
    assert create(hermes, "Halo", tools=[CRM], tool_choice="auto")["status"] == "completed"
    assert refused(hermes, {"input": "x", "tools": [FUNCTION], "tool_choice": choice})["param"] == "tool_choice"


@pytest.mark.model
@pytest.mark.parametrize("seed", range(2))
def test_the_official_client_reads_the_events_of_a_forced_grammar(demo_server: Served, seed: int) -> None:
    tools: Any = [custom("plate", "regex", PLATE), custom("query", "lark", SQL), FUNCTION]
    with OpenAI(base_url=f"{demo_server.url}/v1", api_key="none", timeout=120, max_retries=0) as client:
        for name in ("plate", "query"):
            asked: dict[str, Any] = {
                "model": "demo",
                "input": "Which car?",
                "tools": tools,
                "tool_choice": {"type": "custom", "name": name},
                "temperature": 1.5,
                "extra_body": {"seed": seed},
                "max_output_tokens": 200,
            }
            text = ""
            for event in client.responses.create(**asked, stream=True):
                if event.type == "response.custom_tool_call_input.delta":
                    text += event.delta
                elif event.type == "response.custom_tool_call_input.done":
                    assert event.input == text
            [item] = client.responses.create(**asked).output
            assert item.type == "custom_tool_call" and (item.name, item.input) == (name, text)
            assert re.fullmatch(PLATE, text) if name == "plate" else InputReader(InputFormat("lark", SQL)).takes(text)


@pytest.mark.model
@pytest.mark.parametrize("kind", ["local_shell", "shell", "apply_patch"])
def test_a_forced_call_has_the_shape_of_its_tool(demo_server: Served, kind: str) -> None:
    with httpx2.Client(base_url=demo_server.url, timeout=120) as http:
        more: dict[str, Any] = {"tools": [*SHELLS, FUNCTION], "tool_choice": {"type": kind}}
        if kind == "local_shell":  # OpenAI's types have no choice of it
            more = {"tools": [{"type": kind}], "tool_choice": "required"}
        events = stream(http, "List the files.", **more, temperature=1, seed=4, max_output_tokens=400)
        check_strictly(events)
        [item] = check_events(events)["output"]
        assert item["type"] == f"{kind}_call"


@pytest.mark.model
def test_a_grammar_that_is_none_is_named(demo_server: Served) -> None:
    with httpx2.Client(base_url=demo_server.url, timeout=60) as http:
        body = {"input": "Halo", "tools": [FUNCTION, custom("a", "lark", "start: unknown")]}
        assert refused(http, body)["param"] == "tools.1.format.definition"
