"""Parses the answers of tests, whole or in pieces."""

from collections.abc import Iterable, Sequence
from typing import Any

from tis.chat.parse.config import ParserConfig
from tis.chat.parse.parser import ChoiceParser
from tis.chat.part_reader import new_parser
from tis.chat.parts import ArgumentsDelta, Part, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from tis.engine.text.markers import CALL_MARKERS, REASONING_MARKERS, ToolFormat, marker_char

TOOLS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "exact": {"type": "boolean"}},
    },
    "now": {},
}


def parser_config(tool_format: ToolFormat | None = "hermes", *, marked: bool = False, **more: Any) -> ParserConfig:
    reasoning = REASONING_MARKERS[0]
    markers = (*reasoning, *(CALL_MARKERS[tool_format] if tool_format else ()))
    given = {"reasoning": reasoning, "tools": TOOLS if tool_format else {}, "marked": markers if marked else (), **more}
    return ParserConfig("chatcmpl-1", tool_format=tool_format, **given)


def as_tokens(text: str, config: ParserConfig | None = None) -> str:
    """The text with every marker as a single token, as most models have it."""
    for marker in (config or parser_config(marked=True)).marked:
        text = text.replace(marker, marker_char(marker))
    return text


def parse(config: ParserConfig, *pieces: str) -> list[Part]:
    parser = new_parser(config, 0)
    parts = [part for piece in pieces for part in feed(parser, piece)]
    return joined([*parts, *(part for step in parser.last_steps() for part in step.parts)])


def feed(parser: ChoiceParser, text: str) -> list[Part]:
    return [part for step in parser.steps(text) for part in step.parts]


def joined(parts: Iterable[Part]) -> list[Part]:
    whole: list[Part] = []
    for part in parts:
        last = whole[-1] if whole else None
        if isinstance(part, TextDelta | ReasoningDelta) and type(last) is type(part):
            whole[-1] = type(part)(last.text + part.text)
        elif isinstance(part, ArgumentsDelta) and isinstance(last, ArgumentsDelta) and last.index == part.index:
            whole[-1] = ArgumentsDelta(part.index, last.text + part.text)
        else:
            whole.append(part)
    return whole


def call(name: str, arguments: str, index: int = 0, config: ParserConfig | None = None) -> list[Part]:
    call_id = (config or parser_config()).call_id(0, index)
    return [ToolCallStart(index, call_id, name), ArgumentsDelta(index, arguments), ToolCallEnd(index)]


def cut(text: str, at: Sequence[int]) -> list[str]:
    places = [0, *sorted({place % (len(text) + 1) for place in at}), len(text)]
    return [text[begin:end] for begin, end in zip(places, places[1:], strict=False)]
