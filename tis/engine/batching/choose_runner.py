"""Chooses the runner of a loaded model: a `BatchRunner` if the model can be batched, else a `TurnRunner`."""

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.draft_model import DraftModel, PreparedDraft
from tis.engine.batching.draft_policy import DraftPolicy
from tis.engine.batching.eligibility import why_not_batchable
from tis.engine.batching.fused_layers import fuse_layers
from tis.engine.batching.kv_cache import CacheShape, CacheSize, PagedCache
from tis.engine.batching.latents import EXPANSION, compress_latents
from tis.engine.batching.limits import BatchLimits
from tis.engine.batching.logits_to_keep import add_logits_to_keep
from tis.engine.batching.lookup import DRAFT_WIDTH
from tis.engine.batching.memory import MemoryBudget
from tis.engine.batching.native_states import use_native_states
from tis.engine.batching.picture_trial import find_tower, why_no_sounds, why_no_videos
from tis.engine.batching.state_layers import has_states, replace_state_layers
from tis.engine.batching.stepped_model import SteppedModel
from tis.engine.batching.text_attention import cache_shape
from tis.engine.batching.touched_cache import touch_in_background
from tis.engine.batching.towers import ForwardTower, QwenTower, Tower, layer_stacks
from tis.engine.batching.trial import BatchTrial
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.errors import LoadFailed
from tis.engine.faults import is_out_of_memory
from tis.engine.kernels.native import NativeKernels, native_kernels
from tis.engine.optional_stages import ALL_STAGES, BATCHES, KERNELS, OptionalStages
from tis.engine.prompt import MediumKind
from tis.engine.runner import Runner
from tis.engine.text.tokenizer import Tokenizer
from tis.engine.vision.official_vision import OfficialVision
from tis.engine.vision.vision_input import VisionProcessor
from tis.engine.weights.adapted_linear import adapt_layers
from tis.engine.weights.cpu_dtype import suit_to_cpu
from tis.engine.weights.fused import fuse_modules
from tis.engine.weights.lora_files import LoraAdapter
from tis.engine.weights.packed import pack_blocks, pack_weights, quantise_weights, unfold_blocks, weight_bytes_of
from tis.engine.weights.packed_vision import pack_vision_tower
from tis.observability.logs import describe_with_messages

log = logging.getLogger("tis.engine")

_CONVERTING = "converting the weights"
_FUSING_MODULES = "fusing modules"
_COMPRESSING = "compressing latents"
_FUSING_LAYERS = "fusing layers"
_NATIVE_STATES = "native functions of layers with states"
_ROUNDING = "rounding the weights to integers"
_PACKING = "packing the weights"
_PACKING_TOWER = "packing the vision tower"


@dataclass(frozen=True, slots=True)
class ChosenRunner:
    new: Callable[[], Runner]
    context_length: int
    cache_tokens: int = 0
    cache_bytes: int = 0
    starts_whole: bool = False  # a prompt is computed in one step, however long it is
    why_in_turns: str = ""  # empty: requests are computed in batches


@dataclass(frozen=True, slots=True)
class _PreparedBatch:
    shape: CacheShape
    kernels: NativeKernels | None  # if they take the cache
    num_packed: int  # layers


def choose_runner(
    model: Any,
    tokenizer: Tokenizer,
    context_length: int,
    limits: BatchLimits,
    vision: VisionProcessor | None = None,
    attention: str | None = None,
    stages: OptionalStages = ALL_STAGES,
    adapters: Sequence[LoraAdapter] = (),
    draft: PreparedDraft | None = None,
) -> ChosenRunner:
    """`attention` is the one that the operator wants. The batch has its own, on the kernels of sdpa.

    Raises `StageFailed` where the model may be half changed.
    """
    if not limits.quantisation:  # else the integers are made of the weights as they were saved
        stages.run(_CONVERTING, lambda: suit_to_cpu(model))
    trial = _try_batch(model, stages)
    tower = trial if isinstance(trial, str) else _try_pictures(model, vision)
    if draft and not isinstance(trial, str) and has_states(model):
        raise LoadFailed("DRAFT_MODEL does not apply: layers of this model keep states, which cannot go back.")
    if isinstance(vision, OfficialVision):
        _try_other_media(model, vision, tower)
    if isinstance(trial, str) or isinstance(tower, str):
        if limits.quantisation:
            log.warning("QUANTIZE=%s does not apply: the model is not computed in batches", limits.quantisation)
            stages.run(_CONVERTING, lambda: suit_to_cpu(model))
        if limits.cache_dtype != "auto":
            log.warning("CACHE_DTYPE=%s does not apply: the model is not computed in batches", limits.cache_dtype)
        if draft and BATCHES not in stages.left_out:
            raise LoadFailed(f"DRAFT_MODEL does not apply: this model cannot be batched: {tower}.")
        log.info("requests take turns, token by token, as this model cannot be batched: %s", tower)
        return replace(_in_turns(model, tokenizer, context_length, limits, adapters), why_in_turns=str(tower))
    if attention not in (None, "sdpa"):
        raise LoadFailed(
            f"ATTN_IMPLEMENTATION={attention} does not apply: this model is computed in batches, with an attention of "
            "this server. Leave it empty."
        )
    with stages.guard(BATCHES):
        return _batched(model, tokenizer, context_length, limits, trial, tower, stages, adapters, draft)


