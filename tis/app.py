"""Makes, wires, opens and closes every long-lived part."""

import asyncio
import logging
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from tis import __version__, status
from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.anthropic_api.routes import WRITERS as ANTHROPIC_WRITERS
from tis.anthropic_api.routes import router as anthropic_router
from tis.arguments import (
    admission_limits_of,
    call_limits_of,
    card_limits_of,
    engine_limits_of,
    fetcher_of,
    key_file_of,
    loader_of,
    market_rules_of,
    mcp_limits_of,
    media_limits_of,
    served_models_of,
    session_limits_of,
    session_store_of,
    shared_parts_of,
    token_secrets_of,
    tracer_of,
    upstream_keys_of,
    upstream_limits_of,
)
from tis.audio_api.audio_options import AudioOptions
from tis.audio_api.routes import router as audio_router
from tis.audio_api.running_files import RunningFiles
from tis.audio_api.speech_run import resumed_speech
from tis.audio_api.transcription_request import MAX_FIELDS_BYTES
from tis.audio_api.transcription_run import resumed_transcription
from tis.cancellation import LoopCalls
from tis.chat.resume import Dialects, resume_with
from tis.chat.run_spec import Services
from tis.chat.structured_answer import StructuredAnswers
from tis.engine.faults import EXIT_CODE
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry, CatalogueError
from tis.engine.models.load_observer import LoadObserver
from tis.engine.models.model_slot import Load
from tis.engine.threaded_pooling import ThreadedPooling
from tis.http.admin_guard import AdminGuard
from tis.http.admission import AdmissionMiddleware
from tis.http.api_keys import ApiKeys, warn_of_short_keys
from tis.http.body_limits import BodySizeLimitMiddleware, JsonScanMiddleware
from tis.http.call_limits import CallLimitMiddleware
from tis.http.call_rates import CallRates
from tis.http.documents import DocumentCache
from tis.http.error_handlers import (
    KTP_PREFIX,
    MCP_PATH,
    OLLAMA_PREFIX,
    OPENAI_PATHS,
    UnhandledErrorMiddleware,
    install_error_handlers,
)
from tis.http.file_watch import FileWatch
from tis.http.hosts import HostMiddleware, ServedHosts
from tis.http.key_check import ApiKeyMiddleware
from tis.http.origins import AllowedOrigins
from tis.http.read_tokens import ReadTokens
from tis.http.slow_readers import cut_slow_reader
from tis.http.trailing_slash import TrailingSlashMiddleware
from tis.http.transport.body_deadline import BodyDeadlineMiddleware
from tis.ktp.engine_vision import EngineVision
from tis.ktp.lazy_ocr import LazyOcr
from tis.ktp.reader import CardReader
from tis.ktp.routes import MAX_CHECK_BYTES as _MAX_CARD_BYTES
from tis.ktp.routes import router as ktp_router
from tis.ktp.vision_model import VisionModel
from tis.lazy_marketplace import AppWithMarketplace, LazyMarketplace, LazyMarketplaceMiddleware
from tis.mcp_client.client import McpClient
from tis.mcp_server.access import McpAccess
from tis.mcp_server.endpoint import MAX_BODY_BYTES as _MAX_MCP_BYTES
from tis.mcp_server.endpoint import router as mcp_router
from tis.mcp_server.server import ToolServer
from tis.media.loader import MediaLoader
from tis.observability.logs import configure_logs
from tis.observability.loop_watch import LoopWatch
from tis.observability.recent_requests import RecentRequests
from tis.observability.request_log import RequestLogMiddleware
from tis.observability.request_spans import RequestSpanMiddleware
from tis.observability.spans import NO_TRACER, Tracer
from tis.ollama_api.paths import OllamaPathMiddleware
from tis.ollama_api.routes import WRITERS as OLLAMA_WRITERS
from tis.ollama_api.routes import router as ollama_router
from tis.openai_api.routes import DIALECTS
from tis.openai_api.routes import aliases as openai_aliases
from tis.openai_api.routes import router as openai_router
from tis.openai_api.routes.models import ApiOptions
from tis.openai_api.settings import hosted_servers
from tis.openai_api.store.responses import attachment_names_of, not_stored
from tis.pages.api_description import router as api_description_router
from tis.pages.kill_switch import KillSwitch
from tis.pages.kill_switch import router as kill_router
from tis.pages.page_files import PageFiles
from tis.pages.routes import router as pages_router
from tis.settings import Settings
from tis.shutdown import graceful_shutdown
from tis.streaming.kept_ends import RetainedForm
from tis.streaming.retention import SessionLimits
from tis.streaming.sessions import Sessions
from tis.streaming.source import ReadAttachments, ResumeSource, Source
from tis.streaming.stores.store import Store
from tis.upstream.engine_switch import EngineSwitch
from tis.upstream.upstream_engine import UpstreamEngine

