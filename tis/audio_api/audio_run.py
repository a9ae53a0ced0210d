"""What speeches and transcriptions have in common as a `Source`: their ticket, their cancellation and their ends."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal, Protocol, TypeVar

from tis.admission.ticket import Ticket
from tis.audio_api.interrupted_answer import InterruptedAnswer
from tis.audio_api.speech_spec import SpeechSpec
from tis.audio_api.transcription_spec import TranscriptionSpec
from tis.cancellation import Cancelled
from tis.chat.run_spec import OtherVersion, Services
from tis.errors import ServiceError, Unavailable
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id
from tis.observability.work_span import WorkSpan
from tis.openai_api.wire.chat_writer import error_event
from tis.streaming.source import Block
from tis.streaming.stores.store import Status

_log = logging.getLogger("tis.audio")
AudioKind = Literal["speech", "transcription"]
SomeRun = TypeVar("SomeRun", bound="AudioRun")
SomeSpec = TypeVar("SomeSpec", SpeechSpec, TranscriptionSpec)


class AudioLog(Protocol):
    is_over: bool
    outcome: Status

    def replay(self, resume_states: Sequence[bytes]) -> None: ...

    def fail(self, event: bytes) -> Block: ...


class AudioRun(ABC):
    may_be_repeated = True
    summary = b"{}"
    attachments: Mapping[str, bytes] = {}

    def __init__(
        self,
        kind: AudioKind,
        spec: SpeechSpec | TranscriptionSpec,
        log: AudioLog,
        services: Services,
        ticket: Ticket | None,
        work: WorkSpan,
    ) -> None:
        """Without a ticket it continues what another process began for the caller."""
        self.is_waiting_to_resume = False
        self.request = spec.to_json()
        self._kind = kind
        self._work = work
        self._source_log = log
        self._services = services
        self._caller = spec.caller
        self._ticket = ticket
        self._cancelled = asyncio.Event()

    @abstractmethod
    def make(self, ticket: Ticket) -> AsyncGenerator[Sequence[Block], None]:
        """All events but the last. Raises Cancelled."""

    @abstractmethod
    def end(self, *, cancelled: bool) -> Sequence[Block]:
        """The last event."""

    def hold_ticket(self) -> None:
        """The turn of the run has begun: its events will be read to their end."""
        if self._ticket:
            self._ticket.begin_run()

    def replay(self, resume_states: Sequence[bytes]) -> None:
        self._source_log.replay(resume_states)
        self.is_waiting_to_resume = not self.is_over

    @property
    def is_over(self) -> bool:
        return self._source_log.is_over

    @property
    def traceparent(self) -> str:
        return self._work.traceparent

    @property
    def outcome(self) -> Status:
        return self._source_log.outcome

    def cancel(self) -> None:
        self._cancelled.set()

    def failure(self, error: Exception) -> Block:
        if not isinstance(error, ServiceError):
            log_exception(f"a {self._kind} failed", error, current_request_id())
        return self._source_log.fail(error_event(error))

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        if self.is_over:
            return  # only the note that it is over was missing
        if self._ticket is None:
            self._ticket = self._services.admission.resumed_ticket()
            self._ticket.begin_run()
            self._work.resume(self._services.tracer)
        cancelled = False
        try:
            async with aclosing(self.make(self._ticket)) as made:
                async for blocks in made:
                    yield blocks
        except Cancelled:
            cancelled = True
        except BaseException as fault:
            if not (isinstance(fault, Unavailable) and self.is_waiting_to_resume):  # else it is tried again
                self._work.end(fault)
            raise
        finally:
            self._ticket.end_run()
            self._ticket = None
        self._work.span.set({"tis.run.outcome": "cancelled" if cancelled else "finished"})
        self._work.end()
        yield self.end(cancelled=cancelled)

    def _goes_on(self, ticket: Ticket) -> None:
        """A resumed run is where its readers are."""
        self.is_waiting_to_resume = False
        self._meter(ticket)

    def _meter(self, ticket: Ticket) -> None:
        """What a resumed run makes from here on counts for its key."""
        self._services.admission.meter_resumed(ticket, self._caller)


def begun_spec(spec: SomeSpec, ticket: Ticket | None, work: WorkSpan) -> SomeSpec:
    """With what another process must know of a run that begins here: whose it is, and its span."""
    if ticket is None:
        return spec
    work.begin()
    return replace(spec, caller=ticket.caller, traceparent=work.traceparent)


def resumed_run(
    kind: AudioKind, make: Callable[[], SomeRun], resume_states: Sequence[bytes], *, resume: bool
) -> SomeRun | InterruptedAnswer:
    """`make` reads the stored specification."""
    try:
        run = make()
        run.replay(resume_states)
    except (ValueError, KeyError, TypeError, IndexError) as fault:
        if isinstance(fault, OtherVersion):
            _log.warning("a %s is interrupted, because another version of the server began it", kind)
        else:
            log_exception(f"an interrupted {kind} cannot be read", fault, "-")
        return InterruptedAnswer("The server was restarted, and cannot read the stored part of this answer.")
    if resume or run.is_over:
        return run
    return InterruptedAnswer("The server was restarted during this answer, and RESUME_GENERATION is 0.")
