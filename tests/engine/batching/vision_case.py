"""A tiny vision model of a family, prompts for it, and their tokens by `generate()`."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tests.engine.batching import letters
from tests.engine.batching.tiny import new_runner, new_turn_runner, run, tokens
from tests.engine.batching.vision_families import VISION_FAMILIES, FamilyPrompt, mixed_prompts, new_family
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.picture_trial import find_tower
from tis.engine.batching.towers import ForwardTower
from tis.engine.request import Request
from tis.engine.runner import Runner

LENGTH = 10
UNLIKE_OTHERS = ("gemma3", "llava_next", "mistral3", "glm4v", "ovis2")
TRIED = tuple(VISION_FAMILIES) if os.environ.get("SOAK") else UNLIKE_OTHERS
# `generate()` computes them: their decoders get more than features in the places of the picture's own token, or all of
# a prompt sees all of it.
ALONE = {"ovis2", "granite4_vision", "paligemma"}
_CONSTRAINED = (2, 5)  # the prompts that are answered under a grammar, too: with pictures and without


class VisionCase:
    def __init__(self, name: str) -> None:
        self.name = name
        self.model = new_family(name)
        self.prompts = mixed_prompts(name, self.model)
        self.expected = [one.greedy(LENGTH) for one in self.prompts]
        self.constrained = [self.prompts[at].greedy_within_letters() for at in _CONSTRAINED]
        self.tower = find_tower(self.model, self.prompts[2].sample)

    def new_runner(self, **options: Any) -> BatchRunner:
        assert isinstance(self.tower, ForwardTower)
        return new_runner(self.model, tower=self.tower, **options)

    def new_fitting_runner(self) -> Runner:
        if self.name in ALONE:
            return new_turn_runner(self.model, tokens_per_step=24)
        return self.new_runner(tokens_per_step=24)

    def answers(self, runner: BatchRunner, prompts: Sequence[FamilyPrompt], *, every: int = 2) -> list[list[int]]:
        requests = [one.request(max_tokens=LENGTH) for one in prompts]
        readers = run(runner, requests, every=every)
        assert not readers.errors
        return [tokens(request) for request in requests]

    def requests(self) -> list[Request]:
        """All prompts, one of them with a prediction of its answer, and some of them under a grammar as well."""
        made = [one.request(max_tokens=LENGTH).prepared for one in self.prompts]
        params = replace(made[0].params, max_tokens=2 * letters.LENGTH, ignore_eos=False)
        constrained = [replace(made[at], params=params, grammar=letters.compiled()) for at in _CONSTRAINED]
        made[0] = replace(made[0], prediction_ids=[*self.expected[0][:6], 99, *self.expected[0][7:]])
        return [Request(one) for one in (*made, *constrained)]

    def check(self, requests: Sequence[Request]) -> None:
        assert [tokens(request) for request in requests] == [*self.expected, *self.constrained]


@cache
def vision_case(name: str) -> VisionCase:
    return VisionCase(name)
