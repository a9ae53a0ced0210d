"""Samples a token per row of logits: temperature, truncation, and Gumbel noise that depends on (key, token) alone.

On a CPU by `sample_on_cpu.py`. Elsewhere truncation looks at the likeliest 1024 tokens first, or at the largest top_k.
Only a row where those hold too little probability is sorted whole.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tis.engine.sampling.noise import NEAR, gumbel
from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.sample_on_cpu import sample_on_cpu

_CANDIDATES = 1024


def sample_all(logits: Any, params: Sequence[SamplingParams], keys: Sequence[int]) -> list[int]:
    """Samples from each row, after truncation, the token with the largest sum of logit and Gumbel noise under its key.

    Another batch, or a resume, changes the logits by rounding errors. That changes the token only where two sums are as
    close as the error; with a cumulative distribution it would move every border.
    """
    if logits.device.type == "cpu":
        return sample_on_cpu(logits, params, keys)
    return sample_on_device(logits, params, keys)


def sample_on_device(logits: Any, params: Sequence[SamplingParams], keys: Sequence[int]) -> list[int]:
    scaled = logits / _tensor([one.temperature for one in params], logits)[:, None]
    numbers = _tensor(keys, logits, torch.long)
    ids = [0] * len(params)
    cut = [at for at, one in enumerate(params) if _is_truncated(one)]
    for at in sorted(set(range(len(params))) - set(cut)):
        ids[at] = _sample_whole(scaled[at], numbers[at])
    if cut:
        rows = scaled if len(cut) == len(params) else scaled[cut]
        for at, token_id in zip(cut, _sample_truncated(rows, [params[at] for at in cut], numbers[cut]), strict=True):
            ids[at] = token_id
    return ids


def _sample_whole(scaled: Any, key: Any) -> int:
    """Samples from all tokens. The unlikely ones, most of a vocabulary, compete as one, by their summed probability."""
    is_near = scaled > scaled.max() - NEAR
    near, far = torch.nonzero(is_near)[:, 0], torch.logsumexp(scaled.masked_fill(is_near, -torch.inf), -1)
    sums = scaled[near] + gumbel(key, near)
    best = sums.argmax()
    if sums[best] >= far + gumbel(key, torch.tensor(len(scaled), device=scaled.device)):
        return int(near[best])
    ids = torch.nonzero(~is_near)[:, 0]
    return int(ids[(scaled[ids] + gumbel(key, ids)).argmax()])


def _is_truncated(params: SamplingParams) -> bool:
    return params.top_k > 0 or params.top_p < 1 or params.min_p > 0


def _sample_truncated(scaled: Any, params: Sequence[SamplingParams], keys: Any) -> list[int]:
    has_top_k = all(0 < one.top_k for one in params)
    most = min(_CANDIDATES, max(one.top_k for one in params)) if has_top_k else _CANDIDATES
    ids, enough = _among_likeliest(scaled, params, keys, min(most, scaled.shape[-1]))
    for at, is_enough in enumerate(enough):
        if not is_enough:
            row = slice(at, at + 1)
            [ids[at]], _ = _among_likeliest(scaled[row], params[row], keys[row], scaled.shape[-1])
    return ids


def _among_likeliest(
    scaled: Any, params: Sequence[SamplingParams], keys: Any, width: int
) -> tuple[list[int], list[bool]]:
    """Returns a token for each row, and whether no token beyond the likeliest `width` could have been drawn."""
    vocabulary = scaled.shape[-1]
    top_k = _tensor([one.top_k if 0 < one.top_k < vocabulary else vocabulary for one in params], scaled, torch.long)
    values, ids = torch.topk(scaled, width)
    within = torch.arange(width, device=scaled.device) < top_k[:, None]
    # top_p and min_p apply to the probabilities among the top_k tokens, or among all tokens without top_k.
    left = values.masked_fill(~within, -torch.inf)
    total = torch.where(top_k < vocabulary, torch.logsumexp(left, -1), torch.logsumexp(scaled, -1))
    probabilities = torch.exp(left - total[:, None])
    candidates = within & _passes_top_p_and_min_p(probabilities, params)
    places = (values + gumbel(keys[:, None], ids)).masked_fill(~candidates, -torch.inf).argmax(-1)
    enough = (candidates.sum(-1) < width) & (top_k == vocabulary) | (top_k <= width)
    return ids.gather(1, places[:, None])[:, 0].tolist(), enough.tolist()


def _passes_top_p_and_min_p(probabilities: Any, params: Sequence[SamplingParams]) -> Any:
    """A mask over the candidates, which come likeliest first. The first always passes."""
    before = torch.cumsum(probabilities, -1) - probabilities
    top_p, min_p = (
        _tensor(values, before)[:, None] for values in zip(*((p.top_p, p.min_p) for p in params), strict=True)
    )
    passes = (before < top_p) & (probabilities >= min_p * probabilities[:, :1])
    passes[:, 0] = True
    return passes


def _tensor(values: Sequence[float], like: Any, dtype: Any = torch.float32) -> Any:
    return torch.tensor(values, dtype=dtype, device=like.device)
