"""Finds the route of a request by the parts of its path; FastAPI tries one after the other, and nested ones again."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute, _EffectiveRouteContext, _IncludedRouter
from starlette._utils import get_route_path
from starlette.datastructures import URL
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

# Parameters of other kinds, such as `path`, may match several parts.
_WITHIN_A_PART = {"", "str", "int", "float", "uuid"}
_PARAMETER = re.compile(r"{\w+:?(\w*)}")
_CONTEXT = "effective_route_context"


def index_routes(app: FastAPI) -> None:
    app.router.middleware_stack = RouteIndex(app.router)


class RouteIndex:
    """Stands before the router of an app, and answers as that would: with the first route that matches in full, with
    the first that has the path (405), with a redirect to the path with or without a slash, or with the router's 404.

    Of `FastAPI.frontend`, whose routes come after all of these, it knows nothing.
    """

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self._answer_others = router.middleware_stack
        self._root = _Node()
        self._lists: list[list[BaseRoute]] = []
        self._num_read = -1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._answer_others(scope, receive, send)
            return
        scope.setdefault("router", self._router)
        if chosen := self._chosen(scope):
            route, child_scope = chosen
            scope.update(child_scope)
            await route.handle(scope, receive, send)
        elif url := self._redirected(scope):
            await RedirectResponse(url)(scope, receive, send)
        else:
            await self._router.default(scope, receive, send)

    def _chosen(self, scope: Scope) -> tuple[BaseRoute, Scope] | None:
        has_path = None
        for route in self.candidates(get_route_path(scope)):
            try:
                match, child_scope = route.matches(scope)
            except ValueError:  # a number of more digits than Python reads; FastAPI answers 500
                continue
            if match is Match.FULL:
                return route, child_scope
            if match is Match.PARTIAL and has_path is None:
                has_path = route, child_scope
        return has_path

    def _redirected(self, scope: Scope) -> str | None:
        route_path = get_route_path(scope)
        if not self._router.redirect_slashes or route_path == "/":
            return None
        path = scope["path"].rstrip("/") if route_path.endswith("/") else scope["path"] + "/"
        changed = {**scope, "path": path}
        return str(URL(scope=changed)) if self._chosen(changed) else None

    def candidates(self, path: str) -> list[BaseRoute]:
        """All routes that may match, in the order of the app; most paths have one or two."""
        if sum(map(len, self._lists)) != self._num_read:
            self._read_routes()
        # The patterns of Starlette end with `$`, which also stands before a last newline.
        found = self._root.find(path.removesuffix("\n").split("/"))
        return [route for _, route in sorted(found, key=lambda numbered: numbered[0])]

    def _read_routes(self) -> None:
        lists = list(_lists_of(self._router))
        num_read = sum(map(len, lists))  # before they are read, as the marketplace comes in another thread
        root = _Node()
        for number, (path, route) in enumerate(_with_paths(self._router.routes)):
            root.add(path, (number, route))
        self._root, self._lists, self._num_read = root, lists, num_read


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
        facts = self._tell(scope)
        try:
            return self._route.matches(scope)
        finally:
            del facts[_CONTEXT]

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._tell(scope)
        await self._route.handle(scope, receive, send)

    def _tell(self, scope: Scope) -> dict[str, Any]:
        """Tells the route its prefix and dependencies, and the request log its path."""
        facts: dict[str, Any] = scope.setdefault("fastapi", {})
        facts[_CONTEXT] = self._context
        return facts


def _lists_of(router: APIRouter) -> Iterator[list[BaseRoute]]:
    yield router.routes
    for route in router.routes:
        if isinstance(route, _IncludedRouter):
            yield from _lists_of(route.original_router)


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
