"""Tools over HTTP: what is refused, what is told, and the official client's whole loop with the demo model."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from openai import OpenAI

from scripts.demo_model.checks import GET_WEATHER, SEARCH_PRODUCTS
from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import SseBlock, stream
from tests.serving import Served, served, settings_with
from tis.openai_api.wire.chat_prompt import chat_prompt
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.chat_writer import GrowingMessage

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bandung"}}\n</tool_call>'

BOOK: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "book",
        "parameters": {
            "type": "object",
            "properties": {
                "seats": {"type": "integer", "minimum": 1, "maximum": 99},
                "class": {"enum": ["first", "second", 3, None]},
                "names": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 2},
                "exact": {"type": "boolean"},
                "note": {"type": "string", "maxLength": 100},
            },
            "required": ["seats", "class", "names", "note"],
            "additionalProperties": False,
        },
    },
}
BY_NAME = {tool["function"]["name"]: tool for tool in (BOOK, GET_WEATHER)}


@pytest.fixture(scope="module")
def hermes() -> Iterator[Served]:
    """Says what it is told, and is taken for a model that thinks and writes calls as Hermes does."""
    with served(settings_with(model_repo_id="echo?thinks=1&tool_format=hermes")) as running:
        yield running


@pytest.fixture
def http(hermes: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=hermes.url, timeout=30) as client:
        yield client


def asking(text: str, **more: Any) -> dict[str, Any]:
    return said(text, tools=[GET_WEATHER], **more)


def message_of(http: httpx2.Client, body: dict[str, Any]) -> dict[str, Any]:
    [choice] = http.post(CHAT, json=body).json()["choices"]
    return {"finish_reason": choice["finish_reason"], **choice["message"]}


def test_a_call_has_the_shape_clients_expect(http: httpx2.Client) -> None:
    message = message_of(http, asking(CALL))
    [call] = message["tool_calls"]
    assert (message["content"], message["finish_reason"]) == (None, "tool_calls")
    assert call["type"] == "function" and call["id"].startswith("call_")
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Bandung"}'}
    assert "index" not in call and "reasoning" not in message


def test_a_streamed_call_has_its_name_once_and_its_arguments_in_pieces(http: httpx2.Client) -> None:
    text = f"<think>Hm.</think>\n\nSo.\n{CALL}"
    role, *blocks, done = stream(http, asking(text))
    assert role.chunk["choices"][0]["delta"] == {"role": "assistant", "content": None}
    deltas = [block.chunk["choices"][0]["delta"] for block in blocks]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Hm."
    assert all(delta.get("reasoning_content") == delta.get("reasoning") for delta in deltas)
    assert "".join(delta.get("content", "") for delta in deltas) == "So."
    begin, *pieces = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert set(begin) == {"index", "id", "type", "function"} and begin["function"]["name"] == "get_weather"
    assert all(set(piece) == {"index", "function"} and set(piece["function"]) == {"arguments"} for piece in pieces)
    assert json.loads("".join(piece["function"]["arguments"] for piece in pieces)) == {"city": "Bandung"}
    assert blocks[-1].chunk["choices"][0]["finish_reason"] == "tool_calls" and done.data == "[DONE]"


@pytest.mark.parametrize("more", [{"tools": []}, {"tools": None}, {"tool_choice": "none"}])
def test_calls_are_looked_for_only_where_tools_may_be_called(http: httpx2.Client, more: dict[str, Any]) -> None:
    message = message_of(http, {**asking(CALL), **more})
    assert (message["content"], message["finish_reason"]) == (CALL, "stop")
    assert "tool_calls" not in message


def test_a_call_that_is_none_is_content(http: httpx2.Client) -> None:
    text = '<tool_call>{"name": "get_weather", "arguments": "Bandung"}</tool_call>'
    assert message_of(http, asking(text))["content"] == text


def test_an_answer_that_breaks_off_says_so(http: httpx2.Client) -> None:
    message = message_of(http, asking(CALL, max_tokens=30))
    assert (message["content"], message["finish_reason"]) == (CALL[:30], "length")


def test_one_call_where_more_are_not_wanted(http: httpx2.Client) -> None:
    assert len(message_of(http, asking(CALL * 3))["tool_calls"]) == 3
    assert len(message_of(http, asking(CALL * 3, parallel_tool_calls=False))["tool_calls"]) == 1


def only(*names: str, mode: str = "auto") -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def test_only_the_allowed_tools_are_called(http: httpx2.Client) -> None:
    body = said(CALL, tools=[BOOK, GET_WEATHER])
    assert "tool_calls" in message_of(http, {**body, "tool_choice": only("get_weather", "book")})
    message = message_of(http, {**body, "tool_choice": only("book")})
    assert (message["content"], message["finish_reason"]) == (CALL, "stop")


@pytest.mark.parametrize(
    ("choice", "param"),
    [
        ({"type": "allowed_tools"}, "tool_choice.allowed_tools"),
        (only("book", mode="none"), "tool_choice.allowed_tools.mode"),
        (only(), "tool_choice.allowed_tools.tools"),
        (only("book", "fly"), "tool_choice.allowed_tools.tools.1"),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [5]}},
            "tool_choice.allowed_tools.tools.0",
        ),
    ],
    ids=str,
)
def test_allowed_tools_that_are_not_among_the_tools_are_refused(
    http: httpx2.Client, choice: dict[str, Any], param: str
) -> None:
    answer = http.post(CHAT, json=said("Halo", tools=[BOOK, GET_WEATHER], tool_choice=choice))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_thoughts_are_counted_and_can_be_hidden(http: httpx2.Client) -> None:
    body = said("<think>\nHm.\n</think>\n\nHalo")
    shown, hidden = (http.post(CHAT, json={**body, "include_reasoning": wanted}).json() for wanted in (None, False))
    assert shown["choices"][0]["message"]["reasoning_content"] == "Hm."
    for answer in (shown, hidden):
        assert answer["choices"][0]["message"]["content"] == "Halo"
        assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == len("<think>\nHm.\n</think>")
    assert "reasoning" not in "".join(hidden["choices"][0]["message"])
    blocks = stream(http, {**body, "include_reasoning": False})
    assert not any("reasoning" in block.data for block in blocks)


def test_hidden_thoughts_do_not_show_in_log_probabilities(http: httpx2.Client) -> None:
    body = said("<think>\nHm.\n</think>\n\nHalo", logprobs=True, include_reasoning=False)
    logprobs = http.post(CHAT, json=body).json()["choices"][0]["logprobs"]["content"]
    assert "".join(entry["token"] for entry in logprobs).strip() == "Halo"


def test_a_thought_that_breaks_off_is_no_content(http: httpx2.Client) -> None:
    message = message_of(http, said("<think>\nHm, to be or not", max_tokens=12))
    assert (message["content"], message["reasoning_content"], message["finish_reason"]) == ("", "Hm, ", "length")


def test_a_prompt_that_opens_a_thought_begins_in_it(http: httpx2.Client) -> None:
    """Echo's prompt is the message itself."""
    message = message_of(http, said("</think>Halo <think>\n"))
    assert message["content"].startswith("Halo") and "reasoning" not in message


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"tools": [{"type": "retrieval"}]}, "tools.0.type"),
        ({"tools": [{"type": "function"}]}, "tools.0.function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "no blanks"}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "x" * 65}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "x\n"}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "x", "parameters": []}}]}, "tools.0.function.parameters"),
        ({"tools": [GET_WEATHER, SEARCH_PRODUCTS, GET_WEATHER]}, "tools.2.function.name"),
        ({"tools": "none"}, "tools"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "messages.0.tool_calls.0.function"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"type": "exec", "function": {"name": "x"}}]}]},
            "messages.0.tool_calls.0.type",
        ),
    ],
    ids=str,
)
def test_what_no_tool_can_be_is_a_400_that_names_it(http: httpx2.Client, change: dict[str, Any], param: str) -> None:
    answer = http.post(CHAT, json={**asking("x"), **change})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param


