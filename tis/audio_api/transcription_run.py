"""A transcription as a `Source`: the windows of a file are heard, each becomes a record, records become events."""

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from tis.admission.ticket import Ticket
from tis.audio_api.interrupted_answer import InterruptedAnswer
from tis.audio_api.made_in_order import made_in_order
from tis.audio_api.sound_span import sound_span
from tis.audio_api.transcript_writer import TranscriptWriter
from tis.audio_api.transcription_log import TranscriptionLog
from tis.audio_api.transcription_spec import OtherTranscription, TranscriptionSpec
from tis.cancellation import Cancelled, race_cancel
from tis.chat.run_spec import Services
from tis.engine.errors import GenerationInterrupted
from tis.engine.speech.heard import HeardWindow, HearingOptions, SpeechWindow
from tis.errors import QueueFull, ServiceError, Unavailable
from tis.media.audio.decoder import OpenedSound, SoundWanted, SoundWindow
from tis.media.audio.protocol import BYTES_PER_SAMPLE
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id
from tis.openai_api.wire.chat_writer import error_event
from tis.streaming.source import Block, ReadAttachments
from tis.streaming.stores.store import Status

_log = logging.getLogger("tis.audio")


@dataclass(slots=True)
class OpenedFile:
    """The sound of a file, and the windows that were cut already, of which the last may be none."""

    sound: OpenedSound
    ahead: deque[SoundWindow | None]

    @property
    def is_one_window(self) -> bool:
        return None in list(self.ahead)[:2]

    async def next(self) -> SoundWindow | None:
        return self.ahead.popleft() if self.ahead else await self.sound.next()


async def open_file(
    spec: TranscriptionSpec, data: bytes, services: Services, at_once: int, ticket: Ticket, num_skipped: int = 0
) -> OpenedFile:
    """Cuts the first two windows: whoever sent a file that cannot be decoded is told before an answer begins."""
    await ticket.take("media_bytes", len(data))
    window_bytes = int(spec.sample_rate * spec.window_seconds) * BYTES_PER_SAMPLE
    await ticket.take("decoded_bytes", window_bytes * (at_once + 1))
    wanted = SoundWanted(spec.sample_rate, spec.window_seconds, spec.rules, num_skipped)
    sound = await services.media.sound.open(data, wanted, ticket, "file")
    try:
        opened = OpenedFile(sound, deque([await sound.next(), await sound.next()]))
    except BaseException:
        sound.close()
        raise
    if opened.is_one_window:
        ticket.keep("decoded_bytes", window_bytes)
    return opened


