"""`/api/chat` and the other paths of Ollama: they are those below `/ollama`, beside the marketplace's own below `/api`.

A rewritten path gets the keys, limits and errors of `/ollama`, and nothing of `/api`.
"""

import re

from starlette._utils import get_route_path
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from tis.http.error_handlers import OLLAMA_PREFIX

# Whole paths: `/api/chat/search` is the marketplace's.
_OF_OLLAMA = re.compile(
    r"/api/(?:chat|generate|tags|show|ps|version|embed|embeddings|pull|push|create|copy|delete|me|signout|blobs/[^/]+)/?"
)
_JSON = "application/json"


class OllamaPathMiddleware:
    """Ollama reads every body as JSON, and `curl -d` names another type.

    A web page could send such a body without asking first, so with an `Origin` the type has to be right.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = get_route_path(scope) if scope["type"] == "http" else ""
        if _OF_OLLAMA.fullmatch(path):
            root = scope["path"].removesuffix(path)
            # A copy: the request log outside shows the path that the client sent.
            scope = {**scope, "path": f"{root}{OLLAMA_PREFIX}{path}"}
            path = f"{OLLAMA_PREFIX}{path}"
        if path.startswith(f"{OLLAMA_PREFIX}/") and scope["method"] != "GET":
            scope = _with_json_type(scope)
        await self.app(scope, receive, send)


def _with_json_type(scope: Scope) -> Scope:
    if "origin" in (headers := Headers(scope=scope)) or headers.get("content-type", "").startswith(_JSON):
        return scope
    scope = {**scope, "headers": list(scope["headers"])}
    MutableHeaders(scope=scope)["content-type"] = _JSON
    return scope
