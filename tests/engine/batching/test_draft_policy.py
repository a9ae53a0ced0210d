"""How many tokens are drafted for which row, without a model: times are those of a made-up machine."""

import random

import pytest

from tis.engine.batching.draft_costs import StepCosts
from tis.engine.batching.draft_policy import MAX_MISSING, MAX_MODEL_DRAFT, DraftPolicy, DraftWish


class MadeUpMachine:
    """A step takes `first` seconds and `more` for each further token, a pass of the draft model a share of that."""

    def __init__(self, more: float = 0.003, share: float = 0.15, first: float = 0.1, seed: int = 1) -> None:
        self.first, self.more, self.share = first, more, share
        self.chance = random.Random(seed)

    def step(self, num_tokens: int) -> float:
        return (self.first + self.more * (num_tokens - 1)) * self.chance.uniform(0.95, 1.1)

    def passed(self, num_tokens: int) -> float:
        return self.share * self.step(num_tokens)


def measured(machine: MadeUpMachine, num_rows: int = 1) -> DraftPolicy:
    policy = DraftPolicy(machine.share)
    for _ in range(20):
        for num_tokens in (num_rows, num_rows + 2, num_rows + 5):
            policy.step_measured(num_tokens, machine.step(num_tokens))
        policy.passes.measured(num_rows, machine.passed(num_rows))
    return policy


def wish(
    share: float, *, length: int = 20, missing: int = 1, made: int = 1, left: int = 500, due: bool = False
) -> DraftWish:
    return DraftWish(share, length, missing, made, left, due)


class SpokenAnswer:
    """One answer: of the drafted tokens a share is right, each whatever the one before it was."""

    def __init__(self, policy: DraftPolicy, machine: MadeUpMachine, right: float, num_prompt: int = 1) -> None:
        self.policy, self.machine, self.right = policy, machine, right
        self.row = policy.new_row(num_prompt)
        self.seconds = 0.0
        self.num_made = self.num_drafted = self.num_steps = 0

    def make(self, num_tokens: int) -> "SpokenAnswer":
        while self.num_made < num_tokens:
            asked = wish(self.row.share, due=self.row.is_due(self.num_made))
            choice = self.policy.choose([asked], 1, 15)
            [length] = choice.lengths
            if choice.are_trials[0]:
                self.row.tried(self.num_made)
            for _ in range(length):
                seconds = self.machine.passed(1)
                self.policy.passes.measured(1, seconds)
                self.seconds += seconds
            num_right = 0
            while num_right < length and self.machine.chance.random() < self.right:
                num_right += 1
            seconds = self.machine.step(1 + length)
            self.policy.step_measured(1 + length, seconds)
            if length:
                self.policy.observed(self.row, num_right, is_wrong_behind=num_right < length)
            self.seconds += seconds
            self.num_made += 1 + num_right
            self.num_drafted += length
            self.num_steps += 1
        return self

    @property
    def speed(self) -> float:
        """Beside an answer without drafts."""
        return self.num_made * self.machine.first * 1.025 / self.seconds


def test_a_line_through_the_newest_steps_says_what_one_takes() -> None:
    costs, machine = StepCosts(), MadeUpMachine(more=0.01)
    for _ in range(100):
        costs.measured(num_tokens := machine.chance.choice((1, 2, 4, 6)), machine.step(num_tokens))
    for num_tokens in (1, 4, 8, 16):
        assert costs.seconds(num_tokens) == pytest.approx(1.025 * (0.1 + 0.01 * (num_tokens - 1)), rel=0.06)
    costs.measured(1, 60.0)  # the machine was asleep
    assert costs.seconds(1) < 0.12


def test_nothing_is_drafted_before_a_step_was_measured() -> None:
    assert DraftPolicy(0.1).choose([wish(1.0)], 1, 15).lengths == [0]


def test_the_better_the_drafts_the_longer_they_are() -> None:
    policy = measured(MadeUpMachine())
    lengths = [policy.choose([wish(share)], 1, 15).lengths[0] for share in (0.05, 0.4, 0.6, 0.8, 0.99)]
    assert lengths == sorted(lengths) and lengths[0] == 0 and lengths[1] >= 1 and lengths[-1] == MAX_MODEL_DRAFT


