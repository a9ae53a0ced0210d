"""Finds the route of a request by the parts of its path; FastAPI tries one after the other, and nested ones again."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute, _EffectiveRouteContext, _IncludedRouter
from starlette._utils import get_route_path
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

# Parameters of other kinds, such as `path`, may match several parts.
_WITHIN_A_PART = {"", "str", "int", "float", "uuid"}
_PARAMETER = re.compile(r"{\w+:?(\w*)}")


def index_routes(app: FastAPI) -> None:
    app.router.middleware_stack = RouteIndex(app.router)


class RouteIndex:
    """Stands before the router of an app. A request that a route matches in full goes there.

    The router answers the rest: 404, 405, redirects, websockets, and routes that came later to a router which the app
    had already included. Those that come to the app itself are found.
    """

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self._answer_rest = router.middleware_stack
        self._root = _Node()
        self._num_read = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("router", self._router)
            for route in self._candidates(get_route_path(scope)):
                match, child_scope = route.matches(scope)
                if match is Match.FULL:
                    scope.update(child_scope)
                    await route.handle(scope, receive, send)
                    return
        await self._answer_rest(scope, receive, send)

    def _candidates(self, path: str) -> list[BaseRoute]:
        """All routes that may match, in the order of the app; most paths have one or two."""
        if len(self._router.routes) != self._num_read:
            self._read_routes()
        # The patterns of Starlette end with `$`, which also stands before a last newline.
        found = self._root.find(path.removesuffix("\n").split("/"))
        return [route for _, route in sorted(found, key=lambda numbered: numbered[0])]

    def _read_routes(self) -> None:
        routes = list(self._router.routes)  # the marketplace comes in another thread
        root = _Node()
        for number, (path, route) in enumerate(_with_paths(routes)):
            root.add(path, (number, route))
        self._root, self._num_read = root, len(routes)


@dataclass(slots=True)
class _Node:
    """What follows one beginning of a path."""

    named: "dict[str, _Node]" = field(default_factory=dict)
    any_part: "_Node | None" = None
    ends: list[tuple[int, BaseRoute]] = field(default_factory=list)
    any_rest: list[tuple[int, BaseRoute]] = field(default_factory=list)

    def add(self, path: str | None, route: tuple[int, BaseRoute]) -> None:
        node = self
        for part in () if path is None else path.split("/"):
            kinds = set(_PARAMETER.findall(part))
            if not kinds <= _WITHIN_A_PART:
                path = None
                break
            if kinds:
                node.any_part = node.any_part or _Node()
                node = node.any_part
            else:
                node = node.named.setdefault(part, _Node())
        (node.any_rest if path is None else node.ends).append(route)

    def find(self, parts: Sequence[str], depth: int = 0) -> list[tuple[int, BaseRoute]]:
        found = list(self.any_rest)
        if depth == len(parts):
            return found + self.ends
        for child in (self.named.get(parts[depth]), self.any_part):
            if child is not None:
                found += child.find(parts, depth + 1)
        return found


class _RouteOfBranch(BaseRoute):
    """A route of an included router. What FastAPI makes of the two is made with the first request that comes near."""

    def __init__(self, branch: _IncludedRouter, number: int, route: APIRoute) -> None:
        self._branch = branch
        self._number = number
        self._route = route

    @cached_property
    def _context(self) -> _EffectiveRouteContext | _IncludedRouter:
        return self._branch.effective_candidates()[self._number]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        facts = scope.setdefault("fastapi", {})
        facts["effective_route_context"] = self._context  # tells the route its prefix, and the request log its path
        match, child_scope = self._route.matches(scope)
        if match is not Match.FULL:
            del facts["effective_route_context"]
        return match, child_scope

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._route.handle(scope, receive, send)


def _with_paths(routes: Sequence[BaseRoute]) -> Iterator[tuple[str | None, BaseRoute]]:
    """Each route with its path; without one if it is to be asked about every path."""
    for route in routes:
        if isinstance(route, _IncludedRouter):
            yield from _of_branch(route)
        else:
            yield (route.path if isinstance(route, Route) else None), route


def _of_branch(branch: _IncludedRouter) -> Iterator[tuple[str | None, BaseRoute]]:
    inside = branch.original_router.routes
    if branch.include_context.form_limits or not all(isinstance(one, APIRoute | _IncludedRouter) for one in inside):
        yield None, branch
        return
    for number, route in enumerate(inside):
        if isinstance(route, APIRoute):
            yield branch.include_context.path_for(route), _RouteOfBranch(branch, number, route)
        else:
            inner = branch.effective_candidates()[number]
            assert isinstance(inner, _IncludedRouter)
            yield from _of_branch(inner)
