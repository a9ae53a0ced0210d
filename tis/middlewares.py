"""What every request passes before its route, and every answer after it."""

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from tis.admission.admission import Admission
from tis.audio_api.transcription_request import MAX_FIELDS_BYTES
from tis.http.admission import AdmissionMiddleware
from tis.http.api_keys import ApiKeys
from tis.http.body_limits import BodySizeLimitMiddleware, JsonScanMiddleware
from tis.http.call_limits import CallLimitMiddleware
from tis.http.error_handlers import KTP_PREFIX, MCP_PATH, OLLAMA_PREFIX, OPENAI_PATHS, UnhandledErrorMiddleware
from tis.http.hosts import HostMiddleware, ServedHosts
from tis.http.json_compression import JsonCompressionMiddleware
from tis.http.key_check import ApiKeyMiddleware
from tis.http.origins import AllowedOrigins
from tis.http.read_tokens import ReadTokens
from tis.http.trailing_slash import TrailingSlashMiddleware
from tis.http.transport.body_deadline import BodyDeadlineMiddleware
from tis.ktp.routes import MAX_CHECK_BYTES as _MAX_CARD_BYTES
from tis.lazy_marketplace import LazyMarketplace, LazyMarketplaceMiddleware
from tis.mcp_server.endpoint import MAX_BODY_BYTES as _MAX_MCP_BYTES
from tis.observability.request_log import RequestLogMiddleware
from tis.observability.request_spans import RequestSpanMiddleware
from tis.observability.spans import NO_TRACER, Tracer
from tis.ollama_api.paths import OllamaPathMiddleware
from tis.settings import Settings

# Fits the longest description with every character escaped.
_MAX_MARKET_BYTES = 256 * 1024
_AUDIO_FORMS = "/v1/audio/(transcriptions|translations)/?"
# With keys, these answer under any Host header: a web page that has a key needs no other barrier.
_UNDER_ANY_NAME = [*OPENAI_PATHS, KTP_PREFIX, f"{OLLAMA_PREFIX}/api"]
# Sheets and pictures have limits of their own.
_FILES = (
    r"POST /api/(suppliers/[^/]+/(products/import|payment-methods/qris)|(products|talks)/[^/]+/pictures)"
    r"|PUT /api/suppliers/[^/]+/verification"
)
_EXPOSED_HEADERS = (
    "X-RateLimit-Limit-Requests X-RateLimit-Remaining-Requests X-RateLimit-Reset-Requests "
    "X-RateLimit-Limit-Tokens X-RateLimit-Remaining-Tokens X-RateLimit-Reset-Tokens "
    "X-Session-Id X-Session-Durability X-Request-Id Request-Id Retry-After ETag Link Location "
    "X-Total-Count X-Total-Count-Is X-Corrected-Query X-Understood X-Relaxed-Query X-By-Meaning X-Warnings "
    "X-Ignored-Parameters X-Voice X-Cut-Query X-Did-You-Mean X-Nothing-In-Place X-Facet-Counts-Are Idempotent-Replayed "
    "X-Feed-Cursor"
).split()


def add_middlewares(
    app: FastAPI,
    settings: Settings,
    keys: ApiKeys,
    marketplace: LazyMarketplace,
    read_tokens: ReadTokens,
    admission: Admission,
    tracer: Tracer,
) -> None:
    """Adds the middlewares, the innermost first: the one added last sees a request first."""
    app.add_middleware(JsonCompressionMiddleware, prefix="/api/", except_for="/api/auth/")
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
    max_form_bytes = max_audio_bytes(settings) + 2 * MAX_FIELDS_BYTES  # with the heads of its parts
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


def max_audio_bytes(settings: Settings) -> int:
    return round(settings.max_audio_mb * 2**20)
