"""What the assistant needs of a language model. `app` passes the engine's, tests pass a function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tis.mcp_client.tool_types import LocalTool


@dataclass(frozen=True)
class ModelTask:
    """One question to the model: messages as chat templates take them, and the JSON Schema of the answer.

    `schema` is a function: what `tools` find changes which answers are possible.
    """

    messages: Sequence[Mapping[str, Any]]
    schema: Callable[[], Mapping[str, Any]]
    max_tokens: int
    timeout_seconds: float
    owner: str  # whose cached prefixes and whose place in the queue
    tools: Sequence[LocalTool] = field(default_factory=tuple)
    max_calls: int = 3


@dataclass(frozen=True)
class ModelReply:
    """`text` is JSON that fits the schema of the task."""

    text: str
    num_prompt_tokens: int
    num_made_tokens: int


class AssistantModel(Protocol):
    @property
    def is_ready(self) -> bool:
        """Whether a model is loaded that can answer now."""
        ...

    async def ask(self, task: ModelTask) -> ModelReply | None:
        """None if no answer comes in time or the model fails; the caller then goes on without."""
        ...
