"""How the models of the settings are downloaded and loaded."""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tis.arguments.catalogue import served_models_of
from tis.engine.batching.limits import BatchLimits
from tis.engine.cores import use_threads
from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import describe_unloaded, weights_bytes_of
from tis.engine.models.echo import is_echo, load_echo
from tis.engine.models.gguf_file import is_gguf
from tis.engine.models.hub_files import HubSource, find_folder
from tis.engine.models.load_progress import Report
from tis.engine.models.loaded_model import LoadedWeights
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.models.model_memory import MemoryNeed
from tis.engine.models.model_slot import Fetch, Load
from tis.engine.models.packed_memory import WeightOptions, packed_bytes_of
from tis.engine.models.torch_preload import preload_torch
from tis.settings import Settings

log = logging.getLogger("tis.arguments")


def hub_source_of(settings: Settings, entry: CatalogueEntry) -> HubSource:
    """With which `tis download` asks the hub: what is asked for by name is downloaded."""
    return HubSource(_hf_token(settings), entry.revision, with_code=settings.trust_remote_code)


def _hf_token(settings: Settings) -> str | None:
    return settings.hf_token.get_secret_value() if settings.hf_token else None


def loader_of(settings: Settings) -> Load:
    options = LoadOptions(
        token=_hf_token(settings),
        may_download=False,  # `Fetch` has done it
        device_map=settings.device_map,
        dtype=settings.torch_dtype,
        attn_implementation=settings.attn_implementation,
        load_in_4bit=settings.load_in_4bit,
        load_in_8bit=settings.load_in_8bit,
        trust_remote_code=settings.trust_remote_code,
        max_pixels=settings.max_shown_pixels,
        batch=BatchLimits(
            cache_tokens=settings.cache_tokens,
            touched_tokens=settings.cache_touched_tokens,
            tokens_per_step=settings.max_batch_tokens,
            step_seconds=settings.step_seconds,
            max_running=settings.max_batch_size,
            quantisation=settings.quantize,
            cache_dtype=settings.cache_dtype,
            native_kernels=settings.kernels == "auto",
            prompt_lookup=settings.prompt_lookup == "on",
            vision_cache_bytes=settings.vision_cache_mb * 2**20,
        ),
    )

    # Adapters lie in their base, and what another engine serves is not here at all.
    served = [entry for entry in served_models_of(settings) if entry.base is None and not entry.upstream]

    def load(entry: CatalogueEntry, report: Report) -> LoadedWeights:
        if settings.cache_dtype != "auto" and (entry.task != "chat" or entry.handler or is_echo(entry.repo)):
            reason = "only chat models of this server have such a cache"
            log.warning("CACHE_DTYPE=%s does not apply to %s: %s", settings.cache_dtype, entry.id, reason)
        if is_echo(entry.repo):
            return load_echo(entry.repo)
        batch = replace(
            options.batch,
            memory_bytes=entry.memory_mb * 2**20,
            num_models=len(served),
            bytes_of_others=_bytes_of([other for other in served if other.id != entry.id]),
            limit_bytes=settings.model_memory_mb * 2**20,
            cache_tokens=entry.limits.cache_tokens or settings.cache_tokens,
            max_running=entry.limits.max_batch_size or settings.max_batch_size,
        )
        dtype = entry.dtype or settings.torch_dtype
        options_of_entry = replace(options, revision=entry.revision, dtype=dtype, batch=batch)
        if entry.handler:
            return _load_handler(entry, options_of_entry, report)
        report("importing torch", None)
        preload_torch()
        use_threads(settings.cpu_threads, are_set="OMP_NUM_THREADS" in os.environ)
        if is_gguf(entry.repo) and entry.task != "chat":
            raise LoadFailed(f"{entry.id} is a GGUF file, and those are read for the task chat, not {entry.task}.")
        if entry.task == "chat":
            return load_model(entry.repo, options_of_entry, report, entry.adapters, entry.draft_model)
        if entry.task == "transcription":
            from tis.engine.speech.load_speech import load_speech

            return load_speech(entry, options_of_entry, report)
        if entry.task == "speech":
            from tis.engine.voice.load_voice import load_voice

            return load_voice(entry, options_of_entry, report)
        from tis.engine.pooling.load_pooling import load_pooling

        return load_pooling(entry, options_of_entry, report)

    return load


def _load_handler(entry: CatalogueEntry, options: LoadOptions, report: Report) -> LoadedWeights:
    folder = find_folder(entry.repo, options.source, report) if entry.has_files else None
    report("making the handler", None)
    if entry.task == "chat":
        from tis.engine.models.handler_chat import load_chat_handler

        return load_chat_handler(entry, folder)
    from tis.engine.pooling.handler_rows import load_pooling_handler

    return load_pooling_handler(entry, folder)


def _bytes_of(entries: Sequence[CatalogueEntry]) -> int | None:
    """Declared, or of their weights on this machine; None if that is not known of all."""
    total = 0
    for entry in entries:
        weights = 0 if not entry.has_files else describe_unloaded(entry.repo, entry.revision).weights_bytes
        if weights is not None and entry.draft_model:
            weights += describe_unloaded(entry.draft_model).weights_bytes or 0
        if weights is None and not entry.memory_mb:
            return None
        total += entry.memory_mb * 2**20 or weights or 0
    return total


def fetcher_of(settings: Settings) -> Fetch:
    limit = settings.model_memory_mb * 2**20

    def fetch(entry: CatalogueEntry, report: Report) -> MemoryNeed:
        declared = entry.memory_mb * 2**20
        if not entry.has_files:
            return MemoryNeed(declared, limit)
        source = HubSource(
            _hf_token(settings), entry.revision, settings.auto_download_models, with_code=settings.trust_remote_code
        )
        folder = find_folder(entry.repo, source, report)
        weights = _packed_bytes_of(folder, entry, settings)
        if weights is None:
            weights = weights_bytes_of(folder) or 0
            weights //= 4 if settings.load_in_4bit else 2 if settings.load_in_8bit else 1
        for place in entry.parts:
            weights += weights_bytes_of(find_folder(place, replace(source, revision=None), report)) or 0
        if declared and weights > declared and not settings.quantize:
            raise LoadFailed(f"memory_mb is {entry.memory_mb}, and the weights alone take {weights >> 20} MiB.")
        if limit:
            return MemoryNeed(declared or weights, limit)
        report("importing torch", None)
        preload_torch()
        from tis.engine.batching.memory import max_memory_of_one, shared_memory

        return MemoryNeed(
            declared or weights, shared_memory(settings.device_map), max_memory_of_one(settings.device_map)
        )

    return fetch


def _packed_bytes_of(folder: Path, entry: CatalogueEntry, settings: Settings) -> int | None:
    if entry.task != "chat" or entry.handler:
        return None
    dtype = entry.dtype or settings.torch_dtype
    options = WeightOptions(settings.device_map, settings.kernels == "auto", dtype, settings.quantize)
    return packed_bytes_of(folder, options)
