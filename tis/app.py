"""Makes, wires, opens and closes every long-lived part."""

import asyncio
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from tis import __version__, pages, status
from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.chat.resume import resume_with
from tis.chat.run_spec import Services
from tis.chat.structured_answer import StructuredAnswers
from tis.engine.batching.limits import BatchLimits
from tis.engine.faults import EXIT_CODE
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry, bundled_catalogue, read_catalogue, select_served
from tis.engine.models.echo import is_echo, load_echo
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.loading import LoadOptions, Report, load_model
from tis.engine.models.model_slot import Load, LoadObserver
from tis.http.admission import AdmissionMiddleware
from tis.http.api_keys import ApiKeyMiddleware, ApiKeys
from tis.http.body_limits import BodySizeLimitMiddleware, JsonScanMiddleware
from tis.http.documents import DocumentCache
from tis.http.error_handlers import KTP_PREFIX, MCP_PATH, UnhandledErrorMiddleware, install_error_handlers
from tis.http.hosts import HostMiddleware, ServedHosts
from tis.http.origins import AllowedOrigins
from tis.http.read_tokens import ReadTokens
from tis.http.slow_readers import cut_slow_reader
from tis.http.trailing_slash import TrailingSlashMiddleware
from tis.http.transport.body_deadline import BodyDeadlineMiddleware
from tis.http.transport.limits import LOOPBACK, TransportLimits
from tis.ktp.card_result import CardLimits
from tis.ktp.engine_vision import EngineVision
from tis.ktp.lazy_ocr import LazyOcr
from tis.ktp.reader import CardReader
from tis.ktp.routes import router as ktp_router
from tis.ktp.vision_model import VisionModel
from tis.lazy_marketplace import AppWithMarketplace, LazyMarketplace, LazyMarketplaceMiddleware
from tis.mcp_client.client import McpClient
from tis.mcp_client.limits import McpLimits
from tis.mcp_server.access import McpAccess
from tis.mcp_server.endpoint import MAX_BODY_BYTES as _MAX_MCP_BYTES
from tis.mcp_server.endpoint import router as mcp_router
from tis.mcp_server.server import ToolServer
from tis.media.loader import MediaLimits, MediaLoader
from tis.observability.logs import configure_logs
from tis.observability.loop_watch import LoopWatch
from tis.observability.request_log import RequestLogMiddleware
from tis.openai_api.routes import DIALECTS
from tis.openai_api.routes import router as openai_router
from tis.openai_api.routes.models import ApiOptions
from tis.settings import Settings
from tis.shutdown import graceful_shutdown
from tis.streaming.retention import SessionLimits
from tis.streaming.sessions import Sessions
from tis.streaming.source import ReadAttachments, ResumeSource, Source
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import Store

if TYPE_CHECKING:
    from tis.marketplace.assistant.shopping_assistant import AssistantModel
    from tis.marketplace.auth.mail import Mailer
    from tis.marketplace.market import Market, MarketRules

log = logging.getLogger("tis.app")

# Fits the longest description with every character escaped. Imported sheets have their own limit.
_MAX_MARKET_BYTES = 256 * 1024
_MAX_ENDING_SECONDS = 30.0  # of a process that lost its device, if its event loop hangs too
_LAST_BYTES_SECONDS = 0.5  # for clients to get the end of their streams, before the process ends
_MARKETPLACE_TURN = b'{"kind": "marketplace_chat"'
_KEYED = ["/v1/", KTP_PREFIX]  # these paths need a key as soon as there is one
_SHEETS = r"POST /api/suppliers/[^/]+/products/import"
_EXPOSED_HEADERS = ["X-Session-Id", "X-Session-Durability", "X-Request-Id", "Retry-After", "ETag", "Link", "Location"]
_EXPOSED_HEADERS += [
    "X-Total-Count",
    "X-Total-Count-Is",
    "X-Corrected-Query",
    "X-Understood",
    "X-Relaxed-Query",
    "X-Warnings",
]
_EXPOSED_HEADERS += [
    "X-Ignored-Parameters",
    "X-Cut-Query",
    "X-Did-You-Mean",
    "X-Nothing-In-Place",
    "X-Facet-Counts-Are",
    "Idempotent-Replayed",
]
_DESCRIPTION = "A model of your own behind the OpenAI API. Streams can be resumed after a disconnect."


class ServedApp(AppWithMarketplace):
    slow_reader_seconds: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Outside of all middlewares, where `send` is still the server's own.
        await super().__call__(scope, receive, cut_slow_reader(send, self.slow_reader_seconds))