def test_a_draft_is_no_longer_than_it_may_be() -> None:
    policy = measured(MadeUpMachine())
    assert policy.choose([wish(0.99, length=3)], 1, 15).lengths == [3]
    assert policy.choose([wish(0.99), wish(0.98)], 2, 5).lengths in ([3, 2], [2, 3])
    assert policy.choose([wish(0.99, length=-4)], 1, 15).lengths == [0]


def test_rows_whose_drafts_are_right_have_them_and_others_beside_them_have_none() -> None:
    policy = measured(MadeUpMachine(), 4)
    first, second, third, fourth = policy.choose([wish(0.9), wish(0.02), wish(0.95), wish(0.05)], 4, 12).lengths
    assert first >= 2 and third >= 2 and second == fourth == 0


@pytest.mark.parametrize("share", [0.9, 1.2])
def test_a_draft_model_that_is_as_slow_as_the_model_drafts_nothing(share: float) -> None:
    assert measured(MadeUpMachine(share=share)).choose([wish(0.97)], 1, 15).lengths == [0]


def test_where_each_token_of_a_step_costs_as_much_as_the_first_nothing_is_drafted() -> None:
    """As in a full batch, whose steps are as long as their multiplications."""
    machine = MadeUpMachine(more=0.09, first=0.1)
    assert measured(machine, 8).choose([wish(0.9)] * 8, 8, 8).lengths == [0] * 8


@pytest.mark.parametrize("right", [0.5, 0.7, 0.85, 0.95])
def test_an_answer_that_the_small_model_foretells_comes_faster(right: float) -> None:
    machine = MadeUpMachine(share=0.1)
    answer = SpokenAnswer(measured(machine), machine, right).make(600)
    best = max(
        sum(right**at for at in range(length + 1)) / (1 + 0.1 * length + 0.03 * length)
        for length in range(MAX_MODEL_DRAFT + 1)
    )
    assert answer.speed > 0.9 * best > 1


def test_an_answer_that_it_does_not_foretell_costs_next_to_nothing() -> None:
    machine = MadeUpMachine(share=0.2)
    policy = measured(machine)
    answers = [SpokenAnswer(policy, machine, 0.0).make(400) for _ in range(4)]
    assert answers[0].speed > 0.95 and answers[-1].speed > 0.97
    assert sum(one.num_drafted for one in answers[1:]) < 3 * 400 / 15


def test_an_answer_is_tried_again_and_then_drafted() -> None:
    machine = MadeUpMachine(share=0.1)
    answer = SpokenAnswer(measured(machine), machine, 0.0).make(100)
    assert answer.row.share < 0.2
    answer.right, before = 0.95, answer.num_steps
    answer.make(600)
    assert answer.num_steps - before < 350


def test_prompts_are_computed_in_advance_where_that_pays() -> None:
    policy = measured(MadeUpMachine())
    for _ in range(10):
        policy.prompt_measured(500, 1.0)
    many = MAX_MISSING + 100
    choice = policy.choose([wish(0.9, missing=many), wish(0.9), wish(0.05, missing=many)], 3, 12)
    assert choice.catch_up == [True, False, False] and choice.lengths[0] == 0 and choice.lengths[1] > 0
    # Not for an answer that is nearly over, nor for a prompt as long as a book.
    assert policy.choose([wish(0.9, missing=many, left=3)], 1, 15).catch_up == [False]
    assert policy.choose([wish(0.9, missing=10_000)], 1, 15).catch_up == [False]
    # But for one that has become long, and so may become as long again.
    assert policy.choose([wish(0.9, missing=10_000, made=2000, left=4000)], 1, 15).catch_up == [True]


def test_where_drafts_are_seldom_right_few_rows_begin_with_them() -> None:
    machine = MadeUpMachine(share=0.1)
    policy = measured(machine)
    for _ in range(6):
        SpokenAnswer(policy, machine, 0.0).make(200)
    rows = [policy.new_row(1000) for _ in range(64)]
    assert sum(row.is_due(1) for row in rows) == 4
    assert sum(row.is_due(100) for row in rows) == 4 and all(row.is_due(300) for row in rows)
