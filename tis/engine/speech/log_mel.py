"""The log-mel spectrogram of a window, with the numbers of the official `WhisperFeatureExtractor`.

It pads every window to its full length. Here the silence behind a short one is filled in, not computed.
"""

from typing import Any

import torch

_FLOOR = 1e-10
_RANGE = 8.0  # below the loudest; in powers of ten


class LogMel:
    """Any thread may call."""

    def __init__(self, extractor: Any) -> None:
        self.sample_rate = int(extractor.sampling_rate)
        self.num_samples = int(extractor.n_samples)
        self.num_frames = int(extractor.nb_max_frames)
        self.hop = int(extractor.hop_length)
        self._size = int(extractor.n_fft)
        self._window = torch.hann_window(self._size)
        self._filters = torch.from_numpy(extractor.mel_filters).float().T.contiguous()  # [mels, frequencies]

    @property
    def window_seconds(self) -> float:
        return self.num_samples / self.sample_rate

    def __call__(self, samples: Any) -> Any:
        """Samples [number] of float32, at most a window, as numpy; returns [mels, frames]."""
        sounding = -(-(len(samples) + self._size) // self.hop) * self.hop
        waveform = torch.zeros(min(sounding, self.num_samples))
        waveform[: len(samples)] = torch.from_numpy(samples)
        spectrum = torch.stft(waveform, self._size, self.hop, window=self._window, return_complex=True)
        power = (spectrum[:, :-1].abs() ** 2).contiguous()
        logarithms = (self._filters @ power).clamp(min=_FLOOR).log10()
        lowest = logarithms.max() - _RANGE
        logarithms = torch.maximum(logarithms, lowest)
        silence = max(float(lowest), float(torch.tensor(_FLOOR).log10()))
        mel = logarithms.new_full((len(self._filters), self.num_frames), silence)
        mel[:, : logarithms.shape[1]] = logarithms
        return (mel + 4.0) / 4.0
