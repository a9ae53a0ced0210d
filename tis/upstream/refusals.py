"""What an upstream says instead of an answer: its status and its error, as this server says them to its clients."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tis.errors import BadRequest, QueueFull
from tis.upstream.errors import (
    RETRY_SECONDS,
    UpstreamFailed,
    UpstreamFault,
    UpstreamTimeout,
    UpstreamUnavailable,
    failed,
)

_MAX_MESSAGE_CHARS = 500
_MAX_RETRY_SECONDS = 120.0
_CODE = re.compile(r"[a-z][a-z0-9_]{1,63}")
_BUSY = (408, 425, 503, 529)
_TOO_LONG = "too large to process"  # llama.cpp, of a text to embed: it says so with a 500


def fault_of_status(status: int, body: bytes, retry_after: str, key: str) -> UpstreamFault:
    """`key`: of the upstream, which must not come back in its message."""
    seconds = _seconds(retry_after)
    if status in (401, 403):
        return failed(f"refuses the key of this server (HTTP {status}); its operator has to set it")
    if status == 404:
        message = "does not know the model or the route (HTTP 404); the operator of this server has to look"
        return failed(message, is_not_found=True)
    if status == 429:
        error = QueueFull("The upstream of this model has too many requests. Retry later.", retry_after=seconds)
        return UpstreamFault(error, is_its_fault=False)
    if status in _BUSY:
        message = f"The upstream of this model is not available now (HTTP {status}). Retry later."
        return UpstreamFault(UpstreamUnavailable(message, retry_after=seconds))
    if status == 504:
        return UpstreamFault(
            UpstreamTimeout("The upstream of this model took too long (HTTP 504).", retry_after=seconds)
        )
    said = _error_in(_parsed(body))
    if 400 <= status < 500 or (status == 500 and _TOO_LONG in str(said.get("message"))):
        return _refused(said, key)
    if 300 <= status < 400:
        return failed(f"answers with a redirect (HTTP {status}), which is not followed")
    return UpstreamFault(UpstreamFailed(f"The upstream of this model failed (HTTP {status}).", retry_after=seconds))


def fault_of_event(said: Any, key: str) -> UpstreamFault:
    """Of an error within a stream."""
    error = _error_in({"error": said})
    kind, code = str(error.get("type")), error.get("code")
    if "invalid_request" in kind or "BadRequest" in kind or (type(code) is int and 400 <= code < 429 and code != 408):
        return _refused(error, key)
    return failed("failed while it answered")


def _refused(error: Mapping[str, Any], key: str) -> UpstreamFault:
    said = error.get("message")
    message = said if isinstance(said, str) and said.strip() else "The upstream of this model refuses the request."
    message = "".join(one if one.isprintable() else " " for one in _without(key, message))[:_MAX_MESSAGE_CHARS]
    code, param = error.get("code"), error.get("param")
    refusal = BadRequest(
        message.encode("utf-8", "replace").decode(),
        param=_without(key, param) if isinstance(param, str) and len(param) <= 128 and param.isascii() else None,
        code=code if isinstance(code, str) and _CODE.fullmatch(code) and code != key else None,
    )
    return UpstreamFault(refusal, may_go_elsewhere=False, is_its_fault=False)


def _without(key: str, text: str) -> str:
    return text.replace(key, "***") if key else text


def _error_in(body: Any) -> Mapping[str, Any]:
    """OpenAI nests it; SGLang, FastAPI and others do not."""
    if not isinstance(body, dict):
        return {}
    error = body.get("error", body)
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return {}
    if "message" not in error and isinstance(error.get("detail"), str):
        return {**error, "message": error["detail"]}
    return error


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _seconds(retry_after: str) -> float:
    if not (retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 6):
        return RETRY_SECONDS
    return min(max(1.0, float(retry_after)), _MAX_RETRY_SECONDS)
