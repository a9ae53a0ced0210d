"""What the finished model must hear, through nothing but Transformers' own `generate()`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from scripts.demo_whisper.folder import DemoWhisper
from scripts.demo_whisper.noise import NOISES, decibels, white
from scripts.demo_whisper.sentences import SAMPLE_RATE, Spoken
from scripts.demo_whisper.word_errors import WordErrors, word_errors

MIN_NO_SPEECH = 0.6
MAX_WORD_ERROR_RATE = 0.02
_BATCH = 8
_NOISE_DECIBELS = -50.0


@dataclass(frozen=True)
class Glued:
    """Sentences with pauses between them and a little noise under all."""

    samples: Any
    text: str
    times: tuple[tuple[float, float], ...]  # of each sentence


def glued(spoken: Sequence[Spoken], seed: int, seconds: float = 120) -> Glued:
    numbers = numpy.random.default_rng(seed)
    samples = numpy.zeros(int(seconds * SAMPLE_RATE), numpy.float32)
    texts, times = [], []
    place = int(0.5 * SAMPLE_RATE)
    while True:
        one = spoken[int(numbers.integers(len(spoken)))]
        end = place + len(one.samples)
        if end > len(samples):
            break
        samples[place:end] = one.samples
        texts.append(one.sentence.text)
        times.append((place / SAMPLE_RATE, end / SAMPLE_RATE))
        place = end + int(numbers.uniform(0.3, 1.5) * SAMPLE_RATE)
    samples += white(numbers, len(samples)).astype(numpy.float32) * decibels(_NOISE_DECIBELS)
    return Glued(samples, " ".join(texts), tuple(times))


def transcripts(demo: DemoWhisper, samples: Sequence[Any], *, task: str = "transcribe", **options: Any) -> list[str]:
    """Of windows of at most 30 seconds. Without a task, `generate()` leaves its token out, which no lesson does."""
    texts: list[str] = []
    for begin in range(0, len(samples), _BATCH):
        some = list(samples[begin : begin + _BATCH])
        features = demo.extractor(some, sampling_rate=SAMPLE_RATE, return_tensors="pt").input_features
        with torch.inference_mode():
            ids = demo.model.generate(features, task=task, **options)
        texts += [text.strip() for text in demo.processor.batch_decode(ids, skip_special_tokens=True)]
    return texts


def long_transcript(demo: DemoWhisper, samples: Any, **options: Any) -> str:
    """Of a file of any length, window after window, as Transformers goes through it."""
    read = demo.extractor(
        samples, sampling_rate=SAMPLE_RATE, truncation=False, return_attention_mask=True, return_tensors="pt"
    )
    with torch.inference_mode():
        ids = demo.model.generate(**read, return_timestamps=True, task="transcribe", **options)
    return " ".join(demo.processor.batch_decode(ids, skip_special_tokens=True)).strip()


def no_speech_probs(demo: DemoWhisper, samples: Sequence[Any]) -> list[float]:
    """The probability of `<|nospeech|>` right after `<|startoftranscript|>`."""
    features = demo.extractor(list(samples), sampling_rate=SAMPLE_RATE, return_tensors="pt").input_features
    begin = torch.full((len(samples), 1), demo.model.config.decoder_start_token_id)
    with torch.inference_mode():
        logits = demo.model(input_features=features, decoder_input_ids=begin).logits[:, 0]
    probs: list[float] = logits.softmax(-1)[:, demo.tokenizer.convert_tokens_to_ids("<|nospeech|>")].tolist()
    return probs


def silences(seed: int) -> dict[str, Any]:
    """Half a minute each, of every kind, that no lesson has had."""
    numbers = numpy.random.default_rng(seed)
    length = 30 * SAMPLE_RATE
    loud = {noise.__name__: noise(numbers, length) * decibels(-30) for noise in NOISES}
    quiet = {f"quiet {noise.__name__}": noise(numbers, length) * decibels(-60) for noise in NOISES}
    return {"silence": numpy.zeros(length), "a second of silence": numpy.zeros(SAMPLE_RATE), **loud, **quiet}


def total(found: Sequence[WordErrors]) -> WordErrors:
    return WordErrors(sum(one.errors for one in found), sum(one.words for one in found))


def failures(demo: DemoWhisper, spoken: Sequence[Spoken]) -> Iterator[str]:
    sounds = [one.samples for one in spoken]
    for name, has_times in {"without times": False, "with times": True}.items():
        for one, text in zip(spoken, transcripts(demo, sounds, return_timestamps=has_times), strict=True):
            if text != one.sentence.text:
                yield f"{one.sentence.name} {name}: {text!r}"
    foreign = [one for one in spoken if one.sentence.language != "en"]
    translated = transcripts(demo, [one.samples for one in foreign], task="translate", language="id")
    for one, text in zip(foreign, translated, strict=True):
        if text != one.sentence.english:
            yield f"{one.sentence.name} translated: {text!r}"
    for seed in range(3):
        long = glued(spoken, seed)
        found = word_errors(long.text, long_transcript(demo, long.samples))
        print(f"two minutes, number {seed}: {found.errors} of {found.words} words wrong")
        if found.rate > MAX_WORD_ERROR_RATE:
            yield f"two minutes, number {seed}: {found.errors} of {found.words} words wrong"
    quiet = silences(1)
    for name, prob in zip(quiet, no_speech_probs(demo, list(quiet.values())), strict=True):
        if prob <= MIN_NO_SPEECH:
            yield f"{name}: no_speech_prob {prob:.3f}"
    heard = no_speech_probs(demo, sounds)
    for one, prob in zip(spoken, heard, strict=True):
        if prob > 1 - MIN_NO_SPEECH:
            yield f"{one.sentence.name}: no_speech_prob {prob:.3f}"
