"""Samples a token per row of logits as `sample.py` does, with numpy: without a sort of the vocabulary or other threads.

A row is read two or three times: for its largest logit, for a bound that the candidates exceed, and, where all tokens
count, for their sum. Everything else is done with the candidates. Of equal logits, the lower token comes first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tis.engine.sampling.noise import NEAR, gumbel, gumbel_of, uniform
from tis.engine.sampling.params import SamplingParams

_GROUP = 64  # tokens of which the largest stands for all, when a bound is looked for
_FIRST_NUCLEUS = 256  # candidates of top_p; then eight times as many, until they have enough probability
_MANY = 8192  # candidates for which most of the logarithms of the noise are saved
_MARGIN = 1e-3  # in logits, for rounding


@dataclass(frozen=True, slots=True)
class _Candidates:
    ids: Any  # int64, [number]
    values: Any  # float32, [number]: logits over temperature
    scaled: Any = None  # of the whole vocabulary, where the tokens beside the candidates compete as one

    @property
    def rest_id(self) -> int:
        """Whose noise the rest has together."""
        return len(self.scaled)


def sample_on_cpu(logits: Any, params: Sequence[SamplingParams], keys: Sequence[int]) -> list[int]:
    """The rows have a largest logit, which is finite."""
    rows = logits.numpy()
    candidates = [_candidates(row / np.float32(one.temperature), one) for row, one in zip(rows, params, strict=True)]
    few = [at for at, one in enumerate(candidates) if len(one.ids) < _MANY]
    ids = [0] * len(params)
    for at, token_id in zip(few, _draw_all([candidates[at] for at in few], [keys[at] for at in few]), strict=True):
        ids[at] = token_id
    for at in sorted(set(range(len(params))) - set(few)):
        ids[at] = _draw_of_many(candidates[at], keys[at])
    return ids


def _candidates(scaled: Any, params: SamplingParams) -> _Candidates:
    if 0 < params.top_k < len(scaled):
        ids = _largest(scaled, params.top_k)
        values = scaled[ids]
        ids = ids[_passes_top_p_and_min_p(values, _log_of_sum(values), params)]
    elif params.top_p < 1:
        ids = _nucleus(scaled, params)
    elif params.min_p > 0:
        largest = scaled.max()
        ids = np.flatnonzero(scaled >= largest + np.float32(math.log(params.min_p) - _MARGIN))
        ids = ids[np.exp(scaled[ids] - largest) >= params.min_p]
    else:
        ids = np.flatnonzero(scaled > scaled.max() - np.float32(NEAR))
        return _Candidates(ids, scaled[ids], scaled)
    return _Candidates(ids, scaled[ids])


def _largest(scaled: Any, number: int) -> Any:
    """The ids of the largest, in descending order. Tokens of minus infinity are never among them."""
    bound = _lower_bound(scaled, number)
    ids = np.flatnonzero(scaled >= bound if bound > -np.inf else scaled > -np.inf)
    return ids[np.argsort(-scaled[ids], kind="stable")[:number]]


def _lower_bound(scaled: Any, number: int) -> Any:
    """At least `number` tokens are as large as this, and seldom many more."""
    groups = len(scaled) // _GROUP
    if 2 * number <= groups:
        maxima = scaled[: groups * _GROUP].reshape(_GROUP, groups).max(0)
        return np.partition(maxima, groups - number)[groups - number]
    return np.partition(scaled, len(scaled) - number)[len(scaled) - number]


def _nucleus(scaled: Any, params: SamplingParams) -> Any:
    """The candidates of top_p, and of min_p, among all tokens."""
    total, width = _log_of_sum(scaled), min(_FIRST_NUCLEUS, len(scaled))
    while True:
        ids = _largest(scaled, width)
        passes = _passes_top_p_and_min_p(scaled[ids], total, params)
        if not passes[-1] or width == len(scaled) or len(ids) < width:
            return ids[passes]
        width = min(8 * width, len(scaled))


def _passes_top_p_and_min_p(values: Any, total: float, params: SamplingParams) -> Any:
    """A mask over the candidates, which come likeliest first. The first always passes."""
    probabilities = np.exp(values - total, dtype=np.float64)
    passes = probabilities >= params.min_p * probabilities[0]
    if params.top_p < 1:
        passes &= np.cumsum(probabilities) - probabilities < params.top_p
    passes[0] = True
    return passes


def _log_of_sum(values: Any) -> float:
    largest = values.max()
    return float(largest) + math.log(float(np.exp(values - largest).sum()))


def _draw_all(candidates: Sequence[_Candidates], keys: Sequence[int]) -> list[int]:
    """One call makes the noise of all rows."""
    if not candidates:
        return []
    ids = np.concatenate([[*one.ids, one.rest_id] if one.scaled is not None else one.ids for one in candidates])
    counts = [len(one.ids) + (one.scaled is not None) for one in candidates]
    noise = gumbel(torch.from_numpy(np.repeat(np.array(keys, dtype=np.int64), counts)), torch.from_numpy(ids)).numpy()
    drawn, begin = [], 0
    for one, key, count in zip(candidates, keys, counts, strict=True):
        mine = noise[begin : begin + len(one.ids)]
        sums = one.values + mine
        best = int(sums.argmax())
        drawn.append(_unless_rest_wins(one, key, best, sums[best], noise[begin + count - 1]))
        begin += count
    return drawn


def _draw_of_many(candidates: _Candidates, key: int) -> int:
    """The noise grows with its uniform number, so only tokens with large ones need be looked at."""
    key_tensor, ids = torch.tensor(key), torch.from_numpy(candidates.ids)
    numbers = uniform(key_tensor, ids).numpy()
    least = _best_sum_where(candidates, numbers, numbers >= min(0.999, numbers.max()))
    needed = float(least - candidates.values.max()) - _MARGIN
    sums_of = np.flatnonzero(numbers >= math.exp(-math.exp(-needed)))
    sums = candidates.values[sums_of] + gumbel_of(torch.from_numpy(numbers[sums_of])).numpy()
    best = int(sums.argmax())
    rest = torch.tensor(candidates.rest_id if candidates.scaled is not None else 0)
    return _unless_rest_wins(candidates, key, int(sums_of[best]), sums[best], float(gumbel(key_tensor, rest)))


def _best_sum_where(candidates: _Candidates, numbers: Any, mask: Any) -> Any:
    return (candidates.values[mask] + gumbel_of(torch.from_numpy(numbers[mask])).numpy()).max()


def _unless_rest_wins(candidates: _Candidates, key: int, best: int, best_sum: float, noise: float) -> int:
    """`noise` is that of the rest: all tokens that are far from the likeliest, by their summed probability."""
    scaled = candidates.scaled
    num_rest = 0 if scaled is None else len(scaled) - len(candidates.ids)
    # None of the rest is larger than this bound.
    bound = float(candidates.values.max()) - NEAR + _MARGIN
    if not num_rest or best_sum >= bound + math.log(num_rest) + noise:
        return int(candidates.ids[best])
    weights = np.exp(scaled - np.float32(bound))
    weights[candidates.ids] = 0
    weight = float(weights.sum())
    if not weight or best_sum >= bound + math.log(weight) + noise:
        return int(candidates.ids[best])
    is_rest = scaled > -np.inf
    is_rest[candidates.ids] = False
    ids = np.flatnonzero(is_rest)
    return int(ids[(scaled[ids] + gumbel(torch.tensor(key), torch.from_numpy(ids)).numpy()).argmax()])
