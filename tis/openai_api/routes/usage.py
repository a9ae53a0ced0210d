"""GET /v1/usage: what the key of the request has used, and what is left of its limits."""

import time
from typing import Any

from fastapi import APIRouter, Request

from tis.http.api_keys import ANONYMOUS, current_key
from tis.http.call_rates import CallRates
from tis.http.client_address import client_address
from tis.http.dependencies import DOCUMENTED_KEY

router = APIRouter(dependencies=[DOCUMENTED_KEY])

_USAGE = {
    "object": "usage",
    "key": "web-shop",
    "since": 1790000000,
    "requests": 120,
    "refused": 2,
    "prompt_tokens": 4200,
    "completion_tokens": 1800,
    "running": 1,
    "limits": {
        "running_requests": {"limit": 4, "remaining": 3, "resets_at": None},
        "requests_per_minute": {"limit": 60, "remaining": 41, "resets_at": 1790000460},
    },
    "expires_at": None,
    "models": ["demo"],
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "OK", "content": {"application/json": {"example": _USAGE}}}
}


@router.get("/usage", responses=_RESPONSES)
async def usage(request: Request) -> dict[str, Any]:
    """Say what your key has used, and what is left of its limits.

    The sums are those since `since`: the start of the server, or, where servers share a Redis, the first call at any of
    them. On a server without keys, the limits are those of your address and the sums those of all.
    """
    key = current_key()
    rates: CallRates = request.app.state.call_rates
    meter = rates.meter(key, client_address(request.scope))
    counted, now = await meter.look(), time.time()
    limits: dict[str, Any] = {
        one.name: {
            "limit": one.limit,
            "remaining": one.remaining,
            "resets_at": round(now + one.resets_in) if one.resets_in else None,
        }
        for one in counted.windows
    }
    if (most := meter.max_running) is not None:
        limits["running_requests"] = {
            "limit": most,
            "remaining": max(0, most - counted.num_running),
            "resets_at": None,
        }
    totals = counted.totals
    return {
        "object": "usage",
        "key": key.name if key else ANONYMOUS,
        "since": int(totals.since),
        "requests": totals.requests,
        "refused": totals.refused,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.generated_tokens,
        "running": counted.num_running,
        "limits": limits,
        "expires_at": None if key is None or key.expires_at is None else int(key.expires_at),
        "models": None if key is None or key.models is None else sorted(key.models),
    }