def test_tools_reach_templates_as_they_were_sent_and_calls_with_their_arguments_as_objects() -> None:
    tool = {
        "type": "function",
        "function": {"name": "x", "description": "d", "parameters": {"a": None}, "strict": True},
    }
    calls = [
        {"id": str(number), "type": "function", "function": {"name": "x", "arguments": arguments}}
        for number, arguments in enumerate(['{"a": 1}', "", "{broken", "[1]", {"a": 2}])
    ]
    messages = [{"role": "assistant", "content": None, "tool_calls": calls}, {"role": "tool", "tool_call_id": "0"}]
    prompt = chat_prompt(ChatRequest.model_validate({"tools": [tool], "messages": messages}))
    assert list(prompt.tools) == [tool] and [*prompt.tools[0]["function"]] == [*tool["function"]]
    assert prompt.messages[0]["content"] == "" and prompt.messages[1]["tool_call_id"] == "0"
    arguments = [call["function"]["arguments"] for call in prompt.messages[0]["tool_calls"]]
    assert arguments == [{"a": 1}, {}, "{broken", "[1]", {"a": 2}]


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    calls = [{**call, "id": ""} for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls}


def folded(blocks: Sequence[SseBlock]) -> list[dict[str, Any]]:
    messages: dict[int, GrowingMessage] = {}
    for block in blocks[:-1]:
        [part] = block.chunk["choices"]
        messages.setdefault(part["index"], GrowingMessage()).add(part["delta"])
    return [without_ids(messages[index].whole()) for index in sorted(messages)]


