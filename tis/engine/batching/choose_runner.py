"""Chooses the runner of a loaded model: a `BatchRunner` if the model can be batched, else a `GenerateRunner`."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.eligibility import cache_shape, why_not_batchable
from tis.engine.batching.fused_layers import fuse_layers
from tis.engine.batching.kv_cache import CacheSize, PagedCache
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.lookup import DRAFT_WIDTH
from tis.engine.batching.memory import MemoryBudget
from tis.engine.errors import LoadFailed
from tis.engine.generate_runner import GenerateRunner
from tis.engine.kernels.native import native_kernels
from tis.engine.runner import Runner
from tis.engine.text.tokenizer import Tokenizer
from tis.engine.vision.vision_input import VisionProcessor
from tis.engine.weights.cpu_dtype import suit_to_cpu
from tis.engine.weights.fused import fuse_modules
from tis.engine.weights.packed import pack_weights, quantise_weights, weight_bytes_of
from tis.engine.weights.packed_vision import pack_vision_tower

log = logging.getLogger("tis.engine")


@dataclass(frozen=True, slots=True)
class ChosenRunner:
    new: Callable[[], Runner]
    context_length: int
    cache_tokens: int = 0
    cache_bytes: int = 0


def choose_runner(
    model: Any,
    tokenizer: Tokenizer,
    context_length: int,
    limits: BatchLimits,
    vision: VisionProcessor | None = None,
    attention: str | None = None,
) -> ChosenRunner:
    """`attention` is the one that the operator wants. The batch has its own, on the kernels of sdpa."""
    reason = why_not_batchable(model)
    if vision and not vision.is_batchable:
        reason = "only generate() can use the inputs of its image processor"
    if reason:
        if limits.quantisation:
            log.warning("QUANTIZE=%s does not apply: the model runs through generate()", limits.quantisation)
        suit_to_cpu(model)
        log.info("requests run one at a time through generate(), as this model cannot be batched: %s", reason)
        return ChosenRunner(lambda: GenerateRunner(model, tokenizer), context_length)
    if attention not in (None, "sdpa"):
        raise LoadFailed(
            f"ATTN_IMPLEMENTATION={attention} does not apply: this model is computed in batches, with an attention of "
            "this server. Leave it empty."
        )
    kernels = native_kernels() if limits.native_kernels else None
    num_packed = 0
    if limits.quantisation:
        # Before the conversion to float32 that some CPUs need: the integers are made of the weights as they were saved.
        if limits.native_kernels:
            fuse_modules(model, kernels)
        num_packed = quantise_weights(model, kernels)
    suit_to_cpu(model)
    shape = cache_shape(model)
    if limits.native_kernels:
        fuse_modules(model, kernels)
        num_fused = fuse_layers(model, kernels)
        num_packed = num_packed or num_fused
    num_packed += pack_weights(model, kernels) + pack_vision_tower(model)
    cache_tokens = limits.cache_tokens or MemoryBudget(limits.memory_bytes, limits.num_models).cache_tokens(
        shape.device, weight_bytes_of(model), shape.bytes_per_token, context_length
    )
    size = CacheSize.of(shape, cache_tokens)
    log.info("batching with a cache of %d tokens; weights of %d layers packed", size.num_tokens, num_packed)
    # Allocated once: when a worker dies, the next one reuses it.
    cache = PagedCache(shape, size.num_blocks, size.block_size)
    return ChosenRunner(
        lambda: BatchRunner(
            model,
            tokenizer,
            cache,
            tokens_per_step=limits.tokens_per_step,
            step_seconds=limits.step_seconds,
            max_running=limits.max_running,
            vision_cache_bytes=limits.vision_cache_bytes,
            draft_width=DRAFT_WIDTH if limits.prompt_lookup else 0,
            kernels=kernels if kernels and kernels.takes(shape.dtype, shape.head_size) else None,
        ),
        # A longer request can never fit, so the engine rejects it as too long for the context.
        min(context_length, size.num_tokens),
        size.num_tokens,
        size.num_tokens * shape.bytes_per_token,
    )
