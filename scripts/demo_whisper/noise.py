"""What a window holds when nobody speaks: quiet, noise of several colours, hum, tones and clicks."""

from collections.abc import Callable
from typing import Any

import numpy

from scripts.demo_whisper.sentences import SAMPLE_RATE

Numbers = numpy.random.Generator
Noise = Callable[[Numbers, int], Any]


def white(numbers: Numbers, length: int) -> Any:
    return _loudness_one(numbers.standard_normal(length))


def pink(numbers: Numbers, length: int) -> Any:
    return _coloured(numbers, length, 0.5)


def brown(numbers: Numbers, length: int) -> Any:
    return _coloured(numbers, length, 1.0)


def hum(numbers: Numbers, length: int) -> Any:
    """Of the mains, with its overtones."""
    base = numbers.choice((50.0, 60.0, 100.0))
    time = numpy.arange(length) / SAMPLE_RATE
    waves = [
        numpy.sin(2 * numpy.pi * base * factor * time) / factor for factor in range(1, int(numbers.integers(2, 7)))
    ]
    return _loudness_one(sum(waves))


def tone(numbers: Numbers, length: int) -> Any:
    """One that sounds for some of the time, at one pitch or gliding."""
    time = numpy.arange(length) / SAMPLE_RATE
    first, last = numbers.uniform(100, 4000, 2)
    pitch = numpy.linspace(first, last if numbers.random() < 0.3 else first, length)
    sounds = numpy.sin(2 * numpy.pi * numpy.cumsum(pitch) / SAMPLE_RATE)
    beat = numbers.uniform(0.3, 4)
    return _loudness_one(sounds * ((time / beat) % 1 < numbers.uniform(0.2, 1.0)))


def clicks(numbers: Numbers, length: int) -> Any:
    made = numpy.zeros(length)
    for place in numbers.integers(0, length - 400, int(numbers.integers(1, 40))):
        made[place : place + 400] += numbers.standard_normal(400) * numpy.exp(
            -numpy.arange(400) / numbers.uniform(5, 80)
        )
    return _loudness_one(made)


def bursts(numbers: Numbers, length: int) -> Any:
    """Noise that comes and goes, as doors and traffic do."""
    swells = numpy.interp(
        numpy.arange(length), numpy.linspace(0, length, 24), numbers.random(24) ** numbers.uniform(1, 5)
    )
    return _loudness_one(_coloured(numbers, length, numbers.uniform(0, 1)) * swells)


NOISES: tuple[Noise, ...] = (white, pink, brown, hum, tone, clicks, bursts)


def nobody(numbers: Numbers, length: int) -> Any:
    """A window without speech."""
    if numbers.random() < 0.2:
        return numpy.zeros(length)
    made = numpy.zeros(length)
    for number in numbers.choice(len(NOISES), int(numbers.integers(1, 3)), replace=False):
        made += NOISES[number](numbers, length) * decibels(numbers.uniform(-70, -12))
    return made


def decibels(value: float) -> float:
    return float(10 ** (value / 20))


def _coloured(numbers: Numbers, length: int, power: float) -> Any:
    spectrum = numpy.fft.rfft(numbers.standard_normal(length))
    spectrum /= numpy.maximum(1, numpy.arange(len(spectrum)) * 16000 / length / 40) ** power
    return _loudness_one(numpy.fft.irfft(spectrum, length))


def _loudness_one(samples: Any) -> Any:
    return samples / (numpy.sqrt((samples**2).mean()) + 1e-9)
