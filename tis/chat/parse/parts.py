"""The parts of an answer: text, reasoning and tool calls; and what parsers of calls have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tis.engine.answer import TokenLogprob

# Not frozen: the parser makes one for nearly every token. `PartReader` adds the tokens that a part is made of.


@dataclass(slots=True)
class TextDelta:
    text: str
    token_ids: Sequence[int] = ()
    logprobs: Sequence[TokenLogprob] = ()


@dataclass(slots=True)
class ReasoningDelta:
    text: str
    token_ids: Sequence[int] = ()
    logprobs: Sequence[TokenLogprob] = ()


@dataclass(slots=True)
class ToolCallStart:
    index: int  # among the calls of one choice
    id: str
    name: str
    token_ids: Sequence[int] = ()
    logprobs: Sequence[TokenLogprob] = ()


@dataclass(slots=True)
class ArgumentsDelta:
    """The pieces of one call, joined, are the JSON of its arguments."""

    index: int
    text: str
    token_ids: Sequence[int] = ()
    logprobs: Sequence[TokenLogprob] = ()


@dataclass(slots=True)
class ToolCallEnd:
    index: int
    is_cut: bool = False  # the answer ended before the arguments did
    token_ids: Sequence[int] = ()
    logprobs: Sequence[TokenLogprob] = ()


Part = TextDelta | ReasoningDelta | ToolCallStart | ArgumentsDelta | ToolCallEnd


class ParseStep(NamedTuple):
    """What a parser made of the text up to `end`, counted in characters from the beginning of the answer."""

    parts: list[Part]
    end: int
    is_reasoning: bool


class StreamedArguments(Protocol):
    """The arguments of a call while they arrive."""

    @property
    def has_begun(self) -> bool: ...

    @property
    def is_done(self) -> bool: ...

    def take_json(self) -> str:
        """The JSON that is certain by now and was not returned before."""
        ...

    def take_raw(self) -> str:
        """The text that was not returned and does not continue as JSON, exactly as the model wrote it."""
        ...


class CallParser(Protocol):
    """Parses one call, which may turn out to be text until it has the name of a tool and its first argument."""

    @property
    def name(self) -> str | None: ...

    @property
    def arguments(self) -> StreamedArguments | None: ...

    @property
    def is_done(self) -> bool: ...

    @property
    def is_broken(self) -> bool: ...

    def feed(self, text: str) -> str:
        """Returns the text after the call, or the text that cannot be part of it."""
        ...
