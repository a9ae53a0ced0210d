"""A speech as a `Source`: sentences are spoken, and the bytes of the file become events.

Sound is not stored twice: another process speaks the text again from its beginning, which gives the same bytes, and
goes on behind those that readers have.
"""

import hashlib
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from tis.admission.ticket import Ticket
from tis.audio_api.audio_run import AudioRun, begun_spec, resumed_run
from tis.audio_api.interrupted_answer import InterruptedAnswer
from tis.audio_api.sound_span import sound_span
from tis.audio_api.speech_log import SpeechLog
from tis.audio_api.speech_spec import SpeechSpec
from tis.audio_api.spoken_file import SoundPart, spoken_file
from tis.cancellation import race_cancel
from tis.chat.run_spec import Services
from tis.engine.errors import GenerationInterrupted
from tis.engine.voice.voice_request import num_audio_tokens
from tis.streaming.source import Block

_OTHER_SOUND = "The speech cannot go on: this machine makes other sound of the text."


class SpeechRun(AudioRun):
    def __init__(self, spec: SpeechSpec, services: Services, ticket: Ticket | None = None) -> None:
        work = sound_span("speech", spec.model_id, spec.traceparent)
        self._spec = begun_spec(spec, ticket, work)
        self._log = SpeechLog()
        self._num_samples = 0
        super().__init__("speech", self._spec, self._log, services, ticket, work)

    async def make(self, ticket: Ticket) -> AsyncGenerator[Sequence[Block], None]:
        if ticket.is_resumed:
            await race_cancel(self._cancelled.wait(), self._require_same_model())
        spoken = spoken_file(self._spec, self._services.engine, ticket, self._cancelled, span=self._work.span)
        async with aclosing(spoken) as parts:
            async for part in self._unsent(parts, ticket):
                self._num_samples = part.num_samples
                if blocks := self._log.add_sound(part.data, part.num_samples):
                    yield blocks

    def end(self, *, cancelled: bool) -> Sequence[Block]:
        made = num_audio_tokens(max(self._num_samples, self._log.num_samples), self._spec.sample_rate)
        return self._log.add_end(self._spec.num_tokens, made, cancelled=cancelled)

    async def _require_same_model(self) -> None:
        spec = self._spec
        known = await self._services.engine.describe_voice(spec.model_id)
        if (known.revision, known.sample_rate) != (spec.revision, spec.sample_rate):
            raise GenerationInterrupted(f"The speech cannot go on: {spec.model_id} is another model now.")
        if known.origins.get(spec.voice, "") != spec.origin:
            raise GenerationInterrupted(f"The speech cannot go on: {spec.voice} is another voice now.")

    async def _unsent(self, parts: AsyncGenerator[SoundPart, None], ticket: Ticket) -> AsyncGenerator[SoundPart, None]:
        """Empty in place of the bytes that are in events of another process, which end with a sentence."""
        log, made = self._log, hashlib.blake2b(digest_size=16)
        left = log.num_bytes
        if not left:
            self._meter(ticket)
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
                self._goes_on(ticket)
            yield SoundPart(b"", part.num_samples)
        if left:
            raise GenerationInterrupted(_OTHER_SOUND)


def resumed_speech(
    request: bytes, resume_states: Sequence[bytes], services: Services, *, resume: bool
) -> SpeechRun | InterruptedAnswer:
    return resumed_run(
        "speech", lambda: SpeechRun(SpeechSpec.from_json(json.loads(request)), services), resume_states, resume=resume
    )
