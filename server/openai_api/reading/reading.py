"""How an answer is to be read: told once from the request and the model, and kept for who goes on with it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pydantic import TypeAdapter

from server.engine.markup import CALL_MARKERS, Thought, ToolFormat, mark_of

Tools = Mapping[str, Mapping[str, Any]]  # the schema of a tool's parameters, by its name


@dataclass(frozen=True, slots=True)
class Reading:
    answer_id: str
    thought: Thought | None = None
    in_thought: bool = False  # the prompt opened it
    tool_format: ToolFormat | None = None  # None: no calls are looked for
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    marked: tuple[str, ...] = ()  # markers that are tokens: spelled out, they are text
    forced: bool = False  # every answer is a call: its markers count however they are spelled, or not at all
    one_call: bool = False
    hide_thoughts: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        return TypeAdapter(cls).validate_python(given)

    def spelled(self, marker: str) -> str:
        return mark_of(marker) if marker in self.marked else marker

    @property
    def call_begins(self) -> tuple[str, ...]:
        return self._written(CALL_MARKERS[self.tool_format][:1], self.forced) if self.tool_format else ()

    @property
    def call_ends(self) -> tuple[str, ...]:
        return self._written(CALL_MARKERS["hermes"][1:], True) if self.tool_format == "hermes" else ()

    def _written(self, markers: Sequence[str], in_letters: bool) -> tuple[str, ...]:
        """The ways in which they may come."""
        return tuple(dict.fromkeys((*map(self.spelled, markers), *(markers if in_letters else ()))))

    @property
    def may_be_bare(self) -> bool:
        """Whether an answer that begins as JSON may be a call without any marker."""
        return self.tool_format is not None and (self.forced or self.tool_format in ("llama", "json"))

    def call_id(self, choice: int, index: int) -> str:
        """The same in another process. Templates of Mistral take nine letters and digits and nothing else."""
        digest = hashlib.sha256(f"{self.answer_id}:{choice}:{index}".encode()).hexdigest()
        return digest[:9] if self.tool_format == "mistral" else f"call_{digest[:24]}"