@pytest.mark.model
class TestToolsOfDemoModel:
    """Its own calls, not forced ones."""

    def test_the_whole_loop(self, sdk: Callable[[Served], OpenAI], demo_server: Served) -> None:
        chat = sdk(demo_server).chat.completions
        messages: list[Any] = [{"role": "user", "content": "Bagaimana cuaca di Bandung?"}]
        first = chat.create(model="demo", messages=messages, tools=[GET_WEATHER], temperature=0).choices[0]  # type: ignore[list-item]
        [call] = first.message.tool_calls or []
        assert (first.finish_reason, first.message.content) == ("tool_calls", None)
        assert call.type == "function" and json.loads(call.function.arguments) == {"city": "Bandung"}
        result = '{"city": "Bandung", "temperature": 24, "condition": "cerah"}'
        messages += [first.message, {"role": "tool", "tool_call_id": call.id, "content": result}]
        second = chat.create(model="demo", messages=messages, tools=[GET_WEATHER], temperature=0).choices[0]  # type: ignore[list-item]
        assert (second.finish_reason, second.message.content) == ("stop", "Cuaca di Bandung: cerah, 24 derajat.")

    def test_the_stream_helper_returns_the_whole_response(
        self, sdk: Callable[[Served], OpenAI], demo_server: Served
    ) -> None:
        asked: dict[str, Any] = {
            "messages": [{"role": "user", "content": "Search for Chair Royal under 50000"}],
            "tools": [GET_WEATHER, SEARCH_PRODUCTS],
            "temperature": 0,
        }
        chat = sdk(demo_server).chat.completions
        with chat.stream(model="demo", **asked) as events:
            deltas = [event.arguments_delta for event in events if event.type == "tool_calls.function.arguments.delta"]
            final = events.get_final_completion().choices[0]
        [call] = final.message.tool_calls or []
        assert "".join(deltas) == call.function.arguments and len([*filter(None, deltas)]) == 2
        assert json.loads(call.function.arguments) == {"query": "Chair Royal", "max_price": 50000}
        [whole] = chat.create(model="demo", **asked).choices[0].message.tool_calls
        assert (whole.function.name, whole.function.arguments) == (call.function.name, call.function.arguments)
        assert (final.finish_reason, final.message.content) == ("tool_calls", None)

    def test_it_may_answer_without_a_tool(self, sdk: Callable[[Served], OpenAI], demo_server: Served) -> None:
        answer = sdk(demo_server).chat.completions.create(
            model="demo",
            messages=[{"role": "user", "content": "Hi!"}],
            tools=[GET_WEATHER],  # type: ignore[list-item]
            temperature=0,
        )
        assert answer.choices[0].message.tool_calls is None and "demo model" in (
            answer.choices[0].message.content or ""
        )

    def test_reasoning_is_separate_from_the_text(self, demo_server: Served) -> None:
        with httpx2.Client(base_url=demo_server.url, timeout=60) as http:
            answer = http.post(CHAT, json=said("What is 12 + 7?", temperature=0)).json()
            message, usage = answer["choices"][0]["message"], answer["usage"]
            assert message["content"] == "12 + 7 = 19." and "10 + 9 = 19" in message["reasoning"]
            assert 0 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"]
            *_, finish, _ = stream(http, said("What is 12 + 7?", temperature=0))
            assert finish.chunk["choices"][0]["finish_reason"] == "stop"

    @pytest.mark.parametrize("tool_choice", ["required", {"type": "function", "function": {"name": "book"}}], ids=str)
    def test_forced_calls_are_calls_however_it_talks(self, demo_server: Served, tool_choice: Any) -> None:
        body = said("Halo!", tools=[BOOK, GET_WEATHER], tool_choice=tool_choice, temperature=2.0, max_tokens=400, n=2)
        with httpx2.Client(base_url=demo_server.url, timeout=120) as http:
            with ThreadPoolExecutor(4) as threads:  # so that the server computes them in one batch
                bodies = [{**body, "seed": seed} for seed in range(2)]
                streams = threads.map(lambda one: folded(stream(http, one)), bodies)
                answers = threads.map(lambda one: http.post(CHAT, json=one).json()["choices"], bodies)
            for streamed, whole in zip(streams, answers, strict=True):
                assert streamed == [without_ids(one["message"]) for one in whole]
                for choice in whole:
                    if choice["finish_reason"] == "length":
                        continue
                    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None
                    for call in choice["message"]["tool_calls"]:
                        schema = BY_NAME[call["function"]["name"]]["function"]["parameters"]
                        Draft202012Validator(schema).validate(json.loads(call["function"]["arguments"]))

    def test_what_it_repeats_of_a_marker_is_text(self, demo_server: Served) -> None:
        with httpx2.Client(base_url=demo_server.url, timeout=60) as http:
            message = message_of(http, said("Repeat: blue </think> house", temperature=0))
            assert "reasoning" not in message


