"""Makes, wires, opens and closes every long-lived part."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI
from starlette.types import Receive, Scope, Send

from tis import __version__, status
from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.anthropic_api.routes import router as anthropic_router
from tis.arguments.catalogue import served_models_of
from tis.arguments.limits import (
    admission_limits_of,
    call_limits_of,
    card_limits_of,
    engine_limits_of,
    mcp_limits_of,
    media_limits_of,
    session_limits_of,
)
from tis.arguments.loading import fetcher_of, loader_of
from tis.arguments.marketplace import market_rules_of, public_url_of
from tis.arguments.secrets import key_file_of, token_secrets_of
from tis.arguments.stores import session_store_of, shared_parts_of, tracer_of
from tis.audio_api.audio_options import AudioOptions
from tis.audio_api.routes import router as audio_router
from tis.audio_api.running_files import RunningFiles
from tis.cancellation import LoopCalls
from tis.chat.run_spec import Services
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.load_observer import LoadObserver
from tis.engine.models.model_slot import Load
from tis.http.admin_guard import AdminGuard
from tis.http.api_keys import ApiKeys, warn_of_short_keys
from tis.http.call_rates import CallRates
from tis.http.documents import DocumentCache
from tis.http.error_handlers import (
    install_error_handlers,
)
from tis.http.file_watch import FileWatch
from tis.http.origins import AllowedOrigins
from tis.http.read_tokens import ReadTokens
from tis.http.route_index import index_routes
from tis.http.slow_readers import cut_slow_reader
from tis.ktp.engine_vision import EngineVision
from tis.ktp.lazy_ocr import LazyOcr
from tis.ktp.reader import CardReader
from tis.ktp.routes import router as ktp_router
from tis.ktp.vision_model import VisionModel
from tis.lazy_marketplace import AppWithMarketplace, LazyMarketplace
from tis.lifetime import drain_answers, end_when_lost, served_engine
from tis.market_parts import (
    LazyShopWindow,
    alt_text_model_of,
    assistant_model_of,
    card_check_of,
    catalogue_access_of,
    require_usable_store,
    require_usable_url,
    text_models_of,
)
from tis.mcp_client.client import McpClient
from tis.mcp_server.endpoint import router as mcp_router
from tis.mcp_server.server import ToolServer
from tis.media.loader import MediaLoader
from tis.middlewares import add_middlewares, max_audio_bytes
from tis.observability.logs import configure_logs
from tis.observability.loop_watch import LoopWatch
from tis.observability.recent_requests import RecentRequests
from tis.observability.spans import NO_TRACER, Tracer
from tis.ollama_api.routes import router as ollama_router
from tis.openai_api.routes import aliases as openai_aliases
from tis.openai_api.routes import router as openai_router
from tis.openai_api.routes.models import ApiOptions
from tis.openai_api.settings import hosted_servers
from tis.openai_api.store.responses import attachment_names_of, not_stored
from tis.pages.api_description import router as api_description_router
from tis.pages.kill_switch import KillSwitch, KillSwitchMiddleware
from tis.pages.kill_switch import router as kill_router
from tis.pages.page_files import PageFiles
from tis.pages.routes import router as pages_router
from tis.resume_sources import resume_source_of
from tis.settings import Settings
from tis.shutdown import graceful_shutdown
from tis.streaming.kept_ends import RetainedForm
from tis.streaming.retention import SessionLimits
from tis.streaming.sessions import Sessions
from tis.streaming.stores.store import Store

if TYPE_CHECKING:
    from tis.marketplace.assistant.shopping_assistant import AssistantModel
    from tis.marketplace.market import Market, MarketRules


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
    engine = served_engine(
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
    require_usable_url(settings.database_url.get_secret_value())
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
        lambda *given: resume_source_of(services, marketplace, settings)(*given),
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
        await drain_answers(engine, sessions, running_files, seconds, hurry)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await engine.open(eager=settings.eager_load_model)
        loop_calls.open()
        ending = asyncio.create_task(end_when_lost(engine, sessions, end_process))
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
    model_of_assistant = assistant_model or assistant_model_of(settings, services)
    loop_calls = LoopCalls()
    text_models = text_models_of(settings, engine, loop_calls)
    require_usable_store(settings.pictures_url)

    def make_market() -> "tuple[Market, APIRouter]":
        """Imports the marketplace only when this is called."""
        from tis.database.database import Database
        from tis.marketplace.market import Market
        from tis.marketplace.picture_files.picture_input import PictureInput
        from tis.marketplace.router import router

        database = Database(settings.database_url.get_secret_value(), with_spans=tracer is not NO_TRACER)
        rules = market_rules or market_rules_of(settings)
        pictures = PictureInput(media, admission, loop_calls)
        alt_model = alt_text_model_of(settings, services, loop_calls)
        card_check = card_check_of(cards)
        return Market(database, rules, model_of_assistant, text_models, counts, pictures, alt_model, card_check), router

    marketplace = LazyMarketplace(app, make_market, at_start=settings.marketplace_at_start)
    app.state.engine, app.state.sessions, app.state.media = engine, sessions, media
    mcp_server = ToolServer(
        lambda: catalogue_access_of(marketplace, with_buying=settings.mcp_buying),
        AllowedOrigins(settings.cors_origins),
        __version__,
    )
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
    app.state.shop_window = LazyShopWindow(marketplace, public_url_of(settings))
    app.state.api_options = ApiOptions(
        settings.strict_model,
        settings.responses_ttl_seconds,
        settings.max_batch_size,
        hosted_servers(settings.hosted_tools),
    )
    app.state.audio_options = AudioOptions(
        max_audio_bytes(settings),
        settings.audio_windows_at_once,
        settings.max_speech_seconds,
        settings.slow_reader_seconds,
        running_files,
    )
    app.state.model_idle_seconds = settings.model_idle_seconds
    _include_routes(app, with_tools=settings.mcp_server)
    index_routes(app)
    install_error_handlers(app)
    add_middlewares(app, settings, keys, marketplace, read_tokens, admission, tracer)
    if app.state.kill_switch.exists:
        app.add_middleware(KillSwitchMiddleware, switch=app.state.kill_switch)
    return app


def _include_routes(app: FastAPI, *, with_tools: bool) -> None:
    app.include_router(pages_router)
    app.include_router(anthropic_router, prefix="/v1")
    app.include_router(openai_router, prefix="/v1")
    app.include_router(audio_router, prefix="/v1")
    app.include_router(openai_aliases)
    app.include_router(ollama_router)
    app.include_router(ktp_router)
    if with_tools:
        app.include_router(mcp_router)
    app.include_router(status.router)
    app.include_router(api_description_router)
    app.include_router(kill_router)
