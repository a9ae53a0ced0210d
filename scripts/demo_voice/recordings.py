"""The sounds to learn from, and how many frames each letter lasts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from scripts.demo_voice.architecture import HOP
from scripts.demo_whisper.sentences import SAMPLE_RATE, ReadSentence, Spoken, all_spoken
from scripts.demo_whisper.speaking import Espeak

_LOUDNESS = 0.7  # of the loudest sample
_MARGIN = 4 * HOP  # quiet before and after


@dataclass(frozen=True)
class VoiceSample:
    sentence: ReadSentence
    samples: Any  # float32 at SAMPLE_RATE, whole frames
    durations: tuple[int, ...]  # frames of each letter


def record(path: Path, read: Sequence[ReadSentence]) -> None:
    """The forty sentences are read as they lie in the repository, the others by espeak-ng."""
    known = {one.sentence.name: one for one in all_spoken()}
    espeak = Espeak()
    arrays: dict[str, Any] = {}
    for sentence in read:
        try:
            one = recording(known.get(sentence.name) or espeak.spoken(sentence))
        except SystemExit as fault:  # espeak-ng does not say when a word begins
            print(f"left out: {fault}")
            continue
        arrays[f"{sentence.name}.samples"] = (one.samples * 32767).astype(numpy.int16)
        arrays[f"{sentence.name}.durations"] = numpy.array(one.durations, numpy.int16)
    numpy.savez_compressed(path, **arrays)


def recordings(path: Path, read: Sequence[ReadSentence]) -> list[VoiceSample]:
    arrays = numpy.load(path)
    return [
        VoiceSample(
            sentence,
            arrays[f"{sentence.name}.samples"].astype(numpy.float32) / 32767,
            tuple(int(frames) for frames in arrays[f"{sentence.name}.durations"]),
        )
        for sentence in read
        if f"{sentence.name}.samples" in arrays
    ]


def recording(spoken: Spoken) -> VoiceSample:
    samples = numpy.pad(spoken.samples, (_MARGIN, _MARGIN))
    samples = numpy.pad(samples, (0, -len(samples) % HOP))
    samples = samples * (_LOUDNESS / numpy.abs(samples).max())
    return VoiceSample(spoken.sentence, samples, _durations(spoken, len(samples) // HOP))


def _durations(spoken: Spoken, frames: int) -> tuple[int, ...]:
    """A word's time in equal parts to its letters; a space lasts until the next word, the last letter to the end."""
    text = spoken.sentence.text
    bounds = numpy.zeros(len(text) + 1)
    words = list(re.finditer(r"\S+", text))
    margin = _MARGIN / SAMPLE_RATE
    for word, time in zip(words, spoken.words, strict=True):
        places = numpy.linspace(time.start + margin, time.end + margin, word.end() - word.start() + 1)
        bounds[word.start() : word.end() + 1] = places
    bounds[0] = 0.0
    bounds[-1] = frames * HOP / SAMPLE_RATE
    edges = numpy.round(bounds * SAMPLE_RATE / HOP).astype(int)
    for number in range(1, len(edges)):  # VITS gives each letter a frame at least
        edges[number] = max(edges[number], edges[number - 1] + 1)
    edges = numpy.minimum(edges, frames - numpy.arange(len(text), -1, -1))
    edges[-1] = frames
    return tuple(int(frames) for frames in numpy.diff(edges))
