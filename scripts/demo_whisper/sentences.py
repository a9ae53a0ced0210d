"""The forty sentences: their texts, and their sound with the times of its words, as they lie in this folder."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy

SAMPLE_RATE = 16000
SPEECH = Path(__file__).with_name("speech")
_TABLE = Path(__file__).with_name("sentences.csv")
_WORD_TIMES = SPEECH / "word_times.csv"
_BITS_PER_SECOND = 20_000


@dataclass(frozen=True)
class ReadSentence:
    name: str
    language: str
    voice: str
    speed: int  # words a minute
    pitch: int
    text: str
    english: str

    @property
    def path(self) -> Path:
        return SPEECH / f"{self.name}.ogg"


@dataclass(frozen=True)
class WordTime:
    """In seconds from the beginning of the sentence."""

    start: float
    end: float


@dataclass(frozen=True)
class Spoken:
    sentence: ReadSentence
    samples: Any  # float32 at SAMPLE_RATE
    words: tuple[WordTime, ...]  # of each word of the text


@cache
def sentences() -> tuple[ReadSentence, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(
            ReadSentence(
                row["name"],
                row["language"],
                row["voice"],
                int(row["speed"]),
                int(row["pitch"]),
                row["text"],
                row["english"] or row["text"],
            )
            for row in csv.DictReader(file)
        )


@cache
def all_spoken() -> tuple[Spoken, ...]:
    with _WORD_TIMES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Spoken(
            sentence,
            decoded(sentence.path),
            tuple(WordTime(float(row["start"]), float(row["end"])) for row in rows if row["name"] == sentence.name),
        )
        for sentence in sentences()
    )


def keep(spoken: Sequence[Spoken]) -> None:
    SPEECH.mkdir(exist_ok=True)
    with _WORD_TIMES.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("name", "word", "start", "end"))
        for one in spoken:
            encode(one.samples, one.sentence.path)
            for word, time in zip(one.sentence.text.split(), one.words, strict=True):
                table.writerow((one.sentence.name, word, f"{time.start:.2f}", f"{time.end:.2f}"))


def encode(samples: Any, path: Path) -> None:
    """As Opus in Ogg, which keeps speech small."""
    with av.open(str(path), "w", format="ogg") as container:
        stream = container.add_stream("libopus", rate=SAMPLE_RATE, options={"application": "voip"})
        stream.bit_rate = _BITS_PER_SECOND
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray((samples * 32767).astype(numpy.int16)[None], format="s16", layout="mono")
        frame.sample_rate = SAMPLE_RATE
        frame.time_base = Fraction(1, SAMPLE_RATE)
        frame.pts = 0
        for piece in (frame, None):
            for packet in stream.encode(piece):
                container.mux(packet)


def decoded(path: Path) -> Any:
    """Mono, at SAMPLE_RATE."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
    pieces = []
    with av.open(str(path)) as container:
        for frame in container.decode(audio=0):
            pieces += [piece.to_ndarray()[0] for piece in resampler.resample(frame)]
    pieces += [piece.to_ndarray()[0] for piece in resampler.resample(None)]
    return numpy.concatenate(pieces)


def resampled(samples: Any, factor: float) -> Any:
    """So many samples become one; what the lower rate cannot carry is removed first."""
    if factor > 1:
        spectrum = numpy.fft.rfft(samples)
        spectrum[int(len(spectrum) / factor) :] = 0
        samples = numpy.fft.irfft(spectrum, len(samples))
    places = numpy.arange(0, len(samples) - 1, factor)
    return numpy.interp(places, numpy.arange(len(samples)), samples).astype(numpy.float32)
