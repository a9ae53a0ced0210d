"""How the small voice learns: from letters of known length through the flow to sound, compared piece by piece.

Real VITS finds the length of letters and the sound of latents by variational inference; here espeak-ng says when each
word begins, so that the way of reading aloud itself can be learned.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import l1_loss, mse_loss
from torch.nn.utils.rnn import pad_sequence

from scripts.demo_voice.architecture import HOP, SEED
from scripts.demo_voice.critics import MEL_BANDS, SoundCritics, SoundSpectra
from scripts.demo_voice.recordings import VoiceSample
from scripts.demo_voice.texts import voices

_BATCH = 32
_PIECE = 32  # frames
_RATE = 1.2e-3
_CRITICS_RATE = 4e-4
_WARM_UP = 50
_CRITICS_FROM = 0.3  # of the time
_SHARE_OF_SLOWING = 0.5
_WEIGHT_OF_MEL = 2.0
_WEIGHT_OF_LATENTS = 1.0
_WEIGHT_OF_CRITICS = 0.15
VoiceReport = Callable[[int, dict[str, Tensor]], None]


@dataclass(frozen=True)
class Readings:
    """All recordings, padded."""

    ids: Tensor  # (recordings, letters)
    mask: Tensor
    durations: Tensor
    letter_of_frame: Tensor  # (recordings, frames), 0 behind the end
    frame_mask: Tensor
    samples: Tensor  # (recordings, frames * HOP)
    speakers: Tensor

    def chosen(self, numbers: Tensor) -> "Readings":
        frames = int(self.frame_mask[numbers].sum(1).max())
        letters = int(self.mask[numbers].sum(1).max())
        return Readings(
            self.ids[numbers, :letters],
            self.mask[numbers, :letters],
            self.durations[numbers, :letters],
            self.letter_of_frame[numbers, :frames],
            self.frame_mask[numbers, :frames],
            self.samples[numbers, : frames * HOP],
            self.speakers[numbers],
        )


def readings(recorded: Sequence[VoiceSample], tokenizer: Any, device: str) -> Readings:
    ids = [torch.tensor(tokenizer(one.sentence.text).input_ids) for one in recorded]
    durations = [torch.tensor(one.durations) for one in recorded]
    for one, own, lasting in zip(recorded, ids, durations, strict=True):
        if len(own) != len(lasting):
            raise ValueError(f"{one.sentence.text!r} has {len(own)} tokens for {len(lasting)} letters")
    letters = [torch.arange(len(lasting)).repeat_interleave(lasting) for lasting in durations]
    tensors = (
        pad_sequence(ids, batch_first=True),
        pad_sequence([torch.ones_like(one) for one in ids], batch_first=True),
        pad_sequence(durations, batch_first=True, padding_value=1),
        pad_sequence(letters, batch_first=True),
        pad_sequence([torch.ones_like(one) for one in letters], batch_first=True),
        pad_sequence([torch.from_numpy(one.samples) for one in recorded], batch_first=True),
        torch.tensor([voices().index(one.sentence.voice) for one in recorded]),
    )
    return Readings(*(tensor.to(device) for tensor in tensors))


def learn_to_speak(
    model: Any, everything: Readings, weights: Tensor, seconds: float, device: str, report: VoiceReport
) -> None:
    spectra, critics = SoundSpectra().to(device), SoundCritics().to(device)
    ear = torch.nn.Conv1d(model.config.flow_size, MEL_BANDS, 1).to(device)  # helps the latents to become sound
    learned = [*model.parameters(), *ear.parameters()]
    adam = torch.optim.AdamW(learned, betas=(0.8, 0.99), weight_decay=0.01)
    critics_adam = torch.optim.AdamW(critics.parameters(), lr=_CRITICS_RATE, betas=(0.8, 0.99))
    numbers = torch.Generator().manual_seed(SEED)
    model.train()
    began, step = time.monotonic(), 0
    while (progress := (time.monotonic() - began) / seconds) < 1:
        batch = everything.chosen(torch.multinomial(weights, _BATCH, generator=numbers).to(device))
        latents, log_durations, condition = spoken_latents(model, batch)
        starts = [
            int(torch.randint(0, max(1, length - _PIECE + 1), (), generator=numbers))
            for length in batch.frame_mask.sum(1).tolist()
        ]
        pieces = torch.stack([one[:, at : at + _PIECE] for one, at in zip(latents, starts, strict=True)])
        spoken = torch.stack(
            [one[at * HOP : (at + _PIECE) * HOP] for one, at in zip(batch.samples, starts, strict=True)]
        )
        made = model.decoder(pieces, condition)[:, 0]
        frames = batch.frame_mask[:, None]
        losses = {
            "durations": mse_loss(log_durations * batch.mask, (batch.durations - 0.5).log() * batch.mask),
            "latents": _WEIGHT_OF_LATENTS * l1_loss(ear(latents) * frames, spectra.mel(batch.samples) * frames),
            "mel": _WEIGHT_OF_MEL * l1_loss(spectra.mel(made), spectra.mel(spoken)),
            "spectra": spectra.difference(made, spoken),
        }
        if progress >= _CRITICS_FROM:
            critics_adam.zero_grad()
            own = critics.own_loss(made.detach(), spoken)
            own.backward()
            critics_adam.step()
            losses["critics"] = _WEIGHT_OF_CRITICS * critics.loss_of_voice(made, spoken)
        torch.stack(list(losses.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(learned, 2.0)
        adam.param_groups[0]["lr"] = _RATE * _rate_factor(step, progress)
        adam.step()
        adam.zero_grad()
        step += 1
        report(step, losses)
    model.eval()


def spoken_latents(model: Any, batch: Readings) -> tuple[Tensor, Tensor, Tensor]:
    """As the model's own `forward`, which foresees durations instead of taking them."""
    condition = model.embed_speaker(batch.speakers)[:, :, None]
    mask = batch.mask[:, :, None].float()
    encoded = model.text_encoder(input_ids=batch.ids, padding_mask=mask, attention_mask=batch.mask)
    hidden, mask = encoded.last_hidden_state.transpose(1, 2), mask.transpose(1, 2)
    log_durations = model.duration_predictor(hidden, mask, condition)[:, 0]
    index = batch.letter_of_frame[:, None].expand(-1, encoded.prior_means.shape[-1], -1)
    frames = encoded.prior_means.transpose(1, 2).gather(2, index) * batch.frame_mask[:, None]
    latents = model.flow(frames, batch.frame_mask[:, None].float(), condition, reverse=True)
    return latents * batch.frame_mask[:, None], log_durations, condition


def _rate_factor(step: int, progress: float) -> float:
    if step < _WARM_UP:
        return (step + 1) / _WARM_UP
    return max(0.01, min(1.0, (1 - progress) / _SHARE_OF_SLOWING))