def create_app(
    settings: Settings,
    *,
    load: Load | None = None,
    watch: LoadObserver | None = None,
    session_store: Store | None = None,
    session_limits: SessionLimits | None = None,
    engine_limits: EngineLimits | None = None,
    admission_limits: AdmissionLimits | None = None,
    market_rules: "MarketRules | None" = None,
    ocr: LazyOcr | None = None,
    card_vision: VisionModel | None = None,
    assistant_model: "AssistantModel | None" = None,
    end_process: Callable[[int], object] = os._exit,
) -> FastAPI:
    """Makes the app that the settings describe.

    `load` loads a model of the catalogue; `watch` gets the progress of loads, which otherwise goes to the log.
    Tests pass their own `load`, store, limits, readers of cards and model of the assistant in place of those of the
    settings, and an `end_process` that does not.
    """
    configure_logs(settings.log_level)
    engine = LocalEngine(
        _served_models(settings), load or _loader(settings), engine_limits or engine_limits_of(settings), watch
    )
    media = MediaLoader(_media_limits(settings))
    mcp = McpClient(_mcp_limits(settings))
    _require_usable_url(settings.database_url.get_secret_value())
    admission = Admission(admission_limits or admission_limits_of(settings))
    loop_watch = LoopWatch()
    services = Services(engine, media, mcp, lambda: sessions.commit(), admission)
    sessions = Sessions(
        session_limits or session_limits_of(settings),
        session_store or _store(settings),
        # `marketplace` is made below, before anything is resumed.
        lambda *given: _resume_source(services, marketplace, resume=settings.resume_generation)(*given),
    )

    read_tokens = ReadTokens(sessions, Path(settings.sessions_db_path) if settings.persist_sessions else None)

    cards = CardReader(
        card_limits_of(settings), ocr or LazyOcr(), card_vision or EngineVision(engine), media, admission
    )

    async def drain(seconds: float, hurry: asyncio.Event) -> None:
        admission.drain()
        cards.drain()
        await _drain(engine, sessions, seconds, hurry)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await engine.open(eager=settings.eager_load_model)
        ending = asyncio.create_task(_end_when_lost(engine, sessions, end_process))
        try:
            await sessions.open()
            loop_watch.open()
            await asyncio.to_thread(read_tokens.open)
            with graceful_shutdown(lambda hurry: drain(settings.drain_seconds, hurry)):
                marketplace.open(lambda: engine.is_eager and any(one.state == "loading" for one in engine.statuses))
                yield
        finally:
            ending.cancel()
            engine.drain()
            loop_watch.close()
            await sessions.close()
            cards.close()
            await media.close()
            await engine.close()
            await mcp_server.close()
            await asyncio.to_thread(marketplace.close)

    app = ServedApp(
        title="Transformers Inference Server",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,  # FastAPI's own /docs loads Swagger UI from a CDN; ours is in `pages`
    )
    app.slow_reader_seconds = settings.slow_reader_seconds
    model_of_assistant = assistant_model or _assistant_model(settings, services)
    marketplace = LazyMarketplace(app, lambda: _market(settings, market_rules, model_of_assistant))
    app.state.engine, app.state.sessions, app.state.media = engine, sessions, media
    mcp_server = ToolServer(lambda: _catalogue_access(marketplace), AllowedOrigins(settings.cors_origins), __version__)
    app.state.marketplace, app.state.read_tokens = marketplace, read_tokens
    app.state.mcp_server = mcp_server
    app.state.admission, app.state.services = admission, services
    app.state.ktp = cards
    app.state.documents = DocumentCache()
    app.state.api_options = ApiOptions(settings.strict_model, settings.responses_ttl_seconds)
    app.include_router(openai_router, prefix="/v1")
    app.include_router(ktp_router)
    if settings.mcp_server:
        app.include_router(mcp_router)
    app.include_router(status.router)
    app.include_router(pages.router)
    install_error_handlers(app)
    _wrap(app, settings, marketplace, read_tokens, admission)
    return app


async def _drain(engine: LocalEngine, sessions: Sessions, seconds: float, hurry: asyncio.Event) -> None:
    """Refuses new requests and waits for running answers. Those that take too long resume after a restart, or fail."""
    log.info("stopping: running answers have up to %g s; a second signal, or Ctrl-C, ends them at once", seconds)
    engine.drain()
    waits: list[asyncio.Task[Any]] = [
        asyncio.create_task(sessions.wait_until_idle(seconds)),
        asyncio.create_task(hurry.wait()),
    ]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await sessions.end_all()