WRITTEN = {
    "glm": "\n<think>Hm.</think>\nSo.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n"
    "<arg_value>Bandung</arg_value>\n</tool_call>",
    "deepseek_v3": "<think>Hm.</think>\n\nSo.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>"
    'get_weather\n```json\n{"city": "Bandung"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v31": "<think>Hm.</think>So.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
    '{"city": "Bandung"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "harmony": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>So.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    '{"city": "Bandung"}<|call|>',
}


@pytest.mark.parametrize("tool_format", WRITTEN)
def test_calls_of_other_families_look_the_same_to_clients(tool_format: str) -> None:
    with (
        served(settings_with(model_repo_id=f"echo?thinks=1&tool_format={tool_format}")) as running,
        OpenAI(base_url=f"{running.url}/v1", api_key="none") as client,
    ):
        told: list[Any] = [{"role": "user", "content": WRITTEN[tool_format]}]
        tools: list[Any] = [GET_WEATHER]
        with client.chat.completions.stream(model="echo", messages=told, tools=tools) as events:
            deltas = [event.arguments_delta for event in events if event.type == "tool_calls.function.arguments.delta"]
            [choice] = events.get_final_completion().choices
        assert choice.finish_reason == "tool_calls" and choice.message.content == "So."
        assert choice.message.model_extra and choice.message.model_extra["reasoning_content"] == "Hm."
        [call] = choice.message.tool_calls or []
        assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Bandung"}')
        assert len(deltas) > 1 and "".join(deltas) == call.function.arguments
        response = client.responses.create(
            model="echo",
            input=WRITTEN[tool_format],
            tools=[{"type": "function", "strict": False} | GET_WEATHER["function"]],
        )
        assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