class TranscriptionRun:
    may_be_repeated = True
    summary = b"{}"

    def __init__(
        self,
        spec: TranscriptionSpec,
        services: Services,
        at_once: int,
        *,
        opened: OpenedFile | None = None,
        file: bytes = b"",
        ticket: Ticket | None = None,
        read_attachments: ReadAttachments | None = None,
    ) -> None:
        """`read_attachments`: of a run of another process, which has the file. `at_once`: windows."""
        self.is_waiting_to_resume = False
        self.attachments: Mapping[str, bytes] = {spec.file: file} if file else {}
        self._work = sound_span("transcription", spec.model_id, spec.traceparent)
        if ticket:
            self._work.begin()
        self.request = replace(spec, traceparent=self.traceparent).to_json()
        self._spec = spec
        self._engine, self._services = services.engine, services
        self._at_once = at_once
        self._opened = opened
        self._ticket = ticket
        self._read_attachments = read_attachments
        self._cancelled = asyncio.Event()
        self._log = TranscriptionLog(TranscriptWriter(spec))
        self._num_begun = 0

    def hold_ticket(self) -> None:
        """The turn of the run has begun: its events will be read to their end."""
        if self._ticket:
            self._ticket.begin_run()

    def replay(self, resume_states: Sequence[bytes]) -> None:
        self._log.replay(resume_states)
        self.is_waiting_to_resume = not self._log.is_over

    @property
    def is_over(self) -> bool:
        return self._log.is_over

    @property
    def traceparent(self) -> str:
        return self._work.traceparent

    @property
    def outcome(self) -> Status:
        return self._log.outcome

    def cancel(self) -> None:
        self._cancelled.set()

    def failure(self, error: Exception) -> Block:
        if not isinstance(error, ServiceError):
            log_exception("a transcription failed", error, current_request_id())
        return self._log.fail(error_event(error))

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        if self._log.is_over:
            return  # only the note that it is over was missing
        if self._ticket is None:
            self._ticket = self._services.admission.resumed_ticket()
            self._ticket.begin_run()
            self._work.resume(self._services.tracer)
        log, cancelled = self._log, False
        try:
            async with aclosing(self._hear_all(self._ticket)) as heard:
                async for blocks in heard:
                    yield blocks
        except Cancelled:
            cancelled = True
        except BaseException as fault:
            if not (isinstance(fault, Unavailable) and self.is_waiting_to_resume):  # else it is tried again
                self._work.end(fault)
            raise
        finally:
            opened, self._opened = self._opened, None
            if opened:
                opened.sound.close()
            self._ticket.end_run()
            self._ticket = None
        seconds = opened.sound.seconds if opened else None
        self._work.span.set({"tis.audio.seconds": seconds, "tis.run.outcome": "cancelled" if cancelled else "finished"})
        self._work.end()
        yield log.add_end(log.heard_until if seconds is None else seconds, cancelled=cancelled)

    async def _hear_all(self, ticket: Ticket) -> AsyncGenerator[Sequence[Block], None]:
        opened = self._opened
        if opened is None:
            opened = self._opened = await race_cancel(self._cancelled.wait(), self._reopened(ticket))
        self._num_begun = self._log.num_windows
        ticket.enter("queued")
        if not self._log.has_language:
            code = self._spec.language
            if code is None and not (opened.is_one_window and not self._spec.languages):
                code = await race_cancel(self._cancelled.wait(), self._detected(opened, ticket))
            self._log.add_language(code)
        self.is_waiting_to_resume = False
        in_order = made_in_order(opened.next, self._hear, self._at_once, self._cancelled)
        async with aclosing(in_order) as heard_windows:
            async for window, heard in heard_windows:
                ticket.generate()
                seconds = len(window.samples) / self._spec.sample_rate
                if blocks := self._log.add_window(window.start, seconds, heard):
                    yield blocks

    async def _reopened(self, ticket: Ticket) -> OpenedFile:
        spec = self._spec
        known = await self._engine.describe_speech(spec.model_id)
        if (known.sample_rate, known.window_seconds) != (spec.sample_rate, spec.window_seconds):
            raise GenerationInterrupted(f"The transcription cannot go on: {spec.model_id} is another model now.")
        assert self._read_attachments
        found = await self._read_attachments([spec.file])
        if spec.file not in found:
            raise GenerationInterrupted("The transcription cannot go on: its file was not kept.")
        self.attachments = {spec.file: found[spec.file]}
        return await open_file(
            spec, found[spec.file], self._services, self._at_once, ticket, num_skipped=self._log.num_windows
        )

    async def _detected(self, opened: OpenedFile, ticket: Ticket) -> str | None:
        """The language of the first window is that of the file."""
        first, allowed = opened.ahead[0] if opened.ahead else None, self._spec.languages
        found: str | None = None
        while first:
            try:
                found = await self._engine.detect_language(self._spec.model_id, first.samples, ticket)
                break
            except QueueFull as full:
                if not ticket.is_resumed:
                    raise
                await asyncio.sleep(full.retry_after or 1)
        return found if found in allowed or not allowed else allowed[0]

    async def _hear(self, window: SoundWindow) -> HeardWindow:
        """A full queue stops no answer that has begun."""
        spec, number = self._spec, self._num_begun
        self._num_begun += 1
        options = HearingOptions(
            task=spec.task,
            language=self._log.language,
            prompt=spec.prompt,
            temperatures=tuple(spec.temperatures),
            seed=number,
            with_words=spec.with_words,
            with_logprobs=spec.with_logprobs,
        )
        while True:
            try:
                with self._work.inside():
                    return await self._engine.hear(spec.model_id, SpeechWindow(window.samples, options), self._ticket)
            except QueueFull as full:
                if not (number or (self._ticket and self._ticket.is_resumed)):
                    raise
                await asyncio.sleep(full.retry_after or 1)


def resumed_transcription(
    request: bytes,
    resume_states: Sequence[bytes],
    read_attachments: ReadAttachments,
    services: Services,
    at_once: int,
    *,
    resume: bool,
) -> TranscriptionRun | InterruptedAnswer:
    try:
        spec = TranscriptionSpec.from_json(json.loads(request))
        run = TranscriptionRun(spec, services, at_once, read_attachments=read_attachments)
        run.replay(resume_states)
    except (ValueError, KeyError, TypeError, IndexError) as fault:
        if isinstance(fault, OtherTranscription):
            _log.warning("a transcription is interrupted, because another version of the server began it")
        else:
            log_exception("an interrupted transcription cannot be read", fault, "-")
        return InterruptedAnswer("The server was restarted, and cannot read the stored part of this answer.")
    if resume or run.is_over:
        return run
    return InterruptedAnswer("The server was restarted during this answer, and RESUME_GENERATION is 0.")
