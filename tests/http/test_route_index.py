"""The index of routes chooses what FastAPI chooses when it tries all routes in turn, and refuses as it refuses."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.serving import settings_with
from tis.app import create_app
from tis.http.route_index import RouteIndex, index_routes

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ANTHROPIC = [(b"anthropic-version", b"2023-06-01")]


@pytest.fixture(scope="module")
def app() -> FastAPI:
    """The whole app. Its routes say who they are, and do nothing."""
    app = create_app(settings_with(mcp_server=True))
    _ = app.state.marketplace.market
    return with_named_answers(app)


def with_named_answers(app: FastAPI) -> FastAPI:
    for context in iter_route_contexts(app.routes):
        chosen: Any = context._route_context
        chosen.app = say_who(f"{chosen.path} {sorted(chosen.methods)} {id(chosen)}")
    return app


def say_who(name: str) -> ASGIApp:
    async def say(scope: Scope, receive: Receive, send: Send) -> None:
        known = scope["route"], scope["endpoint"], scope["router"], scope["fastapi"]["effective_route_context"]
        await PlainTextResponse(f"{name} {scope['path_params']} {list(map(id, known))}")(scope, receive, send)

    return say


def outcome(asgi: ASGIApp, app: FastAPI, method: str, path: str, **changes: Any) -> object:
    """What is sent, or what is raised: the handlers of errors are outside."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    scope = {"type": "http", "app": app, "method": method, "path": path, "headers": [], "query_string": b"a=1"}
    try:
        asgi({**scope, **changes}, receive, send).__await__().__next__()
    except StopIteration:
        return sent
    except HTTPException as refused:
        return refused.status_code, refused.detail, refused.headers
    raise AssertionError("a route waits")


def assert_same(app: FastAPI, method: str, path: str, **changes: Any) -> object:
    found = outcome(app.router, app, method, path, **changes)
    try:
        expected = outcome(app.router.app, app, method, path, **changes)
    except ValueError:  # a number of more digits than Python reads
        expected = (404, "Not Found", None)
    assert found == expected, (method, path)
    return found


def paths_of(app: FastAPI) -> Iterator[tuple[str, set[str]]]:
    for context in iter_route_contexts(app.routes):
        yield re.sub(r"\{[^}]*\}", "7", str(context.path)), context.methods or set()


def test_every_path_and_method_of_the_app_goes_where_fastapi_sends_it(app: FastAPI) -> None:
    refused = set()
    for path in sorted({path for path, _ in paths_of(app)}):
        for method in METHODS:
            found = assert_same(app, method, path)
            if isinstance(found, tuple):
                refused.add(found[0])
    assert refused == {405}


def test_a_slash_more_a_prefix_of_a_proxy_and_a_header_change_nothing(app: FastAPI) -> None:
    for path, methods in {(path, tuple(methods)) for path, methods in paths_of(app)}:
        assert_same(app, methods[0], f"{path}/")
        assert_same(app, methods[0], path.rstrip("/"))
        assert_same(app, methods[0], f"/proxy{path}", root_path="/proxy")
        if path.startswith("/v1/m"):
            assert_same(app, methods[0], path, headers=ANTHROPIC)


def test_every_route_of_the_app_is_found_by_its_path(app: FastAPI) -> None:
    """One of a kind that the index does not read would be tried for each path."""
    index = app.router.middleware_stack
    assert isinstance(index, RouteIndex)
    most = {path: len(index.candidates(path)) for path, _ in paths_of(app)}
    assert len(most) > 200 and max(most.values()) <= 8, most
    assert not index.candidates("/nowhere/at/all")


PARTS = st.one_of(
    st.sampled_from(["", "", "7", "%2F", "%0A", "..", ".", "7\n", "\n", "sitemap-7.xml", "sitemap-.xml", "é", "{id}"]),
    st.text(max_size=5),
    st.integers(4_000, 5_000).map(lambda number: "9" * number),
)


