"""Runners with a draft model, which drafts whatever it costs: to save time, it would have to be smaller than tiny."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from tests.engine.batching.tiny import TOKENIZER
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.draft_model import DraftModel, PreparedDraft
from tis.engine.batching.draft_policy import MAX_MISSING, DraftChoice, DraftPolicy, DraftWish
from tis.engine.batching.kv_cache import PagedCache
from tis.engine.batching.lookup import DRAFT_WIDTH
from tis.engine.batching.text_attention import cache_shape
from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS, DRAFT_TOKENS


class AlwaysDrafts(DraftPolicy):
    def __init__(self, length: int) -> None:
        super().__init__(share_of_costs=0.1)
        self.length = length

    def choose(
        self, wishes: Sequence[DraftWish], num_tokens: int, max_drafted: int, max_computed: int = MAX_MISSING
    ) -> DraftChoice:
        lengths: list[int] = []
        catch_up: list[bool] = []
        for wish in wishes:
            is_ready = wish.num_missing <= min(MAX_MISSING, max_computed)
            lengths.append(max(0, min(self.length, wish.max_length, max_drafted - sum(lengths))) if is_ready else 0)
            catch_up.append(not is_ready and wish.max_length > 0)
        return DraftChoice(lengths, catch_up, [False] * len(wishes))


def prepared_draft(model: Any, context_length: int = 512) -> PreparedDraft:
    vocabulary_size = model.config.get_text_config().vocab_size
    return PreparedDraft("small", model, cache_shape(model), None, context_length, vocabulary_size, 1)


def drafting_runner(
    model: Any,
    small: Any,
    *,
    tokens: int = 2048,
    draft_tokens: int | None = None,
    block_size: int = 4,
    length: int = 5,
    context_length: int = 512,
    tokenizer: Any = TOKENIZER,
    policy: DraftPolicy | None = None,
    **options: Any,
) -> BatchRunner:
    """`small` may be the model itself: then every draft is right."""
    draft = prepared_draft(small, context_length)
    num_blocks = (tokens if draft_tokens is None else draft_tokens) // block_size
    cache = PagedCache(draft.shape, num_blocks, block_size)
    policy = policy or AlwaysDrafts(length)
    return BatchRunner(
        model,
        tokenizer,
        PagedCache(cache_shape(model), tokens // block_size, block_size),
        new_draft_model=lambda: DraftModel(draft, cache, policy, tokenizer.vocabulary_size),
        **({"draft_width": DRAFT_WIDTH, "looks_up": False} | options),
    )


def draft_model_of(runner: BatchRunner) -> DraftModel:
    assert runner._draft_model
    return runner._draft_model


def counts(source: str = "draft_model") -> tuple[float, float]:
    """Of tokens: those drafted, and those accepted."""
    return DRAFT_TOKENS.labels(source)._value.get(), ACCEPTED_DRAFT_TOKENS.labels(source)._value.get()


def nearly(model: Any, noise: float = 0.02) -> Any:
    """A model that foretells much of what the other says: the same weights with a little noise."""
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in other.parameters():
            weight += noise * weight.std() * torch.randn(weight.shape, generator=generator)
    return other
