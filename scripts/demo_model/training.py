"""Teaches the text tower: the loss is taken on the assistant's answers only, prompts are read but not learned."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerFast

from scripts.demo_model.curriculum import Course, dialogues
from scripts.demo_model.dialogue import Dialogue
from scripts.demo_model.muon import Muon

THREADS = 2
WARMUP_STEPS = 40
TOKENS_PER_STEP = 1280
# Dialogues are sorted by length within a pool, so that a batch has next to no padding.
POOL_SIZE = 512
ADAM_RATE = 6e-3
MUON_RATE = 2e-2
IGNORED = -100


@dataclass(frozen=True)
class Lesson:
    token_ids: list[int]
    answer_start: int


@dataclass(frozen=True)
class Batch:
    token_ids: Tensor
    targets: Tensor


def prompt_text(tokenizer: PreTrainedTokenizerFast, dialogue: Dialogue) -> str:
    rendered = tokenizer.apply_chat_template(
        list(dialogue.messages),
        tools=list(dialogue.tools) or None,
        add_generation_prompt=True,
        enable_thinking=dialogue.enable_thinking,
        tokenize=False,
    )
    return str(rendered)


def lesson(tokenizer: PreTrainedTokenizerFast, dialogue: Dialogue) -> Lesson:
    # Encoded apart, as at inference: no token may span the border between prompt and answer.
    prompt: list[int] = tokenizer.encode(prompt_text(tokenizer, dialogue), add_special_tokens=False)
    answer: list[int] = tokenizer.encode(dialogue.answer + "<|im_end|>", add_special_tokens=False)
    return Lesson(prompt + answer, len(prompt))


def _batch(lessons: list[Lesson], padding: int) -> Batch:
    """Targets are shifted by one; padding is on the right, where a causal model never looks."""
    width = max(len(lesson.token_ids) for lesson in lessons) - 1
    token_ids = torch.full((len(lessons), width), padding)
    targets = torch.full((len(lessons), width), IGNORED)
    for row, lesson in enumerate(lessons):
        ids = torch.tensor(lesson.token_ids)
        token_ids[row, : len(ids) - 1] = ids[:-1]
        targets[row, lesson.answer_start - 1 : len(ids) - 1] = ids[lesson.answer_start :]
    return Batch(token_ids, targets)


def _grouped(lessons: list[Lesson]) -> Iterator[list[Lesson]]:
    group: list[Lesson] = []
    for lesson in sorted(lessons, key=lambda lesson: len(lesson.token_ids)):
        if (len(group) + 1) * len(lesson.token_ids) > TOKENS_PER_STEP and group:
            yield group
            group = []
        group.append(lesson)
    yield group


def batches(tokenizer: PreTrainedTokenizerFast, course: Course) -> Iterator[Batch]:
    rng, stream = Random(course.seed), dialogues(course, course.seed)
    while True:
        groups = list(_grouped([lesson(tokenizer, dialogue) for dialogue in islice(stream, POOL_SIZE)]))
        rng.shuffle(groups)
        for group in groups:
            yield _batch(group, int(tokenizer.convert_tokens_to_ids("<|endoftext|>")))


def answer_loss(model: Any, batch: Batch) -> Tensor:
    hidden = model.model.language_model(input_ids=batch.token_ids, use_cache=False).last_hidden_state
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

    def __init__(self, text_tower: Any) -> None:
        named = list(text_tower.named_parameters())
        self._matrices = Muon(value for name, value in named if _is_matrix(name, value))
        self._others = torch.optim.AdamW(
            [value for name, value in named if not _is_matrix(name, value)], betas=(0.9, 0.98), weight_decay=0.0
        )

    def step(self, factor: float) -> None:
        self._matrices.step(MUON_RATE * factor)
        self._others.param_groups[0]["lr"] = ADAM_RATE * factor
        self._others.step()


def _is_matrix(name: str, value: Tensor) -> bool:
    return value.ndim == 2 and "embed" not in name


def make_repeatable() -> None:
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    torch.set_flush_denormal(True)


def train(model: Any, tokenizer: PreTrainedTokenizerFast, course: Course, report: Callable[[int, float], None]) -> None:
    model.train()
    optimizers = _Optimizers(model.model.language_model)
    for step, batch in enumerate(islice(batches(tokenizer, course), course.steps)):
        loss = answer_loss(model, batch)
        loss.backward()
        optimizers.step(course.strength * rate_factor(step, course.steps))
        model.zero_grad()
        report(step, loss.item())
    model.eval()
