"""Tries whether a model computes in a batch what it computes alone: two short texts, before requests rely on it."""

import math
from typing import Any

import torch

from tis.engine.batching.attention import NAME
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.kv_cache import CacheShape, CacheSize, PagedCache
from tis.engine.kernels.native import NativeKernels
from tis.engine.weights.fused import attention_named

Step = list[tuple[int, int, int]]  # a text, the first of its tokens that is computed, and the token behind the last

_FIRST_TOKEN = 3
_LENGTH = 6  # of each text
# In two steps: an attention that leaves something else in the cache computes the first one correctly.
_STEPS: list[Step] = [[(0, 0, 5), (1, 0, 4)], [(0, 5, 6), (1, 4, 6)]]  # single tokens come first
# Of the largest logit of a row. Roundings to 16 bits add up over the layers, and may send a token to another expert.
_TOLERANCES = {torch.bfloat16: 0.5, torch.float16: 0.5}


class BatchTrial:
    def __init__(self, model: Any) -> None:
        """The model must still be as it was read."""
        self._texts = torch.arange(2 * _LENGTH, device=model.device).view(2, _LENGTH) + _FIRST_TOKEN
        self._tolerance = _TOLERANCES.get(model.dtype, 1e-2)
        positions = torch.arange(_LENGTH, device=model.device).expand(2, -1)
        with torch.inference_mode():
            self._alone = model(input_ids=self._texts, position_ids=positions, use_cache=False).logits.float()

    def why_not(
        self, model: Any, shape: CacheShape, kernels: NativeKernels | None = None, *, is_rounded: bool = False
    ) -> str | None:
        """Says what is wrong with the model in a batch. `is_rounded`: other numbers are no fault if they are finite."""
        cache = PagedCache(shape, 2, CacheSize.of(shape, 0).block_size)
        with torch.inference_mode(), attention_named(model, NAME):
            pairs = [self._computed(model, cache, step, kernels) for step in _STEPS]
        if any(ours.shape != alone.shape for ours, alone in pairs):
            return "it returns other logits than those that it is asked for"
        ours, alone = (torch.cat(rows) for rows in zip(*pairs, strict=True))
        # Equal infinities are no difference.
        difference = torch.where(ours == alone, 0.0, (ours - alone).abs()).amax(-1)
        size = alone.masked_fill(alone.isinf(), 0).abs().amax(-1)
        if not difference.isfinite().all():
            return "in a batch it computes numbers that are not finite"
        if (difference <= (math.inf if is_rounded else self._tolerance) * size).all():
            return None
        return f"in a batch it computes something else: {float((difference / size).max()):.3g} of its largest logit"

    def _computed(self, model: Any, cache: PagedCache, step: Step, kernels: NativeKernels | None) -> tuple[Any, Any]:
        """Returns logits in a batch, and alone. One row is left out, as most rows of a prompt are."""
        runs: list[QueryRun] = []
        for text, start, stop in step:
            runs.append(QueryRun(runs[-1].end if runs else 0, stop - start, text * cache.block_size, start))
        rows = [(text, token) for text, start, stop in step for token in range(start, stop)]
        texts, tokens = (torch.tensor(column, device=model.device) for column in zip(*rows, strict=True))
        wanted = torch.tensor([0, *range(2, len(rows))], device=model.device)
        batch = Batch(cache, runs, texts * cache.block_size + tokens, kernels, wanted)
        ids = self._texts[texts, tokens][None]
        out = model(input_ids=ids, position_ids=tokens[None], use_cache=False, logits_to_keep=wanted, batch=batch)
        return out.logits[0].float(), self._alone[texts, tokens][wanted]
