"""Windows to learn from: sentences at any place, pace and loudness, some broken off, with noise, or nobody at all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from scripts.demo_whisper.noise import NOISES, Numbers, decibels, nobody
from scripts.demo_whisper.sentences import SAMPLE_RATE, Spoken, WordTime, resampled

_MAX_LONGER = 1.06  # than recorded
_FADE = 80  # samples
POSITION = SAMPLE_RATE // 50  # samples of one position of the encoder
_SHARE_WITHOUT_SPEECH = 0.13
_SHARE_OF_FILES = 0.25
_SHARE_BROKEN_OFF = 0.15
_SHARE_AS_RECORDED = 0.5
_SHARE_NARROW = 0.15  # as over a telephone


@dataclass(frozen=True)
class Said:
    """A sentence, or a piece of one, as it lies in a window; times in seconds from the beginning of the samples."""

    spoken: Spoken
    start: float
    end: float
    words: tuple[tuple[str, WordTime], ...]
    is_whole: bool = True
    is_cut: bool = False  # by the end of the window


@dataclass(frozen=True)
class Window:
    samples: Any
    offset: int  # positions of the encoder before the first sample
    said: tuple[Said, ...]


def drawn_window(numbers: Numbers, spoken: Sequence[Spoken], positions: int, max_sentences: int, window: int) -> Window:
    """`positions` of the `window` positions of the encoder; to leave out the rest saves most of the time."""
    offset = _offset(numbers, window - positions)
    length = positions * POSITION
    if numbers.random() < _SHARE_OF_FILES:
        return _file(numbers, spoken, length)
    if numbers.random() < _SHARE_WITHOUT_SPEECH:
        return Window(nobody(numbers, length), offset, ())
    samples, said = _speech(numbers, spoken, length, max_sentences, cuts=offset + positions == window)
    return Window(_heard(numbers, samples), offset, said)


def _file(numbers: Numbers, spoken: Sequence[Spoken], length: int) -> Window:
    """A sentence as it was recorded, and nothing else: the files that people try first."""
    fitting = [one for one in spoken if len(one.samples) <= length]
    one = fitting[int(numbers.integers(len(fitting)))]
    words = tuple(zip(one.sentence.text.split(), one.words, strict=True))
    samples = numpy.zeros(length)
    samples[: len(one.samples)] = one.samples
    return Window(samples, 0, (Said(one, 0.0, len(one.samples) / SAMPLE_RATE, words),))


def _offset(numbers: Numbers, room: int) -> int:
    kind = numbers.random()
    return 0 if kind < 0.35 else room if kind < 0.55 else int(numbers.integers(0, room + 1))


def _speech(
    numbers: Numbers, spoken: Sequence[Spoken], length: int, max_sentences: int, *, cuts: bool
) -> tuple[Any, tuple[Said, ...]]:
    samples = numpy.zeros(length)
    fitting = [one for one in spoken if len(one.samples) < length / _MAX_LONGER]
    said: list[Said] = []
    place = _first_place(numbers, length)
    if numbers.random() < 0.1:  # the rest of a word that belongs to the window before
        rest = spoken[int(numbers.integers(len(spoken)))].samples[-int(numbers.integers(200, 1600)) :]
        samples[: len(rest)] += rest
        place = max(place, 2400)
    pause = numbers.uniform(0.1, 1.5)
    for _ in range(int(numbers.integers(1, max_sentences + 1))):
        sound, one = _varied(numbers, fitting[int(numbers.integers(len(fitting)))])
        if place + len(sound) > length and not said and not cuts:
            place = 0
        if place + len(sound) > length and (not cuts or place > length - 3200):
            break
        kept = sound[: length - place]
        samples[place : place + len(kept)] += kept
        said.append(_placed(one, place / SAMPLE_RATE, length / SAMPLE_RATE))
        place += len(sound) + int(SAMPLE_RATE * (pause + numbers.exponential(0.3)))
    return samples, tuple(said)


def _first_place(numbers: Numbers, length: int) -> int:
    kind = numbers.random()
    seconds = (
        0.0 if kind < 0.3 else numbers.uniform(0, 1) if kind < 0.7 else numbers.uniform(0, 0.5 * length / SAMPLE_RATE)
    )
    return int(seconds * SAMPLE_RATE)


def _varied(numbers: Numbers, spoken: Spoken) -> tuple[Any, Said]:
    words = tuple(zip(spoken.sentence.text.split(), spoken.words, strict=True))
    sound, one = spoken.samples, Said(spoken, 0.0, len(spoken.samples) / SAMPLE_RATE, words)
    if numbers.random() < _SHARE_BROKEN_OFF:
        sound, one = _broken_off(numbers, sound, one)
    if numbers.random() > _SHARE_AS_RECORDED:
        pace = numbers.uniform(1 / _MAX_LONGER, _MAX_LONGER)
        sound, one = resampled(sound, pace), _scaled(one, 1 / pace)
    return sound * decibels(numbers.uniform(-6, 3)), one


def _broken_off(numbers: Numbers, sound: Any, one: Said) -> tuple[Any, Said]:
    """At a word: the first words or the last."""
    number = int(numbers.integers(1, len(one.words)))
    if numbers.random() < 0.5:
        start, end, words = 0.0, one.words[number - 1][1].end, one.words[:number]
    else:
        start, end, words = one.words[number][1].start, one.end, one.words[number:]
    sound = sound[int(start * SAMPLE_RATE) : int(end * SAMPLE_RATE)].copy()
    slope = numpy.linspace(0, 1, _FADE)
    sound[:_FADE] *= slope
    sound[-_FADE:] *= slope[::-1]
    return sound, _shifted(replace(one, start=start, end=end, words=words, is_whole=False), -start)


def _scaled(one: Said, factor: float) -> Said:
    words = tuple((word, WordTime(time.start * factor, time.end * factor)) for word, time in one.words)
    return replace(one, start=one.start * factor, end=one.end * factor, words=words)


def _shifted(one: Said, seconds: float) -> Said:
    words = tuple((word, WordTime(time.start + seconds, time.end + seconds)) for word, time in one.words)
    return replace(one, start=one.start + seconds, end=one.end + seconds, words=words)


def _placed(one: Said, place: float, length: float) -> Said:
    """Of a sentence that the window cuts, the words that are in it."""
    one = _shifted(one, place)
    if one.end <= length:
        return one
    words = tuple((word, time) for word, time in one.words if time.end <= length)
    return replace(one, end=length, words=words, is_whole=False, is_cut=True)


def _heard(numbers: Numbers, samples: Any) -> Any:
    """As it comes through a line: loudness, noise, and sometimes no high tones."""
    if numbers.random() < 0.6:
        loudness = numpy.sqrt((samples**2).mean()) * decibels(-numbers.uniform(8, 42))
        samples = samples + NOISES[int(numbers.integers(len(NOISES)))](numbers, len(samples)) * loudness
    if numbers.random() < _SHARE_NARROW:
        spectrum = numpy.fft.rfft(samples)
        spectrum[int(len(spectrum) * numbers.uniform(0.42, 0.6)) :] = 0
        samples = numpy.fft.irfft(spectrum, len(samples))
    return numpy.clip(samples * decibels(numbers.uniform(-22, 3)), -1, 1)
