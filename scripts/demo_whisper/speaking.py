"""Has espeak-ng speak a sentence and say when each word begins. Only `--speak` needs its library."""

import ctypes
import ctypes.util
import re
from collections.abc import Sequence
from typing import Any

import numpy

from scripts.demo_whisper.sentences import SAMPLE_RATE, ReadSentence, Spoken, WordTime, resampled

_RETRIEVAL = 1  # the samples go to a callback
_UTF8 = 1
_CHARACTERS = 1  # positions count characters
_RATE, _PITCH = 1, 3
_WORD_EVENT, _LAST_EVENT = 1, 0
_QUIET = 0.01  # of the loudest sample
_FRAME = SAMPLE_RATE // 100


class _EspeakEvent(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    ]


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_EspeakEvent))


class Espeak:
    """The library has one state per process."""

    def __init__(self) -> None:
        name = ctypes.util.find_library("espeak-ng")
        if name is None:
            raise SystemExit("The library of espeak-ng is missing: apt-get install espeak-ng")
        self._library: Any = ctypes.CDLL(name)
        self._rate = self._library.espeak_Initialize(_RETRIEVAL, 0, None, 0)
        if self._rate <= 0:
            raise SystemExit("espeak-ng does not start: its data are missing.")
        self._samples: list[int] = []
        self._events: list[tuple[int, float]] = []  # position in the text, seconds
        self._callback = _Callback(self._on_samples)
        self._library.espeak_SetSynthCallback(self._callback)

    def _on_samples(self, samples: Any, count: int, events: Any) -> int:
        if count > 0:
            self._samples.extend(samples[:count])
        number = 0
        while events[number].type != _LAST_EVENT:
            if events[number].type == _WORD_EVENT:
                self._events.append((events[number].text_position - 1, events[number].audio_position / 1000))
            number += 1
        return 0

    def spoken(self, sentence: ReadSentence) -> Spoken:
        self._samples, self._events = [], []
        library = self._library
        if library.espeak_SetVoiceByName(sentence.voice.encode()):
            raise SystemExit(f"espeak-ng has no voice {sentence.voice}.")
        library.espeak_SetParameter(_RATE, sentence.speed, 0)
        library.espeak_SetParameter(_PITCH, sentence.pitch, 0)
        text = sentence.text.encode() + b"\0"
        library.espeak_Synth(text, len(text), 0, _CHARACTERS, 0, _UTF8, None, None)
        library.espeak_Synchronize()
        samples = numpy.array(self._samples, numpy.float32) / 32768
        return _without_edges(sentence, resampled(samples, self._rate / SAMPLE_RATE), self._word_starts(sentence))

    def _word_starts(self, sentence: ReadSentence) -> list[float]:
        """Espeak speaks some short words as one, as "on the": then the first of them is reported."""
        starts: list[float] = []
        words = list(re.finditer(r"\S+", sentence.text))
        for word in words:
            inside = [seconds for place, seconds in self._events if word.start() <= place < word.end()]
            starts.append(min(inside, default=-1.0))
        for number in (number for number, start in enumerate(starts) if start < 0):
            following = next((start for start in starts[number:] if start >= 0), None)
            if number == 0 or following is None:
                raise SystemExit(f"{sentence.name}: espeak-ng does not say when {words[number].group()!r} begins.")
            letters = [len(words[place].group()) for place in (number - 1, number)]
            starts[number] = starts[number - 1] + (following - starts[number - 1]) * letters[0] / sum(letters)
        return starts


def _without_edges(sentence: ReadSentence, samples: Any, starts: Sequence[float]) -> Spoken:
    """A word ends where it is followed by quiet, or where the next begins."""
    loud = _loud_frames(samples)
    first, last = int(loud.argmax()), len(loud) - int(loud[::-1].argmax())
    begun = first * _FRAME / SAMPLE_RATE
    kept = samples[first * _FRAME : last * _FRAME]
    bounds = [max(0.0, start - begun) for start in starts]
    bounds[0] = 0.0
    words = []
    for start, following in zip(bounds, [*bounds[1:], len(kept) / SAMPLE_RATE], strict=True):
        frames = loud[first + round(start * 100) : first + round(following * 100)]
        quiet_after = int(frames[::-1].argmax()) / 100 if frames.any() else 0.0
        words.append(WordTime(round(start, 2), round(following - quiet_after, 2)))
    return Spoken(sentence, kept, tuple(words))


def _loud_frames(samples: Any) -> Any:
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    return numpy.abs(frames).max(1) > _QUIET * numpy.abs(samples).max()
