"""WAV files as engines write them, and bytes that are none."""

import io
import struct
import wave
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tis.upstream.wav_file import NoWav, wav_samples

RATE = 16_000
TONE = (np.sin(np.arange(RATE // 4) / 9) * 0.8).astype(np.float32)


def encoded(codec: Any, channels: int = 1) -> bytes:
    written = io.BytesIO()
    with av.open(written, "w", format="wav") as container:
        stream = container.add_stream(codec, rate=RATE, layout={1: "mono", 2: "stereo"}[channels])
        layout = {1: "mono", 2: "stereo"}[channels]
        frame = av.AudioFrame.from_ndarray(np.repeat(TONE[None], channels, axis=0), format="fltp", layout=layout)
        frame.sample_rate = RATE
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return written.getvalue()


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(
    ("codec", "error"),
    [("pcm_s16le", 2e-4), ("pcm_s32le", 1e-6), ("pcm_f32le", 1e-7), ("pcm_f64le", 1e-7), ("pcm_u8", 2e-2)],
)
def test_the_samples_are_those_that_were_written(codec: str, error: float, channels: int) -> None:
    samples, rate = wav_samples(encoded(codec, channels))
    assert (rate, samples.dtype) == (RATE, np.float32)
    np.testing.assert_allclose(samples, TONE, atol=error)


def test_16_bits_come_back_as_they_were() -> None:
    numbers = np.arange(-32_767, 32_768).astype("<i2")
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(numbers.tobytes())
    samples, _ = wav_samples(written.getvalue())
    np.testing.assert_array_equal((samples * 32_767).round().astype("<i2"), numbers)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFFFFF])
def test_a_file_that_was_sent_while_it_was_made_has_no_length(size: int) -> None:
    whole = encoded("pcm_s16le")
    at = whole.index(b"data") + 4
    samples, _ = wav_samples(whole[:at] + struct.pack("<I", size) + whole[at + 4 :] + b"x")  # and half a sample
    np.testing.assert_allclose(samples, TONE, atol=2e-4)


def test_a_file_that_is_broken_off_is_no_sound() -> None:
    with pytest.raises(NoWav):
        wav_samples(encoded("pcm_s16le")[:-100])


@pytest.mark.parametrize(
    ("codec", "form", "number"),
    [("pcm_f32le", "<f", float("nan")), ("pcm_f64le", "<d", 1e300), ("pcm_f32le", "<f", 3e38)],
)
def test_what_is_not_finite_is_no_sound(codec: str, form: str, number: float) -> None:
    whole = encoded(codec, channels=2)
    at, wrong = whole.index(b"data") + 8, struct.pack(form, number) * 2
    with pytest.raises(NoWav):
        wav_samples(whole[:at] + wrong + whole[at + len(wrong) :])


@given(st.binary(max_size=200), st.integers(0, 60), st.booleans())
def test_any_bytes_are_samples_or_no_wav(noise: bytes, at: int, is_head: bool) -> None:
    head = encoded("pcm_s16le")[:80] if is_head else b""
    data = head[:at] + noise + head[at + len(noise) :]
    try:
        samples, rate = wav_samples(data)
    except NoWav:
        return
    assert len(samples) * 1 <= len(data) and 4_000 <= rate <= 48_000
    assert not len(samples) or float(np.abs(samples).max()) <= 1
