"""The stream of pieces that a request produces, and the asyncio side that its reader holds."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tis.errors import ServiceError

# `content_filter`: an engine elsewhere has withheld the rest.
FinishReason = Literal["stop", "length", "content_filter", "cancelled"]


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    token_id: int
    text: str
    bytes: bytes
    logprob: float
    top: tuple["TokenLogprob", ...] = ()


DeltaKind = Literal["text", "reasoning", "call", "arguments"]


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """What an engine elsewhere has parsed of its answer already."""

    kind: DeltaKind
    text: str  # of a call: the name of its function
    index: int = 0  # of the call, among those of its choice
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """What an engine elsewhere has counted, of all choices."""

    num_prompt: int
    num_made: int
    num_cached: int = 0
    num_reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """New tokens and text of one choice. There may be more tokens than characters: a character may take several."""

    choice: int
    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()
    finish: FinishReason | None = None
    # Markers that the model wrote as single tokens, each with its place in the text. The text itself has none of them.
    markers: tuple[tuple[int, str], ...] = ()
    # Of the next tokens of the prompt, before the answer begins. That of its first token says nothing.
    prompt_logprobs: tuple[TokenLogprob, ...] = ()
    stop: str | None = None  # the stop string of the request that ended it
    # Of a raw prompt: where the tokens with log probabilities begin, behind the text so far. Empty if all begin there.
    offsets: tuple[int, ...] = ()
    # Of an engine elsewhere: the parts of its answer, in place of `text`, where there is more than text.
    deltas: tuple[AnswerDelta, ...] = ()
    usage: ReportedUsage | None = None


class Answer:
    """Yields the pieces of all choices in the order in which they were made, then raises the failure, if there is one.

    All methods run on the event loop.
    """

    def __init__(self, num_choices: int, cancel: Callable[[], None]) -> None:
        self.cached_tokens = 0  # prompt tokens found in the KV cache; set before the first piece
        self._num_unfinished = num_choices
        self._cancel = cancel
        self._queue: list[Piece] = []
        self._failure: ServiceError | None = None
        self._waiting_reader: asyncio.Future[None] | None = None

    def cancel(self) -> None:
        self._cancel()

    def cached_tokens_of(self, choice: int) -> int:
        """Of the prompt of a choice."""
        return self.cached_tokens

    def put(self, item: Piece | ServiceError) -> None:
        if isinstance(item, ServiceError):
            self._failure = self._failure or item
        else:
            self._queue.append(item)
        if self._waiting_reader and not self._waiting_reader.done():
            self._waiting_reader.set_result(None)

    async def batches(self) -> AsyncIterator[Sequence[Piece]]:
        """Yields all pieces since the last batch, so that a slow reader catches up in one go."""
        while self._num_unfinished:
            if not self._queue:
                if self._failure:
                    raise self._failure
                self._waiting_reader = asyncio.get_running_loop().create_future()
                await self._waiting_reader
                continue
            pieces, self._queue = self._queue, []
            self._num_unfinished -= _num_finished(pieces)
            yield pieces

    async def __aiter__(self) -> AsyncIterator[Piece]:
        async for pieces in self.batches():
            for piece in pieces:
                yield piece


def _num_finished(pieces: Iterable[Piece]) -> int:
    return sum(piece.finish is not None for piece in pieces)
