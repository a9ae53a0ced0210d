"""Routes for monitoring: /health, /live, /ready, /metrics."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from tis.http.dependencies import EngineDep, SessionsDep
from tis.observability.metrics import metrics_page

router = APIRouter(tags=["status"])

_HEALTHY = {"ok": True, "modelReady": True, "modelId": "demo", "error": None, "state": "ready", "models": []} | {
    "marketplace": "ready"
}


def _example(body: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "OK", "content": {"application/json": {"example": body}}}}


@router.get("/health", responses=_example(_HEALTHY))
async def health(request: Request, engine: EngineDep) -> JSONResponse:
    """Whether anything is broken: 503 after a failed load or with a dead worker. A model not loaded yet is fine.

    `marketplace` is `waiting` until it is imported, and while its database is unavailable. The models work anyway.
    """
    main, *_ = statuses = engine.statuses
    broken = [status for status in statuses if status.state in ("failed", "dead")]
    body = {
        "ok": not broken,
        "modelReady": main.state == "ready",
        "modelId": main.id,
        "error": broken[0].error if broken else None,
        "state": main.state,
        "stage": main.stage,
        "progress": main.progress,
        "queued": main.num_waiting,
        "models": [{"id": status.id, "state": status.state, "error": status.error} for status in statuses],
        "marketplace": request.app.state.marketplace.state,
    }
    return JSONResponse(body, status_code=503 if broken else 200)


@router.get("/live", responses=_example({"ok": True}))
async def live() -> dict[str, bool]:
    """200 while the event loop runs."""
    return {"ok": True}


@router.get("/ready", responses=_example({"ok": True, "reason": None, "durability": "durable"}))
async def ready(engine: EngineDep, sessions: SessionsDep) -> JSONResponse:
    """200 when the server accepts requests, also while its model waits for the first request.

    `durability` says whether streams survive the process: `memory`, `durable`, or `degraded` while the disk fails.
    """
    reason = _why_not_ready(engine)
    body = {"ok": reason is None, "reason": reason, "durability": sessions.durability}
    return JSONResponse(body, status_code=503 if reason else 200)


_METRICS = 'tis_session_store_errors_total{error="SQLITE_FULL",store="sqlite"} 3.0\n'


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"example": _METRICS}}}})
async def metrics() -> Response:
    """Counters and gauges for Prometheus."""
    return Response(metrics_page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _why_not_ready(engine: EngineDep) -> str | None:
    if engine.loss:
        return engine.loss
    if engine.is_draining:
        return "draining"
    for status in engine.statuses:
        if not (status.accepts_work or (status.state == "loading" and not engine.is_eager)):
            return f"{status.id}: {status.state}"
    return None
