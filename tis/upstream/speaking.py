"""What an upstream says of a sentence, which it sends as a WAV file."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.request_timing import RequestTiming
from tis.engine.voice.sentences import sentences_of
from tis.engine.voice.speaking_model import MAX_SENTENCE_SECONDS
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription
from tis.engine.voice.voice_request import count_sound
from tis.errors import BadRequest
from tis.upstream.errors import failed
from tis.upstream.http_client import UpstreamHttp
from tis.upstream.token_counts import estimated_text_tokens
from tis.upstream.upstream_model import UpstreamModel
from tis.upstream.wav_file import NoWav, wav_samples

SOUND_RATE = 24_000  # that of an upstream is known only when it has spoken, and several may differ
_MAX_CHARS = 200  # of a sentence
_MAX_SOUND_BYTES = 16 * 2**20  # of a sentence, as it is sent


def describe_voice(model: UpstreamModel) -> VoiceDescription:
    origins = voices_of(model.entry)
    voices = tuple(origins or model.pool.voices)
    return VoiceDescription(SOUND_RATE, voices, sets_pace=True, revision=model.model, origins=origins)


def voices_of(entry: CatalogueEntry) -> Mapping[str, str]:
    """The names that clients use, and what the upstream calls each. Empty: those that it has itself."""
    return {name: str(of_upstream) for name, of_upstream in entry.voices.items()}


async def cut_text(text: str, pace: float) -> CutText:
    """Sentences that are spoken slowly are shorter, so that each takes no more time. Raises BadRequest for silence."""
    cut = await asyncio.to_thread(sentences_of, text, round(_MAX_CHARS * min(1.0, pace)))
    sentences = [one for one in cut if any(char.isalnum() for char in one)]
    if not sentences:
        raise BadRequest("input: it has no letter and no digit to say.", param="input")
    return CutText(sentences, sum(map(estimated_text_tokens, sentences)))


def speech_body(model: UpstreamModel, sentence: SentenceToSay) -> dict[str, Any]:
    voice = voices_of(model.entry).get(sentence.voice, sentence.voice)
    body: dict[str, Any] = {"model": model.model, "input": sentence.text, "voice": voice, "response_format": "wav"}
    if sentence.pace != 1:
        body["speed"] = sentence.pace
    if sentence.instructions:
        body["instructions"] = sentence.instructions
    if model.is_ours:
        body["seed"] = sentence.seed
    return body


async def ask_to_say(http: UpstreamHttp, body: Mapping[str, Any], seconds: float) -> Any:
    """Samples at `SOUND_RATE`."""
    sound = await http.post_for_file("/audio/speech", body, seconds, _MAX_SOUND_BYTES)
    return await asyncio.to_thread(_samples, sound)


def count_spoken(timing: RequestTiming, samples: Any, now: float) -> None:
    count_sound(timing, len(samples), SOUND_RATE, now)


def _samples(sound: bytes) -> Any:
    try:
        samples, rate = wav_samples(sound)
    except NoWav:
        raise failed("sent a sound that is no whole WAV file") from None
    if len(samples) > MAX_SENTENCE_SECONDS * rate:
        raise failed(f"spoke longer than {MAX_SENTENCE_SECONDS:g} s for one sentence")
    made = samples if rate == SOUND_RATE else _resampled(samples, rate)
    if not len(made):
        raise failed("sent a sound without samples")
    return made


def _resampled(samples: Any, rate: int) -> Any:
    import av
    import numpy as np

    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples)[None], format="fltp", layout="mono")
    frame.sample_rate = rate
    resampler = av.AudioResampler(format="fltp", layout="mono", rate=SOUND_RATE)
    frames = [*resampler.resample(frame), *resampler.resample(None)]
    empty = np.zeros(0, np.float32)  # a few samples may make none
    return np.concatenate([empty, *(one.to_ndarray()[0] for one in frames)]).clip(-1, 1)
