"""A speech as a `Source`: sentences are spoken, and the bytes of the file become events.

Sound is not stored twice: another process speaks the text again from its beginning, which gives the same bytes, and
goes on behind those that readers have.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from tis.admission.ticket import Ticket
from tis.audio_api.interrupted_answer import InterruptedAnswer
from tis.audio_api.sound_span import sound_span
from tis.audio_api.speech_log import SpeechLog
from tis.audio_api.speech_spec import OtherSpeech, SpeechSpec
from tis.audio_api.spoken_file import SoundPart, spoken_file
from tis.cancellation import Cancelled, race_cancel
from tis.chat.run_spec import Services
from tis.engine.errors import GenerationInterrupted
from tis.engine.voice.voice_request import num_audio_tokens
from tis.errors import ServiceError, Unavailable
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id
from tis.openai_api.wire.chat_writer import error_event
from tis.streaming.source import Block
from tis.streaming.stores.store import Status

_log = logging.getLogger("tis.audio")
_OTHER_SOUND = "The speech cannot go on: this machine makes other sound of the text."


class SpeechRun:
    may_be_repeated = True
    summary = b"{}"
    attachments: Mapping[str, bytes] = {}

    def __init__(self, spec: SpeechSpec, services: Services, ticket: Ticket | None = None) -> None:
        """Without a ticket it continues what another process began."""
        self.is_waiting_to_resume = False
        self._work = sound_span("speech", spec.model_id, spec.traceparent)
        if ticket:
            self._work.begin()
        self.request = replace(spec, traceparent=self.traceparent).to_json()
        self._spec = spec
        self._services = services
        self._ticket = ticket
        self._cancelled = asyncio.Event()
        self._log = SpeechLog()

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
            log_exception("a speech failed", error, current_request_id())
        return self._log.fail(error_event(error))

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        if self._log.is_over:
            return  # only the note that it is over was missing
        is_new = self._ticket is not None
        if self._ticket is None:
            self._ticket = self._services.admission.resumed_ticket()
            self._ticket.begin_run()
            self._work.resume(self._services.tracer)
        num_samples, cancelled = 0, False
        try:
            if not is_new:
                await race_cancel(self._cancelled.wait(), self._require_same_model())
            spoken = spoken_file(self._spec, self._services.engine, self._ticket, self._cancelled, self._work.span)
            async with aclosing(spoken) as parts:
                async for part in self._unsent(parts):
                    num_samples = part.num_samples
                    if blocks := self._log.add_sound(part.data, num_samples):
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
        made = num_audio_tokens(max(num_samples, self._log.num_samples), self._spec.sample_rate)
        self._work.span.set({"tis.run.outcome": "cancelled" if cancelled else "finished"})
        self._work.end()
        yield self._log.add_end(self._spec.num_tokens, made, cancelled=cancelled)

    async def _require_same_model(self) -> None:
        spec = self._spec
        known = await self._services.engine.describe_voice(spec.model_id)
        if (known.revision, known.sample_rate) != (spec.revision, spec.sample_rate):
            raise GenerationInterrupted(f"The speech cannot go on: {spec.model_id} is another model now.")
        if known.origins.get(spec.voice) != spec.origin:
            raise GenerationInterrupted(f"The speech cannot go on: {spec.voice} is another voice now.")

    async def _unsent(self, parts: AsyncGenerator[SoundPart, None]) -> AsyncGenerator[SoundPart, None]:
        """Empty in place of the bytes that are in events of another process, which end with a sentence."""
        log, made = self._log, hashlib.blake2b(digest_size=16)
        left = log.num_bytes
        async for part in parts:
            if not left:
                self.is_waiting_to_resume = False
                yield part
                continue
            made.update(part.data)
            left -= len(part.data)
            if left < 0 or (left == 0 and made.hexdigest() != log.digest_before):
                raise GenerationInterrupted(_OTHER_SOUND)
            if left == 0:
                log.digest = made
            yield SoundPart(b"", part.num_samples)
        if left:
            raise GenerationInterrupted(_OTHER_SOUND)


def resumed_speech(
    request: bytes, resume_states: Sequence[bytes], services: Services, *, resume: bool
) -> SpeechRun | InterruptedAnswer:
    try:
        run = SpeechRun(SpeechSpec.from_json(json.loads(request)), services)
        run.replay(resume_states)
    except (ValueError, KeyError, TypeError, IndexError) as fault:
        if isinstance(fault, OtherSpeech):
            _log.warning("a speech is interrupted, because another version of the server began it")
        else:
            log_exception("an interrupted speech cannot be read", fault, "-")
        return InterruptedAnswer("The server was restarted, and cannot read the stored part of this answer.")
    if resume or run.is_over:
        return run
    return InterruptedAnswer("The server was restarted during this answer, and RESUME_GENERATION is 0.")
