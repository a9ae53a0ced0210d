"""From a row of logits to a token: penalties, temperature, truncation, and one random number a token.

Candidates are cut to the likeliest thousand before anything is sorted: on a vocabulary of 152,000 a full sort costs
more than the model. When those candidates do not hold enough probability, the row is sorted whole after all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from server.engine.choice import Choice
from server.engine.sampling_params import SamplingParams

_CANDIDATES = 1024


@dataclass(frozen=True, slots=True)
class Picked:
    token_id: int
    logprob: float | None = None  # of the model's own distribution, before any change
    top: tuple[tuple[int, float], ...] = ()


class NoCandidates(Exception):
    """The model gave no number to choose by: NaN, or nothing but minus infinity."""


def pick(logits: Any, choice: Choice) -> Picked:
    """The next token of a choice, from its float32 row of logits (which is left as it was)."""
    params = choice.params
    adjusted = adjust(logits, choice) if params.changes_logits else logits
    best = adjusted.argmax()
    if not torch.isfinite(adjusted[best]):
        raise NoCandidates
    token_id = int(best) if params.is_greedy else sample(adjusted, params, choice.next_uniform())
    if params.top_logprobs is None:
        return Picked(token_id)
    return _with_logprobs(token_id, logits, params.top_logprobs)


def adjust(logits: Any, choice: Choice) -> Any:
    """Penalties, biases, and no end before min_tokens."""
    params, logits = choice.params, logits.clone()
    if params.repetition_penalty != 1:
        _penalise_repetition(logits, {*choice.prompt_ids, *choice.token_ids}, params.repetition_penalty)
    if choice.token_ids and (params.presence_penalty or params.frequency_penalty):
        ids, counts = torch.unique(torch.tensor(choice.token_ids, device=logits.device), return_counts=True)
        logits[ids] -= params.presence_penalty + params.frequency_penalty * counts
    for token_id, bias in params.logit_bias.items():
        logits[token_id] += bias
    if not choice.may_end:
        logits[sorted(choice.ending_ids)] = -torch.inf
    return logits


def sample(logits: Any, params: SamplingParams, draw: float) -> int:
    """`draw` in [0, 1) picks from the distribution that the truncations leave."""
    scaled = logits / params.temperature
    if params.top_k <= 0 and params.top_p >= 1 and params.min_p <= 0:
        return _at(draw, torch.softmax(scaled, -1), None)
    width = min(params.top_k if params.top_k > 0 else _CANDIDATES, scaled.numel())
    probabilities, ids = _likeliest(scaled, width, of_all=params.top_k <= 0)
    kept = _kept(probabilities, params)
    if kept == width and params.top_k <= 0 and width < scaled.numel():
        probabilities, ids = _likeliest(scaled, scaled.numel(), of_all=True)
        kept = _kept(probabilities, params)
    return _at(draw, probabilities[:kept], ids)


def _likeliest(scaled: Any, width: int, *, of_all: bool) -> tuple[Any, Any]:
    """Probabilities of the likeliest, likeliest first: among all tokens, or among themselves (after a top_k)."""
    values, ids = torch.topk(scaled, width)
    total = torch.logsumexp(scaled if of_all else values, -1)
    return torch.exp(values - total), ids


def _kept(probabilities: Any, params: SamplingParams) -> int:
    """How many of the sorted candidates top_p and min_p leave; at least one."""
    before = torch.cumsum(probabilities, -1) - probabilities
    keep = (before < params.top_p) & (probabilities >= params.min_p * probabilities[0])
    return max(1, int(keep.sum()))


def _at(draw: float, probabilities: Any, ids: Any) -> int:
    cumulative = torch.cumsum(probabilities.double(), -1)
    place = int(torch.searchsorted(cumulative, draw * float(cumulative[-1]), right=True))
    place = min(place, probabilities.numel() - 1)
    return place if ids is None else int(ids[place])


def _penalise_repetition(logits: Any, seen: set[int], penalty: float) -> None:
    ids = torch.tensor(sorted(seen), device=logits.device)
    values = logits[ids]
    logits[ids] = torch.where(values < 0, values * penalty, values / penalty)


def _with_logprobs(token_id: int, logits: Any, num_top: int) -> Picked:
    logprobs = torch.log_softmax(logits, -1)
    top: Sequence[tuple[int, float]] = ()
    if num_top:
        values, ids = torch.topk(logprobs, num_top)
        top = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return Picked(token_id, float(logprobs[token_id]), tuple(top))
