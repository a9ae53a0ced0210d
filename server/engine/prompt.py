"""What a caller wants answered, in plain nouns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# A message is what chat templates take: {"role": ..., "content": ..., ...}, nested as its JSON was.
Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    template_options: Mapping[str, Any] = field(default_factory=dict)
    add_generation_prompt: bool = True
    continue_final_message: bool = False


def text_of(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""
