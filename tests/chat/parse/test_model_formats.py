"""What the templates of GLM, DeepSeek and gpt-oss print of an answer is parsed back to the same answer.

The cases come from `tests/tool_parsers` of vllm-project/vllm: test_glm4_moe_tool_parser.py,
test_deepseekv3_tool_parser.py, test_deepseekv31_tool_parser.py and test_openai_tool_parser.py.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chat.parse.parsing import call, feed, parse
from tests.engine.text.model_formats import FORMATS, tokenizer_of
from tis.chat.parse.config import ParserConfig
from tis.chat.parts import ArgumentsDelta, Part, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from tis.engine.prompt import ChatPrompt
from tis.engine.text.detokenizer import MarkerDetokenizer
from tis.engine.text.markers import ToolFormat, marker_char

BOOK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "code": {"type": "string"},
        "digits": {"type": ["string", "null"]},
        "seats": {"type": "integer"},
        "price": {"type": "number"},
        "exact": {"type": "boolean"},
        "nothing": {"type": "null"},
        "days": {"type": "array", "items": {"type": "integer"}},
        "guest": {"type": "object"},
    },
}
ARGUMENTS = {
    "city": "Bandung “Kota”\n",
    "code": 'print("</b>")\n' * 12,
    "digits": "007",
    "seats": 3,
    "price": 1.5,
    "exact": True,
    "nothing": None,
    "days": [1, 2],
    "guest": {"name": "Sari", "tags": ["a", {}], "note": "x" * 500},
    "unknown": {"a": [None]},
}
TOOLS: dict[str, dict[str, Any]] = {"book": BOOK, "now": {"type": "object", "properties": {}}}
USER = {"role": "user", "content": "Halo"}
WITH_MARKERS = pytest.mark.parametrize("with_markers", [True, False], ids=["tokens", "spelled"])


def called(name: str, call_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def config_of(tool_format: ToolFormat, *, with_markers: bool, **more: Any) -> ParserConfig:
    markers = tokenizer_of(tool_format, with_markers=with_markers).markers
    marked = tuple(markers.visible(with_tool_calls=True))
    return ParserConfig("chatcmpl-1", markers.reasoning, tool_format=tool_format, tools=TOOLS, marked=marked, **more)


def answer_text(tool_format: ToolFormat, message: dict[str, Any], *, with_markers: bool) -> str:
    """What the model would have generated: what the template prints of the message, behind the prompt."""
    tokenizer = tokenizer_of(tool_format, with_markers=with_markers)
    prompt = tokenizer.encode_chat(ChatPrompt([USER]))
    ids = tokenizer.encode_chat(ChatPrompt([USER, message], add_generation_prompt=False))
    if tool_format == "deepseek_v3":  # in the history, it prints no reasoning
        prompt = prompt[: prompt.index(tokenizer.marker_ids["<｜Assistant｜>"]) + 1]
    at = next(at for at, token_id in enumerate(ids) if prompt[at : at + 1] != [token_id])
    visible = tokenizer.markers.visible(with_tool_calls=True)
    detokenizer = MarkerDetokenizer(
        tokenizer.new_detokenizer(), {token_id: marker_char(marker) for marker, token_id in visible.items()}
    )
    return "".join(map(detokenizer.feed, ids[at:])) + detokenizer.flush()


def read_calls(parts: list[Part]) -> list[tuple[str, Any]]:
    names = [part.name for part in parts if isinstance(part, ToolCallStart)]
    arguments = [json.loads(part.text) for part in parts if isinstance(part, ArgumentsDelta)]
    assert len([part for part in parts if isinstance(part, ToolCallEnd)]) == len(names)
    return list(zip(names, arguments, strict=True))


@WITH_MARKERS
@pytest.mark.parametrize("tool_format", FORMATS)
def test_an_answer_that_the_template_prints_is_parsed_back_however_it_is_cut(
    tool_format: ToolFormat, with_markers: bool
) -> None:
    message = {"role": "assistant", "content": "Let me see.", "tool_calls": [called("book", "call_1", ARGUMENTS)]}
    text = answer_text(tool_format, {**message, "reasoning_content": "Hm.\nYes."}, with_markers=with_markers)
    if tool_format == "deepseek_v3":  # its template prints the content behind the calls
        text = text.removesuffix("Let me see.")
    config = config_of(tool_format, with_markers=with_markers)
    whole = parse(config, text)
    assert read_calls(whole) == [("book", ARGUMENTS)]
    before = [part for part in whole if isinstance(part, TextDelta | ReasoningDelta)]
    expected: dict[str, list[Part]] = {
        "glm": [ReasoningDelta("Hm.\nYes."), TextDelta("Let me see.")],
        "deepseek_v3": [],
        "deepseek_v31": [TextDelta("Let me see.")],
        "harmony": [ReasoningDelta("Hm.\nYes.\n\nLet me see.")],  # its template prints content before a call as that
    }
    assert before == expected[tool_format]
    assert parse(config, *text) == whole
    for at in range(len(text)):
        assert parse(config, text[:at], text[at:]) == whole


@WITH_MARKERS
@pytest.mark.parametrize("tool_format", ["glm", "deepseek_v3", "deepseek_v31"])
def test_parallel_calls_that_the_template_prints_are_parsed_back(tool_format: ToolFormat, with_markers: bool) -> None:
    calls = [called("now", "call_1", {}), called("book", "call_2", ARGUMENTS), called("now", "call_3", {})]
    text = answer_text(
        tool_format, {"role": "assistant", "content": "", "tool_calls": calls}, with_markers=with_markers
    )
    whole = parse(config_of(tool_format, with_markers=with_markers), text)
    assert read_calls(whole) == [("now", {}), ("book", ARGUMENTS), ("now", {})]
    assert not [part for part in whole if isinstance(part, TextDelta | ReasoningDelta)]
    [first] = [
        part
        for part in parse(config_of(tool_format, with_markers=with_markers, one_call=True), text)
        if isinstance(part, ToolCallStart)
    ]
    assert first.name == "now"


@WITH_MARKERS
@pytest.mark.parametrize("tool_format", FORMATS)
def test_an_answer_without_a_call_is_parsed_back(tool_format: ToolFormat, with_markers: bool) -> None:
    message = {"role": "assistant", "content": "Halo <b>!", "reasoning_content": "Hm."}
    text = answer_text(tool_format, message, with_markers=with_markers)
    reasoning = [] if tool_format.startswith("deepseek") else [ReasoningDelta("Hm.")]
    config = config_of(tool_format, with_markers=with_markers)
    assert parse(config, *text) == parse(config, text) == [*reasoning, TextDelta("Halo <b>!")]


@pytest.mark.parametrize("tool_format", ["glm", "deepseek_v3", "deepseek_v31"])
def test_a_call_comes_after_reasoning_that_the_prompt_opened(tool_format: ToolFormat) -> None:
    config = config_of(tool_format, with_markers=False, starts_in_reasoning=True)
    message = {"role": "assistant", "content": "", "tool_calls": [called("now", "call_1", {})]}
    written = answer_text(tool_format, message, with_markers=False)
    text = "Hm.</think>\n\n" + written.rpartition("</think>")[2]
    assert parse(config, *text) == [ReasoningDelta("Hm."), *call("now", "{}", config=config)]


def test_long_text_of_a_glm_argument_is_streamed() -> None:
    from tis.chat.part_reader import new_parser

    parser = new_parser(config_of("glm", with_markers=False), 0)
    begin = "<tool_call>book\n<arg_key>seats</arg_key>\n<arg_value>3</arg_value>\n<arg_key>code</arg_key>\n<arg_value>"
    start, seats = feed(parser, begin)
    assert isinstance(start, ToolCallStart) and seats == ArgumentsDelta(0, '{"seats": 3')
    assert feed(parser, "x" * 70) == [ArgumentsDelta(0, ', "code": "' + "x" * 70)]
    assert feed(parser, '"\n</arg_') == [ArgumentsDelta(0, '\\"\\n')]
    assert feed(parser, "value>\n</tool_call>") == [ArgumentsDelta(0, '"}'), ToolCallEnd(0)]


@pytest.mark.parametrize(
    ("types", "text", "value"),
    [
        ({"type": "string"}, "3", "3"),
        ({"type": "string"}, " a\n", " a\n"),
        ({"type": "integer"}, "3", 3),
        ({"type": "integer"}, " 3 ", 3),
        ({"type": "integer"}, "three", "three"),
        ({"type": "boolean"}, "True", True),
        ({"type": ["integer", "null"]}, "null", None),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({}, "3", 3),
        ({}, "[1, 2]", [1, 2]),
        ({}, "null", None),
        ({}, "Bandung", "Bandung"),
    ],
)
def test_the_value_of_a_glm_argument_has_the_type_of_its_schema(types: dict[str, Any], text: str, value: Any) -> None:
    tools = {"f": {"properties": {"a": types}}}
    config = ParserConfig("chatcmpl-1", tool_format="glm", tools=tools)
    written = f"<tool_call>f<arg_key>a</arg_key><arg_value>{text}</arg_value></tool_call>"  # as GLM 4.7 writes
    assert read_calls(parse(config, *written)) == [("f", {"a": value})]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}<|call|>", call("now", "{}")),
        (" to=functions.now<|channel|>commentary json<|message|>{}<|call|>", call("now", "{}")),
        ("<|channel|>analysis to=functions.now code<|message|>{}<|call|>", call("now", "{}")),
        ("<|channel|>commentary to=functions.now<|message|><|call|>", call("now", "{}")),
        ("<|channel|>commentary to=functions.now<|message|>foo<|call|>", [TextDelta("foo")]),
        ("<|channel|>commentary to=functions.nobody<|message|>{}<|call|>", [TextDelta("{}")]),
        ("<|channel|>analysis to=python code<|message|>1+1<|call|>", [ReasoningDelta("1+1")]),
        (
            "<|channel|>commentary<|message|>So.<|end|><|start|>assistant<|channel|>final<|message|>Halo",
            [TextDelta("So.\nHalo")],
        ),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>",
            [ReasoningDelta("a\nb")],
        ),
        (
            "<|channel|>commentary to=functions.now<|message|>{}<|call|><|start|>assistant to=functions.now"
            "<|channel|>commentary json<|message|>{}<|call|>",
            [*call("now", "{}"), *call("now", "{}", 1)],
        ),
        ("the prompt ended within a message", [TextDelta("the prompt ended within a message")]),
        ("<|channel|>ana", []),
    ],
)
@pytest.mark.parametrize("with_markers", [True, False], ids=["tokens", "spelled"])
def test_messages_of_gpt_oss(text: str, parts: list[Part], with_markers: bool) -> None:
    config = config_of("harmony", with_markers=with_markers)
    for marker in config.marked:
        text = text.replace(marker, marker_char(marker))
    assert parse(config, *text) == parse(config, text) == parts


def test_a_call_of_gpt_oss_that_is_cut_stays_a_call() -> None:
    config = config_of("harmony", with_markers=False)
    header = "<|channel|>commentary to=functions.book <|constrain|>json<|message|>"
    for text, arguments in (("", ""), ('{"ci', '{"ci'), ('{"city": "Ban', '{"city": "Ban')):
        parts = parse(config, *header, text)
        assert [type(part) for part in parts] == [ToolCallStart, *([ArgumentsDelta] if text else []), ToolCallEnd]
        assert [part.text for part in parts if isinstance(part, ArgumentsDelta)] == ([arguments] if text else [])


def test_a_marker_that_is_no_token_is_text_where_markers_are_tokens() -> None:
    for tool_format in FORMATS:
        text = "Write <tool_call>now</tool_call>, <｜tool▁calls▁begin｜> or <|channel|>analysis<|message|>."
        assert parse(config_of(tool_format, with_markers=True), *text) == [TextDelta(text)]
