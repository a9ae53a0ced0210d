"""Tries whether a model computes in a batch what it computes alone: two short texts, before requests rely on it."""

import math
from typing import Any

import torch

from tis.engine.batching.attention import NAME
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.kv_cache import CacheShape, CacheSize, PagedCache
from tis.engine.kernels.native import NativeKernels
from tis.engine.weights.fused import attention_named

_FIRST_TOKEN = 3
_LENGTH = 6  # of each text
# What each step computes: a text, its first token and the token behind its last. Single tokens come first.
_STEPS = ([(0, 0, 5), (1, 0, 4)], [(0, 5, 6), (1, 4, 6)])
# Of the largest logit of a row. Roundings to 16 bits add up over the layers, and may send a token to another expert.
_TOLERANCES = {torch.bfloat16: 0.25, torch.float16: 0.25}


class BatchTrial:
    def __init__(self, model: Any) -> None:
        """The model must still be as it was read."""
        device = model.device
        self._texts = torch.arange(2 * _LENGTH, device=device).view(2, _LENGTH) + _FIRST_TOKEN
        self._tolerance = _TOLERANCES.get(model.dtype, 1e-2)
        positions = torch.arange(_LENGTH, device=device).expand(2, -1)
        with torch.inference_mode():
            logits = model(input_ids=self._texts, position_ids=positions, use_cache=False).logits
        texts, tokens = zip(*(row for step in _STEPS for row in _read(step)), strict=True)
        self._alone = logits[list(texts), list(tokens)].float()

    def why_not(
        self, model: Any, shape: CacheShape, kernels: NativeKernels | None = None, *, is_rounded: bool = False
    ) -> str | None:
        """Says what is wrong with the model in a batch. `is_rounded`: to 8 bits, which is no fault."""
        block_size = CacheSize.of(shape, 0).block_size
        cache = PagedCache(shape, 2, block_size)
        with torch.inference_mode(), attention_named(model, NAME):
            logits = torch.cat([self._computed(model, cache, step, kernels) for step in _STEPS]).float()
        if logits.shape != self._alone.shape:
            return "it returns other logits than those that it is asked for"
        tolerance = math.inf if is_rounded else self._tolerance
        # Equal infinities are no difference.
        difference = torch.where(logits == self._alone, 0.0, (logits - self._alone).abs()).amax(-1)
        size = self._alone.masked_fill(self._alone.isinf(), 0).abs().amax(-1)
        if (difference <= tolerance * size).all():
            return None
        return f"in a batch it computes something else: {float((difference / size).max()):.3g} of its largest logit"

    def _computed(
        self, model: Any, cache: PagedCache, step: list[tuple[int, int, int]], kernels: NativeKernels | None
    ) -> Any:
        runs: list[QueryRun] = []
        for text, start, stop in step:
            runs.append(QueryRun(runs[-1].end if runs else 0, stop - start, text * cache.block_size, start))
        rows = _rows(step)
        texts, tokens = (torch.tensor(column, device=model.device) for column in zip(*rows, strict=True))
        wanted = torch.tensor([rows.index(row) for row in _read(step)], device=model.device)
        batch = Batch(cache, runs, texts * cache.block_size + tokens, kernels, wanted)
        ids = self._texts[texts, tokens][None]
        out = model(input_ids=ids, position_ids=tokens[None], use_cache=False, logits_to_keep=wanted, batch=batch)
        return out.logits[0]


def _rows(step: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """The text and the number of each token in the row of a step."""
    return [(text, token) for text, start, stop in step for token in range(start, stop)]


def _read(step: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Those whose logits are read: one is left out, as most of a prompt are."""
    return [row for at, row in enumerate(_rows(step)) if at != 1]
