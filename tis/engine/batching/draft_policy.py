"""How many tokens a draft model drafts for each row of a step: as many as make the answers come faster. Plain Python.

A drafted token is worth how often the drafts of its row were right of late. It costs a share of a pass of the draft
model, and of a longer step of the model. Both are measured while they run, so a draft that gains nothing is not made:
not for a row whose tokens the small model does not foretell, nor in a batch whose steps take longer with each token.
Rows without drafts are tried again, seldom.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tis.engine.batching.draft_costs import StepCosts

MAX_MODEL_DRAFT = 8  # tokens
MAX_MISSING = 64  # tokens of a row that the draft model computes before it drafts; more are computed in advance
_WEIGHT_OF_NEWEST = 0.12
_WEIGHT_IN_PRIOR = 0.02
_FIRST_PRIOR = 0.8
_MIN_GAIN = 1.03  # of speed
_STEPS_OF_DRAFTS = 40  # then one without, to see what that takes
_HOPE = 0.9  # what a trial of a row may find: if even that gains nothing, there is none
_LENGTH_OF_TRIAL = 3
_FIRST_WAIT, _SHORT_WAIT, _MAX_WAIT = 16, 4, 256  # tokens until a row is tried again
_UNLIKELY = 0.4  # with such a prior, most rows begin without drafts
_ROWS_PER_TRIAL = 16
_HORIZON = 128  # tokens that are left of an answer, by a guess; of a long one as many as it has
_GUESSED_ROWS = 32  # tokens of a prompt that a draft model computes in the time of one alone, until that is measured


class RowChance:
    """How often the drafts of one row were right of late, and when it is tried again if that is too seldom."""

    def __init__(self, share: float, tried_at: int) -> None:
        self.share = share
        self._tried_at = tried_at
        self._wait = _FIRST_WAIT

    def observed(self, num_right: int, *, is_wrong_behind: bool) -> None:
        for is_right in [True] * num_right + [False] * is_wrong_behind:
            self.share += _WEIGHT_OF_NEWEST * (is_right - self.share)
        if num_right and not is_wrong_behind:
            self._wait = _SHORT_WAIT

    def is_due(self, num_answered: int) -> bool:
        return num_answered >= self._tried_at

    def tried(self, num_answered: int) -> None:
        self._tried_at = num_answered + self._wait
        self._wait = min(_MAX_WAIT, 2 * self._wait)


@dataclass(frozen=True, slots=True)
class DraftWish:
    share: float  # of its drafts that were right of late
    max_length: int
    num_missing: int  # tokens that the draft model has not computed: the newest one at least
    num_answered: int  # tokens of the answer
    num_left: int  # that it may still have
    is_due: bool = False  # for a trial


@dataclass(frozen=True, slots=True)
class DraftChoice:
    lengths: list[int]  # of the drafts
    catch_up: list[bool]  # rows whose missing tokens are computed in advance
    are_trials: list[bool]


@dataclass(frozen=True, slots=True)
class _Best:
    lengths: list[int]
    seconds_saved: float  # for each token of the batch


class DraftPolicy:
    def __init__(self, share_of_costs: float) -> None:
        """`share_of_costs`: what a pass of the draft model takes, to a step of the model, until that is measured."""
        self.steps = StepCosts()
        self.passes = StepCosts()
        self._share_of_costs = share_of_costs
        self._seconds_per_prompt_token: float | None = None
        self._prior = _FIRST_PRIOR
        self._num_rows = self._num_drafting = 0

    def new_row(self, prompt_length: int) -> RowChance:
        self._num_rows += 1
        is_tried = self._prior >= _UNLIKELY or self._num_rows % _ROWS_PER_TRIAL == 0
        return RowChance(self._prior, 0 if is_tried else max(_HORIZON, prompt_length // 4))

    def observed(self, chance: RowChance, num_right: int, *, is_wrong_behind: bool) -> None:
        chance.observed(num_right, is_wrong_behind=is_wrong_behind)
        for is_right in [True] * num_right + [False] * is_wrong_behind:
            self._prior += _WEIGHT_IN_PRIOR * (is_right - self._prior)

    def step_measured(self, num_tokens: int, seconds: float) -> None:
        if not self.steps.is_known:
            self.passes = StepCosts(seconds * self._share_of_costs)
        self.steps.measured(num_tokens, seconds)

    def prompt_measured(self, num_tokens: int, seconds: float) -> None:
        """Of a prompt, by the draft model."""
        each, before = seconds / num_tokens, self._seconds_per_prompt_token
        self._seconds_per_prompt_token = each if before is None else before + 0.3 * (each - before)

    def choose(
        self, wishes: Sequence[DraftWish], num_tokens: int, max_drafted: int, max_computed: int = MAX_MISSING
    ) -> DraftChoice:
        """`num_tokens`: of answers in the step, before these drafts. `max_computed`: before it drafts."""
        max_missing = min(MAX_MISSING, max_computed)
        none = DraftChoice([0] * len(wishes), [False] * len(wishes), [False] * len(wishes))
        if not self.steps.is_known or max_drafted <= 0 or not wishes:
            return none
        complete = [replace(one, num_missing=1) for one in wishes]
        best = self._best(complete, num_tokens, max_drafted)
        trials = [one.is_due and not length for one, length in zip(wishes, best.lengths, strict=True)]
        if any(trials):
            hopeful = self._best(
                [replace(w, share=_HOPE) if tried else w for w, tried in zip(complete, trials, strict=True)],
                num_tokens,
                max_drafted,
            )
            trials = [tried and length > 0 for tried, length in zip(trials, hopeful.lengths, strict=True)]
        if not any(best.lengths) and not any(trials):
            return none
        catch_up = [
            one.num_missing > max_missing and (tried or (length > 0 and self._pays(one, best)))
            for one, length, tried in zip(wishes, best.lengths, trials, strict=True)
        ]
        ready = [
            replace(one, max_length=one.max_length if length and one.num_missing <= max_missing else 0)
            for one, length in zip(wishes, best.lengths, strict=True)
        ]
        lengths = best.lengths
        if any(one.num_missing > 1 for one in wishes):
            lengths = self._best(ready, num_tokens, max_drafted).lengths
        if any(lengths):
            self._num_drafting += 1
            if self._num_drafting % _STEPS_OF_DRAFTS == 0:
                return none
        left = max_drafted - sum(lengths)
        for at, one in enumerate(wishes):
            if trials[at] and one.num_missing <= max_missing:
                lengths[at] = max(0, min(_LENGTH_OF_TRIAL, one.max_length, left))
                left -= lengths[at]
        are_trials = [tried and length > 0 for tried, length in zip(trials, lengths, strict=True)]
        return DraftChoice(lengths, catch_up, are_trials)

    def _best(self, wishes: Sequence[DraftWish], num_tokens: int, max_drafted: int) -> _Best:
        """One token more for as many rows as it pays for, the most promising first; then the next one for these."""
        without = self.steps.seconds(num_tokens) / num_tokens
        lengths = [0] * len(wishes)
        best, fastest = list(lengths), without / _MIN_GAIN
        rows = sorted((at for at, one in enumerate(wishes) if one.max_length > 0), key=lambda at: -wishes[at].share)
        expected, drafting, drafted = float(num_tokens), 0.0, 0
        for depth in range(1, MAX_MODEL_DRAFT + 1):
            rows = [at for at in rows if wishes[at].max_length >= depth][: max_drafted - drafted]
            if not rows:
                break
            tried: list[tuple[float, float, float]] = []
            more, in_pass = 0.0, 0
            for number, at in enumerate(rows, 1):
                more += wishes[at].share ** depth
                in_pass += wishes[at].num_missing if depth == 1 else 1
                of_pass = self.passes.seconds(in_pass)
                seconds = drafting + of_pass + self.steps.seconds(num_tokens + drafted + number)
                tried.append((seconds / (expected + more), more, of_pass))
            fewest = min(range(len(rows)), key=lambda number: tried[number][0])
            each, more, of_pass = tried[fewest]
            rows = rows[: fewest + 1]
            expected, drafting, drafted = expected + more, drafting + of_pass, drafted + len(rows)
            for at in rows:
                lengths[at] = depth
            if each < fastest:
                best, fastest = list(lengths), each
        return _Best(best, without - fastest if any(best) else 0.0)

    def _pays(self, wish: DraftWish, best: _Best) -> bool:
        """Whether computing what the draft model lacks of this row takes no longer than its drafts will save."""
        each = self._seconds_per_prompt_token or self.passes.seconds(1) / _GUESSED_ROWS
        num_rows = sum(length > 0 for length in best.lengths)
        saved = best.seconds_saved * len(best.lengths) / num_rows * min(wish.num_left, max(_HORIZON, wish.num_answered))
        return wish.num_missing * each <= saved