if TYPE_CHECKING:
    from tis.marketplace.assistant.shopping_assistant import AssistantModel
    from tis.marketplace.market import Market, MarketRules
    from tis.marketplace.pictures.alt_texts import AltTextModel

log = logging.getLogger("tis.app")

# Fits the longest description with every character escaped.
_MAX_MARKET_BYTES = 256 * 1024
_MAX_ENDING_SECONDS = 30.0  # of a process that lost its device, if its event loop hangs too
_LAST_BYTES_SECONDS = 0.5  # for clients to get the end of their streams, before the process ends
_MARKETPLACE_TURN = b'{"kind": "marketplace_chat"'
_TRANSCRIPTION = b'{"kind": "transcription"'
_SPEECH = b'{"kind": "speech"'
_AUDIO_FORMS = "/v1/audio/(transcriptions|translations)/?"
# With keys, these answer under any Host header: a web page that has a key needs no other barrier.
_UNDER_ANY_NAME = [*OPENAI_PATHS, KTP_PREFIX, f"{OLLAMA_PREFIX}/api"]
# Sheets and pictures have limits of their own.
_FILES = r"POST /api/(suppliers/[^/]+/products/import|products/[^/]+/pictures)"
_EXPOSED_HEADERS = (
    "X-RateLimit-Limit-Requests X-RateLimit-Remaining-Requests X-RateLimit-Reset-Requests "
    "X-RateLimit-Limit-Tokens X-RateLimit-Remaining-Tokens X-RateLimit-Reset-Tokens "
    "X-Session-Id X-Session-Durability X-Request-Id Request-Id Retry-After ETag Link Location "
    "X-Total-Count X-Total-Count-Is X-Corrected-Query X-Understood X-Relaxed-Query X-By-Meaning X-Warnings "
    "X-Ignored-Parameters X-Voice X-Cut-Query X-Did-You-Mean X-Nothing-In-Place X-Facet-Counts-Are Idempotent-Replayed"
).split()
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
    kill: Callable[[], None] | None = None,
    make_engine: Callable[..., LocalEngine] = LocalEngine,
    tracer: Tracer | None = None,
    media: MediaLoader | None = None,
) -> FastAPI:
    """Makes the app that the settings describe.

    `load` loads a model of the catalogue; `watch` gets the progress of loads, which otherwise goes to the log.
    Tests pass their own `load`, store, limits, loader of media, readers of cards, model of the assistant and tracer in
    place of those of the settings, and an `end_process` that does not. `kill` is what the button of the demo does.
    """
    configure_logs(settings.log_level, form=settings.log_format)
    tracer = tracer or tracer_of(settings)
    models = served_models_of(settings)
    engine = _served_engine(
        settings,
        models,
        make_engine(
            [entry for entry in models if not entry.upstream],
            load or loader_of(settings),
            engine_limits or engine_limits_of(settings),
            watch,
            None if load else fetcher_of(settings),
        ),
    )
    media = media or MediaLoader(media_limits_of(settings))
    running_files = RunningFiles()
    mcp = McpClient(mcp_limits_of(settings))
    _require_usable_url(settings.database_url.get_secret_value())
    admin_key = settings.admin_key.get_secret_value() if settings.admin_key else None
    key_file = key_file_of(settings)
    keys = ApiKeys(
        (key.get_secret_value() for key in settings.api_keys),
        admin_key,
        file_keys=key_file.first_keys if key_file else None,
    )
    if not settings.is_local:
        warn_of_short_keys([*settings.api_keys, *([settings.admin_key] if settings.admin_key else [])])
    key_watch = FileWatch([key_file.path], lambda: key_file.reload(keys)) if key_file else None
    shared = shared_parts_of(settings, engine)
    counts = shared.counts if shared else None
    call_rates = CallRates(call_limits_of(settings), counts)
    admission = Admission(
        admission_limits or admission_limits_of(settings),
        keys.share_of,
        lambda name: call_rates.meter_of_resumed(name, keys),
    )
    loop_watch = LoopWatch()
    services = Services(engine, media, mcp, lambda: sessions.commit(), admission, tracer)
    sessions = Sessions(
        session_limits or session_limits_of(settings),
        session_store or session_store_of(settings),
        # `marketplace` is made below, before anything is resumed.
        lambda *given: _resume_source(services, marketplace, settings)(*given),
        keys.is_revoked,
        RetainedForm(attachment_names_of, not_stored),
    )

    read_tokens = ReadTokens(sessions, token_secrets_of(settings, shared))

    cards = CardReader(
        card_limits_of(settings), ocr or LazyOcr(), card_vision or EngineVision(engine), media, admission
    )

    async def drain(seconds: float, hurry: asyncio.Event) -> None:
        admission.drain()
        cards.drain()
        await _drain(engine, sessions, running_files, seconds, hurry)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await engine.open(eager=settings.eager_load_model)
        loop_calls.open()
        ending = asyncio.create_task(_end_when_lost(engine, sessions, end_process))
        try:
            if shared:
                await shared.open()
            await sessions.open()
            loop_watch.open()
            if key_watch:
                key_watch.open()
            await read_tokens.open()
            with graceful_shutdown(lambda hurry: drain(settings.drain_seconds, hurry)):
                marketplace.open(lambda: engine.is_starting and any(one.state == "loading" for one in engine.statuses))
                yield
        finally:
            ending.cancel()
            engine.drain()
            loop_watch.close()
            if key_watch:
                key_watch.close()
            await sessions.close()
            cards.close()
            loop_calls.close()
            await media.close()
            await engine.close()
            await mcp_server.close()
            await asyncio.to_thread(marketplace.close)
            if shared:
                await shared.close()
            await asyncio.to_thread(tracer.close)

    app = ServedApp(
        title="Transformers Inference Server",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,  # FastAPI's own /docs loads Swagger UI from a CDN; ours is in `pages`
        # FastAPI's own would send paths and messages of exceptions.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.slow_reader_seconds = settings.slow_reader_seconds
    model_of_assistant = assistant_model or _assistant_model(settings, services)
    loop_calls = LoopCalls()
    text_models = _text_models(settings, engine, loop_calls)
    _require_usable_store(settings.pictures_url)

    def make_market() -> "tuple[Market, APIRouter]":
        """Imports the marketplace only when this is called."""
        from tis.database.database import Database
        from tis.marketplace.market import Market
        from tis.marketplace.picture_files.picture_input import PictureInput
        from tis.marketplace.router import router

        database = Database(settings.database_url.get_secret_value(), with_spans=tracer is not NO_TRACER)
        rules = market_rules or market_rules_of(settings)
        pictures = PictureInput(media, admission, loop_calls)
        alt_model = _alt_text_model(settings, services, loop_calls)
        return Market(database, rules, model_of_assistant, text_models, counts, pictures, alt_model), router

    marketplace = LazyMarketplace(app, make_market)
    app.state.engine, app.state.sessions, app.state.media = engine, sessions, media
    mcp_server = ToolServer(lambda: _catalogue_access(marketplace), AllowedOrigins(settings.cors_origins), __version__)
    app.state.marketplace, app.state.read_tokens = marketplace, read_tokens
    app.state.mcp_server = mcp_server
    app.state.admission, app.state.services = admission, services
    app.state.ktp = cards
    app.state.api_keys, app.state.key_file = keys, key_file
    app.state.call_rates, app.state.shared = call_rates, shared
    app.state.admin_guard = AdminGuard(admin_key, keys, settings.cors_origins)
    app.state.recent_requests = RecentRequests()
    app.state.documents = DocumentCache()
    app.state.kill_switch = KillSwitch(kill if settings.demo and settings.is_local else None)
    app.state.page_files = PageFiles(
        settings.frame_ancestors,
        settings.development,
        can_be_killed=app.state.kill_switch.exists,
        market_is_open=settings.marketplace_auth == "open",
    )
    app.state.api_options = ApiOptions(
        settings.strict_model,
        settings.responses_ttl_seconds,
        settings.max_batch_size,
        hosted_servers(settings.hosted_tools),
    )
    app.state.audio_options = AudioOptions(
        _max_audio_bytes(settings),
        settings.audio_windows_at_once,
        settings.max_speech_seconds,
        settings.slow_reader_seconds,
        running_files,
    )
    app.state.model_idle_seconds = settings.model_idle_seconds
    app.include_router(pages_router)  # first: a page asks for a hundred files, and each route before costs time
    app.include_router(anthropic_router, prefix="/v1")
    app.include_router(openai_router, prefix="/v1")
    app.include_router(audio_router, prefix="/v1")
    app.include_router(openai_aliases)
    app.include_router(ollama_router)
    app.include_router(ktp_router)
    if settings.mcp_server:
        app.include_router(mcp_router)
    app.include_router(status.router)
    app.include_router(api_description_router)
    app.include_router(kill_router)
    install_error_handlers(app)
    _wrap(app, settings, keys, marketplace, read_tokens, admission, tracer)
    return app


ServedEngine = LocalEngine | EngineSwitch


def _served_engine(settings: Settings, models: Sequence[CatalogueEntry], local: LocalEngine) -> ServedEngine:
    elsewhere = [entry for entry in models if entry.upstream]
    if not elsewhere:
        return local
    upstream = UpstreamEngine(elsewhere, upstream_keys_of(elsewhere), upstream_limits_of(settings))
    return EngineSwitch(models, local, upstream)


async def _drain(
    engine: ServedEngine, sessions: Sessions, files: RunningFiles, seconds: float, hurry: asyncio.Event
) -> None:
    """Refuses new requests and waits for running answers. Those that take too long resume after a restart, or fail."""
    log.info("stopping: running answers have up to %g s; a second signal, or Ctrl-C, ends them at once", seconds)
    engine.drain()

    async def until_idle() -> None:
        await asyncio.gather(sessions.wait_until_idle(seconds), files.wait_until_idle(seconds))

    waits: list[asyncio.Task[Any]] = [
        asyncio.create_task(until_idle()),
        asyncio.create_task(hurry.wait()),
    ]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await sessions.end_all()


async def _end_when_lost(engine: ServedEngine, sessions: Sessions, end_process: Callable[[int], object]) -> None:
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
    app: FastAPI,
    settings: Settings,
    keys: ApiKeys,
    marketplace: LazyMarketplace,
    read_tokens: ReadTokens,
    admission: Admission,
    tracer: Tracer,
) -> None:
    """Adds the middlewares, the innermost first: the one added last sees a request first."""
    app.add_middleware(TrailingSlashMiddleware, prefix="/v1/")
    app.add_middleware(TrailingSlashMiddleware, prefix=f"{OLLAMA_PREFIX}/")
    app.add_middleware(TrailingSlashMiddleware, prefix=f"{KTP_PREFIX}/")
    app.add_middleware(TrailingSlashMiddleware, prefix=MCP_PATH)
    app.add_middleware(
        LazyMarketplaceMiddleware, marketplace=marketplace, also_for=[MCP_PATH] if settings.mcp_server else []
    )
    scanned = (*OPENAI_PATHS, f"{OLLAMA_PREFIX}/")
    app.add_middleware(
        JsonScanMiddleware,
        prefixes=scanned,
        max_text_bytes=round(settings.max_text_mb * 2**20),
        except_for=_AUDIO_FORMS,
    )
    app.add_middleware(BodyDeadlineMiddleware, seconds=settings.body_timeout_seconds)
    max_body_bytes = int(settings.max_body_mb * 2**20)
    max_form_bytes = _max_audio_bytes(settings) + 2 * MAX_FIELDS_BYTES  # with the heads of its parts
    app.add_middleware(AdmissionMiddleware, admission=admission, max_body_bytes=max(max_body_bytes, max_form_bytes))
    app.add_middleware(CallLimitMiddleware, rates=app.state.call_rates)
    app.add_middleware(ApiKeyMiddleware, keys=keys, read_tokens=read_tokens, metrics_are_public=settings.metrics_public)
    forms = f"POST {_AUDIO_FORMS}"
    app.add_middleware(BodySizeLimitMiddleware, prefix="/", except_for=forms, max_bytes=max_body_bytes)
    app.add_middleware(BodySizeLimitMiddleware, prefix="/v1/audio/", max_bytes=max_form_bytes)
    app.add_middleware(BodySizeLimitMiddleware, prefix="/api/", except_for=_FILES, max_bytes=_MAX_MARKET_BYTES)
    app.add_middleware(BodySizeLimitMiddleware, prefix=MCP_PATH, max_bytes=_MAX_MCP_BYTES)
    app.add_middleware(BodySizeLimitMiddleware, prefix=f"{KTP_PREFIX}/check", max_bytes=_MAX_CARD_BYTES)
    own = f"[{settings.host}]" if ":" in settings.host else settings.host
    hosts = ServedHosts([*settings.allowed_hosts, own], settings.cors_origins)
    if settings.is_local and not hosts.are_all:
        app.add_middleware(HostMiddleware, hosts=hosts, except_for=[] if keys.is_open else _UNDER_ANY_NAME)
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
    app.add_middleware(OllamaPathMiddleware)
    app.add_middleware(RequestLogMiddleware, recent=app.state.recent_requests)
    if tracer is not NO_TRACER:
        app.add_middleware(RequestSpanMiddleware, tracer=tracer)


