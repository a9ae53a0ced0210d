"""The samples of a WAV file that an upstream has sent, perhaps while it was made: its lengths may be wrong."""

import struct
from collections.abc import Mapping
from typing import Any

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_MIN_RATE, _MAX_RATE, _MAX_CHANNELS = 4_000, 48_000, 2  # more would cost memory in proportion
_MIN_UNKNOWN_BYTES = 2**30  # no file has so many
_TYPES: Mapping[tuple[int, int], str] = {
    (_PCM, 8): "u1",
    (_PCM, 16): "<i2",
    (_PCM, 32): "<i4",
    (_FLOAT, 32): "<f4",
    (_FLOAT, 64): "<f8",
}


class NoWav(ValueError):
    """These bytes are no WAV file of a usual form."""


def wav_samples(data: bytes) -> tuple[Any, int]:
    """Its samples as float32 from -1 to 1, of one channel, and their rate. Raises NoWav."""
    if data[:4] not in (b"RIFF", b"RF64") or data[8:12] != b"WAVE":
        raise NoWav
    at, form = 12, b""
    while at + 8 <= len(data):
        name, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        at += 8
        if name == b"data":
            # What is sent while it is made says 0, or one of the largest numbers.
            if not size or size >= _MIN_UNKNOWN_BYTES:
                return _samples(form, data[at:])
            if size > len(data) - at:
                raise NoWav  # it is broken off
            return _samples(form, data[at : at + size])
        if name == b"fmt ":
            form = data[at : at + size]
        at += size + size % 2
    raise NoWav


def _samples(form: bytes, data: bytes) -> tuple[Any, int]:
    import numpy as np

    if len(form) < 16:
        raise NoWav
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", form)
    if kind == _EXTENSIBLE and len(form) >= 26:
        kind = struct.unpack_from("<H", form, 24)[0]
    if not (_MIN_RATE <= rate <= _MAX_RATE and 0 < channels <= _MAX_CHANNELS) or (kind, bits) not in _TYPES:
        raise NoWav
    read = np.frombuffer(data[: len(data) - len(data) % (channels * bits // 8)], _TYPES[kind, bits])
    with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused below
        samples = read.astype(np.float32)
        if kind == _PCM:
            samples = (samples - 128 * (bits == 8)) / np.float32(2 ** (bits - 1) - 1)
        if channels > 1:
            samples = samples.reshape(-1, channels).mean(axis=1, dtype=np.float32)
    if not np.isfinite(samples).all():
        raise NoWav
    return samples.clip(-1, 1), rate
