"""One example to learn from: what was said before, and the one answer that should follow."""

from dataclasses import dataclass, field, replace
from typing import Any

Message = dict[str, Any]


@dataclass(frozen=True)
class Dialogue:
    messages: tuple[Message, ...]
    answer: str
    tools: tuple[dict[str, Any], ...] = field(default=())
    enable_thinking: bool = True

    def preceded_by(self, earlier: "Dialogue") -> "Dialogue":
        turns = (*earlier.messages, {"role": "assistant", "content": earlier.answer})
        return replace(self, messages=(*turns, *self.messages))

    def under(self, system: str) -> "Dialogue":
        return replace(self, messages=({"role": "system", "content": system}, *self.messages))


def asked(question: str, answer: str) -> Dialogue:
    return Dialogue(({"role": "user", "content": question},), answer)
