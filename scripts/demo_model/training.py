"""Teaches both towers: the loss is taken on the assistant's answers only, prompts are read but not learned."""

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerFast

from scripts.demo_model.curriculum import Course
from scripts.demo_model.lessons import IGNORED, TrainingBatch, batches
from scripts.demo_model.muon import Muon
from tis.engine.vision.qwen_vision import QwenVision

THREADS = 2
WARMUP_STEPS = 40
ADAM_RATE = 6e-3
MUON_RATE = 2e-2
# In a plain picture all weights of the patch embedding pull the same way, so that each may move only a little.
VISION_ADAM_RATE = 5e-4


def answer_loss(model: Any, batch: TrainingBatch) -> Tensor:
    read = model.model if batch.sights else model.model.language_model
    hidden = read(input_ids=batch.token_ids, use_cache=False, **batch.sights).last_hidden_state
    learned = batch.targets != IGNORED
    # The vocabulary projection is a fifth of the work; prompt positions need none of it.
    return cross_entropy(model.lm_head(hidden[learned]), batch.targets[learned])


def rate_factor(step: int, steps: int) -> float:
    if step < WARMUP_STEPS:
        return (step + 1) / WARMUP_STEPS
    progress = (step - WARMUP_STEPS) / max(1, steps - WARMUP_STEPS)
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress))


class _Optimizers:
    """Muon for the weight matrices (it needs about half of AdamW's steps), AdamW for embeddings and norms."""

    def __init__(self, tower: Any, adam_rate: float) -> None:
        named = list(tower.named_parameters())
        self._adam_rate = adam_rate
        self._matrices = Muon(value for name, value in named if _is_matrix(name, value))
        self._others = torch.optim.AdamW(
            [value for name, value in named if not _is_matrix(name, value)], betas=(0.9, 0.98), weight_decay=0.0
        )

    def step(self, factor: float) -> None:
        self._matrices.step(MUON_RATE * factor)
        self._others.param_groups[0]["lr"] = self._adam_rate * factor
        self._others.step()


def _is_matrix(name: str, value: Tensor) -> bool:
    return value.ndim == 2 and "embed" not in name


def make_repeatable() -> None:
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    torch.set_flush_denormal(True)


def train(
    model: Any,
    tokenizer: PreTrainedTokenizerFast,
    vision: QwenVision,
    course: Course,
    report: Callable[[int, float], None],
) -> None:
    model.train()
    text_tower = _Optimizers(model.model.language_model, ADAM_RATE)
    vision_tower = _Optimizers(model.model.visual, VISION_ADAM_RATE)
    for step, batch in enumerate(islice(batches(tokenizer, vision, course), course.steps)):
        loss = answer_loss(model, batch)
        loss.backward()
        factor = rate_factor(step, course.steps)
        text_tower.step(course.strength * factor)
        if batch.sights:
            vision_tower.step(course.vision_strength * factor)
        model.zero_grad()
        report(step, loss.item())
    model.eval()


def mix_in(model: Any, old: Mapping[str, Tensor], share: float) -> None:
    """Takes the mean of the weights and older ones, of which it takes this share."""
    if share:
        new = model.state_dict()
        model.load_state_dict({name: old[name] * share + value * (1 - share) for name, value in new.items()})
