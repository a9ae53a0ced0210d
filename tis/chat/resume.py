"""Resumes runs that another process began: makes a `Source` of the stored specification and the records."""

import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tis.chat.media import media_again
from tis.chat.parts import NewWriter
from tis.chat.run import Run
from tis.chat.run_spec import OtherVersion, RunSpec, Services
from tis.engine.errors import GenerationInterrupted
from tis.errors import ServiceError
from tis.observability.logs import log_exception
from tis.streaming.source import Block, ReadAttachments, ResumeSource, Source
from tis.streaming.stores.store import Status

_log = logging.getLogger("tis.chat")


@dataclass(frozen=True, slots=True)
class Dialects:
    """The writers by name, and the event that ends an answer whose dialect is unknown."""

    writers: Mapping[str, NewWriter]
    failed_event: Callable[[Exception], bytes]


def resume_with(services: Services, dialects: Dialects, *, resume: bool) -> ResumeSource:
    def resume_source(request: bytes, resume_states: Sequence[bytes], read_attachments: ReadAttachments) -> Source:
        try:
            run = _resumed(services, dialects, request, resume_states, read_attachments)
        except (ValueError, KeyError, TypeError, IndexError, ServiceError) as fault:
            if isinstance(fault, OtherVersion):
                _log.warning("an answer is interrupted, because another version of the server began it")
            else:
                log_exception("an interrupted answer cannot be read", fault, "-")
            reason = "The server was restarted during this answer, and cannot read the stored part of it."
            return Interrupted(reason, dialects)
        if resume or run.is_over:
            return run
        return Interrupted("The server was restarted during this answer, and RESUME_GENERATION is 0.", dialects, run)

    return resume_source


def _resumed(
    services: Services,
    dialects: Dialects,
    request: bytes,
    resume_states: Sequence[bytes],
    read_attachments: ReadAttachments,
) -> Run:
    spec = RunSpec.from_json(json.loads(request))
    reload_media = partial(media_again, spec.request.media, read_attachments, services.media)
    run = Run(spec, services, dialects.writers[spec.dialect](spec.writer_state), reload_media=reload_media)
    run.replay(resume_states)
    return run


class Interrupted:
    """An answer that ends here, with the reason."""

    is_waiting_to_resume = False
    outcome: Status = "failed"
    request = b""
    attachments: Mapping[str, bytes] = {}
    traceparent = ""

    def __init__(self, reason: str, dialects: Dialects, run: Run | None = None) -> None:
        self._reason = reason
        self._run = run
        self._failed_event = dialects.failed_event
        self.summary = run.summary if run else b"{}"
        # An answer that cannot be read may have called MCP servers.
        self.may_be_repeated = run.may_be_repeated if run else False

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        raise GenerationInterrupted(self._reason)
        yield  # what makes it a generator

    def cancel(self) -> None:
        pass

    def failure(self, error: Exception) -> Block:
        return self._run.failure(error) if self._run else Block(self._failed_event(error))
