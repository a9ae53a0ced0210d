"""Routes for monitoring: /health, /live, /ready, /metrics."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from tis.admission.admission import Admission
from tis.admission.limits import Stage
from tis.engine.engine import Engine
from tis.engine.models.model_status import ModelStatus
from tis.engine.models.model_status import State as ModelState
from tis.http.api_keys import ApiKeys, key_in
from tis.http.call_rates import CallRates
from tis.http.dependencies import EngineDep, SessionsDep
from tis.http.errors import InvalidApiKey
from tis.http.key_file import KeyFile
from tis.observability.memory import resident_bytes
from tis.observability.metrics import metrics_page
from tis.streaming.sessions import Sessions
from tis.streaming.stores.store import Durability

router = APIRouter(tags=["status"])

_KTP = ("ready", "waiting", "unavailable")
_MARKET = ("waiting", "ready")

_HEALTHY = {"ok": True, "modelReady": True, "modelId": "demo", "error": None, "state": "ready", "models": []} | {
    "marketplace": "ready",
    "marketplaceError": None,
    "responses": "ready",
    "ktp": "waiting",
    "ktpPath": "ocr",
    "ktpError": None,
    "keys": {"number": 2, "file": "ready", "fileError": None},
}
_READY = {"ok": True, "reason": None, "durability": "durable", "ktp": "waiting"}


def _example(body: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "OK", "content": {"application/json": {"example": body}}}}


@router.get("/health", responses=_example(_HEALTHY))
async def health(request: Request, engine: EngineDep) -> JSONResponse:
    """Whether anything is broken: 503 after a failed load or with a dead worker. A model not loaded yet is fine.

    `marketplace` is `waiting` until it is imported, and while its database is unavailable;
    `marketplaceError` says why. The models work anyway. `responses` is `waiting` while RESPONSES_URL does not answer,
    and null without one. `ktp` is `waiting` until the first card is read, `unavailable`
    if nothing here can read cards (`ktpError`); `ktpPath` says what reads them: `ocr`, `vlm` or `fused`.

    On a server with API keys a request without one sees only `ok`, `modelReady`, `modelId` and whether there is an
    `error`.
    """
    main, *_ = statuses = engine.statuses
    broken = [status for status in statuses if status.state in ("failed", "dead")]
    if not _may_see_details(request):
        error = "A model could not be loaded or has died. With an API key, /health says why." if broken else None
        short = {"ok": not broken, "modelReady": main.state == "ready", "modelId": main.id, "error": error}
        return JSONResponse(short, status_code=503 if broken else 200)
    cards = await request.app.state.ktp.status()
    body = {
        "ok": not broken,
        "modelReady": main.state == "ready",
        "modelId": main.id,
        "error": broken[0].error if broken else None,
        "state": main.state,
        "stage": main.stage,
        "progress": main.progress,
        "queued": main.num_waiting,
        "models": [_model(status) for status in statuses],
        "marketplace": request.app.state.marketplace.state,
        "marketplaceError": request.app.state.marketplace.failure,
        "responses": _state_of(request.app.state.sessions),
        "ktp": cards.state,
        "ktpPath": cards.path,
        "ktpError": cards.error,
        "keys": _keys(request.app.state.api_keys, request.app.state.key_file),
    }
    return JSONResponse(body, status_code=503 if broken else 200)


def _state_of(sessions: Sessions) -> str | None:
    """Of the database that stored responses last in."""
    return ("ready" if sessions.archive.is_available else "waiting") if sessions.archive else None


def _may_see_details(request: Request) -> bool:
    keys: ApiKeys = request.app.state.api_keys
    try:
        return keys.is_open or bool(keys.find(key_in(request.headers)))
    except InvalidApiKey:
        return False


def _keys(keys: ApiKeys, file: KeyFile | None) -> dict[str, Any]:
    """`file` is `stale` while API_KEYS_FILE cannot be read (`fileError`) and its last good keys are in use."""
    state = None if file is None else "stale" if file.error else "ready"
    return {"number": len(keys.all), "file": state, "fileError": file.error if file else None}


def _model(status: ModelStatus) -> dict[str, Any]:
    """`memoryBytes` is what it holds for weights and cache; `idleSeconds` is null while it is in use or not loaded.

    `stage` and `progress` (0 to 1, null where nobody knows) are of a load that goes on.
    """
    return {
        "id": status.id,
        "state": status.state,
        "stage": status.stage,
        "progress": status.progress,
        "error": status.error,
        "memoryBytes": status.held_bytes,
        "idleSeconds": None if status.idle_seconds is None else round(status.idle_seconds, 1),
    }


@router.get("/live", responses=_example({"ok": True}))
async def live() -> dict[str, bool]:
    """200 while the event loop runs."""
    return {"ok": True}


@router.get("/ready", responses=_example(_READY))
async def ready(request: Request, engine: EngineDep, sessions: SessionsDep) -> JSONResponse:
    """200 when the server accepts requests, also while its model waits for the first request.

    `durability` says whether streams survive the process: `memory`, `durable`, `degraded` while the disk fails, or
    `full` while SESSIONS_MAX_MB has no room for new ones, because all that it holds are running. `ktp` as in /health.
    """
    reason = _why_not_ready(engine)
    body = {"ok": reason is None, "reason": reason, "durability": sessions.durability}
    body["ktp"] = (await request.app.state.ktp.status()).state
    return JSONResponse(body, status_code=503 if reason else 200)


_METRICS = 'tis_session_store_errors_total{error="SQLITE_FULL",store="sqlite"} 3.0\n'


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"example": _METRICS}}}})
async def metrics(request: Request, engine: EngineDep, sessions: SessionsDep) -> Response:
    """Counters and gauges for Prometheus."""
    state = request.app.state
    keys: ApiKeys = state.api_keys
    rates: CallRates = state.call_rates
    cards = await state.ktp.status()
    database = state.marketplace.market.database if state.marketplace.is_loaded else None

    def gauges() -> Iterator[Metric]:
        yield from _gauges(engine, state.admission)
        yield from _model_gauges(engine.statuses)
        yield from _session_gauges(sessions)
        yield from rates.metrics(keys.names)
        text = "1 while calls are counted over all servers with one REDIS_URL, 0 while this one counts alone"
        yield GaugeMetricFamily("tis_limits_shared", text, bool(state.shared and state.shared.counts.is_shared))
        is_stale = bool(state.key_file and state.key_file.error)
        yield GaugeMetricFamily(
            "tis_key_file_stale", "1 while API_KEYS_FILE cannot be read: a revoked key works", is_stale
        )
        yield _one_of("tis_ktp_state", "Whether cards can be read: 1 for the state that it is in", _KTP, cards.state)
        yield _one_of("tis_marketplace_state", "The same of the marketplace", _MARKET, state.marketplace.state)
        if database:
            used, most = database.pool_use
            yield GaugeMetricFamily("tis_database_connections_used", "Connections of the pool in use", used)
            yield GaugeMetricFamily("tis_database_connections_limit", "How many there may be at once", most)

    now = list(gauges())
    page = await asyncio.to_thread(metrics_page, lambda: now)  # to write it takes tens of milliseconds
    return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")


def _gauges(engine: Engine, admission: Admission) -> Iterator[Metric]:
    """Models come from the catalogue, so that their names are a closed set."""
    running = GaugeMetricFamily("tis_num_requests_running", "Requests in the batch of a model", labels=["model_name"])
    cache = GaugeMetricFamily("tis_kv_cache_usage_perc", "Part of the KV cache in use, 0 to 1", labels=["model_name"])
    queued = GaugeMetricFamily("tis_num_requests_waiting", "Requests that wait for a model", labels=["model_name"])
    tokens = GaugeMetricFamily(
        "tis_prompt_tokens_waiting", "Tokens of the prompts of requests that wait for a model", labels=["model_name"]
    )
    waiting = GaugeMetricFamily("tis_num_requests_waiting_by_reason", "Requests that wait", labels=["reason"])
    stages = GaugeMetricFamily("tis_requests", "Requests by stage", labels=["stage"])
    used = GaugeMetricFamily("tis_admission_used", "What requests hold of a resource", labels=["resource"])
    limit = GaugeMetricFamily("tis_admission_limit", "What they may hold of it", labels=["resource"])
    statuses = engine.statuses
    for status in statuses:
        running.add_metric([status.id], status.num_running)
        queued.add_metric([status.id], status.num_waiting)
        tokens.add_metric([status.id], status.num_waiting_tokens)
        if status.cache_use is not None:
            cache.add_metric([status.id], status.cache_use)
    waiting.add_metric(["model_queue"], sum(status.num_waiting for status in statuses))
    for resource, budget in admission.budgets.items():
        waiting.add_metric([resource], budget.num_waiting)
        used.add_metric([resource], budget.used)
        limit.add_metric([resource], budget.limit)
    for stage in get_args(Stage):
        stages.add_metric([stage], admission.num_in(stage))
    yield from (running, queued, tokens, cache, waiting, stages, used, limit)
    if (resident := resident_bytes()) is not None:
        yield GaugeMetricFamily("tis_resident_memory_bytes", "Memory of this process", resident)


def _model_gauges(statuses: Sequence[ModelStatus]) -> Iterator[Metric]:
    states = GaugeMetricFamily("tis_model_state", "1 for the state that a model is in", labels=["model_name", "state"])
    held = GaugeMetricFamily("tis_model_memory_bytes", "Memory of a model: weights and cache", labels=["model_name"])
    room = GaugeMetricFamily("tis_kv_cache_tokens", "Tokens that the KV cache has room for", labels=["model_name"])
    up = GaugeMetricFamily(
        "tis_upstream_up", "1 if an upstream of a model can be asked", labels=["model_name", "upstream"]
    )
    for status in statuses:
        for number, is_up in enumerate(status.upstreams):
            up.add_metric([status.id, str(number)], is_up)
        for state in get_args(ModelState):
            states.add_metric([status.id, state], status.state == state)
        held.add_metric([status.id], status.held_bytes)
        if status.footprint:
            room.add_metric([status.id], status.footprint.cache_tokens)
    yield from (states, held, room, up)


def _session_gauges(sessions: Sessions) -> Iterator[Metric]:
    counts = GaugeMetricFamily("tis_sessions", "Recorded streams and stored responses", labels=["state"])
    counts.add_metric(["running"], sessions.num_running)
    counts.add_metric(["kept"], sessions.num_kept - sessions.num_running)
    yield counts
    yield GaugeMetricFamily("tis_sse_clients", "Clients that read a stream now", sessions.num_readers)
    yield from _archive_gauges(sessions)
    lag = "How long the oldest event that the store does not have yet has waited"
    yield GaugeMetricFamily("tis_session_store_durable_lag_seconds", lag, sessions.lag_seconds)
    yield _one_of(
        "tis_session_store_state", "1 for the durability of streams now", get_args(Durability), sessions.durability
    )


def _archive_gauges(sessions: Sessions) -> Iterator[Metric]:
    """Without RESPONSES_URL they have no values."""
    up = GaugeMetricFamily("tis_responses_database_up", "1 while the database of stored responses answers", labels=[])
    used = GaugeMetricFamily("tis_responses_connections_used", "Connections to it in use", labels=[])
    limit = GaugeMetricFamily("tis_responses_connections_limit", "How many there may be at once", labels=[])
    if archive := sessions.archive:
        for family, value in zip((used, limit), archive.pool_use, strict=True):
            family.add_metric([], value)
        up.add_metric([], archive.is_available)
    yield from (up, used, limit)


def _one_of(name: str, documentation: str, states: Sequence[str], current: str) -> Metric:
    family = GaugeMetricFamily(name, documentation, labels=["state"])
    for state in states:
        family.add_metric([state], state == current)
    return family


def _why_not_ready(engine: EngineDep) -> str | None:
    if engine.loss:
        return engine.loss
    if engine.is_draining:
        return "draining"
    for status in engine.statuses:
        if not (status.accepts_work or (status.state == "loading" and not engine.is_starting)):
            return f"{status.id}: {status.state}"
    return None
