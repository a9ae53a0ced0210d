"""The constraint of an answer as the request states it: plain data that can be stored as JSON."""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tis.engine.text.markers import ToolFormat

Kind = Literal["json_schema", "json_object", "regex", "choice", "lark", "tool_calls", "marked_calls"]


@dataclass(frozen=True, slots=True)
class CallableTool:
    name: str
    parameters: dict[str, Any]  # a JSON schema
    param: str = ""  # the place of its schema in the request


@dataclass(frozen=True, slots=True)
class Grammar:
    kind: Kind
    # A JSON schema, a regular expression, a list of texts, or a Lark grammar. For "tool_calls": the schema of an answer
    # without a call, or None if there must be a call. "marked_calls" are calls from their opening marker on, among free
    # text.
    value: Any = None
    tools: tuple[CallableTool, ...] = ()
    one_call: bool = False
    call_format: ToolFormat = "hermes"
    writes_xml: bool = False  # marked calls in the hermes format have their arguments between tags
    param: str = field(default="response_format", compare=False)  # the field of the request that errors name

    @property
    def key(self) -> str:
        """Equal for grammars that mean the same. The order of properties matters, because answers follow it."""
        return json.dumps(
            [
                *(self.kind, self.value, [asdict(tool) for tool in self.tools]),
                *(self.one_call, self.call_format, self.writes_xml),
            ]
        )

    @property
    def covers_answer(self) -> bool:
        """Whether all of the answer follows the grammar, except the reasoning before it."""
        return self.kind != "marked_calls"

    def in_format(self, call_format: ToolFormat, *, writes_xml: bool = False) -> "Grammar":
        has_tags = writes_xml and call_format == "hermes" and self.kind == "marked_calls"
        return replace(self, call_format=call_format, writes_xml=has_tags)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def tool_call_grammar(
    tools: tuple[CallableTool, ...],
    *,
    one_call: bool,
    param: str = "tool_choice",
    answer_schema: dict[str, Any] | None = None,
) -> Grammar:
    """Allows calls of these tools and nothing else, except an answer that fits `answer_schema` if there is one.

    The engine sets the call format of its model.
    """
    return Grammar("tool_calls", answer_schema, tools=tools, one_call=one_call, param=param)


def marked_calls_grammar(tools: tuple[CallableTool, ...], *, one_call: bool, param: str = "tools") -> Grammar:
    """Allows any text, but behind the marker that opens a call only a call of these tools.

    A model whose call format has no such marker is not constrained. gpt-oss has a header instead.
    """
    return Grammar("marked_calls", tools=tools, one_call=one_call, param=param)