async def _end_when_lost(engine: LocalEngine, sessions: Sessions, end_process: Callable[[int], object]) -> None:
    """Ends the process when no model can compute in it any more. Durable answers are resumed by the next process."""
    reason = await engine.until_lost()
    log.error("%s The process ends with code %d; `tis serve` starts it again.", reason, EXIT_CODE)
    last_resort = threading.Timer(_MAX_ENDING_SECONDS, end_process, [EXIT_CODE])
    last_resort.daemon = True
    last_resort.start()
    await sessions.end_all()
    await asyncio.sleep(_LAST_BYTES_SECONDS)
    last_resort.cancel()
    end_process(EXIT_CODE)


def _wrap(
    app: FastAPI, settings: Settings, marketplace: LazyMarketplace, read_tokens: ReadTokens, admission: Admission
) -> None:
    """Adds the middlewares, the innermost first: the one added last sees a request first."""
    app.add_middleware(TrailingSlashMiddleware, prefix="/v1/")
    app.add_middleware(TrailingSlashMiddleware, prefix=f"{KTP_PREFIX}/")
    app.add_middleware(TrailingSlashMiddleware, prefix=MCP_PATH)
    app.add_middleware(
        LazyMarketplaceMiddleware, marketplace=marketplace, also_for=[MCP_PATH] if settings.mcp_server else []
    )
    keys = ApiKeys(key.get_secret_value() for key in settings.api_keys)
    app.add_middleware(JsonScanMiddleware, prefix="/v1/", max_text_bytes=round(settings.max_text_mb * 2**20))
    app.add_middleware(BodyDeadlineMiddleware, seconds=settings.body_timeout_seconds)
    max_body_bytes = int(settings.max_body_mb * 2**20)
    app.add_middleware(AdmissionMiddleware, admission=admission, max_body_bytes=max_body_bytes)
    app.add_middleware(ApiKeyMiddleware, keys=keys, prefixes=_KEYED, read_tokens=read_tokens)
    app.add_middleware(BodySizeLimitMiddleware, prefix="/", max_bytes=max_body_bytes)
    app.add_middleware(BodySizeLimitMiddleware, prefix="/api/", except_for=_SHEETS, max_bytes=_MAX_MARKET_BYTES)
    app.add_middleware(BodySizeLimitMiddleware, prefix=MCP_PATH, max_bytes=_MAX_MCP_BYTES)
    own = f"[{settings.host}]" if ":" in settings.host else settings.host
    hosts = ServedHosts([*settings.allowed_hosts, own], settings.cors_origins)
    if settings.is_local and not hosts.are_all:
        app.add_middleware(HostMiddleware, hosts=hosts, except_for=[] if keys.is_open else _KEYED)
    app.add_middleware(UnhandledErrorMiddleware)
    origins = AllowedOrigins(settings.cors_origins)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=origins.named,
        allow_origin_regex=origins.pattern,
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
        allow_headers=["*"],  # SDKs add headers with every version
        expose_headers=_EXPOSED_HEADERS,
    )
    app.add_middleware(RequestLogMiddleware)


def _store(settings: Settings) -> Store:
    if settings.persist_sessions:
        max_bytes = settings.sessions_max_mb * 2**20
        return SqliteStore(Path(settings.sessions_db_path), sync=settings.sessions_sync, max_bytes=max_bytes)
    return MemoryStore()


def _served_models(settings: Settings) -> list[CatalogueEntry]:
    path = Path(settings.model_config_path)
    if not settings.set_explicitly("model_config_path") and not path.exists():
        path = bundled_catalogue()
    return select_served(read_catalogue(path), settings.model_repo_id, settings.models, settings.served_model_name)


def _loader(settings: Settings) -> Load:
    options = LoadOptions(
        token=settings.hf_token.get_secret_value() if settings.hf_token else None,
        device_map=settings.device_map,
        dtype=settings.torch_dtype,
        attn_implementation=settings.attn_implementation,
        load_in_4bit=settings.load_in_4bit,
        load_in_8bit=settings.load_in_8bit,
        trust_remote_code=settings.trust_remote_code,
        max_pixels=settings.max_shown_pixels,
        batch=BatchLimits(
            cache_tokens=settings.cache_tokens,
            tokens_per_step=settings.max_batch_tokens,
            step_seconds=settings.step_seconds,
            max_running=settings.max_batch_size,
            quantisation=settings.quantize,
            native_kernels=settings.kernels == "auto",
            prompt_lookup=settings.prompt_lookup == "on",
            vision_cache_bytes=settings.vision_cache_mb * 2**20,
        ),
    )

    def load(entry: CatalogueEntry, report: Report) -> LoadedModel:
        if is_echo(entry.repo):
            return load_echo(entry.repo)
        batch = replace(options.batch, memory_bytes=entry.memory_mb * 2**20, num_models=1 + len(settings.models))
        return load_model(entry.repo, replace(options, batch=batch), report)

    return load


