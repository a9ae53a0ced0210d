"""What tells spoken from made sound while the voice learns: differences of spectra, and critics that learn, too."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import Conv2d, Module, ModuleList
from torch.nn.functional import l1_loss, leaky_relu, pad
from torch.nn.utils.parametrizations import weight_norm
from transformers.audio_utils import mel_filter_bank

from scripts.demo_voice.architecture import HOP
from scripts.demo_whisper.sentences import SAMPLE_RATE

MEL_BANDS = 80
_MEL_SIZE = 1024
_SIZES = (256, 512, 1024, 2048)
_PERIODS = (2, 3, 5, 7, 11)
_CHANNELS = (1, 16, 32, 64, 64)
_FLOOR = 1e-3


class SoundSpectra(Module):
    def __init__(self) -> None:
        super().__init__()
        filters = mel_filter_bank(_MEL_SIZE // 2 + 1, MEL_BANDS, 0.0, SAMPLE_RATE / 2, SAMPLE_RATE, "slaney", "slaney")
        self.register_buffer("filters", torch.tensor(filters, dtype=torch.float32).T)
        for size in _SIZES:
            self.register_buffer(f"window_{size}", torch.hann_window(size))

    def mel(self, samples: Tensor) -> Tensor:
        """(batch, bands, frames), a frame of the voice each."""
        side = (_MEL_SIZE - HOP) // 2
        return (self.filters @ self._magnitudes(pad(samples, (side, side)), _MEL_SIZE, HOP)).clamp(min=1e-4).log()

    def difference(self, made: Tensor, spoken: Tensor) -> Tensor:
        total = made.new_zeros(())
        for size in _SIZES:
            ours, theirs = (self._magnitudes(one, size, size // 4) for one in (made, spoken))
            total = total + (ours - theirs).norm() / theirs.norm().clamp(min=_FLOOR)
            total = total + l1_loss(ours.clamp(min=_FLOOR).log(), theirs.clamp(min=_FLOOR).log())
        return total / len(_SIZES)

    def _magnitudes(self, samples: Tensor, size: int, hop: int) -> Tensor:
        window = self.get_buffer(f"window_{size}")
        bins = torch.view_as_real(torch.stft(samples, size, hop, window=window, center=False, return_complex=True))
        return bins.square().sum(-1).clamp(min=1e-9).sqrt()


class PeriodCritic(Module):
    """Looks at every so many-th sample, as HiFi-GAN's do."""

    def __init__(self, period: int) -> None:
        super().__init__()
        self._period = period
        self.layers = ModuleList(
            weight_norm(Conv2d(inside, outside, (5, 1), (3, 1), (2, 0)))
            for inside, outside in zip(_CHANNELS, _CHANNELS[1:], strict=False)
        )
        self.last = weight_norm(Conv2d(_CHANNELS[-1], 1, (3, 1), 1, (1, 0)))

    def forward(self, samples: Tensor) -> list[Tensor]:
        samples = pad(samples, (0, -samples.shape[-1] % self._period), "reflect")
        seen = samples.view(len(samples), 1, -1, self._period)
        found = []
        for layer in self.layers:
            seen = leaky_relu(layer(seen), 0.1)
            found.append(seen)
        return [*found, self.last(seen)]


class SoundCritics(Module):
    def __init__(self) -> None:
        super().__init__()
        self.critics = ModuleList(PeriodCritic(period) for period in _PERIODS)

    def own_loss(self, made: Tensor, spoken: Tensor) -> Tensor:
        losses = [
            (critic(spoken)[-1] - 1).square().mean() + critic(made)[-1].square().mean() for critic in self.critics
        ]
        return torch.stack(losses).sum()

    def loss_of_voice(self, made: Tensor, spoken: Tensor) -> Tensor:
        total = made.new_zeros(())
        for critic in self.critics:
            ours, theirs = critic(made), critic(spoken)
            total = total + (ours[-1] - 1).square().mean() + 2 * _distance(ours[:-1], theirs[:-1])
        return total


def _distance(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> Tensor:
    return torch.stack([l1_loss(one, other.detach()) for one, other in zip(ours, theirs, strict=True)]).sum()
