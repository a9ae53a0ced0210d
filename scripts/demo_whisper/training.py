"""How the small Whisper learns to write what it hears, while a head of each decoder layer learns where to look."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu, log_softmax
from torch.utils.data import DataLoader, Dataset

from scripts.demo_model.muon import Muon
from scripts.demo_whisper.lessons import IGNORED, HearingLessons, LessonBatch

GUIDED_HEAD = 0
_GUIDANCE = 0.3
_GUESSING = 0.1
_WARM_UP = 40
_SHARE_OF_SLOWING = 0.5  # of the time, its end, in which the rates fall to zero
_MUON_RATE = 2e-2
_ADAM_RATE = 3e-3
_SAVE_EVERY = 500
_NEAR_TIMES = {-2: 0.05, -1: 0.15, 0: 0.6, 1: 0.15, 2: 0.05}  # a time beside the right one is nearly right
Report = Callable[[int, Tensor, Tensor], None]


@dataclass(frozen=True)
class LearningStage:
    """Windows are short at first: attention over all 1500 positions of the encoder is most of the cost."""

    positions: tuple[int, ...]  # one of these, the same for a batch
    max_sentences: int
    batch: int
    share: float  # of the time


STAGES = (
    LearningStage(positions=(130, 160, 190), max_sentences=1, batch=48, share=0.1),
    LearningStage(positions=(350, 450), max_sentences=3, batch=32, share=0.15),
    LearningStage(positions=(1500,), max_sentences=10, batch=24, share=0.75),
)


@dataclass(frozen=True)
class LearningPlace:
    """Processes that draw lessons keep a GPU busy; without any, the learner draws them itself."""

    device: str = "cpu"
    processes: int = 0
    rate: float = 1.0  # of what a model without knowledge begins with


class WhisperLearner:
    """Model and optimizers; kept in one file, it goes on where it stopped."""

    def __init__(self, model: Any) -> None:
        named = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
        self.model = model
        self.step = 0
        self.seconds = 0.0
        self._muon = Muon(value for name, value in named if _is_matrix(name, value))
        others = [value for name, value in named if not _is_matrix(name, value)]
        self._adam = torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0)

    def update(self, factor: float) -> None:
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._muon.step(_MUON_RATE * factor)
        self._adam.param_groups[0]["lr"] = _ADAM_RATE * factor
        self._adam.step()
        self.model.zero_grad()
        self.step += 1

    def save(self, path: Path) -> None:
        torch.save(self, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)


def _is_matrix(name: str, value: Tensor) -> bool:
    return value.ndim == 2 and "embed" not in name


def learn(
    learner: WhisperLearner,
    lessons: HearingLessons,
    seconds: float,
    place: LearningPlace,
    checkpoint: Path,
    report: Report,
) -> None:
    """For so many seconds of work, those before an interruption included."""
    looks = _Looks(learner.model)
    first_time = learner.model.generation_config.no_timestamps_token_id + 1
    began = time.monotonic() - learner.seconds
    learner.model.train()
    drawn = DataLoader(
        _DrawnLessons(lessons), sampler=_Course(learner, seconds), batch_size=None, num_workers=place.processes
    )
    for batch in drawn:
        batch = batch.to(place.device)
        states = decoded_states(learner.model, batch)
        writing = _writing_loss(learner.model, states, batch, first_time)
        looking = looks.loss(batch)
        (writing + _GUIDANCE * looking).backward()
        learner.update(place.rate * _rate_factor(learner.step, learner.seconds / seconds))
        learner.seconds = time.monotonic() - began
        report(learner.step, writing, looking)
        if learner.step % _SAVE_EVERY == 0:
            looks.let_go()
            learner.save(checkpoint)
            looks = _Looks(learner.model)
    looks.let_go()
    learner.model.eval()


class _DrawnLessons(Dataset[LessonBatch]):
    def __init__(self, lessons: HearingLessons) -> None:
        self._lessons = lessons

    def __getitem__(self, place: tuple[int, LearningStage]) -> LessonBatch:
        step, stage = place
        return self._lessons.batch(step, stage.batch, stage.positions, stage.max_sentences)


class _Course:
    """Numbers of steps and their stages, until the time is over."""

    def __init__(self, learner: WhisperLearner, seconds: float) -> None:
        self._learner, self._seconds = learner, seconds

    def __iter__(self) -> Iterator[tuple[int, LearningStage]]:
        step = self._learner.step
        while self._learner.seconds < self._seconds:
            yield step, _stage_at(self._learner.seconds / self._seconds)
            step += 1


def _stage_at(progress: float) -> LearningStage:
    for stage in STAGES:
        if progress < stage.share:
            return stage
        progress -= stage.share
    return STAGES[-1]


def _rate_factor(step: int, progress: float) -> float:
    if step < _WARM_UP:
        return (step + 1) / _WARM_UP
    return max(0.0, min(1.0, (1 - progress) / _SHARE_OF_SLOWING))


def decoded_states(model: Any, batch: LessonBatch) -> Tensor:
    return model.model.decoder(
        input_ids=batch.tokens, encoder_hidden_states=_encoded(model.model.encoder, batch), use_cache=False
    ).last_hidden_state


def _encoded(encoder: Any, batch: LessonBatch) -> Tensor:
    """As the encoder's own `forward`, which takes whole windows only."""
    states = gelu(encoder.conv2(gelu(encoder.conv1(batch.features)))).permute(0, 2, 1)
    places = encoder.embed_positions.weight
    states = states + torch.stack([places[offset : offset + states.shape[1]] for offset in batch.offsets])
    for layer in encoder.layers:
        states = layer(states, None)
    return encoder.layer_norm(states).repeat_interleave(len(batch.tokens) // len(states), 0)


def _writing_loss(model: Any, states: Tensor, batch: LessonBatch, first_time: int) -> Tensor:
    learned = batch.targets != IGNORED
    logits = model.proj_out(states[learned])
    targets, guesses = batch.targets[learned], batch.guesses[learned]
    losses = cross_entropy(logits, targets, reduction="none")
    times = (targets >= first_time).nonzero()[:, 0]
    if len(times):
        logs = log_softmax(logits[times], -1)
        near = [
            share * logs.gather(1, (targets[times] + step).clamp(first_time, logits.shape[1] - 1)[:, None])[:, 0]
            for step, share in _NEAR_TIMES.items()
        ]
        losses = losses.index_put((times,), -sum(near))
    if guesses.any():
        end_of_text = model.config.eos_token_id
        even = -log_softmax(logits[guesses], -1)[:, :end_of_text].mean(-1)
        losses = losses.index_put((guesses.nonzero()[:, 0],), (1 - _GUESSING) * losses[guesses] + _GUESSING * even)
    return losses.mean()


class _Looks:
    """Where the guided heads look: in the last layer at what comes next, in the layers before at what was just read."""

    def __init__(self, model: Any) -> None:
        self._seen: dict[tuple[int, str], Tensor] = {}
        self._layers = len(model.model.decoder.layers)
        self._head_size = model.config.d_model // model.config.decoder_attention_heads
        self._hooks = [
            getattr(layer.encoder_attn, name).register_forward_hook(self._keeper(number, name))
            for number, layer in enumerate(model.model.decoder.layers)
            for name in ("q_proj", "k_proj")
        ]

    def _keeper(self, number: int, name: str) -> Callable[[Any, Any, Tensor], None]:
        def keep(module: Any, inputs: Any, output: Tensor) -> None:
            self._seen[number, name] = output

        return keep

    def let_go(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._seen.clear()

    def loss(self, batch: LessonBatch) -> Tensor:
        total = batch.features.new_zeros(())
        for number in range(self._layers):
            is_last = number == self._layers - 1
            spans = batch.spans if is_last else torch.nn.functional.pad(batch.spans[:, :-1], (0, 0, 1, 0), value=-1)
            total = total + self._loss_of(number, spans)
        return total / self._layers

    def _loss_of(self, number: int, spans: Tensor) -> Tensor:
        chosen = slice(GUIDED_HEAD * self._head_size, (GUIDED_HEAD + 1) * self._head_size)
        queries, keys = (self._seen[number, name][..., chosen] for name in ("q_proj", "k_proj"))
        windows, places = (spans[..., 0] >= 0).nonzero(as_tuple=True)
        if not len(windows):
            return queries.new_zeros(())
        logits = queries @ keys.transpose(1, 2) * self._head_size**-0.5
        logs = log_softmax(logits[windows, places], -1)
        position = torch.arange(logs.shape[-1], device=logs.device)
        first, last = (spans[windows, places][:, [side]] for side in (0, 1))
        last = last.clamp(max=logs.shape[-1] - 1)
        inside = (position >= first.minimum(last)) & (position <= last)
        return -logs.masked_fill(~inside, float("-inf")).logsumexp(-1).mean()