def engine_limits_of(settings: Settings) -> EngineLimits:
    sampling: dict[str, Any] = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
    return EngineLimits(
        load_wait_seconds=settings.load_wait_seconds,
        queue_size=settings.max_queue_size,
        max_context_tokens=settings.max_context_tokens,
        compress=settings.enable_auto_compression,
        stall_seconds=settings.gen_stall_seconds,
        operator_defaults={name: value for name, value in sampling.items() if settings.set_explicitly(name)},
        builtin_defaults=sampling,
    )


def admission_limits_of(settings: Settings) -> AdmissionLimits:
    return AdmissionLimits(
        max_requests=settings.max_pending_requests,
        max_body_bytes=int(settings.max_bodies_mb * 2**20),
        max_media_bytes=int(settings.max_all_media_mb * 2**20),
        max_decoded_bytes=int(settings.max_all_decoded_mb * 2**20),
        max_card_readers=settings.ktp_workers,
        max_prompt_tokens=settings.max_prompt_tokens,
        max_waiting=settings.max_waiting_requests,
        wait_seconds=settings.admission_wait_seconds,
        owner_share=settings.owner_share if len(settings.api_keys) > 1 else 1.0,
    )


def card_limits_of(settings: Settings) -> CardLimits:
    return CardLimits(
        engine=settings.ktp_engine,
        num_workers=settings.ktp_workers,
        picture_seconds=settings.ktp_timeout_seconds,
        batch_seconds=settings.ktp_batch_timeout_seconds,
        max_batch=settings.ktp_max_batch,
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


def transport_limits_of(settings: Settings) -> TransportLimits:
    return TransportLimits(
        max_head_bytes=settings.max_header_kb * 2**10,
        max_headers=settings.max_headers,
        header_seconds=settings.header_timeout_seconds,
        max_connections_per_address=settings.max_connections_per_address,
        unbounded_networks=[*LOOPBACK, *settings.trusted_proxies],
    )


def _require_usable_url(database_url: str) -> None:
    """Raises `DatabaseUrlError`. A plain SQLite path, the default, is accepted without importing SQLAlchemy."""
    if not re.fullmatch("sqlite:///[^?]*", database_url):
        from tis.database.database import Database

        Database(database_url).close()


def _market(
    settings: Settings, rules: "MarketRules | None", model: "AssistantModel | None"
) -> "tuple[Market, APIRouter]":
    """Imports the marketplace only when this is called."""
    from tis.database.database import Database
    from tis.marketplace.market import Market
    from tis.marketplace.router import router

    database = Database(settings.database_url.get_secret_value())
    return Market(database, rules or market_rules_of(settings), model), router


def _assistant_model(settings: Settings, services: Services) -> StructuredAnswers | None:
    if settings.assistant_model == "off":
        return None
    return StructuredAnswers(services, None if settings.assistant_model == "auto" else settings.assistant_model)


def _resume_source(services: Services, marketplace: LazyMarketplace, *, resume: bool) -> ResumeSource:
    """Turns of the assistant are resumed by the marketplace, all others are runs."""
    resume_run = resume_with(services, DIALECTS, resume=resume)

    def resume_source(request: bytes, states: Sequence[bytes], read_attachments: ReadAttachments) -> Source:
        if not request.startswith(_MARKETPLACE_TURN):
            return resume_run(request, states, read_attachments)
        from tis.marketplace.assistant.turn import AssistantTurn

        admission = services.admission
        return AssistantTurn(request, lambda: marketplace.market, admission, None, states, may_resume=resume)

    return resume_source


def _catalogue_access(marketplace: LazyMarketplace) -> McpAccess:
    from tis.marketplace.assistant.mcp_access import CatalogueAccess

    return CatalogueAccess(marketplace.market)


def market_rules_of(settings: Settings) -> "MarketRules":
    from tis.marketplace.admin.retention import RetentionRules
    from tis.marketplace.assistant.shopping_assistant import AssistantLimits
    from tis.marketplace.market import MarketRules
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
        rates={name: getattr(settings, name) for name in RateSettings.model_fields},
    )


def _mailer(settings: Settings) -> "Mailer | None":
    from tis.marketplace.auth.mail import FolderMailer, SmtpMailer

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


def _mcp_limits(settings: Settings) -> McpLimits:
    return McpLimits(
        allowed_hosts=settings.mcp_allowed_hosts,
        timeout_seconds=settings.mcp_timeout_seconds,
        max_rounds=settings.mcp_max_rounds,
    )


def _media_limits(settings: Settings) -> MediaLimits:
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
    )
