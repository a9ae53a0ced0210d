"""A text as the bytes of a sound file, which come sentence by sentence."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from tis.admission.ticket import Ticket
from tis.audio_api.made_in_order import made_in_order
from tis.audio_api.sound_encoder import SoundEncoder
from tis.audio_api.speech_spec import SpeechSpec
from tis.cancellation import race_cancel
from tis.engine.engine import Engine
from tis.engine.voice.spoken import SentenceToSay
from tis.errors import BadRequest
from tis.observability.spans import NO_SPAN, Span, current_span, use_span

_AT_ONCE = 2  # sentences of one text: the next one is computed while one is encoded and sent
_PAUSE_SECONDS = 0.2  # between sentences, at speed 1
_HELD_SECONDS = 40.0  # of samples of one text: two long sentences, while a slow client reads
_BYTES_PER_SAMPLE = 4


@dataclass(frozen=True, slots=True)
class SoundPart:
    data: bytes
    num_samples: int  # of the file so far, at the rate of the model


def require_sayable(spec: SpeechSpec, min_token_seconds: float) -> None:
    """Raises BadRequest for a text whose sound is too long however the model speaks."""
    seconds = spec.num_tokens * min_token_seconds + (len(spec.sentences) - 1) * _pause_seconds(spec)
    if seconds / _tempo(spec) > spec.max_seconds:
        raise _too_long(spec)


async def spoken_file(
    spec: SpeechSpec,
    engine: Engine,
    ticket: Ticket | None,
    cancelled: asyncio.Event,
    *,
    max_unread: int = 0,
    span: Span = NO_SPAN,
) -> AsyncGenerator[SoundPart, None]:
    """Sentence n has the noise of the seed + n. Raises Cancelled.

    The ticket holds memory for samples, and for `max_unread` bytes of parts.
    """
    if ticket:
        held = round(spec.sample_rate * _HELD_SECONDS) * _BYTES_PER_SAMPLE + max_unread
        await race_cancel(cancelled.wait(), ticket.take("decoded_bytes", held))
    encoder = await asyncio.to_thread(SoundEncoder, spec.form, spec.sample_rate, _tempo(spec))
    numbers = iter(range(len(spec.sentences)))

    async def next_number() -> int | None:
        return next(numbers, None)

    async def say(number: int) -> Any:
        pace = spec.speed if spec.sets_pace else 1.0
        sentence = SentenceToSay(spec.sentences[number], spec.voice, pace, spec.seed + number, spec.instructions)
        is_begun = number > 0 or bool(ticket and ticket.is_resumed)
        with use_span(current_span() if span is NO_SPAN else span):
            return await engine.say(spec.model_id, sentence, ticket, is_begun=is_begun)

    async with aclosing(made_in_order(next_number, say, _AT_ONCE, cancelled)) as spoken:
        async for number, samples in spoken:
            data = await asyncio.to_thread(_encoded, encoder, samples, number, spec)
            if encoder.num_samples > spec.max_seconds * spec.sample_rate:
                raise _too_long(spec)
            yield SoundPart(data, encoder.num_samples)
    yield SoundPart(await asyncio.to_thread(encoder.end), encoder.num_samples)


def _encoded(encoder: SoundEncoder, samples: Any, number: int, spec: SpeechSpec) -> bytes:
    if not number:
        return encoder.add(samples)
    import numpy as np

    pause = round(spec.sample_rate * _pause_seconds(spec))
    return encoder.add(np.concatenate([np.zeros(pause, np.float32), samples]))


def _tempo(spec: SpeechSpec) -> float:
    return 1.0 if spec.sets_pace else spec.speed


def _pause_seconds(spec: SpeechSpec) -> float:
    """Before the tempo is changed."""
    return _PAUSE_SECONDS / (spec.speed if spec.sets_pace else 1)


def _too_long(spec: SpeechSpec) -> BadRequest:
    seconds = f"{spec.max_seconds:g} seconds"
    return BadRequest(f"input: its speech is longer than {seconds}, the most that is made.", param="input")
