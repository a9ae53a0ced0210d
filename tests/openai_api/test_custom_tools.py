"""Tools of type custom in chats: what the client sends and gets, with the demo model and with an echo of any call."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import stream
from tests.openai_api.test_tools import folded, without_ids
from tests.serving import Served, served, settings_with
from tis.engine.grammar.tool_input import InputFormat, InputReader
from tis.openai_api.wire.custom_tools import CustomInput

SQL = r'start: "SELECT " NAME ("," NAME)* " FROM \"" NAME "\"\n"' + "\nNAME: /[a-z]{1,8}/"
PLATE = r"[A-Z]{1,2} [0-9]{4} [A-Z]{2}\n"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def custom(name: str = "run", syntax: str | None = None, definition: str = "") -> dict[str, Any]:
    form: dict[str, Any] = {"type": "text"}
    if syntax:
        form = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    return {"type": "custom", "custom": {"name": name, "description": "Run it.", "format": form}}


def chosen(name: str = "run") -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name}}


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


@pytest.fixture(scope="module")
def hermes() -> Iterator[httpx2.Client]:
    """Says what it is told, and is taken for a model that writes calls as Hermes does."""
    settings = settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


def message_of(http: httpx2.Client, body: dict[str, Any]) -> dict[str, Any]:
    answer = http.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    [choice] = answer.json()["choices"]
    return {"finish_reason": choice["finish_reason"], **choice["message"]}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (r'{"input": "ls -l \"a\"\n\\ \u00e9 \ud83d\ude00"}', 'ls -l "a"\n\\ é 😀'),
        ('{"input": ""}', ""),
        ('{ "input" : "' + "x" * 200 + '" }', "x" * 200),
        ("{}", ""),
        ('{"command": "ls"}', '{"command": "ls"}'),  # nothing holds an echo to the schema
    ],
)
def test_a_call_has_the_text_of_its_input(hermes: httpx2.Client, arguments: str, text: str) -> None:
    body = said(call("run", arguments), tools=[custom(), WEATHER])
    message = message_of(hermes, body)
    [made] = message["tool_calls"]
    assert made == {"id": made["id"], "type": "custom", "custom": {"name": "run", "input": text}}
    assert (message["content"], message["finish_reason"]) == (None, "tool_calls")
    chunks = stream(hermes, body)
    assert folded(chunks) == [without_ids({name: message[name] for name in message if name != "finish_reason"})]
    deltas = [block.chunk["choices"][0]["delta"] for block in chunks[:-1]]
    calls = [one for delta in deltas for one in delta.get("tool_calls", ())]
    assert calls[0]["custom"] == {"name": "run", "input": ""} and calls[0]["type"] == "custom"
    assert all(set(one) == {"index", "custom"} and set(one["custom"]) == {"input"} for one in calls[1:])


def test_custom_tools_and_functions_are_called_side_by_side(hermes: httpx2.Client) -> None:
    text = call("run", r'{"input": "a\tb"}') + "\n" + call("get_weather", '{"city": "Solo"}')
    tools = [WEATHER, custom()]
    calls = message_of(hermes, said(text, tools=tools))["tool_calls"]
    assert [one["type"] for one in calls] == ["custom", "function"]
    assert (calls[0]["custom"]["input"], calls[1]["function"]["arguments"]) == ("a\tb", '{"city": "Solo"}')
    [one] = message_of(hermes, said(text, tools=tools, parallel_tool_calls=False))["tool_calls"]
    assert one["type"] == "custom"


def test_a_cut_call_has_the_text_so_far(hermes: httpx2.Client) -> None:
    text = call("run", '{"input": "' + "y" * 90 + r'\n"}')
    for max_tokens in (130, text.index("\\n") + 1):
        message = message_of(hermes, said(text, tools=[custom()], max_tokens=max_tokens))
        [one] = message["tool_calls"]
        assert message["finish_reason"] == "length" and set(one["custom"]["input"]) == {"y"}


def test_earlier_calls_reach_the_model(hermes: httpx2.Client) -> None:
    """The echo answers with the last message, so the question is only whether the history is accepted."""
    history = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": [{"id": "c1", **call_of("run", "ls\n")}]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
    ]
    answer = hermes.post(CHAT, json={"messages": history, "tools": [custom()]})
    assert answer.status_code == 200, answer.text


def call_of(name: str, text: str) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name, "input": text}}


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"tools": [custom(), custom()]}, "tools.1.custom.name"),
        ({"tools": [custom("get_weather"), WEATHER]}, "tools.1.function.name"),
        ({"tools": [custom("a b")]}, "tools.0.custom.name"),
        (
            {"tools": [{"type": "custom", "custom": {"name": "a", "format": {"type": "xml"}}}]},
            "tools.0.custom.format.type",
        ),
        (
            {"tools": [{"type": "custom", "custom": {"name": "a", "format": {"type": "grammar"}}}]},
            "tools.0.custom.format.grammar",
        ),
        ({"tools": [custom("a", "ebnf", "x")]}, "tools.0.custom.format.grammar.syntax"),
        ({"tools": [custom()], "tool_choice": chosen("other")}, "tool_choice.custom.name"),
        ({"tools": [WEATHER], "tool_choice": chosen("get_weather")}, "tool_choice.custom.name"),
        # No echo follows a grammar.
        ({"tools": [custom("a", "regex", "[a-z]")]}, "tools.0.custom.format.grammar.definition"),
    ],
)
def test_what_is_wrong_is_named(hermes: httpx2.Client, more: dict[str, Any], param: str) -> None:
    answer = hermes.post(CHAT, json=said("Halo", **more))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


@pytest.fixture
def demo(demo_server: Served) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{demo_server.url}/v1", api_key="none", timeout=120, max_retries=0) as client:
        yield client


@pytest.mark.model
@pytest.mark.parametrize("seed", range(3))
def test_the_official_client_forces_inputs_of_a_grammar(demo: OpenAI, seed: int) -> None:
    plate: Any = custom("plate", "regex", PLATE)
    query: Any = custom("query", "lark", SQL)
    asked: dict[str, Any] = {
        "model": "demo",
        "messages": [{"role": "user", "content": "Which car?"}],
        "tools": [plate, query, WEATHER],
        "temperature": 1.5,
        "seed": seed,
        "max_tokens": 200,
    }
    create: Any = demo.chat.completions.create
    for name in ("plate", "query"):
        answer = create(**asked, tool_choice=chosen(name))
        [made] = answer.choices[0].message.tool_calls or []
        assert made.type == "custom" and made.custom.name == name
        assert_in_language(name, made.custom.input)
        pieces = []
        for chunk in create(**asked, tool_choice=chosen(name), stream=True):
            for delta in chunk.choices[0].delta.tool_calls or ():
                pieces.append(delta.model_dump()["custom"]["input"])
        assert "".join(pieces) == made.custom.input


def assert_in_language(name: str, text: str) -> None:
    if name == "plate":
        assert re.fullmatch(PLATE, text)
    else:
        assert re.fullmatch(r'SELECT [a-z]+(,[a-z]+)* FROM "[a-z]{1,8}"\n', text) and InputReader(
            InputFormat("lark", SQL)
        ).takes(text)


@pytest.mark.model
def test_a_call_is_required_of_allowed_tools_only(demo: OpenAI) -> None:
    allowed: Any = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [chosen("plate"), chosen("query")]},
    }
    found = set()
    for seed in range(6):
        answer = demo.chat.completions.create(
            model="demo",
            messages=[{"role": "user", "content": "What is the weather in Solo?"}],
            tools=[custom("plate", "regex", PLATE), custom("query", "lark", SQL), WEATHER],  # type: ignore[list-item]
            tool_choice=allowed,
            parallel_tool_calls=False,
            temperature=2,
            seed=seed,
            max_tokens=200,
        )
        [made] = answer.choices[0].message.tool_calls or []
        assert made.type == "custom"
        assert_in_language(made.custom.name, made.custom.input)
        found.add(made.custom.name)
    assert found <= {"plate", "query"}


@pytest.mark.model
def test_a_free_choice_is_held_to_the_grammar(demo: OpenAI) -> None:
    """The demo model calls the tool that fits the question; its input would be JSON of a city, and must be a plate."""
    tool: Any = custom("get_weather", "regex", PLATE)
    answer = demo.chat.completions.create(
        model="demo",
        messages=[{"role": "user", "content": "What is the weather in Bandung?"}],
        tools=[tool],
        temperature=0,
        max_tokens=200,
    )
    [made] = answer.choices[0].message.tool_calls or []
    assert made.type == "custom" and re.fullmatch(PLATE, made.custom.input)


@pytest.mark.model
@pytest.mark.parametrize(("syntax", "definition"), [("lark", "start: unknown"), ("regex", "(a"), ("lark", "")])
def test_a_grammar_that_is_none_is_named(demo_server: Served, syntax: str, definition: str) -> None:
    tools = [WEATHER, custom("a", syntax, definition)]
    with httpx2.Client(base_url=demo_server.url, timeout=60) as http:
        for choice in ("auto", "required"):
            answer = http.post(CHAT, json=said("Halo", tools=tools, tool_choice=choice))
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["param"] == "tools.1.custom.format.grammar.definition"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (r'{"input": "a\\\"\n\u00e9\ud83d\ude00\\ud83d\\"}', 'a\\"\né😀\\ud83d\\'),
        (r'{"input": "half \ud83d and \q \uzzzzz"}', "half � and q \\uzzzzz"),
        (r'{"input": "x", "more": 1}', "x"),
        ('["input"]', '["input"]'),
        ("", ""),
    ],
)
def test_inputs_arrive_in_pieces_of_any_size(arguments: str, text: str, size: int) -> None:
    reader = CustomInput()
    pieces = [reader.add(arguments[at : at + size]) for at in range(0, len(arguments), size)]
    assert "".join([*pieces, reader.end()]) == text
