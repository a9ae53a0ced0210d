"""What a run consists of: parts of the answer, calls between them; and the `Writer` that makes events of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tis.engine.answer import FinishReason, TokenLogprob
from tis.mcp_client.toolbox import OfferedTool

Events = Sequence[bytes]

# Not frozen: the parser makes one for nearly every token. `PartReader` adds the tokens that a part is made of.


@dataclass(slots=True)
class TextDelta:
    text: str
    token_ids: Sequence[int] = ()
    logprobs: Sequence[TokenLogprob] = ()
    offsets: Sequence[int] = ()  # as in a `Piece`, of which this is all


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
    """Has no tokens: those of the marker that ends a call belong to an `ArgumentsDelta` without text."""

    index: int
    is_cut: bool = False  # the answer ended before the arguments did


Part = TextDelta | ReasoningDelta | ToolCallStart | ArgumentsDelta | ToolCallEnd


@dataclass(slots=True)
class ServerCall:
    """A call that this server makes for the model."""

    number: int  # among the calls of the run
    id: str
    label: str  # of the MCP server
    name: str  # as the MCP server has it
    offered_name: str  # as the model has it
    arguments: str = ""
    approval_request_id: str | None = None
    is_whole: bool = False
    is_begun: bool = False
    output: str | None = None
    error: Mapping[str, Any] | None = None
    has_ended: bool = False


# More parts: what `Transcript` makes of the calls of MCP servers, and the ends of what the model writes.


@dataclass(slots=True)
class ServerCallStart:
    call: ServerCall
    tool: OfferedTool


@dataclass(slots=True)
class ServerCallDelta:
    call: ServerCall
    text: str


@dataclass(slots=True)
class ServerCallEnd:
    call: ServerCall
    is_cut: bool


@dataclass(slots=True)
class PromptScores:
    """Of the next tokens of a prompt without a template, before the answer to it begins."""

    logprobs: Sequence[TokenLogprob]


@dataclass(slots=True)
class RoundEnd:
    """Of a run with MCP servers: the calls of the round come next, or the end."""

    finish: FinishReason


@dataclass(slots=True)
class ChoiceEnd:
    finish: FinishReason
    has_calls: bool  # of functions, which the client has to make
    context: Mapping[str, Any] | None  # what compression did
    stop: str | None = None  # the stop string that ended it


RunPart = Part | ServerCallStart | ServerCallDelta | ServerCallEnd | PromptScores | RoundEnd | ChoiceEnd


# What happens between the rounds of the model.


@dataclass(frozen=True, slots=True)
class ToolsListing:
    label: str
    server_url: str


@dataclass(frozen=True, slots=True)
class ToolsListed:
    label: str
    tools: Sequence[Mapping[str, Any]]
    error: str | None


@dataclass(frozen=True, slots=True)
class CallApproved:
    call: ServerCall


@dataclass(frozen=True, slots=True)
class CallBegun:
    call: ServerCall


@dataclass(frozen=True, slots=True)
class CallEnded:
    call: ServerCall


@dataclass(frozen=True, slots=True)
class CallDropped:
    """Nobody will make this call any more."""

    call: ServerCall


@dataclass(frozen=True, slots=True)
class CompactionBegun:
    """The model begins to summarise the conversation, of which no part comes before `CompactionEnded`."""


@dataclass(frozen=True, slots=True)
class CompactionEnded:
    summary: str


CallEvent = (
    CompactionBegun | CompactionEnded | ToolsListing | ToolsListed | CallApproved | CallBegun | CallEnded | CallDropped
)


@dataclass(slots=True)
class RunUsage:
    """In tokens, of all rounds. The times are recorded once: a process that resumes the run reads them."""

    num_prompt: int = 0
    num_cached: int = 0
    num_made: int = 0
    num_reasoning: int = 0
    num_predicted: int = 0  # by the client, of all choices together
    num_predicted_right: int = 0
    num_audio: int = 0  # of the prompts
    # In nanoseconds since 1970; 0: it has not come that far.
    first_token_at: int = 0
    ended_at: int = 0


class Writer(Protocol):
    """Makes events of its arguments and of nothing else, because another process makes the same events once more.

    What clients do not see makes no events.
    """

    def begun(self, num_choices: int) -> Events: ...

    def part(self, choice: int, part: RunPart) -> Events: ...

    def call(self, event: CallEvent) -> Events: ...

    def ended(self, finish: FinishReason, usage: RunUsage) -> Events: ...

    def failed(self, error: Exception) -> bytes: ...

    def summary(self, usage: RunUsage) -> bytes:
        """Data of the answer that belongs to none of its events."""
        ...


NewWriter = Callable[[dict[str, Any]], Writer]  # of what the writer begins with