def prepare_draft(
    name: str, model: Any, context_length: int, limits: BatchLimits, stages: OptionalStages = ALL_STAGES
) -> PreparedDraft:
    """Prepares a small model to draft for another, as it would be prepared to answer."""
    if not limits.quantisation:
        stages.run(_CONVERTING, lambda: suit_to_cpu(model))
    trial = _try_batch(model, stages)
    if isinstance(trial, str) or has_states(model):
        reason = trial if isinstance(trial, str) else "its layers keep states, which cannot go back"
        raise LoadFailed(f"DRAFT_MODEL={name} cannot draft: {reason}.")
    with stages.guard(BATCHES):
        ready = _prepare(model, limits, trial, QwenTower(model), stages, ())
        vocabulary_size = model.config.get_text_config().vocab_size
        return PreparedDraft(
            *(name, model, ready.shape, ready.kernels, context_length, vocabulary_size, weight_bytes_of(model))
        )


def _try_batch(model: Any, stages: OptionalStages) -> BatchTrial | str:
    """Returns the trial, or why the model cannot be batched. Changes nothing."""
    if BATCHES in stages.left_out:
        return "that has failed"
    try:
        if reason := why_not_batchable(model):
            return reason
        trial = BatchTrial(model)
        return trial.why_not_plain(model) or trial
    except Exception as fault:
        if is_out_of_memory(fault):
            raise
        log.debug("the trial of the batch failed", exc_info=True)
        return f"its trial failed, {describe_with_messages(fault)}"


def _try_pictures(model: Any, vision: VisionProcessor | None) -> Tower | str:
    """Returns the tower, or why pictures cannot be computed in batches. Changes nothing."""
    try:
        sample = vision.sample() if vision else None
        return find_tower(model, sample) if sample else QwenTower(model)
    except Exception as fault:
        if is_out_of_memory(fault):
            raise
        log.debug("the trial of pictures failed", exc_info=True)
        return f"the trial of its pictures failed, {describe_with_messages(fault)}"


def _try_other_media(model: Any, vision: OfficialVision, tower: Tower | str) -> None:
    if "video" in vision.kinds:
        _try_kind("video", vision, tower, lambda of: why_no_videos(model, vision.video_sample(), of))
    if {"image", "audio"} <= vision.kinds and isinstance(tower, ForwardTower):
        _try_kind("audio", vision, tower, lambda of: why_no_sounds(model, vision.sound_sample(), of))


def _try_kind(
    kind: MediumKind, vision: OfficialVision, tower: Tower | str, why_none: Callable[[ForwardTower], str | None]
) -> None:
    """Refuses such media from here on, unless a batch computes for them what the model's `forward` computes."""
    reason: str | None = "the model is not computed in batches"
    if isinstance(tower, ForwardTower):
        try:
            reason = why_none(tower)
        except Exception as fault:
            if is_out_of_memory(fault):
                raise
            log.debug("the trial of media of another kind failed", exc_info=True)
            reason = f"their trial failed, {describe_with_messages(fault)}"
    if reason:
        log.info("%s are refused: %s", "videos" if kind == "video" else "sounds", reason)
        vision.refuse(kind, reason)


