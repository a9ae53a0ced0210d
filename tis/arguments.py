"""Translates the settings into the plain arguments of each part: limits, rules, models and stores."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tis import __version__
from tis.admission.limits import AdmissionLimits
from tis.chat.run_spec import VERSION as RUN_VERSION
from tis.engine.batching.limits import BatchLimits
from tis.engine.cores import use_threads
from tis.engine.engine import Engine
from tis.engine.errors import LoadFailed
from tis.engine.local_engine import EngineLimits
from tis.engine.models.catalogue import (
    CatalogueEntry,
    CatalogueError,
    bundled_catalogue,
    find_entry,
    read_catalogue,
    select_served,
    with_adapters,
    with_draft_model,
)
from tis.engine.models.description import describe_unloaded, weights_bytes_of
from tis.engine.models.echo import is_echo, load_echo
from tis.engine.models.gguf_file import is_gguf
from tis.engine.models.handler import why_not_importable
from tis.engine.models.hub_files import HubSource, find_folder, is_complete, refuse_missing_folder
from tis.engine.models.load_progress import Report
from tis.engine.models.loaded_model import LoadedWeights
from tis.engine.models.loading import LoadOptions, load_model
from tis.engine.models.model_memory import MemoryNeed
from tis.engine.models.model_slot import Fetch, Load
from tis.engine.models.packed_memory import WeightOptions, packed_bytes_of
from tis.engine.models.torch_preload import preload_torch
from tis.engine.prompt import SOUND_RATE
from tis.http.api_keys import CallLimits
from tis.http.key_file import KeyFile, KeyFileError
from tis.http.origins import AllowedOrigins
from tis.http.read_tokens import GivenSecrets, OwnSecret, TokenSecrets
from tis.http.transport.limits import LOOPBACK, TransportLimits
from tis.ktp.card_result import CardLimits
from tis.mcp_client.limits import McpLimits
from tis.media.loader import MediaLimits
from tis.observability.spans import NO_TRACER, Tracer
from tis.setting_types import SettingsError
from tis.settings import Settings
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.retention import SessionLimits
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import Store
from tis.upstream.upstream_engine import UpstreamLimits

if TYPE_CHECKING:
    from tis.http.shared_parts import SharedParts
    from tis.marketplace.mail import Mailer
    from tis.marketplace.market import MarketRules

log = logging.getLogger("tis.arguments")


def catalogue_of(settings: Settings) -> list[CatalogueEntry]:
    path = Path(settings.model_config_path)
    if not settings.set_explicitly("model_config_path") and not path.exists():
        path = bundled_catalogue()
    return read_catalogue(path)


def served_models_of(settings: Settings) -> list[CatalogueEntry]:
    """MODELS alone, or MODEL_REPO_ID and then MODELS where both are set. Raises CatalogueError."""
    catalogue = catalogue_of(settings)
    main, others = settings.model_repo_id, list(settings.models)
    if others and not settings.set_explicitly("model_repo_id"):
        main = others.pop(0)
        if find_entry(catalogue, main) is None:
            raise CatalogueError(f"MODELS names {main!r}, which is not in the catalogue.")
    served = select_served(catalogue, main, others, settings.served_model_name)
    served = with_adapters(with_draft_model(served, settings.draft_model), _adapters_of(settings))
    for entry in served:
        if entry.handler and (why_not := why_not_importable(entry.handler)):
            raise CatalogueError(f"The handler of {entry.id}: {why_not}.")
        if entry.draft_model:
            try:
                refuse_missing_folder(entry.draft_model)
            except LoadFailed:
                raise CatalogueError(f"The draft model of {entry.id}: no folder {entry.draft_model!r}.") from None
        if entry.memory_mb > settings.model_memory_mb > 0:
            raise CatalogueError(
                f"{entry.id} may take {entry.memory_mb} MiB (memory_mb), and MODEL_MEMORY_MB is "
                f"{settings.model_memory_mb}."
            )
    if not settings.auto_download_models:
        _require_files(served)
    return served


def _adapters_of(settings: Settings) -> dict[str, str]:
    named = dict(one.partition("=")[::2] for one in settings.adapters)
    if not all(name and place for name, place in named.items()):
        raise CatalogueError("ADAPTERS are written NAME=FOLDER, separated by commas.")
    return named


def _require_files(served: list[CatalogueEntry]) -> None:
    for entry in served:
        if not entry.has_files:
            continue
        try:
            refuse_missing_folder(entry.repo)
        except LoadFailed as error:
            raise CatalogueError(f"{entry.id}: {error.message}") from None
        if not is_complete(entry.repo, HubSource(revision=entry.revision)):
            raise CatalogueError(
                f"{entry.id} is not on this machine, and AUTO_DOWNLOAD_MODELS=0: run `tis download {entry.id}` first."
            )
        if entry.draft_model and not is_complete(entry.draft_model, HubSource()):
            raise CatalogueError(
                f"The draft model {entry.draft_model} is not on this machine, and AUTO_DOWNLOAD_MODELS=0: run "
                f"`tis download {entry.id}` first."
            )


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


def engine_limits_of(settings: Settings) -> EngineLimits:
    sampling: dict[str, Any] = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
    return EngineLimits(
        load_wait_seconds=settings.load_wait_seconds,
        queue_size=settings.max_queue_size,
        max_context_tokens=settings.max_context_tokens,
        compress=settings.enable_auto_compression,
        stall_seconds=settings.gen_stall_seconds,
        idle_seconds=settings.model_idle_seconds,
        warms_up=settings.enable_warmup,
        embedding_cache_bytes=settings.embedding_cache_mb * 2**20,
        operator_defaults={name: value for name, value in sampling.items() if settings.set_explicitly(name)},
        builtin_defaults=sampling,
    )


def upstream_limits_of(settings: Settings) -> UpstreamLimits:
    limits = engine_limits_of(settings)
    return UpstreamLimits(
        queue_size=limits.queue_size,
        max_running=settings.max_batch_size,
        max_context_tokens=limits.max_context_tokens,
        operator_defaults=limits.operator_defaults or {},
        builtin_defaults=limits.builtin_defaults or {},
    )


def upstream_keys_of(models: Sequence[CatalogueEntry]) -> dict[str, str]:
    """By the id of the model. Raises CatalogueError, which never has a key in it."""
    return {entry.id: key for entry in models if (key := _upstream_key(entry))}


def _upstream_key(entry: CatalogueEntry) -> str:
    if entry.upstream_key_env:
        key, where = os.environ.get(entry.upstream_key_env, ""), f"the variable {entry.upstream_key_env}"
    elif entry.upstream_key_file:
        where = f"the file {entry.upstream_key_file}"
        try:
            key = Path(entry.upstream_key_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise CatalogueError(f"{where} with the key for the upstream of {entry.id} cannot be read.") from None
    else:
        return ""
    key = key.strip()
    if not (key and key.isascii() and key.isprintable() and " " not in key):
        raise CatalogueError(f"{where} has no key for the upstream of {entry.id}.")
    return key


def admission_limits_of(settings: Settings) -> AdmissionLimits:
    return AdmissionLimits(
        max_requests=settings.max_pending_requests,
        max_body_bytes=int(settings.max_bodies_mb * 2**20),
        max_media_bytes=int(settings.max_all_media_mb * 2**20),
        max_decoded_bytes=int(settings.max_all_decoded_mb * 2**20),
        max_card_readers=settings.ktp_workers,
        max_sound_seconds=settings.max_all_audio_seconds,
        max_prompt_tokens=settings.max_prompt_tokens,
        max_waiting=settings.max_waiting_requests,
        wait_seconds=settings.admission_wait_seconds,
        owner_share=settings.owner_share if len(settings.api_keys) > 1 or settings.api_keys_file else 1.0,
    )


def call_limits_of(settings: Settings) -> CallLimits:
    return CallLimits(
        settings.requests_per_minute, settings.tokens_per_minute, settings.tokens_per_day, settings.running_requests
    )


def key_file_of(settings: Settings) -> KeyFile | None:
    """Raises SettingsError: a server whose keys cannot be read does not start."""
    if settings.api_keys_file is None:
        return None
    try:
        return KeyFile(Path(settings.api_keys_file))
    except KeyFileError as error:
        raise SettingsError(f"API_KEYS_FILE: {error} `tis keys add NAME` makes one.") from None


def media_limits_of(settings: Settings) -> MediaLimits:
    return MediaLimits(
        allow_remote=settings.allow_remote_media,
        allowed_hosts=settings.media_allowed_hosts,
        local_roots=[Path(root) for root in settings.media_local_roots],
        fetch_seconds=settings.media_timeout_seconds,
        max_items=settings.max_media_items,
        max_item_bytes=round(settings.max_media_mb * 2**20),
        max_request_bytes=round(settings.max_request_media_mb * 2**20),
        max_decoded_bytes=round(settings.max_decoded_mb * 2**20),
        max_image_pixels=settings.max_image_pixels,
        max_video_seconds=settings.max_video_seconds,
        max_video_frames=settings.max_video_frames,
        decode_seconds=settings.media_decode_seconds,
        max_sound_seconds=settings.max_audio_seconds,
        max_heard_seconds=settings.max_chat_audio_seconds,
        sound_rate=SOUND_RATE,
    )


def mcp_limits_of(settings: Settings) -> McpLimits:
    return McpLimits(
        allowed_hosts=settings.mcp_allowed_hosts,
        timeout_seconds=settings.mcp_timeout_seconds,
        max_rounds=settings.mcp_max_rounds,
    )


def session_store_of(settings: Settings) -> Store:
    if settings.responses_url is None:
        return _stream_store_of(settings)
    from tis.database.errors import DatabaseUrlError
    from tis.streaming.archive.sql_archive import ArchiveLimits, SqlArchive

    limits = ArchiveLimits(
        ttl_seconds=settings.responses_ttl_seconds,
        num_connections=settings.responses_pool_size,
        answer_seconds=settings.responses_timeout_seconds,
        store_seconds=settings.responses_store_seconds,
        lease_seconds=settings.session_lease_seconds,
    )
    try:
        archive = SqlArchive(settings.responses_url.get_secret_value(), limits)
    except DatabaseUrlError as error:
        raise SettingsError(str(error)) from None
    return ArchivingStore(_stream_store_of(settings), archive)


def _stream_store_of(settings: Settings) -> Store:
    if settings.store_kind == "redis":
        return _redis_store_of(settings)
    if settings.store_kind == "sqlite":
        max_bytes = settings.sessions_max_mb * 2**20
        return SqliteStore(Path(settings.sessions_db_path), sync=settings.sessions_sync, max_bytes=max_bytes)
    return MemoryStore()


def _redis_store_of(settings: Settings) -> Store:
    assert settings.redis_url
    with _readable_redis_url():
        from tis.streaming.stores.redis import RedisStore, RedisTimeouts

        return RedisStore(
            settings.redis_url.get_secret_value(),
            ttl_seconds=settings.sessions_ttl_seconds,
            timeouts=RedisTimeouts(lease_seconds=settings.session_lease_seconds),
            run_version=RUN_VERSION,
        )


def shared_parts_of(settings: Settings, engine: Engine) -> "SharedParts | None":
    if settings.redis_url is None:
        return None
    with _readable_redis_url():
        from tis.http.shared_parts import SharedParts
        from tis.streaming.stores.redis_clients import RedisClients

        clients = RedisClients(settings.redis_url.get_secret_value(), seconds=1.0, wait_seconds=0.0, max_waits=1)
        return SharedParts(clients, engine, settings.session_lease_seconds)


@contextmanager
def _readable_redis_url() -> Iterator[None]:
    """Raises SettingsError."""
    try:
        yield
    except ImportError as missing:
        raise SettingsError(f"REDIS_URL: {missing.name} is missing: pip install -r requirements-redis.txt") from None
    except ValueError:
        raise SettingsError(
            "REDIS_URL cannot be read: redis://HOST:6379/0 is one that can. "
            "/ ? # and @ of a password are written %2F %3F %23 and %40."
        ) from None


def token_secrets_of(settings: Settings, shared: "SharedParts | None") -> TokenSecrets:
    if settings.read_token_secret:
        return GivenSecrets([one.get_secret_value() for one in settings.read_token_secret])
    if shared and settings.store_kind == "redis":
        return shared.token_secret
    return OwnSecret(Path(settings.sessions_db_path) if settings.store_kind == "sqlite" else None)


def session_limits_of(settings: Settings) -> SessionLimits:
    return SessionLimits(
        ttl_seconds=settings.sessions_ttl_seconds,
        max_sessions=settings.max_sessions,
        max_retained=settings.max_responses,
        max_attached_bytes=int(settings.max_session_media_mb * 2**20),
        named_grace_seconds=settings.cancel_after_disconnect_seconds or None,
        anonymous_grace_seconds=settings.anonymous_grace_seconds,
    )


def card_limits_of(settings: Settings) -> CardLimits:
    return CardLimits(
        engine=settings.ktp_engine,
        num_workers=settings.ktp_workers,
        picture_seconds=settings.ktp_timeout_seconds,
        batch_seconds=settings.ktp_batch_timeout_seconds,
        max_batch=settings.ktp_max_batch,
    )


def transport_limits_of(settings: Settings) -> TransportLimits:
    return TransportLimits(
        max_head_bytes=settings.max_header_kb * 2**10,
        max_headers=settings.max_headers,
        header_seconds=settings.header_timeout_seconds,
        keep_alive_seconds=settings.keep_alive_seconds,
        max_connections_per_address=settings.max_connections_per_address,
        unbounded_networks=[*LOOPBACK, *settings.trusted_proxies],
    )


def market_rules_of(settings: Settings) -> "MarketRules":
    from tis.marketplace.admin.retention import RetentionRules
    from tis.marketplace.assistant.shopping_assistant import AssistantLimits
    from tis.marketplace.market import MarketRules
    from tis.marketplace.search.meaning.meaning_search import MeaningLimits
    from tis.marketplace.settings import RateSettings

    return MarketRules(
        auth=settings.marketplace_auth,
        origins=AllowedOrigins(settings.cors_origins),
        is_local=settings.is_local,
        auto_migrate=settings.auto_migrate,
        jwt_secret=settings.jwt_secret_key.get_secret_value() if settings.jwt_secret_key else None,
        access_token_minutes=settings.access_token_expire_minutes,
        refresh_token_days=settings.refresh_token_expire_days,
        reservation_seconds=settings.reservation_seconds,
        mailer=_mailer(settings),
        public_url=settings.public_url or f"http://127.0.0.1:{settings.port}",
        consent_version=settings.consent_version,
        consent_url=settings.consent_url,
        max_products_per_supplier=settings.max_products_per_supplier,
        max_unsold_hold_minutes=settings.max_unsold_hold_minutes,
        max_reservations_per_account=settings.max_reservations_per_account,
        max_reserved_units_per_product=settings.max_reserved_units_per_product,
        retention=RetentionRules(
            audit_days=settings.audit_retention_days,
            movement_days=settings.movement_retention_days,
            reservation_days=settings.reservation_retention_days,
            chat_days=settings.chat_retention_days,
        ),
        assistant=AssistantLimits(
            extraction_seconds=settings.assistant_extraction_seconds,
            answer_seconds=settings.assistant_answer_seconds,
            tokens_per_day=settings.chat_tokens_per_day,
        ),
        pictures_url=settings.pictures_url,
        meaning=MeaningLimits(settings.marketplace_meaning_seconds, settings.marketplace_min_similarity),
        rates={name: getattr(settings, name) for name in RateSettings.model_fields},
    )


def _mailer(settings: Settings) -> "Mailer | None":
    from tis.marketplace.mail import FolderMailer, SmtpMailer

    if settings.mail_folder:
        return FolderMailer(Path(settings.mail_folder), settings.mail_from)
    if settings.smtp_host is None:
        return None
    return SmtpMailer(
        settings.smtp_host,
        settings.smtp_port,
        settings.mail_from,
        settings.smtp_user,
        settings.smtp_password.get_secret_value() if settings.smtp_password else None,
        settings.smtp_security,
    )


def tracer_of(settings: Settings) -> Tracer:
    """Raises SettingsError: who turned traces on shall not miss them in silence."""
    if not settings.traces:
        return NO_TRACER
    try:
        from tis.observability.trace_export import otlp_tracer

        return otlp_tracer(__version__)
    except ImportError as missing:
        raise SettingsError(f"TRACES: {missing.name} is missing: pip install -r requirements-traces.txt") from None
    except (ValueError, OSError) as fault:
        raise SettingsError(f"TRACES: {fault}") from None