def _max_audio_bytes(settings: Settings) -> int:
    return round(settings.max_audio_mb * 2**20)


def _require_usable_url(database_url: str) -> None:
    """Raises `DatabaseUrlError`. A plain SQLite path, the default, is accepted without importing SQLAlchemy."""
    if not re.fullmatch("sqlite:///[^?]*", database_url):
        from tis.database.database import Database

        Database(database_url).close()


def _require_usable_store(pictures_url: str | None) -> None:
    """Raises SettingsError. A folder is accepted without importing SQLAlchemy."""
    if pictures_url and not re.fullmatch("file:///[^?#]+", pictures_url):
        from tis.marketplace.picture_files.picture_storage import open_picture_store

        open_picture_store(pictures_url).close()


def _text_models(settings: Settings, engine: ServedEngine, calls: LoopCalls) -> ThreadedPooling | None:
    """Raises CatalogueError for a model that is not served for this."""
    embedding, rerank = settings.marketplace_embedding_model, settings.marketplace_rerank_model
    tasks = {entry.id: entry.task for entry in engine.models}
    for variable, name, task in (
        ("MARKETPLACE_EMBEDDING_MODEL", embedding, "embedding"),
        ("MARKETPLACE_RERANK_MODEL", rerank, "rerank"),
    ):
        if name is not None and tasks.get(name) != task:
            served = ", ".join(one for one, of_one in tasks.items() if of_one == task) or "none"
            raise CatalogueError(f"{variable} names {name!r}, which is not served for {task}. Served for it: {served}.")
    if embedding is None:
        return None
    return ThreadedPooling(engine, calls, embedding, rerank)