def _in_turns(
    model: Any, tokenizer: Tokenizer, context_length: int, limits: BatchLimits, adapters: Sequence[LoraAdapter]
) -> ChosenRunner:
    unfold_blocks(model)
    stepped = SteppedModel(model)
    if not stepped.takes_turns:
        log.warning("requests run one at a time: computed in turns, they change each other's tokens")
    if not stepped.splits_prompts:
        log.info("prompts are computed whole: in parts, this model computes something else")
    costs = stepped.costs
    if limits.cache_tokens:
        cache_bytes = (limits.max_running - 1) * costs.fixed_bytes + costs.of(limits.cache_tokens)
    else:
        cache_bytes = MemoryBudget.of(limits).cache_bytes(
            model.device, sum(int(one.nbytes) for one in model.parameters()), costs.of(context_length)
        )
    context_length = costs.max_tokens(cache_bytes, at_most=context_length)
    if not context_length:
        raise LoadFailed(f"The memory has no room for the cache of a request: {costs.fixed_bytes >> 20} MiB and more.")
    log.info("caches of running requests take at most %d MiB", cache_bytes >> 20)
    adapt_layers(model, adapters)
    new = partial(
        TurnRunner,
        stepped,
        tokenizer,
        cache_bytes,
        tokens_per_step=limits.tokens_per_step,
        step_seconds=limits.step_seconds,
        max_running=limits.max_running,
        adapters=[one.name for one in adapters],
    )
    return ChosenRunner(new, context_length, cache_bytes=cache_bytes, starts_whole=not stepped.splits_prompts)


def _batched(
    model: Any,
    tokenizer: Tokenizer,
    context_length: int,
    limits: BatchLimits,
    trial: BatchTrial,
    tower: Tower,
    stages: OptionalStages,
    adapters: Sequence[LoraAdapter],
    draft: PreparedDraft | None,
) -> ChosenRunner:
    ready = _prepare(model, limits, trial, tower, stages, adapters)
    shape, budget = ready.shape, MemoryBudget.of(limits)
    own_bytes = weight_bytes_of(model)
    weight_bytes = own_bytes + (draft.weight_bytes if draft else 0)
    bytes_per_token = shape.bytes_per_token + (draft.shape.bytes_per_token if draft else 0)
    num_slots, cache_tokens = limits.max_running, limits.cache_tokens
    if not cache_tokens or not shape.bytes_per_token:  # states alone take no memory for each token
        num_slots = budget.num_states(shape.device, weight_bytes, shape.bytes_of_states, limits.max_running)
        cache_tokens = budget.cache_tokens(
            *(shape.device, weight_bytes, bytes_per_token, context_length, num_slots * shape.bytes_of_states)
        )
    size = CacheSize.of(shape, cache_tokens)
    bits = " in 8 bits" if shape.has_8_bits else ""
    log.info(
        "batching with a cache of %d tokens%s; weights of %d layers packed", size.num_tokens, bits, ready.num_packed
    )
    if not trial.continues:
        log.info("prompts are computed whole: in parts, this model computes something else")
    if shape.states:
        log.info("states of %d sequences at most, of %d KiB each", num_slots, shape.bytes_of_states >> 10)
    # Allocated once: when a worker dies, the next one reuses it.
    cache = PagedCache(shape, size.num_blocks, size.block_size, num_slots)
    new = partial(
        BatchRunner,
        model,
        tokenizer,
        cache,
        tokens_per_step=limits.tokens_per_step,
        step_seconds=limits.step_seconds,
        max_running=limits.max_running,
        vision_cache_bytes=limits.vision_cache_bytes,
        draft_width=DRAFT_WIDTH if limits.prompt_lookup or draft else 0,
        looks_up=limits.prompt_lookup,
        new_draft_model=_drafting(draft, size, shape, tokenizer, own_bytes) if draft else None,
        kernels=ready.kernels,
        tower=tower,
        adapters=[one.name for one in adapters],
    )
    new()  # what it raises, it raises while the model can still run without it
    if limits.touched_tokens and shape.device.type == "cpu" and sys.platform == "linux":
        touch_in_background(cache, limits.touched_tokens)
    return ChosenRunner(
        new,
        # A longer request can never fit, so the engine rejects it as too long for the context.
        min(context_length, size.num_tokens),
        size.num_tokens,
        size.num_tokens * bytes_per_token + num_slots * shape.bytes_of_states,
        starts_whole=not trial.continues,
    )


