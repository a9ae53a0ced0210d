"""The parser finds the parts of an answer, however its text is cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.parse.parsing import as_tokens, call, cut, feed, parse, parser_config
from tis.chat.parse.config import ParserConfig
from tis.chat.parts import ArgumentsDelta, Part, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from tis.engine.text.markers import TOOL_FORMATS

WEATHER = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bandung"}}\n</tool_call>'
FRAGMENTS = [
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<", "</", "tool_call>", "\n", " ", "Halo", "{", "}", '"'),
    *('{"name": "get_weather", "arguments": {"city": "Ban', '"days": "3"', ", ", ": ", "[", "]", ";", "\\", "é😀"),
    *(WEATHER, '{"name": "now"}', '{"name": "nobody", ', '"arguments": ', '"parameters": {}', "[TOOL_CALLS]", "now"),
    *(
        "<|python_tag|>",
        "[ARGS]",
        "x" * 70,
        "<tool_call><function=get_weather>",
        "<parameter=city>",
        "</parameter>",
        "</function>",
        "null",
    ),
    *("get_weather\n", "<arg_key>", "city</arg_key>", "<arg_value>", "Bandung</arg_value>", "days</arg_key>"),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "function<｜tool▁sep｜>", "```json\n", "\n```"),
    *("<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<|channel|>", "<|message|>", "<|end|>", "<|start|>assistant"),
    *("analysis", "commentary to=functions.get_weather ", "<|constrain|>json", "<|call|>", "<|return|>", "final"),
]
ANSWERS = [
    f"<think>\nHm.\n</think>\n\nLet me see.\n{WEATHER}\n{WEATHER}\nSo.",
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bandung", "days": "3", "a": [[1]]}}\n</tool_call>',
    '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Bandung"}}, {"name": "now"}]',
    '[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{"city": "Bandung"}[TOOL_CALLS]now[ARGS]{}',
    '<|python_tag|>{"name": "get_weather", "parameters": {"city": "x\\"y"}}; {"name": "now", "parameters": {}}',
    '{"arguments": "{\\"city\\": \\"Bandung\\"}", "name": "get_weather"}',
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nBandung\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
    f"<parameter=code>\n{'print(1)' * 12}\n\n</parameter>\n</function>\n</tool_call>",
    '<tool_call>{"name": "get_weather", "arguments": {"city": "%s", "days": 3}}</tool_call>' % ("long \n " * 20),
]
ANSWERS += [
    "\n<think>Hm</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Ban\n</arg_value>\n"
    "<arg_key>days</arg_key><arg_value>3</arg_value>\n</tool_call>\n<tool_call>now</tool_call>\nSo.",
    f"<tool_call>now\n<arg_key>code</arg_key>\n<arg_value>{'print(1)' * 12}</arg_value>\n</tool_call>",
    "So.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
    '{"city": "Bandung"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```'
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{"a": [1]}<｜tool▁call▁end｜><｜tool▁call▁begin｜>'
    "get_weather<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>Done",
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather "
    '<|constrain|>json<|message|>{"city": "Bandung", "days": "3"}<|call|><|start|>assistant to=functions.now'
    "<|channel|>commentary json<|message|><|call|>",
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Halo <b>!<|return|>",
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)
CONFIGS = [
    parser_config(tool_format, marked=marked, **more)
    for tool_format in (None, *TOOL_FORMATS)
    for marked in (False, True)
    for more in ({}, {"starts_in_reasoning": True}, {"one_call": True}, {"reasoning": None})
]


@given(TEXTS, st.lists(st.integers(min_value=0)), st.sampled_from(CONFIGS))
def test_any_cut_gives_the_same_parts(text: str, at: list[int], config: ParserConfig) -> None:
    text = as_tokens(text, config)
    assert parse(config, *cut(text, at)) == parse(config, *text) == parse(config, text)


@st.composite
def nearly_calls(draw: st.DrawFn) -> str:
    """An answer with tool calls, with a few of its letters changed."""
    text = draw(st.sampled_from(ANSWERS))
    for _ in range(draw(st.integers(0, 4))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
        text = text[:at] + draw(st.sampled_from(FRAGMENTS)) + text[at + length :]
    return text


@given(nearly_calls(), st.lists(st.integers(min_value=0), max_size=4), st.sampled_from(CONFIGS))
def test_any_cut_of_nearly_valid_calls_gives_the_same_parts(text: str, at: list[int], config: ParserConfig) -> None:
    text = as_tokens(text, config)
    assert parse(config, *cut(text, at)) == parse(config, *text) == parse(config, text)


@given(TEXTS, st.sampled_from(CONFIGS))
def test_parts_can_be_encoded_and_every_call_that_starts_ends(text: str, config: ParserConfig) -> None:
    parts = parse(config, *as_tokens(text, config))
    begun = [part.index for part in parts if isinstance(part, ToolCallStart)]
    assert begun == [part.index for part in parts if isinstance(part, ToolCallEnd)] == list(range(len(begun)))
    for part in parts:
        if isinstance(part, TextDelta | ReasoningDelta | ArgumentsDelta):
            assert part.text.encode()


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=90) | st.sampled_from(
    ["</tool_call>", "<think>", "}"]
)
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4), st.sampled_from([None, 2]), st.booleans(), st.lists(st.integers(0)))
def test_arguments_of_any_json_are_parsed(
    arguments: dict[str, Any], indent: int | None, plain: bool, at: list[int]
) -> None:
    written = json.dumps({"name": "now", "arguments": arguments}, indent=indent, ensure_ascii=plain)
    for config in (parser_config(), parser_config(marked=True)):
        text = f"{config.spelled('<tool_call>')}\n{written}\n{config.spelled('</tool_call>')}"
        _, delta, _ = parse(config, *cut(text, at))
        assert isinstance(delta, ArgumentsDelta) and json.loads(delta.text) == arguments


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Halo!", [TextDelta("Halo!")]),
        ("  Halo <b>you</b> \n", [TextDelta("  Halo <b>you</b> \n")]),
        ("<think>\nHm.\nYes.\n</think>\n\nHalo", [ReasoningDelta("Hm.\nYes."), TextDelta("Halo")]),
        ("<think>\n\n</think>\n\nHalo", [TextDelta("Halo")]),
        ("\n<think>Hm", [ReasoningDelta("Hm")]),
        ("<think>Hm\n", [ReasoningDelta("Hm\n")]),
        ("<think>a</think>\n<think>b</think>c", [ReasoningDelta("ab"), TextDelta("c")]),
        (f"<think>Hm</think>\n\n{WEATHER}", [ReasoningDelta("Hm"), *call("get_weather", '{"city": "Bandung"}')]),
        (WEATHER, call("get_weather", '{"city": "Bandung"}')),
        (f"Let me see.\n\n{WEATHER}\n", [TextDelta("Let me see."), *call("get_weather", '{"city": "Bandung"}')]),
        (
            f"{WEATHER}\n{WEATHER}\nDone",
            [
                *call("get_weather", '{"city": "Bandung"}'),
                *call("get_weather", '{"city": "Bandung"}', 1),
                TextDelta("Done"),
            ],
        ),
        ('<tool_call>{"name": "now"}</tool_call>', call("now", "{}")),
        ('<tool_call>{"name": "now", "arguments": {}}', call("now", "{}")),
        ('<tool_call>{"name": "now", "arguments": null}</tool_call>', call("now", "{}")),
        (
            '<tool_call>{"arguments": {"a": [1, {"b": 2}]}, "name": "now"}</tool_call>',
            call("now", '{"a": [1, {"b": 2}]}'),
        ),
        ('<tool_call>{"name": "now", "arguments": "{\\"a\\": 1}"}</tool_call>', call("now", '{"a": 1}')),
        ('<tool_call>{"name": "now", "arguments": {"a": 1}</tool_call>', call("now", '{"a": 1}')),
        ('<tool_call>{"name": "now", "arguments": {"a": 1}}}</tool_call>', call("now", '{"a": 1}')),
        ('<tool_call>{"name": "now", "arguments": {"a": "x\ny"}}</tool_call>', call("now", '{"a": "x\\ny"}')),
        ('<tool_call>{"name": "now"}\n{"name": "now"}</tool_call>', [*call("now", "{}"), *call("now", "{}", 1)]),
    ],
)
def test_an_answer_is_parsed_into_parts(text: str, parts: list[Part], marked: bool) -> None:
    assert parse(parser_config(marked=marked), as_tokens(text) if marked else text) == parts


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        "<tool_call></tool_call>",
        "<tool_call>Halo</tool_call> and on",
        '<tool_call>{"name": "nobody", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "get_wea',
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Ban',
        '<tool_call>{"name": "get_weather", "arguments": {"city": }}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Ban"dung"}}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": ["Bandung"]}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {"days": NaN}}</tool_call>',
        '<tool_call>{"name": 5}</tool_call>',
        '<tool_call>{"city": "Bandung"}</tool_call>',
    ],
)
def test_an_invalid_call_is_content_exactly_as_written(text: str, marked: bool) -> None:
    assert parse(parser_config(marked=marked), as_tokens(text) if marked else text) == [TextDelta(text)]


def test_a_call_without_tools_is_text() -> None:
    assert parse(parser_config(None), WEATHER) == [TextDelta(WEATHER)]


def test_a_marker_spelled_out_is_text_where_markers_are_tokens() -> None:
    text = f"<think> is a tag, </think> too, and {WEATHER}"
    assert parse(parser_config(marked=True), text) == [TextDelta(text)]
    thought = as_tokens("<think>") + "The tag </think> and <tool_call>." + as_tokens("</think>")
    assert parse(parser_config(marked=True), thought) == [ReasoningDelta("The tag </think> and <tool_call>.")]


def test_a_closing_marker_without_reasoning_is_dropped() -> None:
    assert parse(parser_config(marked=True), as_tokens("Hm.</think>Halo")) == [TextDelta("Hm.Halo")]


def test_the_prompt_may_open_the_reasoning() -> None:
    config = parser_config(starts_in_reasoning=True)
    assert parse(config, "\nHm.\n</think>\n\nHalo") == [ReasoningDelta("Hm."), TextDelta("Halo")]
    assert parse(config, "Hm, to be") == [ReasoningDelta("Hm, to be")]


def test_a_call_ends_reasoning_that_was_not_closed() -> None:
    text = as_tokens(f"<think>Hm.\n{WEATHER}")
    assert parse(parser_config(marked=True), text) == [
        ReasoningDelta("Hm."),
        *call("get_weather", '{"city": "Bandung"}'),
    ]


def test_a_call_that_becomes_invalid_after_its_start_keeps_the_written_text() -> None:
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Bandung", "days": }}</tool_call>\nHm'
    begun, arguments, _, text_part = parse(parser_config(), text)
    assert isinstance(begun, ToolCallStart) and text_part == TextDelta("Hm")
    assert isinstance(arguments, ArgumentsDelta) and arguments.text == '{"city": "Bandung", "days": }}'


def test_arguments_are_streamed() -> None:
    from tis.chat.parse.parser import AnswerParser

    parser = AnswerParser(parser_config(), 0)
    assert feed(parser, '<tool_call>{"name": "get_weather", "arguments": {"city": "Bandung"') == []
    begun, arguments = feed(parser, ', "days"')
    assert isinstance(begun, ToolCallStart) and arguments == ArgumentsDelta(0, '{"city": "Bandung"')
    assert feed(parser, ': "3", "city": "') == [ArgumentsDelta(0, ', "days": 3')]
    long = feed(parser, "x" * 100)
    assert long == [ArgumentsDelta(0, ', "city": "' + "x" * 100)]
    assert feed(parser, 'y"}}</tool_call>') == [ArgumentsDelta(0, 'y"}'), ToolCallEnd(0)]


def test_one_call_drops_the_calls_after_the_first() -> None:
    parts = parse(parser_config(one_call=True), WEATHER * 3)
    assert [type(part) for part in parts] == [ToolCallStart, ArgumentsDelta, ToolCallEnd]
    assert json.loads(parts[1].text) == {"city": "Bandung"}  # type: ignore[union-attr]


def test_call_ids_are_deterministic_and_unique() -> None:
    ids = {parser_config().call_id(choice, index) for choice in range(3) for index in range(3)}
    assert len(ids) == 9 and parser_config().call_id(0, 0) in ids
