"""Takes up answers that another process began: from what a store kept of them to a `Source` that goes on."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from server.engine.front_desk import Engine
from server.engine.kept import KeptRequest
from server.errors import GenerationInterrupted, ServiceError
from server.media.loader import MediaLoader
from server.observability.logs import log_fault
from server.openai_api.chat_chunks import ChunkWriter
from server.openai_api.chat_media import media_again
from server.openai_api.chat_progress import ChatProgress
from server.openai_api.chat_source import KIND, ContinuedChat, failure_block
from server.openai_api.reading.reading import Reading
from server.openai_api.responses import source as responses
from server.openai_api.responses.source import ContinuedResponse
from server.openai_api.resumption import Resumption
from server.streaming.event import Block
from server.streaming.source import CarryOn, ReadAttachments, Source
from server.streaming.stores.store import Status


def carry_on_with(engine: Engine, media: MediaLoader, *, resume: bool) -> CarryOn:
    def carry_on(request: bytes, marks: Sequence[bytes], read_attachments: ReadAttachments) -> Source:
        try:
            source = _continued(engine, media, json.loads(request), marks, read_attachments)
        except (ValueError, KeyError, TypeError, IndexError, ServiceError) as fault:
            log_fault("an interrupted answer cannot be read", fault, "-")
            return Interrupted("The server was restarted while it answered, and what it kept cannot be read.")
        if resume or source.is_over:
            return source
        reason = "The server was restarted while it answered, and RESUME_GENERATION is 0."
        return Interrupted(reason, source.failure)

    return carry_on


def _continued(
    engine: Engine,
    media: MediaLoader,
    given: Mapping[str, Any],
    marks: Sequence[bytes],
    read_attachments: ReadAttachments,
) -> ContinuedChat | ContinuedResponse:
    if given["kind"] == responses.KIND:
        return _continued_response(engine, media, given, marks, read_attachments)
    if given["kind"] != KIND:
        raise ValueError(f"unknown kind {given['kind']!r}")
    kept = KeptRequest.from_json(given["asked"])
    chunks = ChunkWriter.from_json(given["chunks"])
    return ContinuedChat(
        engine,
        kept,
        chunks,
        ChatProgress.from_marks(kept.params.n, marks),
        lambda: media_again(kept.media, read_attachments, media),
        Reading.from_json(given["reading"]) if "reading" in given else None,
    )


def _continued_response(
    engine: Engine,
    media: MediaLoader,
    given: Mapping[str, Any],
    marks: Sequence[bytes],
    read_attachments: ReadAttachments,
) -> ContinuedResponse:
    kept = KeptRequest.from_json(given["asked"])
    reading = Reading.from_json(given["reading"]) if given["reading"] else None
    response = ContinuedResponse(kept, given["response"], reading, marks)
    shown_again = partial(media_again, kept.media, read_attachments, media)
    response.go_on_with(Resumption(engine, kept, [response.progress.shown], shown_again))
    return response


class Interrupted:
    """An answer of which nothing more will come than the reason."""

    waits_to_go_on = False
    outcome: Status = "failed"
    summary = b"{}"
    request = b""
    attachments: Mapping[str, bytes] = {}
    digest = None

    def __init__(self, reason: str, failure: Callable[[Exception], Block] = failure_block) -> None:
        self._reason = reason
        self.failure = failure

    async def events(self) -> AsyncIterator[Sequence[Block]]:
        raise GenerationInterrupted(self._reason)
        yield  # what makes it a generator

    def cancel(self) -> None:
        pass
