"""Cuts sound at pauses into windows that a model can hear, each alone. Silence between them is left out.

Whether a frame of 20 ms is silent depends on its level and on those of its window: a threshold above the quietest
tenth. Sound that hardly changes, such as a hum, counts as speech: the model says that nobody speaks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tis.media.audio.protocol import CutRules

_FRAMES_PER_SECOND = 50
_SILENCE_DB = -65.0  # below this nobody hears anything
_MIN_CONTRAST_DB = 6.0  # between the quiet and the loud frames of a window
_MIN_SPEECH_FRAMES = 3  # less is a click
_MIN_PAUSE_FRAMES = 10  # less may be within a word


@dataclass(frozen=True, slots=True)
class CutWindow:
    start: int  # the number of its first sample in the file
    samples: Any  # float32


def cut_windows(chunks: Iterator[Any], rate: int, window_seconds: float, rules: CutRules) -> Iterator[CutWindow | None]:
    """Whatever the sizes of the chunks are, the same sound gives the same windows. None: a silence was passed."""
    frame = max(1, rate // _FRAMES_PER_SECOND)
    most = max(2, int(window_seconds * rate) // frame)
    buffer = _Buffer(chunks)
    while True:
        samples = buffer.first(most * frame)
        if not samples.size:
            return
        is_last = samples.size < most * frame
        levels = _levels(samples, frame)
        silent = _silent(levels, rules.threshold)
        begin, end, num_used = _decide(levels, silent, rules, is_last=is_last)
        is_heard = end > begin
        yield (
            CutWindow(buffer.position + begin * frame, samples[begin * frame : end * frame].copy())
            if is_heard
            else None
        )
        buffer.drop(num_used * frame)


def even_windows(chunks: Iterator[Any], most: int) -> Iterator[CutWindow]:
    """All of the sound, in windows of so many samples, of which the last may have fewer."""
    buffer = _Buffer(chunks)
    while (samples := buffer.first(most)).size:
        yield CutWindow(buffer.position, samples.copy())
        buffer.drop(samples.size)


def _decide(levels: Any, silent: Any, rules: CutRules, *, is_last: bool) -> tuple[int, int, int]:
    """The first and the last frame of the window, and how many frames are not needed any more."""
    padding = round(rules.padding_seconds * _FRAMES_PER_SECOND)
    num_frames = len(silent)
    spoken = np.flatnonzero(~silent)
    if not spoken.size:
        return 0, 0, num_frames if is_last else max(1, num_frames - padding)
    begin = max(0, int(spoken[0]) - padding)
    if begin and not is_last:
        return 0, 0, begin  # with more sound behind it the window is longer
    pauses = [(start, end) for start, end in _runs(silent) if start > spoken[0]]
    long = max(2, round(rules.silence_seconds * _FRAMES_PER_SECOND))
    for start, end in pauses:
        if end - start >= long:
            cut = start + min(padding, (end - start) // 2)
            return begin, cut, cut
    if is_last:
        return begin, min(num_frames, int(spoken[-1]) + 1 + padding), num_frames
    cut = _best_cut(levels, pauses, num_frames // 2)
    return begin, cut, cut


def _best_cut(levels: Any, pauses: list[tuple[int, int]], earliest: int) -> int:
    """In the middle of the longest pause of the second half, else at its quietest place."""
    late = [(max(start, earliest), end) for start, end in pauses if end > earliest]
    start, end = max(reversed(late), key=lambda run: run[1] - run[0], default=(0, 0))
    if end - start >= _MIN_PAUSE_FRAMES:
        return (start + end) // 2
    energy = np.convolve(10 ** (levels / 10), np.ones(_MIN_PAUSE_FRAMES), "same")
    inner = energy[earliest : len(energy) - _MIN_PAUSE_FRAMES // 2]
    return max(1, earliest + int(np.argmin(inner)))


def _levels(samples: Any, frame: int) -> Any:
    """In dB of the largest possible one, without a constant part. A last frame that is not whole counts, too."""
    num_frames = -(-samples.size // frame)
    if samples.size < num_frames * frame:
        samples = np.concatenate([samples, np.zeros(num_frames * frame - samples.size, np.float32)])
    return 10 * np.log10(samples.reshape(num_frames, frame).var(axis=1) + 1e-10)


def _silent(levels: Any, threshold: float) -> Any:
    ordered = np.sort(levels)
    quiet, loud = (float(ordered[int(part * (ordered.size - 1))]) for part in (0.1, 0.98))
    quiet = max(quiet, _SILENCE_DB)
    contrast = loud - quiet
    limit = _SILENCE_DB
    if contrast >= _MIN_CONTRAST_DB:
        limit = quiet + np.clip(contrast * threshold / 2, 6 * threshold, 20 * threshold)
    silent = levels < limit
    for start, end in _runs(~silent):
        if end - start < _MIN_SPEECH_FRAMES:
            silent[start:end] = True
    return silent


def _runs(flags: Any) -> list[tuple[int, int]]:
    """Where flags are set, as pairs of the first index and the one behind the last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


class _Buffer:
    """The samples from a position on, read as they are needed."""

    def __init__(self, chunks: Iterator[Any]) -> None:
        self._chunks = chunks
        self._samples = np.empty(0, np.float32)
        self.position = 0

    def first(self, count: int) -> Any:
        """Fewer at the end of the sound."""
        parts, size = [self._samples], self._samples.size
        while size < count and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            size += chunk.size
        if len(parts) > 1:
            self._samples = np.concatenate(parts)
        return self._samples[:count]

    def drop(self, count: int) -> None:
        count = min(count, self._samples.size)
        self._samples = self._samples[count:]
        self.position += count
