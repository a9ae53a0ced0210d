"""Answers in a form that was asked for, over HTTP: the demo model knows little, and is held to it all the same."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, cast

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionToolParam
from pydantic import BaseModel, ConfigDict, Field

from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import stream
from tests.serving import Served

pytestmark = pytest.mark.model
Connect = Callable[[Served], OpenAI]


class PersonAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=20)
    city: Literal["Bandung", "Jakarta", "Medan"]
    age: int = Field(ge=0, le=120)
    tags: list[Literal["a", "b"]] = Field(max_length=3)


PERSON = {"name": "person", "schema": PersonAnswer.model_json_schema(), "strict": True}
QUESTION = "Answer in JSON: name and city of Sari from Bandung."
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}, "unit": {"enum": ["c", "f"]}},
            "required": ["city", "unit"],
        },
    },
}
NOTE = {"type": "function", "function": {"name": "note"}}


def asked(server: Served, text: str = QUESTION, **more: Any) -> dict[str, Any]:
    answer = httpx2.post(server.url + CHAT, json=said(text, max_tokens=300, **more), timeout=120)
    assert answer.status_code == 200, answer.text
    [choice] = answer.json()["choices"]
    assert isinstance(choice, dict)
    return choice


def calls_of(server: Served, text: str, **more: Any) -> list[tuple[str, Any]]:
    choice = asked(server, text, **more)
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    functions = [call["function"] for call in choice["message"]["tool_calls"]]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def content_of(server: Served, text: str = QUESTION, **more: Any) -> str:
    choice = asked(server, text, **more)
    assert choice["finish_reason"] == "stop"
    return str(choice["message"]["content"])


def refused(server: Served, **more: Any) -> dict[str, Any]:
    answer = httpx2.post(server.url + CHAT, json=said("Halo", **more), timeout=120)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert isinstance(error, dict)
    return error


def test_the_sdk_parses_into_a_model_of_its_own(sdk: Connect, demo_server: Served) -> None:
    answer = sdk(demo_server).chat.completions.parse(
        model="demo", messages=[{"role": "user", "content": QUESTION}], response_format=PersonAnswer, max_tokens=300
    )
    parsed = answer.choices[0].message.parsed
    assert parsed and parsed.city == "Bandung" and parsed.name


def test_the_sdk_says_that_an_answer_was_too_long(sdk: Connect, demo_server: Served) -> None:
    with pytest.raises(openai.LengthFinishReasonError):
        sdk(demo_server).chat.completions.parse(
            model="demo", messages=[{"role": "user", "content": QUESTION}], response_format=PersonAnswer, max_tokens=5
        )


@pytest.mark.parametrize("question", ["Halo!", "Tell me a short story.", "Siapa kamu?"])
@pytest.mark.parametrize("temperature", [0, 1.5])
def test_the_answer_always_matches_the_schema(demo_server: Served, question: str, temperature: float) -> None:
    wanted = {"type": "json_schema", "json_schema": {**PERSON, "strict": False}}
    body = said(question, response_format=wanted, temperature=temperature, seed=4, max_tokens=300)
    text = content_of(demo_server, question, response_format=wanted, temperature=temperature, seed=4)
    assert PersonAnswer.model_validate_json(text)
    with httpx2.Client(base_url=demo_server.url, timeout=60) as http:
        chunks = [block.chunk for block in stream(http, body)[:-1] if block.chunk]
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == text


@pytest.mark.parametrize(
    ("pattern", "means"),
    [
        (r"^\p{Lu}{2}$", lambda text: len(text) == 2 and text.isupper()),
        (r"^\p{L}{3}$", lambda text: len(text) == 3 and text.isalpha()),
        (r"^\p{Decimal_Number}{2}$", lambda text: len(text) == 2 and text.isdecimal()),
    ],
)
def test_a_pattern_may_name_unicode_classes(demo_server: Served, pattern: str, means: Callable[[str], bool]) -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string", "pattern": pattern}}, "required": ["code"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "coded", "schema": schema}}
    assert means(json.loads(content_of(demo_server, response_format=wanted))["code"])
    tool = {"type": "function", "function": {"name": "send", "parameters": schema}}
    [(_, arguments)] = calls_of(demo_server, "Halo!", tools=[tool], tool_choice="required", parallel_tool_calls=False)
    assert means(arguments["code"])


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\p{Foo}", "Unicode property not found"),
        (r"(?=a)b", "look-ahead"),
        (r"\bfoo", "lookarounds not supported"),
        (r"(a)\1", "backreferences are not supported"),
    ],
)
@pytest.mark.parametrize("in_tool", [False, True])
def test_a_pattern_that_cannot_be_enforced_is_refused_by_its_place(
    demo_server: Served, pattern: str, reason: str, in_tool: bool
) -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string", "pattern": pattern}}}
    tool = {"type": "function", "function": {"name": "send", "parameters": schema}}
    body: dict[str, Any] = (
        {"tools": [NOTE, tool], "tool_choice": "required"}
        if in_tool
        else {"response_format": {"type": "json_schema", "json_schema": {"name": "coded", "schema": schema}}}
    )
    error = refused(demo_server, **body)
    place = "tools.1.function.parameters" if in_tool else "response_format.json_schema.schema"
    assert error["param"] == f"{place}.properties.code.pattern"
    assert reason in error["message"] and repr(pattern) in error["message"]


def test_a_json_object_may_bring_its_schema(demo_server: Served) -> None:
    """As in Hugging Face TGI (`value`) and in llama.cpp (`schema`)."""
    schema = {"type": "object", "properties": {"colour": {"enum": ["merah", "biru"]}}, "required": ["colour"]}
    for name in ("value", "schema"):
        text = content_of(demo_server, response_format={"type": "json_object", name: schema}, temperature=0)
        assert json.loads(text)["colour"] in ("merah", "biru")
        error = refused(demo_server, response_format={"type": "json_object", name: {"type": "object", "not": {}}})
        assert error["param"] == f"response_format.{name}.not"
    error = refused(demo_server, response_format={"type": "json_object", "value": schema, "schema": schema})
    assert error["param"] == "response_format.schema"


def test_any_object(demo_server: Served) -> None:
    text = content_of(demo_server, response_format={"type": "json_object"}, temperature=0)
    assert json.loads(text) == {"name": "Sari", "city": "Bandung"}


@pytest.mark.parametrize(
    ("extra", "pattern"),
    [
        ({"guided_regex": "[A-Z]{3}-[0-9]{2}"}, "[A-Z]{3}-[0-9]{2}"),
        ({"guided_choice": ["merah", "biru"]}, "merah|biru"),
        ({"guided_json": json.dumps({"type": "integer", "maximum": 99, "minimum": 10})}, "[0-9]{2}"),
        ({"guided_grammar": 'start: "x" ("," "x"){2}'}, "x,x,x"),
        ({"structured_outputs": {"regex": "a{3}"}}, "aaa"),
        ({"structured_outputs": {"choice": ["ya"]}}, "ya"),
        ({"structured_outputs": {"json": {"const": [1, None]}}}, re.escape("[1, null]")),
        ({"structured_outputs": {"grammar": "start: /b{2}c/"}}, "bbc"),
        ({"structured_outputs": {"json_object": True, "regex": None}}, r"\{.*\}"),
        ({"response_format": {"type": "text"}}, "(.|\n)*"),
    ],
    ids=str,
)
def test_extras_of_vllm(demo_server: Served, extra: dict[str, Any], pattern: str) -> None:
    assert re.fullmatch(pattern, content_of(demo_server, temperature=0, **extra), re.S)


def test_a_call_of_an_allowed_tool_can_be_required(sdk: Connect, demo_server: Served) -> None:
    for name in ("get_weather", "note"):
        answer = sdk(demo_server).chat.completions.create(
            model="demo",
            messages=[{"role": "user", "content": "Halo!"}],
            tools=[cast(ChatCompletionToolParam, tool) for tool in (WEATHER, NOTE)],
            tool_choice={
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": name}}]},
            },
        )
        calls = answer.choices[0].message.tool_calls or []
        assert calls and {call.function.name for call in calls if call.type == "function"} == {name}


def test_required_and_named_tools(demo_server: Served) -> None:
    for seed in range(3):
        one_call = {"tools": [WEATHER, NOTE], "tool_choice": "required", "parallel_tool_calls": False, "seed": seed}
        [(name, _)] = calls_of(demo_server, "Halo!", **one_call)
        assert name in ("get_weather", "note")
    named = {"type": "function", "function": {"name": "get_weather"}}
    [(name, arguments)] = calls_of(
        demo_server, "What is the weather in Jakarta?", tools=[WEATHER, NOTE], tool_choice=named
    )
    assert name == "get_weather" and arguments["unit"] in ("c", "f")


@pytest.mark.parametrize(
    ("more", "param", "code"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
                "properties": {"x": {"type": "array", "uniqueItems": True}}}}}},
            "response_format.json_schema.schema.properties.x.uniqueItems", "unsupported_schema_keyword",
        ),
        ({"response_format": {"type": "json_schema"}},
         "response_format.json_schema.schema", "missing_required_parameter"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "unsupported_value"),
        ({"response_format": {"type": "json_object"}, "guided_regex": "a"}, "guided_regex", "invalid_value"),
        ({"guided_json": {}, "tools": [NOTE], "tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"guided_json": "{"}, "guided_json", "invalid_value"),
        ({"guided_json": {"$ref": "#"}}, "guided_json", "invalid_json_schema"),
        ({"guided_regex": "["}, "guided_regex", "invalid_grammar"),
        ({"structured_outputs": {"structural_tag": "{}"}}, "structured_outputs.structural_tag", "unsupported_value"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"tools": [NOTE], "tool_choice": {"type": "function", "function": {"name": "gone"}}},
         "tool_choice.function.name", "invalid_value"),
        ({"tools": [NOTE], "tool_choice": "sometimes"}, "tool_choice", "unsupported_value"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}],
          "tool_choice": "required"}, "tools.0.function.parameters.not", "unsupported_schema_keyword"),
        ({"thinking_token_budget": -1}, "thinking_token_budget", "invalid_value"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_with_its_place(
    demo_server: Served, more: dict[str, Any], param: str, code: str | None
) -> None:
    error = refused(demo_server, **more)
    assert error["param"] == param and (code is None or error["code"] == code)


def test_tools_on_auto_may_have_any_schema(demo_server: Served) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "not": {}}}}
    assert asked(demo_server, "Halo!", tools=[tool], tool_choice="auto")["finish_reason"] == "stop"


def test_echo_is_held_to_nothing(echo_server: Served) -> None:
    assert refused(echo_server, response_format={"type": "json_object"})["param"] == "response_format"


def thought_and_content(server: Served, **more: Any) -> tuple[str, str]:
    message = asked(server, "What is 12 + 7?", temperature=0, **more)["message"]
    return message.get("reasoning_content", ""), message["content"]


def test_thoughts_have_a_budget(demo_server: Served) -> None:
    """It thinks about sums."""
    thought, answer = free = thought_and_content(demo_server)
    assert thought and "19" in answer
    short, _ = thought_and_content(demo_server, thinking_token_budget=3)
    assert short and len(short) < len(thought)
    assert thought_and_content(demo_server, reasoning_effort="none")[0] == ""
    assert thought_and_content(demo_server, reasoning_effort="high") == free


def test_a_thought_comes_before_the_form(demo_server: Served) -> None:
    wanted = {"guided_json": {"type": "integer", "minimum": 0, "maximum": 99}}
    thought, answer = thought_and_content(demo_server, **wanted)
    assert thought and 0 <= int(answer) <= 99
    assert thought_and_content(demo_server, **wanted, reasoning_effort="none")[1].isdecimal()


def test_company_without_a_form_notices_nothing(demo_server: Served) -> None:
    free = [said(text, temperature=1, seed=9) for text in ("Halo!", "Tell me a short story.", "Siapa kamu?")]
    held = [
        said(f"Halo {n}", thinking_token_budget=0, response_format={"type": "json_schema", "json_schema": PERSON})
        for n in range(6)
    ]

    def text_of(body: dict[str, Any]) -> str:
        answer = httpx2.post(demo_server.url + CHAT, json=body, timeout=120).json()
        return str(answer["choices"][0]["message"]["content"])

    alone = [text_of(body) for body in free]
    with ThreadPoolExecutor(9) as pool:
        together = list(pool.map(text_of, [*held[:3], *free, *held[3:]]))
    assert together[3:6] == alone
    assert all(PersonAnswer.model_validate_json(text) for text in [*together[:3], *together[6:]])


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASK_WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Get the weather in a city", "parameters": CITY},
}


@pytest.mark.parametrize("form", [{"type": "json_object"}, {"type": "json_schema", "json_schema": PERSON}])
def test_with_a_form_and_tools_the_model_may_still_choose(demo_server: Served, form: dict[str, Any]) -> None:
    """As an agent with tools asks, whose last word is to be an object."""
    offered: dict[str, Any] = {"tools": [ASK_WEATHER], "response_format": form, "temperature": 0}
    assert calls_of(demo_server, "Bagaimana cuaca di Bandung?", **offered) == [("get_weather", {"city": "Bandung"})]
    said_so = asked(demo_server, **offered)
    assert said_so["finish_reason"] == "stop" and "tool_calls" not in said_so["message"]
    assert json.loads(said_so["message"]["content"])["city"] == "Bandung"


def test_a_call_that_has_to_be_made_goes_before_the_form_of_what_is_said(demo_server: Served) -> None:
    form = {"type": "json_schema", "json_schema": PERSON}
    calls = calls_of(demo_server, "Bandung", tools=[WEATHER], tool_choice="required", response_format=form)
    assert all(name == "get_weather" and set(arguments) == {"city", "unit"} for name, arguments in calls)
