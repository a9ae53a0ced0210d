"""How to parse an answer: the markers to look for, and where they are in a text.

A `ParserConfig` is built from the request and the model, and stored for a process that resumes the answer.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal, Self

from pydantic import TypeAdapter

from tis.engine.text.markers import CALL_MARKERS, MARKERS, ReasoningMarkers, ToolFormat, marker_char
from tis.engine.text.stop_strings import longest_beginning as longest_beginning

_CALL_BEGINS = frozenset(
    {"<tool_call>", "<|python_tag|>", "[TOOL_CALLS]", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"}
)
_CALL_ENDS = frozenset({"</tool_call>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"})
_MARK = re.compile("[\udc00-\udcff]")
# Tokens that are control tokens never show; those that are words of the vocabulary show as they are spelled.
_VISIBLE_TEXT = {marker_char(marker): "" if marker.startswith(("<|", "[")) else marker for marker in MARKERS}

ToolSchemas = Mapping[str, Mapping[str, Any]]  # the schema of a tool's parameters, by its name
# Which text a grammar makes a call, even if the answer is cut: none, what an opening marker opens, or the whole answer.
CertainCalls = Literal["none", "marked", "all"]


@dataclass(frozen=True, slots=True)
class ParserConfig:
    answer_id: str
    reasoning: ReasoningMarkers | None = None
    starts_in_reasoning: bool = False  # the prompt ends with the marker that opens reasoning
    tool_format: ToolFormat | None = None  # None: do not parse tool calls
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    marked: tuple[str, ...] = ()  # markers that are single tokens: the same letters in other tokens are text
    one_call: bool = False  # drop all calls after the first
    certain_calls: CertainCalls = "none"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        config: Self = _types().validate_python(given)
        return config

    def spelled(self, marker: str) -> str:
        return marker_char(marker) if marker in self.marked else marker

    @property
    def _call_markers(self) -> tuple[str, ...]:
        return CALL_MARKERS[self.tool_format] if self.tool_format else ()

    @property
    def call_begins(self) -> tuple[str, ...]:
        """Markers that open a tool call."""
        return tuple(self.spelled(marker) for marker in self._call_markers if marker in _CALL_BEGINS)

    @property
    def call_ends(self) -> tuple[str, ...]:
        """Markers that close a tool call. After a call the closing marker is never text, even if it is spelled out."""
        ends = [marker for marker in self._call_markers if marker in _CALL_ENDS]
        return tuple(dict.fromkeys((*map(self.spelled, ends), *ends)))

    @property
    def may_be_bare(self) -> bool:
        """Whether an answer that begins with JSON may be a call without a marker."""
        return self.tool_format in ("llama", "json")

    def call_id(self, choice: int, index: int) -> str:
        """Deterministic: a resumed answer has the same ids. Mistral templates accept only nine letters and digits."""
        digest = hashlib.sha256(f"{self.answer_id}:{choice}:{index}".encode()).hexdigest()
        return digest[:9] if self.tool_format == "mistral" else f"call_{digest[:24]}"


@cache
def _types() -> TypeAdapter[Any]:
    return TypeAdapter(ParserConfig)


def visible(text: str) -> str:
    return text if text.isascii() else _MARK.sub(lambda mark: _VISIBLE_TEXT.get(mark[0], ""), text)


def find_first(text: str, markers: Sequence[str]) -> tuple[int | None, str]:
    """The position of the first marker in the text, and the marker."""
    found = [(at, marker) for marker in markers if (at := text.find(marker)) >= 0]
    return min(found) if found else (None, "")


def first_of(text: str, markers: Sequence[str]) -> str | None:
    """The marker at the beginning of the text."""
    return next((marker for marker in markers if text.startswith(marker)), None)


def may_become(text: str, markers: Sequence[str]) -> bool:
    """Whether the text is the beginning of a marker."""
    return any(marker.startswith(text) for marker in markers)
