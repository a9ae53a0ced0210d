"""The parser reads the tool call formats of each family of models."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.parse.parsing import as_tokens, call, cut, parse, parser_config
from tis.chat.parts import ArgumentsDelta, Part, ReasoningDelta, TextDelta, ToolCallEnd
from tis.engine.text.markers import ToolFormat

NOW = '{"name": "now", "arguments": {}}'
ARGUMENTS = '{"city": "Bandung", "days": 3}'
XML = "<tool_call>\n<function=get_weather>\n<parameter=city>\nBandung\n</parameter>\n{}</function>\n</tool_call>"


def expected(tool_format: ToolFormat, *arguments: str) -> list[Part]:
    calls = [call("get_weather", text, index, parser_config(tool_format)) for index, text in enumerate(arguments)]
    return [part for parts in calls for part in parts]


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    ("tool_format", "text"),
    [
        ("llama", '<|python_tag|>{"name": "get_weather", "parameters": %s}'),
        ("llama", '{"name": "get_weather", "parameters": %s}'),
        ("llama", '\n{"type": "function", "name": "get_weather", "parameters": %s}\n'),
        ("mistral", '[TOOL_CALLS] [{"name": "get_weather", "arguments": %s}]'),
        ("mistral", '[TOOL_CALLS][{"name": "get_weather", "arguments": %s, "id": "abcdefghi"}]'),
        ("mistral", "[TOOL_CALLS]get_weather[ARGS]%s"),
        ("mistral", "[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]%s"),
        ("mistral", "[TOOL_CALLS]get_weather%s"),
        ("json", '{"name": "get_weather", "arguments": %s}'),
        ("json", '[{"name": "get_weather", "arguments": %s}]'),
        ("json", '{"function": "get_weather", "parameters": %s}'),
    ],
)
def test_a_call(tool_format: ToolFormat, text: str, marked: bool) -> None:
    config = parser_config(tool_format, marked=marked)
    assert parse(config, *as_tokens(text % ARGUMENTS, config)) == expected(tool_format, ARGUMENTS)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("name", ["n" * 128, "weather.get-now_2"])
@pytest.mark.parametrize(
    ("tool_format", "text"),
    [
        ("llama", '{"name": "NAME", "parameters": {}}'),
        ("mistral", '[TOOL_CALLS] [{"name": "NAME", "arguments": {}}]'),
        ("mistral", "[TOOL_CALLS]NAME[ARGS]{}"),
        ("mistral", "[TOOL_CALLS]NAME[CALL_ID]abcdefghi[ARGS]{}"),
        ("mistral", "[TOOL_CALLS]NAME{}"),
        ("json", '{"name": "NAME", "arguments": {}}'),
        ("hermes", "<tool_call>\n<function=NAME>\n</function>\n</tool_call>"),
        ("glm", "<tool_call>NAME\n</tool_call>"),
        (
            "deepseek_v3",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\n{}\n```<｜tool▁call▁end｜>"
            "<｜tool▁calls▁end｜>",
        ),
        (
            "deepseek_v31",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ),
    ],
)
def test_a_name_may_have_128_characters_and_dots(tool_format: ToolFormat, text: str, name: str, marked: bool) -> None:
    """As Anthropic's and Ollama's clients send them."""
    config = parser_config(tool_format, marked=marked, tools={name: {}})
    written = as_tokens(text.replace("NAME", name), config)
    assert parse(config, *written) == parse(config, written) == call(name, "{}", config=config)


@pytest.mark.parametrize(
    ("tool_format", "text"),
    [
        ("llama", '<|python_tag|>{"name": "get_weather", "parameters": {}}; {"name": "get_weather"}'),
        ("mistral", '[TOOL_CALLS] [{"name": "get_weather"}, {"name": "get_weather"}]'),
        ("mistral", "[TOOL_CALLS]get_weather[ARGS]{}[TOOL_CALLS]get_weather[ARGS]{}"),
        ("json", '[{"name": "get_weather"}, {"name": "get_weather"}]'),
    ],
)
def test_two_calls(tool_format: ToolFormat, text: str) -> None:
    config = parser_config(tool_format, marked=True)
    assert parse(config, *as_tokens(text, config)) == expected(tool_format, "{}", "{}")


@pytest.mark.parametrize(
    ("tool_format", "text"),
    [
        ("json", '{"name": "Sari", "city": "Bandung"}'),
        ("json", '{"title": "get_weather"}'),
        ("json", f"Like this: {NOW}"),
        ("json", "[1, 2, 3]"),
        ("json", "{}"),
        ("llama", '{"name": "get_weather", "parameters": "none"}'),
        ("mistral", "TOOL_CALLS get_weather"),
        ("mistral", NOW),
        ("hermes", NOW),
        ("hermes", "<function=get_weather></function>"),
        ("hermes", "<tool_call>\n<function=nobody>\n</function>\n</tool_call>"),
        ("hermes", "<tool_call>\n<function=get_weather>\n<parameter=city>\nBan"),
    ],
)
def test_an_invalid_call_stays_content(tool_format: ToolFormat, text: str) -> None:
    assert parse(parser_config(tool_format), *text) == [TextDelta(text)]


def test_control_tokens_of_an_invalid_call_are_dropped() -> None:
    for tool_format, text in (("llama", "<|python_tag|>print(1)"), ("mistral", "[TOOL_CALLS]nobody[ARGS]print(1)")):
        [text_part] = parse(config := parser_config(tool_format, marked=True), as_tokens(text, config))  # type: ignore[arg-type]
        assert text_part in (TextDelta("print(1)"), TextDelta("nobodyprint(1)"))


def test_parameters_between_tags_have_the_types_of_the_schema() -> None:
    more = "<parameter=days>\n3\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n"
    text = '{"city": "Bandung", "days": 3, "exact": true}'
    assert parse(parser_config(), *XML.format(more)) == expected("hermes", text)
    assert parse(parser_config(), *XML.format("")) == expected("hermes", '{"city": "Bandung"}')
    assert parse(parser_config(), "<tool_call><function=now></function></tool_call>") == call("now", "{}")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=150), st.lists(st.integers(0)))
def test_any_text_between_tags_is_an_argument(text: str, at: list[int]) -> None:
    written = f"<tool_call>\n<function=now>\n<parameter=note>\n{text}\n</parameter>\n</function>\n</tool_call>"
    _, arguments, _ = parse(parser_config(), *cut(written, at))
    assert isinstance(arguments, ArgumentsDelta) and json.loads(arguments.text) == {"note": text}


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    "note",
    [
        "print('</parameter>') or </function>",
        "</parameter>x",
        "a </parameter>\n \n</parameters>",
        "a </parameter></parameter> b",
        "a </parameter> <parameter",
        f"{'x' * 100}</parameter>{'y' * 100}\n",
    ],
)
@given(at=st.lists(st.integers(0)))
def test_a_closing_tag_inside_a_line_is_text(marked: bool, note: str, at: list[int]) -> None:
    config = parser_config(marked=marked)
    written = f"<tool_call>\n<function=now>\n<parameter=note>\n{note}\n</parameter>\n</function>\n</tool_call>"
    _, arguments, end = parse(config, *cut(as_tokens(written, config), at))
    assert isinstance(arguments, ArgumentsDelta) and json.loads(arguments.text) == {"note": note}
    assert end == ToolCallEnd(0)


def test_many_closing_tags_inside_a_line_are_read_once() -> None:
    note = "a </parameter> " * 50_000
    written = f"<tool_call>\n<function=now>\n<parameter=note>\n{note}\n</parameter>\n</function>\n</tool_call>"
    began_at = time.thread_time()
    _, arguments, _ = parse(parser_config(), written)
    assert time.thread_time() - began_at < 2  # quadratic, it takes ten
    assert isinstance(arguments, ArgumentsDelta) and json.loads(arguments.text) == {"note": note}


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    "behind", ["</function>", "\n</function>\n", "", "\n", "<parameter=days>3</parameter></function>"]
)
def test_a_model_that_forgets_line_breaks_is_understood(behind: str, marked: bool) -> None:
    config = parser_config(marked=marked)
    written = f"<tool_call><function=get_weather><parameter=city>Bandung</parameter>{behind}</tool_call>"
    more = ', "days": 3' if "days" in behind else ""
    assert parse(config, *as_tokens(written, config)) == expected("hermes", f'{{"city": "Bandung"{more}}}')


def test_a_long_text_between_tags_is_streamed() -> None:
    lines = 'print("Halo")\n' * 20
    text = XML.format(f"<parameter=code>\n{lines}\n</parameter>\n")
    _, arguments, _ = parse(parser_config(), *text)
    assert isinstance(arguments, ArgumentsDelta)
    assert arguments.text == '{"city": "Bandung", "code": "' + ('print(\\"Halo\\")\\n' * 20) + '"}'


def test_arguments_of_an_answer_that_ends_between_tags_end_there_too() -> None:
    _, arguments, _ = parse(parser_config(), *XML.partition("{}")[0], "<parameter=days>\n1")
    assert isinstance(arguments, ArgumentsDelta) and arguments.text == '{"city": "Bandung", "days": "1'


def test_a_call_after_reasoning_needs_no_marker_in_formats_without_markers() -> None:
    config = parser_config("json", marked=True)
    text = as_tokens("<think>Hm</think>\n\n", config) + '[{"name": "get_weather"}]'
    assert parse(config, text) == [ReasoningDelta("Hm"), *expected("json", "{}")]


def test_call_ids_for_mistral_are_nine_letters_and_digits() -> None:
    assert parser_config("mistral").call_id(0, 0).isalnum() and len(parser_config("mistral").call_id(0, 0)) == 9
