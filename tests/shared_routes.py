"""Routes for the many apps of one process: FastAPI would read the signatures of all endpoints again for each of them.

That takes 0.1 to 0.5 s of a server's first requests. Handlers and overrides of dependencies stay the app's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
from fastapi import routing
from fastapi._body_limit import wrap_app_with_body_limit
from fastapi.routing import APIRoute

_Context = routing._EffectiveRouteContext
_KEPT = "_read_for_tests"  # on the route: for as long as it lives


@contextmanager
def routes_read_once() -> Iterator[None]:
    read = _Context.from_api_route

    def from_api_route(_: type[_Context], *, original_route: APIRoute, include_context: Any) -> _Context:
        kept: list[tuple[Any, _Context]] = original_route.__dict__.setdefault(_KEPT, [])
        place = replace(include_context, dependency_overrides_provider=None)
        for known, context in kept:
            if known == place:
                return _of_app(context, original_route, include_context)
        made = read(original_route=original_route, include_context=include_context)
        kept.append((place, replace(made, app=None, dependency_overrides_provider=None)))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Context, "from_api_route", classmethod(from_api_route))
        yield


def _of_app(context: _Context, route: APIRoute, include_context: Any) -> _Context:
    """As `from_api_route` ends."""
    own = copy(context)
    own.dependency_overrides_provider = include_context.dependency_overrides_provider
    token = routing._effective_route_context_var.set(own)
    try:
        handler = routing.request_response(route.get_route_handler())
        own.app = wrap_app_with_body_limit(handler, own.max_body_size)
    finally:
        routing._effective_route_context_var.reset(token)
    return own
