"""The bounds of each part, of the settings."""

from pathlib import Path
from typing import Any

from tis.admission.limits import AdmissionLimits
from tis.engine.local_engine import EngineLimits
from tis.engine.prompt import SOUND_RATE
from tis.http.api_keys import CallLimits
from tis.http.transport.limits import LOOPBACK, TransportLimits
from tis.ktp.card_result import CardLimits
from tis.mcp_client.limits import McpLimits
from tis.media.loader import MediaLimits
from tis.settings import Settings
from tis.streaming.retention import SessionLimits
from tis.upstream.upstream_engine import UpstreamLimits


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
