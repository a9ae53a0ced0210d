"""Turns the pieces of an answer into the events that are recorded."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from server.engine.answer import Answer, Piece
from server.engine.prepared import Prepared
from server.error_handlers import unexpected_fault
from server.errors import ServiceError
from server.observability.logs import log_fault
from server.observability.request_log import current_request_id
from server.openai_api.chat_chunks import DONE, ChunkWriter, error_event


class ChatSource:
    """A `Source` for the streaming room."""

    def __init__(self, answer: Answer, prepared: Prepared, chunks: ChunkWriter) -> None:
        self._answer = answer
        self._prepared = prepared
        self._chunks = chunks
        self._num_tokens = 0
        self.was_cancelled = False

    async def events(self) -> AsyncIterator[Sequence[bytes]]:
        yield [self._chunks.role(choice) for choice in range(self._prepared.params.n)]
        async for pieces in self._answer.batches():
            yield list(self._events_of(pieces))
        if self._chunks.with_usage:
            yield [self._chunks.usage(self._usage), DONE]
        else:
            yield [DONE]

    def cancel(self) -> None:
        self._answer.cancel()

    def failure(self, error: Exception) -> bytes:
        if not isinstance(error, ServiceError):
            log_fault("an answer could not be recorded", error, current_request_id())
            error = unexpected_fault()
        return error_event(error)

    @property
    def summary(self) -> bytes:
        context = self._prepared.context
        return json.dumps({"usage": self._usage, **({"context": context} if context else {})}).encode()

    def _events_of(self, pieces: Iterable[Piece]) -> Iterable[bytes]:
        for piece in pieces:
            self._num_tokens += len(piece.token_ids)
            self.was_cancelled |= piece.finish == "cancelled"
            yield from self._chunks.of_piece(piece)

    @property
    def _usage(self) -> dict[str, Any]:
        num_prompt = len(self._prepared.prompt_ids)
        return {
            "prompt_tokens": num_prompt,
            "completion_tokens": self._num_tokens,
            "total_tokens": num_prompt + self._num_tokens,
            "prompt_tokens_details": {"cached_tokens": self._answer.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }
