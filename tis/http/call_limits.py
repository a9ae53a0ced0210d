"""The middleware that counts calls. Headers, in the names of OpenAI or of Anthropic, say what is left."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from starlette._utils import get_route_path
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.http.anthropic_errors import MESSAGES_PATH
from tis.http.call_counts import CallWindow
from tis.http.call_rates import CallMeter, CallRates
from tis.http.client_address import client_address
from tis.http.error_handlers import error_response
from tis.http.errors import CallLimitReached
from tis.http.public_paths import is_public


class CallLimitMiddleware:
    """Between the check of keys, which says whose call it is, and admission, whose ticket counts its tokens.

    A call is a POST to a path that needs a key. A cancellation is none: it must not be refused.
    """

    def __init__(self, app: ASGIApp, rates: CallRates) -> None:
        self.app = app
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_call(scope):
            await self.app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        meter = self._rates.meter(state.get("api_key"), client_address(scope))
        send = _with_headers(scope, send, meter)
        try:
            await meter.begin()
        except CallLimitReached as error:
            await error_response(scope, error)(scope, receive, send)
            return
        state["meter"] = meter
        try:
            await self.app(scope, receive, send)
        finally:
            # The run that a call begins may go on after it.
            if ticket := state.get("ticket"):
                ticket.when_over(meter.end)
            else:
                meter.end()


def _is_call(scope: Scope) -> bool:
    path = get_route_path(scope)
    is_cancellation = path.startswith("/v1/cancel/") or path.rstrip("/").endswith("/cancel")
    return scope["method"] == "POST" and not is_cancellation and not is_public(path)


def _with_headers(scope: Scope, send: Send, meter: CallMeter) -> Send:
    if not meter.has_windows:
        return send

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            windows = (await meter.look()).windows
            headers = MutableHeaders(scope=message)
            for name, value in _headers(get_route_path(scope), windows):
                headers[name] = value
        await send(message)

    return send_with_headers


def _headers(path: str, windows: list[CallWindow]) -> Iterator[tuple[str, str]]:
    is_anthropic = f"{path}/".startswith(f"{MESSAGES_PATH}/")
    for kind in ("requests", "tokens"):
        # Of the minute and the day, the one that will stop the caller first.
        of_kind = [one for one in windows if one.name.startswith(kind)]
        if not of_kind:
            continue
        tightest = min(of_kind, key=lambda one: one.remaining)
        if is_anthropic:
            before, after = f"anthropic-ratelimit-{kind}-", ""
            reset = _rfc3339(tightest.resets_in)
        else:
            before, after = "x-ratelimit-", f"-{kind}"
            reset = _duration(tightest.resets_in)
        yield f"{before}limit{after}", str(tightest.limit)
        yield f"{before}remaining{after}", str(tightest.remaining)
        yield f"{before}reset{after}", reset


def _duration(seconds: float) -> str:
    """As OpenAI writes it: `250ms`, `12s`, `6m0s`."""
    if 0 < seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{f'{hours}h' if hours else ''}{f'{minutes}m' if hours or minutes else ''}{seconds}s"


def _rfc3339(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