def _drafting(
    draft: PreparedDraft, size: CacheSize, shape: CacheShape, tokenizer: Tokenizer, weight_bytes: int
) -> Callable[[], DraftModel]:
    """`weight_bytes`: of the model that checks."""
    if draft.shape.device.type != shape.device.type:
        raise LoadFailed(
            f"DRAFT_MODEL={draft.name} is on {draft.shape.device}, and the model on {shape.device}: both must be on "
            "devices of one kind. Set DEVICE_MAP."
        )
    log.info("drafts by %s, whose weights take %d MiB", draft.name, draft.weight_bytes >> 20)
    cache = PagedCache(draft.shape, size.num_blocks, size.block_size)
    share = draft.weight_bytes / max(1, weight_bytes)
    return lambda: DraftModel(draft, cache, DraftPolicy(share), tokenizer.vocabulary_size)


def _prepare(
    model: Any,
    limits: BatchLimits,
    trial: BatchTrial,
    tower: Tower,
    stages: OptionalStages,
    adapters: Sequence[LoraAdapter],
) -> _PreparedBatch:
    has_kernels = limits.native_kernels and KERNELS not in stages.left_out
    with stages.guard(KERNELS):
        kernels = native_kernels() if has_kernels else None
    num_rounded = num_fused = 0
    add_logits_to_keep(model)
    replace_state_layers(model, continues=trial.continues)
    if has_kernels:
        stages.run(_FUSING_MODULES, lambda: fuse_modules(model, kernels))
    if bits := limits.weight_bits:
        num_rounded = stages.run(_ROUNDING, lambda: quantise_weights(model, kernels, bits))
        if stages.run(_CONVERTING, lambda: suit_to_cpu(model)) and has_kernels:
            stages.run(_FUSING_MODULES, lambda: fuse_modules(model, kernels))
    elif kernels:
        num_rounded = stages.run(_ROUNDING, lambda: pack_blocks(model, kernels))
    else:
        unfold_blocks(model)
    if not any(one.adapts(EXPANSION) for one in adapters):
        stages.run(_COMPRESSING, lambda: compress_latents(model, is_rounded=num_rounded > 0))
    shape = cache_shape(model)  # before the layers that it asks are gone
    rounded = rounded_shape(shape, limits)
    # Whole layers in C know no adapters, and no pictures whose tokens see each other.
    if has_kernels and not tower.looks_ahead and not adapters:
        num_fused = stages.run(_FUSING_LAYERS, lambda: fuse_layers(model, kernels))
    if has_kernels and shape.states:
        stages.run(_NATIVE_STATES, lambda: use_native_states(model, shape, kernels))
    num_packed = num_rounded or num_fused
    num_packed += stages.run(_PACKING, lambda: pack_weights(model, kernels))
    num_packed += stages.run(_PACKING_TOWER, lambda: pack_vision_tower(model, layer_stacks(model)))
    unfold_blocks(model)  # what no product has taken
    if adapters:
        num_adapted = adapt_layers(model, adapters, kernels)
        log.info("%d LoRA adapters beside %d layers", len(adapters), num_adapted)
    of_batch = kernels if kernels and kernels.takes(shape.dtype, *shape.head_sizes) else None
    is_rounded = num_rounded > 0 or shape.dtype.itemsize < 4
    with stages.guard(KERNELS if has_kernels else BATCHES):
        reason = trial.why_not(model, shape, of_batch, is_rounded=is_rounded)
        if not reason and rounded.has_8_bits:
            reason = trial.why_not(model, rounded, of_batch, is_rounded=True)
        if reason:
            raise ValueError(reason)
    return _PreparedBatch(rounded, of_batch, num_packed)


def rounded_shape(shape: CacheShape, limits: BatchLimits) -> CacheShape:
    """The cache that the settings ask for, as far as the model has one of this kind."""
    if limits.cache_dtype == "auto":
        return shape
    if shape.device.type != "cpu":
        log.warning("CACHE_DTYPE=%s does not apply: the model is on %s", limits.cache_dtype, shape.device)
    elif not shape.bytes_per_token:
        log.warning("CACHE_DTYPE=%s does not apply: the model keeps no keys and values", limits.cache_dtype)
    else:
        return replace(shape, has_8_bits=True)
    return shape
