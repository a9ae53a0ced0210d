"""Routes that read large JSON bodies without holding up the event loop.

FastAPI parses and validates a body in one go. For a large one, `ScannedBodyRoute` does the greater part of it before,
in a thread; each call of C code there, which holds the interpreter, is short enough for the others.
"""

import asyncio
import contextvars
import json
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from tis.errors import ServiceError
from tis.http.body_limits import SCAN
from tis.http.error_handlers import BodyRejected
from tis.http.json_scan import ScannedBody

T = TypeVar("T")

# They share the interpreter with the event loop: with ten of them it would get its turn after ten calls of C code.
_LARGE_BODIES = ThreadPoolExecutor(2, thread_name_prefix="large-body")


class ScannedBodyRoute(APIRoute):
    """The model of the body may have a class method `prepare_large`, which validates parts of it in slices."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        model = self.body_field.field_info.annotation if self.body_field else None
        prepare_large = getattr(model, "prepare_large", _unchanged)

        async def handle_scanned(request: Request) -> Response:
            scanned = request.scope.get(SCAN)
            if model is not None and isinstance(scanned, ScannedBody):
                body = await _read(request)
                if (scanned.is_large or scanned.media) and _is_json(request):
                    parse = partial(_parse, body, scanned, prepare_large)
                    parsed = await in_thread_if(scanned.is_large, parse)
                    if parsed is not None:
                        request._json = parsed
            return await handle(request)

        return handle_scanned


def is_large_body(request: Request) -> bool:
    """For `in_thread_if`. No dependency of FastAPI, which would cost each request 15 µs."""
    scanned = request.scope.get(SCAN)
    return isinstance(scanned, ScannedBody) and scanned.is_large


async def in_thread_if(is_large: bool, work: Callable[[], T]) -> T:
    """Runs work on what a large body says in a thread, and on that of a small one, which is short, at once."""
    if not is_large:
        return work()
    in_context = partial(contextvars.copy_context().run, work)
    return await asyncio.get_running_loop().run_in_executor(_LARGE_BODIES, in_context)


async def _read(request: Request) -> bytes:
    try:
        return await request.body()
    except ClientDisconnect:
        raise HTTPException(400) from None  # as FastAPI does


def _parse(body: bytes, scanned: ScannedBody, prepare_large: Callable[[Any], Any]) -> Mapping[str, Any] | None:
    """None if it is no JSON object: FastAPI, which parses it again, says what is wrong."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return None
    try:
        scanned.restore(parsed)
    except ServiceError as error:
        raise BodyRejected(error) from None
    prepared: Mapping[str, Any] | None = prepare_large(parsed) if isinstance(parsed, dict) else None
    return prepared


def _unchanged(parsed: Any) -> Any:
    return parsed


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
