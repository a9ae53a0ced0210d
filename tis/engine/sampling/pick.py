"""Picks the next token of each completion from its row of logits: masks, penalties, then sampling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from tis.engine.answer import TokenLogprob
from tis.engine.sampling.adjust import AdjustedCompletion, adjust_in_place
from tis.engine.sampling.sample import sample_all
from tis.engine.text.tokenizer import Tokenizer


class SampledCompletion(AdjustedCompletion, Protocol):
    """What sampling needs of a completion."""

    def allowed(self, likeliest: Callable[[], int]) -> Any | None:
        """A boolean numpy array over the vocabulary, from a grammar; None if every token may come next."""
        ...

    def next_noise_key(self) -> int: ...


@dataclass(frozen=True, slots=True)
class PickedToken:
    token_id: int
    logprob: float | None = None  # under the model's own distribution, before penalties and temperature
    top: tuple[tuple[int, float], ...] = ()


class NoCandidates(Exception):
    """The logits are NaN, or all minus infinity."""


def pick(logits: Any, completion: SampledCompletion) -> PickedToken:
    """Picks the next token of one completion from its row of float32 logits, without changing them."""
    [picked] = pick_all(logits[None], [completion])
    if isinstance(picked, Exception):
        raise picked
    return picked


def pick_all(logits: Any, completions: Sequence[SampledCompletion]) -> list[PickedToken | Exception]:
    """Picks the next token of each completion from its row of logits. Returns the exception where a row fails.

    A row gives the same token in any batch: no operation on all rows mixes them.
    """
    adjusted, errors = _adjust_all(logits, completions)
    adjusted = apply_masks(adjusted, logits, completions, errors)
    ids, is_usable = likeliest(adjusted)
    for at, usable in enumerate(is_usable):
        if not usable:
            errors.setdefault(at, NoCandidates())
    sampled = [at for at, completion in enumerate(completions) if at not in errors and not completion.params.is_greedy]
    if sampled:
        rows = adjusted if len(sampled) == len(completions) else adjusted[sampled]
        params = [completions[at].params for at in sampled]
        drawn = sample_all(rows, params, [completions[at].next_noise_key() for at in sampled])
        for at, token_id in zip(sampled, drawn, strict=True):
            ids[at] = token_id
    return [
        errors.get(at) or _picked_token(ids[at], logits[at], completion) for at, completion in enumerate(completions)
    ]


def likeliest(logits: Any) -> tuple[list[int], list[bool]]:
    """The likeliest token of each row, and whether its logit is a number."""
    if logits.device.type == "cpu":  # with numpy, whose vectors torch lacks here
        rows = logits.numpy()
        ids = rows.argmax(-1)
        return ids.tolist(), np.isfinite(rows[np.arange(len(rows)), ids]).tolist()
    values, best = logits.max(-1)
    return best.tolist(), torch.isfinite(values).tolist()


def _adjust_all(logits: Any, completions: Sequence[SampledCompletion]) -> tuple[Any, dict[int, Exception]]:
    changed = [at for at, completion in enumerate(completions) if completion.params.changes_logits]
    if not changed:
        return logits, {}
    adjusted, errors = logits.clone(), {}
    for at in changed:
        try:
            adjust_in_place(adjusted[at], completions[at])
        except Exception as error:  # fails this row alone
            errors[at] = error
    return adjusted, errors


def _picked_token(token_id: int, logits: Any, completion: SampledCompletion) -> PickedToken:
    if completion.params.top_logprobs is None:
        return PickedToken(token_id)
    if wanted := completion.params.logprob_token_ids:
        logprobs = torch.log_softmax(logits, -1)
        values = logprobs[torch.tensor(wanted, device=logits.device)].tolist()
        return PickedToken(token_id, float(logprobs[token_id]), tuple(zip(wanted, values, strict=True)))
    return _with_logprobs(token_id, logits, completion.params.top_logprobs)


def _with_logprobs(token_id: int, logits: Any, num_top: int) -> PickedToken:
    logprobs = torch.log_softmax(logits, -1)
    top: Sequence[tuple[int, float]] = ()
    if num_top:
        values, ids = torch.topk(logprobs, num_top)
        top = tuple(zip(ids.tolist(), values.tolist(), strict=True))
    return PickedToken(token_id, float(logprobs[token_id]), tuple(top))


def apply_masks(
    adjusted: Any, logits: Any, completions: Sequence[SampledCompletion], errors: dict[int, Exception]
) -> Any:
    """Sets the tokens that a grammar forbids to minus infinity, before temperature and truncation."""
    allowed: dict[int, Any] = {}
    for at, completion in enumerate(completions):
        if at in errors:
            continue
        try:
            mask = completion.allowed(lambda at=at: int(adjusted[at].argmax()))  # type: ignore[misc]
        except Exception as error:  # fails this row alone
            errors[at] = error
            continue
        if mask is not None:
            allowed[at] = mask
    if not allowed:
        return adjusted
    if adjusted is logits:
        adjusted = logits.clone()
    for at, mask in allowed.items():
        forbid(adjusted[at], ~mask)
    return adjusted


def forbid(logits: Any, forbidden: Any) -> None:
    if logits.device.type == "cpu":
        # numpy uses one thread: torch would take longer to wake its threads than the work itself takes.
        np.copyto(logits.numpy(), -np.inf, where=forbidden)
    else:
        logits.masked_fill_(torch.from_numpy(forbidden).to(logits.device), -torch.inf)


def logprob_of(picked: PickedToken, tokenizer: Tokenizer) -> TokenLogprob:
    assert picked.logprob is not None
    top = tuple(_logprob_entry(token_id, logprob, tokenizer) for token_id, logprob in picked.top)
    chosen = _logprob_entry(picked.token_id, picked.logprob, tokenizer)
    return TokenLogprob(chosen.token_id, chosen.text, chosen.bytes, chosen.logprob, top)


def _logprob_entry(token_id: int, logprob: float, tokenizer: Tokenizer) -> TokenLogprob:
    return TokenLogprob(token_id, tokenizer.token_text(token_id), tokenizer.token_bytes(token_id), logprob)