@st.composite
def odd_paths(draw: st.DrawFn, known: list[str]) -> str:
    """Paths of the app with parts that are changed, left out, doubled or added, and any text at all."""
    parts = draw(st.sampled_from(known)).split("/")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(parts)))
        parts[at : at + draw(st.integers(0, 2))] = draw(st.lists(PARTS, max_size=2))
    return draw(st.sampled_from(["", "", "", "/", "//"])) + "/".join(parts) + draw(st.sampled_from(["", "", "/", "\n"]))


def test_odd_paths_go_where_fastapi_sends_them(app: FastAPI) -> None:
    known = sorted({path for path, _ in paths_of(app)})

    @settings(max_examples=400, deadline=None)
    @given(odd_paths(known), st.sampled_from(METHODS), st.booleans(), st.sampled_from(["", "/api", "/v1", "/v1/"]))
    def same(path: str, method: str, of_anthropic: bool, root_path: str) -> None:
        assert_same(app, method, path, headers=ANTHROPIC if of_anthropic else [], root_path=root_path)

    same()


def test_a_number_of_more_digits_than_python_reads_is_a_404(app: FastAPI) -> None:
    for path in ("/shop/products/", "/shop/products/7", "/sitemap-"):
        end = ".xml" if path == "/sitemap-" else ""
        assert assert_same(app, "GET", f"{path}{'9' * 5000}{end}") == (404, "Not Found", None)


def test_routes_that_come_late_are_found() -> None:
    app, inner, room = FastAPI(openapi_url=None), APIRouter(), APIRouter()
    index_routes(app)
    inner.get("/{name}")(lambda name: None)
    app.include_router(inner, prefix="/goods")
    with_named_answers(app)
    for method in METHODS:
        assert_same(app, method, "/goods/lamp")
        assert_same(app, method, "/rooms/of/lamp")
    room.get("/of/{name}")(lambda name: None)
    room.include_router(inner, prefix="/{number:int}")
    app.include_router(room, prefix="/rooms")
    inner.post("/{name:path}/end")(lambda name: None)  # of a router that was included before
    app.get("/rooms/{rest:path}")(lambda rest: None)
    for context in iter_route_contexts(app.routes):
        chosen: Any = context._route_context or context.route
        chosen.app = PlainTextResponse(f"{context.path} {context.methods}")
    for path in ("/goods/lamp", "/goods/a/b/end", "/rooms/of/lamp", "/rooms/3/lamp", "/rooms/3/a/end", "/rooms/x/y"):
        for method in METHODS:
            assert_same(app, method, path)
    assert "/rooms/of/{name}" in str(assert_same(app, "GET", "/rooms/of/lamp"))
    assert "/goods/{name:path}/end" in str(assert_same(app, "POST", "/goods/a/b/end"))


def test_what_is_no_route_of_fastapi_keeps_its_place_among_the_others() -> None:
    app, room = FastAPI(openapi_url=None), APIRouter()
    index_routes(app)
    room.mount("/files", PlainTextResponse("mounted in a room"))

    async def plain(request: Request) -> PlainTextResponse:
        return PlainTextResponse("plain")

    app.add_route("/plain/{name}", plain)
    app.include_router(room, prefix="/room")
    app.mount("/files", PlainTextResponse("mounted"))
    app.router.routes.append(Mount("/all/{rest}", PlainTextResponse("later")))
    app.get("/files/{name}")(lambda name: None)
    app.get("/all/{name}/{more}")(lambda name, more: None)
    app.get("/last")(lambda: None)
    for path in ("/plain/x", "/room/files/x", "/files/x", "/files", "/all/x/y", "/nowhere", "/plain/x/"):
        for method in METHODS:
            assert_same(app, method, path)


def test_web_sockets_are_left_to_the_router() -> None:
    app = FastAPI(openapi_url=None)
    index_routes(app)
    app.get("/socket")(lambda: None)
    app.websocket("/socket")(lambda: None)
    found = outcome(app.router, app, "GET", "/nowhere", type="websocket")
    assert found == [{"type": "websocket.close", "code": 1000, "reason": ""}]
