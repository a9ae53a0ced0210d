"""Changes a row of logits: penalties, biases, and no end before min_tokens.

Which logits change is known from the tokens so far. The indices are kept with the completion and grow with its answer,
so that a step costs what it adds, and not what the request has.
"""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from tis.engine.sampling.params import SamplingParams

_FIRST_CAPACITY = 64


class AdjustedCompletion(Protocol):
    """What adjusting needs of a completion."""

    adjuster: Any  # None, or the LogitAdjuster of an earlier step

    @property
    def params(self) -> SamplingParams: ...

    @property
    def prompt_ids(self) -> Sequence[int]: ...

    @property
    def token_ids(self) -> Sequence[int]: ...

    @property
    def ending_ids(self) -> Collection[int]: ...

    @property
    def forbids_ending(self) -> bool:
        """Whether none of `ending_ids` may come next."""
        ...


class TokenCounts:
    """Different tokens, each with its number, in arrays that grow."""

    def __init__(self, token_ids: Sequence[int] = ()) -> None:
        unique, counts = np.unique(np.asarray(token_ids, dtype=np.int64), return_counts=True)
        self._num = len(unique)
        self._ids = np.resize(unique, max(_FIRST_CAPACITY, 2 * self._num)) if self._num else np.empty(64, np.int64)
        self._counts = np.zeros(len(self._ids), np.float32)
        self._counts[: self._num] = counts
        self._places = {token_id: place for place, token_id in enumerate(unique.tolist())}

    def add(self, token_id: int) -> None:
        place = self._places.setdefault(token_id, self._num)
        if place == self._num:
            if place == len(self._ids):
                self._ids, self._counts = (
                    np.concatenate([one, np.zeros_like(one)]) for one in (self._ids, self._counts)
                )
            self._ids[place] = token_id
            self._num += 1
        self._counts[place] += 1

    def ids(self, device: Any) -> Any:
        return torch.from_numpy(self._ids[: self._num]).to(device)

    def counts(self, device: Any) -> Any:
        return torch.from_numpy(self._counts[: self._num]).to(device)


class LogitAdjuster:
    def __init__(self, completion: AdjustedCompletion, device: Any) -> None:
        params = completion.params
        self._params, self._device = params, device
        self._seen = TokenCounts(completion.prompt_ids) if params.repetition_penalty != 1 else None
        self._answer = TokenCounts() if params.presence_penalty or params.frequency_penalty else None
        self._num_counted = 0  # tokens of the answer
        self._biased_ids = torch.tensor(list(params.logit_bias), dtype=torch.long, device=device)
        self._biases = torch.tensor(list(params.logit_bias.values()), dtype=torch.float32, device=device)
        self._ending_ids = torch.tensor(sorted(completion.ending_ids), dtype=torch.long, device=device)

    def apply(self, logits: Any, completion: AdjustedCompletion) -> None:
        """Changes the row in place."""
        self._count(completion.token_ids)
        params = self._params
        if self._seen:
            ids = self._seen.ids(self._device)
            values, penalty = logits[ids], params.repetition_penalty
            logits[ids] = torch.where(values < 0, values * penalty, values / penalty)
        if self._answer and completion.token_ids:
            counts = self._answer.counts(self._device)
            logits[self._answer.ids(self._device)] -= params.presence_penalty + params.frequency_penalty * counts
        if len(self._biased_ids):
            logits[self._biased_ids] += self._biases
        if completion.forbids_ending:
            logits[self._ending_ids] = -torch.inf

    def _count(self, token_ids: Sequence[int]) -> None:
        """An answer only grows."""
        for counts in (self._seen, self._answer):
            if counts:
                for token_id in token_ids[self._num_counted :]:
                    counts.add(token_id)
        self._num_counted = len(token_ids)


def adjust_in_place(logits: Any, completion: AdjustedCompletion) -> None:
    if completion.adjuster is None:
        completion.adjuster = LogitAdjuster(completion, logits.device)
    completion.adjuster.apply(logits, completion)
