"""A transcription as a `Source`: the windows of a file are heard, each becomes a record, records become events."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from tis.admission.ticket import Ticket
from tis.audio_api.audio_run import AudioRun, begun_spec, resumed_run
from tis.audio_api.interrupted_answer import InterruptedAnswer
from tis.audio_api.made_in_order import made_in_order
from tis.audio_api.sound_span import sound_span
from tis.audio_api.transcript_writer import TranscriptWriter
from tis.audio_api.transcription_log import TranscriptionLog
from tis.audio_api.transcription_spec import TranscriptionSpec
from tis.cancellation import race_cancel
from tis.chat.run_spec import Services
from tis.engine.errors import GenerationInterrupted
from tis.engine.speech.heard import HeardWindow, HearingOptions, SpeechWindow
from tis.media.audio.decoder import OpenedSound, SoundWanted, SoundWindow
from tis.media.audio.protocol import BYTES_PER_SAMPLE
from tis.streaming.source import Block, ReadAttachments


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


class TranscriptionRun(AudioRun):
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
        work = sound_span("transcription", spec.model_id, spec.traceparent)
        self._spec = begun_spec(spec, ticket, work)
        self._log = TranscriptionLog(TranscriptWriter(spec))
        super().__init__("transcription", self._spec, self._log, services, ticket, work)
        self.attachments = {spec.file: file} if file else {}
        self._engine = services.engine
        self._at_once = at_once
        self._opened = opened
        self._read_attachments = read_attachments
        self._num_begun = 0
        self._seconds: float | None = None  # of the file, once all of it is read

    def end(self, *, cancelled: bool) -> Sequence[Block]:
        seconds = self._log.heard_until if self._seconds is None else self._seconds
        return self._log.add_end(seconds, cancelled=cancelled)

    async def make(self, ticket: Ticket) -> AsyncGenerator[Sequence[Block], None]:
        try:
            if self._opened is None:
                self._opened = await race_cancel(self._cancelled.wait(), self._reopened(ticket))
            async with aclosing(self._heard(self._opened, ticket)) as heard:
                async for blocks in heard:
                    yield blocks
        finally:
            opened, self._opened = self._opened, None
            if opened:
                self._seconds = opened.sound.seconds
                self._work.span.set({"tis.audio.seconds": self._seconds})
                opened.sound.close()

    async def _heard(self, opened: OpenedFile, ticket: Ticket) -> AsyncGenerator[Sequence[Block], None]:
        self._num_begun = self._log.num_windows
        ticket.enter("queued")
        if not self._log.has_language:
            code = self._spec.language
            if code is None and not (opened.is_one_window and not self._spec.languages):
                code = await race_cancel(self._cancelled.wait(), self._detected(opened, ticket))
            self._log.add_language(code)
        self._goes_on(ticket)
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
        if first:
            found = await self._engine.detect_language(
                self._spec.model_id, first.samples, ticket, is_begun=ticket.is_resumed
            )
        return found if found in allowed or not allowed else allowed[0]

    async def _hear(self, window: SoundWindow) -> HeardWindow:
        """No full queue stops an answer that has begun."""
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
        is_begun = bool(number or (self._ticket and self._ticket.is_resumed))
        window_to_hear = SpeechWindow(window.samples, options)
        with self._work.inside():
            return await self._engine.hear(spec.model_id, window_to_hear, self._ticket, is_begun=is_begun)


def resumed_transcription(
    request: bytes,
    resume_states: Sequence[bytes],
    read_attachments: ReadAttachments,
    services: Services,
    at_once: int,
    *,
    resume: bool,
) -> TranscriptionRun | InterruptedAnswer:
    def read() -> TranscriptionRun:
        spec = TranscriptionSpec.from_json(json.loads(request))
        return TranscriptionRun(spec, services, at_once, read_attachments=read_attachments)

    return resumed_run("transcription", read, resume_states, resume=resume)
