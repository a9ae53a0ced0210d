"""GET /v1/requests/recent: what the newest requests spent their time on."""

from typing import Any

from fastapi import APIRouter, Request

from tis.http.api_keys import ADMIN, current_key
from tis.http.dependencies import OwnerDep
from tis.observability.recent_requests import RecentRequests

router = APIRouter()

_ROUND = {"queued": 0.0031, "started": 0.0042, "first_token": 0.0612, "last_token": 0.8105, "ended": 0.8107}
_REQUEST = {
    "id": "req-1",
    "arrived_at": 1790000000.123,
    "method": "POST",
    "route": "/v1/chat/completions",
    "status": 200,
    "model": "demo",
    "key": "web-shop",
    "finish": "stop",
    "error": None,
    "seconds": 0.8124,
    "loading": 0.0,
    "prompt_tokens": 14,
    "cached_tokens": 0,
    "completion_tokens": 9,
    "rounds": [_ROUND | {"prompt_tokens": 14, "cached_tokens": 0, "completion_tokens": 9}],
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "OK",
        "content": {"application/json": {"example": {"object": "list", "data": [_REQUEST], "of": "all"}}},
    }
}


@router.get("/requests/recent", responses=_RESPONSES)
async def recent_requests(request: Request, owner: OwnerDep) -> dict[str, Any]:
    """List the newest requests that ended, at most 100, with the times of their phases. Never what they say.

    Times are seconds since the request arrived: in the queue of the model, its first work, first and last token;
    `loading` is how long it waited for its model to be loaded. An answer that called tools has several rounds. With
    API keys a key sees its own requests, and the admin key (`of`: `all`) those of all, with the names of their keys.
    The list is in memory, and empty after a restart.
    """
    recent: RecentRequests = request.app.state.recent_requests
    key = current_key()
    sees_all = key is None or key.name == ADMIN
    listed = recent.newest(None if sees_all else owner)
    with_key = key is not None and sees_all
    return {
        "object": "list",
        "data": [one.to_json(with_key=with_key) for one in listed],
        "of": "all" if sees_all else "key",
    }
