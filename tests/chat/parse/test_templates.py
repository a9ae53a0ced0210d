"""A turn of the assistant, printed as its model's template prints it and parsed back, is the turn it was."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.utils.chat_template_utils import render_jinja_template

from tests.chat.parse.parsing import as_tokens, parse, parser_config
from tests.serving import REPOSITORY
from tis.chat.parse.config import ParserConfig
from tis.chat.parts import ArgumentsDelta, Part, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from tis.engine.text.markers import ToolFormat

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "price": {"type": "number"},
        "exact": {"type": "boolean"},
        "tags": {"type": "array"},
        "where": {"type": "object"},
    },
}
TOOLS: dict[str, dict[str, Any]] = {"order": PARAMETERS, "get_weather": PARAMETERS}

# Only what a turn consists of: the templates of the models print the same, as of 2026 in the sources of vLLM and
# llama.cpp.
_THOUGHT = "{% if message.reasoning_content %}<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}"
_EACH_CALL = "{% for call in message.tool_calls %}{% set call = call.function %}"
_HERMES = (
    _THOUGHT + "{{ message.content }}" + _EACH_CALL + "{{ '\n' if message.content or not loop.first }}"
    '<tool_call>\n{"name": "{{ call.name }}", "arguments": {{ call.arguments | tojson }}}\n</tool_call>{% endfor %}'
)
_XML = (
    "{{ message.content }}{{ '\n' if message.content }}" + _EACH_CALL + "{{ '\n' }}"
    "<tool_call>\n<function={{ call.name }}>\n{% for key, value in call.arguments|items %}<parameter={{ key }}>\n"
    "{{ value | tojson if value is mapping or (value is sequence and value is not string) else value | string }}\n"
    "</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}"
)
_LLAMA = _EACH_CALL + '{"name": "{{ call.name }}", "parameters": {{ call.arguments | tojson }}}{% endfor %}'
_MISTRAL = (
    "{{ message.content }}[TOOL_CALLS] [{% for call in message.tool_calls %}{{ (call.function | tojson)[:-1] }}, "
    '"id": "{{ call.id }}"}{{ ", " if not loop.last }}{% endfor %}]'
)
_NEWER_MISTRAL = (
    "{{ message.content }}" + _EACH_CALL + "[TOOL_CALLS]{{ call.name }}[ARGS]{{ call.arguments | tojson }}{% endfor %}"
)
_MISTRAL_WITH_IDS = _NEWER_MISTRAL.replace("[ARGS]", "[CALL_ID]abcdefghi[ARGS]")
_JSON = "[{% for call in message.tool_calls %}{{ call.function | tojson }}{{ ', ' if not loop.last }}{% endfor %}]"


@dataclass(frozen=True)
class TemplateFamily:
    tool_format: ToolFormat
    template: str
    has_text: bool = True
    thinks: bool = False
    max_calls: int = 3
    is_xml: bool = False


FAMILIES = {
    "Hermes and Qwen": TemplateFamily("hermes", _HERMES, thinks=True),
    "Qwen-Coder": TemplateFamily("hermes", _XML, is_xml=True),
    "Llama": TemplateFamily("llama", _LLAMA, has_text=False, max_calls=1),
    "Llama, with its marker": TemplateFamily("llama", "<|python_tag|>" + _LLAMA, has_text=False, max_calls=1),
    "Mistral": TemplateFamily("mistral", _MISTRAL),
    "newer Mistral": TemplateFamily("mistral", _NEWER_MISTRAL),
    "Mistral with ids of calls": TemplateFamily("mistral", _MISTRAL_WITH_IDS),
    "plain JSON": TemplateFamily("json", _JSON, has_text=False),
}

WORDS = st.text(st.sampled_from("abc é😀.,:!\n\t"), max_size=60).map(str.strip)
# Text between tags cannot be escaped, so it has no tags in it.
XML_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<\ue000"), max_size=100)
TEXT = XML_TEXT | st.sampled_from(
    ["</tool_call>", "<tool_call>\n{", '"}}]', "</think>", "[TOOL_CALLS]", "[ARGS]", "\\"]
)


def values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | text
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=3), max_leaves=6
    )


def arguments(text: st.SearchStrategy[str], nested: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    optional = {
        "city": text,
        "days": st.integers(-(2**40), 2**40),
        "price": st.floats(-1e9, 1e9).filter(lambda number: not number.is_integer()),
        "exact": st.booleans(),
        "tags": st.lists(nested, max_size=6),
        "where": st.dictionaries(text, nested, max_size=4),
    }
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def turns(draw: st.DrawFn, family: TemplateFamily) -> dict[str, Any]:
    text = XML_TEXT if family.is_xml else TEXT
    given_arguments = arguments(text, values(text))
    calls = [
        {
            "id": "abcdefghi",
            "type": "function",
            "function": {"name": draw(st.sampled_from([*TOOLS])), "arguments": draw(given_arguments)},
        }
        for _ in range(draw(st.integers(1, family.max_calls)))
    ]
    content = draw(WORDS) if family.has_text else ""
    reasoning = draw(WORDS) if family.thinks else ""
    return {"role": "assistant", "content": content, "reasoning_content": reasoning, "tool_calls": calls}


def rendered(template: str, message: dict[str, Any]) -> str:
    [text], _ = render_jinja_template(
        conversations=[[message]], chat_template=f"{{% for message in messages %}}{template}{{% endfor %}}"
    )
    return str(text)


def turn_of(parts: list[Part]) -> dict[str, Any]:
    """The content of parts as one message. Checks their order."""
    kinds = [type(part) for part in parts]
    calls = [
        {"name": part.name, "arguments": _arguments_of(parts[at:], part.index)}
        for at, part in enumerate(parts)
        if isinstance(part, ToolCallStart)
    ]
    num_texts = len(kinds) - kinds.count(ToolCallStart) - kinds.count(ToolCallEnd) - kinds.count(ArgumentsDelta)
    assert kinds[:num_texts] == [kind for kind in (ReasoningDelta, TextDelta) if kind in kinds]
    return {
        "reasoning_content": "".join(part.text for part in parts if isinstance(part, ReasoningDelta)),
        "content": "".join(part.text for part in parts if isinstance(part, TextDelta)),
        "tool_calls": [{**call, "arguments": json.loads(call["arguments"])} for call in calls],
    }


def _arguments_of(parts: list[Part], index: int) -> str:
    return "".join(part.text for part in parts if isinstance(part, ArgumentsDelta) and part.index == index)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=15)
@given(data=st.data(), marked=st.booleans())
def test_a_turn_is_parsed_as_what_its_template_printed(name: str, data: st.DataObject, marked: bool) -> None:
    family = FAMILIES[name]
    message = data.draw(turns(family))
    config, text, parts = printed_and_parsed(family, message, marked)
    assert parse(config, *text) == parts
    # A cut at each character costs the square of the length: the test below makes them all in a short turn.
    every = len(text) // 20 + 1
    for at in range(data.draw(st.integers(0, every - 1)), len(text) + 1, every):
        assert parse(config, text[:at], text[at:]) == parts


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("marked", [False, True])
def test_a_turn_is_parsed_however_it_is_cut(name: str, marked: bool) -> None:
    family = FAMILIES[name]
    text = "é😀\n" if family.is_xml else '😀"}}]\n</tool_call>[ARGS]\\'
    orders = [
        {"city": text, "days": -12, "price": 0.5, "exact": True, "tags": ["", [1, None]], "where": {"a": {"b": "c"}}},
        {"city": "", "tags": [], "where": {}},
        {},
    ]
    message = {
        "role": "assistant",
        "content": "So, é😀." if family.has_text else "",
        "reasoning_content": "Hm.\n\nOh." if family.thinks else "",
        "tool_calls": [
            {"id": "abcdefghi", "type": "function", "function": {"name": tool, "arguments": given_arguments}}
            for tool, given_arguments in [*zip(["order", "get_weather", "order"], orders, strict=True)][
                : family.max_calls
            ]
        ],
    }
    config, text, parts = printed_and_parsed(family, message, marked)
    for at in range(len(text) + 1):
        assert parse(config, text[:at], text[at:]) == parts


def printed_and_parsed(
    family: TemplateFamily, message: dict[str, Any], marked: bool
) -> tuple[ParserConfig, str, list[Part]]:
    """The turn as its template prints it, and what the parser reads in it: the turn."""
    config = parser_config(family.tool_format, marked=marked, tools=TOOLS)
    text = _with_marker_tokens(rendered(family.template, message), message, marked, family)
    parts = parse(config, text)
    assert turn_of(parts) == {
        "reasoning_content": message["reasoning_content"],
        "content": message["content"],
        "tool_calls": [call["function"] for call in message["tool_calls"]],
    }
    return config, text, parts


def _with_marker_tokens(text: str, message: dict[str, Any], marked: bool, family: TemplateFamily) -> str:
    """The markers of the template as single tokens. A model spells those within arguments."""
    if not marked:
        return text
    spelled = "\ue000"
    strings = ["</tool_call>", "<tool_call>", "</think>", "[TOOL_CALLS]", "[ARGS]"]
    inner = rendered(family.template, _replaced(message, strings, spelled))
    text = as_tokens(inner, parser_config(family.tool_format, marked=True))
    for number, string in enumerate(strings):
        text = text.replace(f"{spelled}{number}", string)
    return text


def _replaced(node: Any, strings: list[str], spelled: str) -> Any:
    match node:
        case str():
            for number, string in enumerate(strings):
                node = node.replace(string, f"{spelled}{number}")
            return node
        case list():
            return [_replaced(one, strings, spelled) for one in node]
        case dict():
            return {_replaced(key, strings, spelled): _replaced(value, strings, spelled) for key, value in node.items()}
    return node


@settings(max_examples=15)
@given(turns(FAMILIES["Hermes and Qwen"]))
def test_the_template_of_the_demo_model_prints_what_the_parser_reads(message: dict[str, Any]) -> None:
    template = (REPOSITORY / "models" / "demo" / "chat_template.jinja").read_text()
    conversation = [{"role": "user", "content": "Halo"}, message]
    [text], _ = render_jinja_template(conversations=[conversation], chat_template=template)
    text = text.rpartition("<|im_start|>assistant\n")[2].removesuffix("<|im_end|>\n")
    parts = parse(parser_config(tools=TOOLS), text)
    assert turn_of(parts)["tool_calls"] == [call["function"] for call in message["tool_calls"]]
    assert parse(parser_config(tools=TOOLS), *text) == parts
