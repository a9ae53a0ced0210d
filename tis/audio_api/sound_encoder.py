"""Encodes speech while it is made: what the encoder has given out, one after the other, is the file.

The same samples give the same bytes, so an interrupted stream goes on with the bytes that would have come.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import av

SoundForm: TypeAlias = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
MEDIA_TYPES: dict[SoundForm, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg; codecs=opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
PCM_RATE = 24_000  # of OpenAI's API
_UNKNOWN_SIZE = 0xFFFFFFFF  # the length of a stream is not known when its header is sent
_PEAK = 32_767
_TEMPO_STEP = 2.0  # more at once leaves out too much
_LOST_SECONDS = 0.1  # of silence, which `atempo` may lose at the end of its input in place of speech


@dataclass(frozen=True, slots=True)
class _Container:
    name: str
    codec: str
    rates: tuple[int, ...]  # rising; empty: any
    bit_rate: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
# A Xing header would be written last, at the beginning. A page of an Ogg is sent when it is full: here after 0.1 s.
_CONTAINERS = {
    "mp3": _Container("mp3", "libmp3lame", _RATES, 64_000, {"write_xing": "0", "id3v2_version": "0"}),
    "opus": _Container("ogg", "libopus", (8000, 12000, 16000, 24000, 48000), 32_000, {"page_duration": "100000"}),
    "aac": _Container("adts", "aac", _RATES, 64_000),
    "flac": _Container("flac", "flac", ()),
}


class SoundEncoder:
    """Of one file. Blocks: one thread at a time uses it. `tempo`: how much faster it becomes, at the same pitch."""

    def __init__(self, form: SoundForm, sample_rate: int, tempo: float = 1.0) -> None:
        self._tempo = _Tempo(sample_rate, tempo) if tempo != 1 else None
        self._writer = _PlainWriter(form, sample_rate) if form in ("wav", "pcm") else _FileWriter(form, sample_rate)
        self.num_samples = 0  # that were encoded so far, at the rate of the model

    def add(self, samples: Any) -> bytes:
        return self._write(self._tempo.changed(samples) if self._tempo else [samples])

    def end(self) -> bytes:
        last = self._write(self._tempo.rest()) if self._tempo else b""
        return last + self._writer.end()

    def _write(self, parts: Any) -> bytes:
        written = []
        for part in parts:
            self.num_samples += len(part)
            written.append(self._writer.add(part))
        return b"".join(written)


class _PlainWriter:
    """16-bit samples: wav at the rate of the model, pcm at that of OpenAI's."""

    def __init__(self, form: SoundForm, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._head = _wav_head(sample_rate) if form == "wav" else b""
        self._resampler = _resampler(PCM_RATE) if form == "pcm" and sample_rate != PCM_RATE else None

    def add(self, samples: Any) -> bytes:
        head, self._head = self._head, b""
        if self._resampler is None:
            return head + bytes((samples.clip(-1, 1) * _PEAK).round().astype("<i2").tobytes())
        return head + _bytes_of(self._resampler.resample(_frame(samples, self._sample_rate)))

    def end(self) -> bytes:
        head, self._head = self._head, b""
        return head + (_bytes_of(self._resampler.resample(None)) if self._resampler else b"")


class _FileWriter:
    def __init__(self, form: SoundForm, sample_rate: int) -> None:
        import av

        kind = _CONTAINERS[form]
        self._sample_rate = sample_rate
        self._sink = _Sink()
        # Bit-exact: else an Ogg has a random number.
        options = {"fflags": "bitexact", **kind.options}
        self._container = av.open(self._sink, "w", format=kind.name, options=options)
        rate = next((one for one in kind.rates if one >= sample_rate), max(kind.rates, default=sample_rate))
        stream = self._container.add_stream(kind.codec, rate=rate, layout="mono")
        assert isinstance(stream, av.AudioStream)
        if kind.bit_rate:
            stream.bit_rate = kind.bit_rate
        self._stream = stream

    def add(self, samples: Any) -> bytes:
        self._container.mux(self._stream.encode(_frame(samples, self._sample_rate)))
        return self._sink.taken()

    def end(self) -> bytes:
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.taken()


class _Sink:
    """A file that cannot be sought in."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        written, self._written = self._written, []
        return b"".join(written)


class _Tempo:
    """FFmpeg's `atempo`, which changes the tempo and keeps the pitch."""

    def __init__(self, sample_rate: int, tempo: float) -> None:
        import av.filter

        self._sample_rate = sample_rate
        self._graph = av.filter.Graph()
        chain = [self._graph.add_abuffer(sample_rate=sample_rate, format="fltp", layout="mono", time_base=None)]
        chain += [self._graph.add("atempo", f"{step:.6f}") for step in _steps(tempo)]
        chain += [self._graph.add("aformat", "sample_fmts=fltp"), self._graph.add("abuffersink")]
        for before, after in zip(chain, chain[1:], strict=False):
            before.link_to(after)
        self._graph.configure()

    def changed(self, samples: Any) -> Iterator[Any]:
        self._graph.push(_frame(samples, self._sample_rate))
        return self._pulled()

    def rest(self) -> Iterator[Any]:
        import numpy as np

        lost = np.zeros(round(self._sample_rate * _LOST_SECONDS), np.float32)
        self._graph.push(_frame(lost, self._sample_rate))
        self._graph.push(None)
        return self._pulled()

    def _pulled(self) -> Iterator[Any]:
        import av

        while True:
            try:
                frame = self._graph.pull()
            except (av.BlockingIOError, av.EOFError):
                return
            assert isinstance(frame, av.AudioFrame)
            yield frame.to_ndarray()[0]


def _steps(tempo: float) -> Iterator[float]:
    while not 1 / _TEMPO_STEP <= tempo <= _TEMPO_STEP:
        step = _TEMPO_STEP if tempo > 1 else 1 / _TEMPO_STEP
        yield step
        tempo /= step
    yield tempo


def _frame(samples: Any, sample_rate: int) -> "av.AudioFrame":
    import av
    import numpy as np

    frame = av.AudioFrame.from_ndarray(
        np.ascontiguousarray(samples, dtype=np.float32)[None], format="fltp", layout="mono"
    )
    frame.sample_rate = sample_rate
    return frame


def _resampler(rate: int) -> "av.AudioResampler":
    import av

    return av.AudioResampler(format="s16", layout="mono", rate=rate)


def _bytes_of(frames: "list[av.AudioFrame]") -> bytes:
    return b"".join(frame.to_ndarray().astype("<i2").tobytes() for frame in frames)


def _wav_head(sample_rate: int) -> bytes:
    form = struct.pack("<HHIIHH", 1, 1, sample_rate, 2 * sample_rate, 2, 16)
    return b"RIFF%bWAVEfmt %b%bdata%b" % (
        struct.pack("<I", _UNKNOWN_SIZE),
        struct.pack("<I", len(form)),
        form,
        struct.pack("<I", _UNKNOWN_SIZE),
    )
