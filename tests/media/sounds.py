"""Sound made for a test: words that are tones, in files of many formats. `heard_words` reads them back."""

import io
from collections.abc import Sequence
from typing import Any

import av
import numpy as np

RATE = 16_000
WORDS = ("nol", "satu", "dua", "tiga", "empat", "lima", "enam", "tujuh", "delapan", "sembilan")
WORD_SECONDS, GAP_SECONDS = 0.3, 0.1
_LOWEST_HZ, _STEP_HZ = 400, 150
_FRAME = RATE // 50


def spoken(text: str, rate: int = RATE) -> Any:
    """A tone for each word. `3.5` is a pause of so many seconds."""
    parts = []
    for word in text.split():
        if word in WORDS:
            times = np.arange(round(rate * WORD_SECONDS)) / rate
            tone = 0.3 * np.sin(2 * np.pi * (_LOWEST_HZ + _STEP_HZ * WORDS.index(word)) * times)
            parts += [tone, np.zeros(round(rate * GAP_SECONDS))]
        else:
            parts.append(np.zeros(round(rate * float(word))))
    return np.concatenate(parts or [np.zeros(0)]).astype(np.float32)


def noise(seconds: float, level: float, rate: int = RATE) -> Any:
    return (level * np.random.default_rng(7).standard_normal(round(rate * seconds))).astype(np.float32)


def heard_words(samples: Any) -> list[tuple[str, float, float]]:
    """Each word with its times, as `spoken` made them."""
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    loud = np.concatenate([[False], frames.std(axis=1) > 0.08, [False]])
    edges = np.flatnonzero(np.diff(loud.astype(np.int8))).reshape(-1, 2)
    return [
        (_word(samples[start * _FRAME : end * _FRAME]), start / 50, end / 50) for start, end in edges if end - start > 5
    ]


def _word(samples: Any) -> str:
    inner = samples[len(samples) // 4 : -len(samples) // 4]
    hertz = np.argmax(np.abs(np.fft.rfft(inner * np.hanning(len(inner)), 1 << 15))) * RATE / (1 << 15)
    return WORDS[min(len(WORDS) - 1, max(0, round((hertz - _LOWEST_HZ) / _STEP_HZ)))]


def sound_file(
    samples: Any,
    form: str = "wav",
    codec: str = "pcm_s16le",
    *,
    rate: int = RATE,
    layout: str = "mono",
    with_video: bool = False,
    bit_rate: int | None = None,
) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        video = None
        if with_video:
            video = container.add_stream("mpeg4", rate=25)
            assert isinstance(video, av.VideoStream)
            video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        stream = container.add_stream(codec, rate=rate, layout=layout)
        assert isinstance(stream, av.AudioStream)
        if codec == "vorbis":
            stream.codec_context.options = {"strict": "experimental"}
        if bit_rate:
            stream.bit_rate = bit_rate
        if video:
            for _ in range(max(1, int(25 * len(samples) / rate))):
                picture = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
                container.mux(video.encode(picture))
            container.mux(video.encode(None))
        channels = av.AudioLayout(layout).nb_channels
        for start in range(0, len(samples), rate):
            some = np.repeat(samples[None, start : start + rate], channels, axis=0)
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(some), format="fltp", layout=layout)
            frame.sample_rate = rate
            for packet in stream.encode(frame):
                container.mux(packet)
        container.mux(stream.encode(None))
    return file.getvalue()


def with_gap(data: bytes, *, after: float, seconds: float) -> bytes:
    """The same packets, those behind `after` so many seconds later."""
    file = io.BytesIO()
    with av.open(io.BytesIO(data), "r") as read, av.open(file, "w", format="matroska") as written:
        stream = written.add_stream_from_template(read.streams.audio[0])
        for packet in read.demux(read.streams.audio[0]):
            if packet.pts is None or packet.dts is None:
                continue
            if packet.pts * packet.time_base >= after:
                packet.pts += int(seconds / packet.time_base)
                packet.dts = packet.pts
            packet.stream = stream
            written.mux(packet)
    return file.getvalue()


# The format and the codec of a file, its rate, its channels, whether it has a picture.
FORMATS: Sequence[tuple[str, str, int, str, bool]] = (
    ("wav", "pcm_s16le", 16_000, "mono", False),
    ("wav", "pcm_s16le", 44_100, "stereo", False),
    ("wav", "pcm_s16le", 48_000, "5.1", False),
    ("wav", "pcm_u8", 11_025, "mono", False),
    ("wav", "pcm_s24le", 96_000, "stereo", False),
    ("wav", "pcm_f32le", 22_050, "mono", False),
    ("wav", "pcm_mulaw", 8_000, "mono", False),
    ("wav", "pcm_alaw", 8_000, "mono", False),
    ("wav", "adpcm_ima_wav", 22_050, "mono", False),
    ("mp3", "libmp3lame", 44_100, "stereo", False),
    ("mp3", "libmp3lame", 16_000, "mono", False),
    ("mp2", "mp2", 44_100, "stereo", False),
    ("flac", "flac", 48_000, "mono", False),
    ("ogg", "libopus", 48_000, "stereo", False),
    ("webm", "libopus", 48_000, "mono", False),
    ("matroska", "aac", 44_100, "stereo", False),
    ("ipod", "aac", 44_100, "stereo", False),
    ("ipod", "alac", 44_100, "mono", False),
    ("mp4", "aac", 48_000, "stereo", True),
    ("adts", "aac", 44_100, "mono", False),
    ("aiff", "pcm_s16be", 44_100, "mono", False),
    ("au", "pcm_s16be", 22_050, "mono", False),
    ("ogg", "vorbis", 44_100, "stereo", False),
)