def _assistant_model(settings: Settings, services: Services) -> StructuredAnswers | None:
    if settings.assistant_model == "off":
        return None
    return StructuredAnswers(services, None if settings.assistant_model == "auto" else settings.assistant_model)


def _alt_text_model(settings: Settings, services: Services, calls: LoopCalls) -> "AltTextModel | None":
    from tis.marketplace.pictures.alt_texts import AltTextModel

    if settings.picture_alt_model == "off":
        return None
    wanted = None if settings.picture_alt_model == "auto" else settings.picture_alt_model
    return AltTextModel(StructuredAnswers(services, wanted, sees=True), services.admission, calls)


def _resume_source(services: Services, marketplace: LazyMarketplace, settings: Settings) -> ResumeSource:
    """Turns of the assistant are resumed by the marketplace, sound by its API; all others are runs."""
    resume, at_once = settings.resume_generation, settings.audio_windows_at_once
    writers = {**DIALECTS.writers, **ANTHROPIC_WRITERS, **OLLAMA_WRITERS}
    dialects = Dialects(writers, DIALECTS.failed_event)
    resume_run = resume_with(services, dialects, resume=resume)

    def resume_source(request: bytes, states: Sequence[bytes], read_attachments: ReadAttachments) -> Source:
        if request.startswith(_TRANSCRIPTION):
            return resumed_transcription(request, states, read_attachments, services, at_once, resume=resume)
        if request.startswith(_SPEECH):
            return resumed_speech(request, states, services, resume=resume)
        if not request.startswith(_MARKETPLACE_TURN):
            return resume_run(request, states, read_attachments)
        from tis.marketplace.assistant.turn import AssistantTurn

        admission = services.admission
        return AssistantTurn(request, lambda: marketplace.market, admission, None, states, may_resume=resume)

    return resume_source


def _catalogue_access(marketplace: LazyMarketplace) -> McpAccess:
    from tis.marketplace.assistant.mcp_access import CatalogueAccess

    return CatalogueAccess(marketplace.market)
