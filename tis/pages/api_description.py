"""/docs, which is Swagger UI, and what it reads: the OpenAPI description.

Nothing is loaded from elsewhere, so that /docs works without internet: Swagger UI lies in the wheel `fastapi-swagger`
(MIT; Swagger UI itself is Apache-2.0). Of that wheel only the static files are used. Its own routes inline a script,
which our Content-Security-Policy forbids. The page around it is `web/docs.html`, with the bar of all pages.

All addresses in the page are relative, so it works behind a proxy that adds a prefix, too.
"""

import json
from collections.abc import Callable
from importlib import resources
from typing import Annotated, Any, cast

import yaml
from fastapi import APIRouter, Depends, HTTPException, Path, Request, Response
from fastapi.responses import RedirectResponse

from tis.http.documents import DocumentCache
from tis.pages.page_files import PageFilesDep

router = APIRouter()

_GET = ["GET", "HEAD"]
_MEDIA_TYPES = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
}
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_REVALIDATE = {"Cache-Control": "no-cache", **_NO_SNIFFING}
_FOR_A_DAY = {"Cache-Control": "public, max-age=86400", **_NO_SNIFFING}


async def _documents(request: Request) -> DocumentCache:
    return cast(DocumentCache, request.app.state.documents)


_DocumentsDep = Annotated[DocumentCache, Depends(_documents)]


@router.api_route("/redoc", methods=_GET, include_in_schema=False)
async def redoc(request: Request) -> RedirectResponse:
    return RedirectResponse(f"{_root_path(request)}/docs")


@router.api_route("/docs", methods=_GET, include_in_schema=False)
async def docs(request: Request, pages: PageFilesDep) -> Response:
    page = await pages.page("docs.html")
    return page.response_to(request, pages.headers_around_swagger)


@router.api_route("/docs/{name}", methods=_GET, include_in_schema=False)
async def docs_asset(request: Request, documents: _DocumentsDep, name: Annotated[str, Path(max_length=64)]) -> Response:
    if name not in _MEDIA_TYPES:
        raise HTTPException(404)
    asset = await documents.get(f"docs/{name}", lambda: _asset(name))
    return asset.response_to(request, {"Content-Type": _MEDIA_TYPES[name], **_FOR_A_DAY})


@router.api_route("/openapi.json", methods=_GET, include_in_schema=False)
async def openapi_json(request: Request, documents: _DocumentsDep) -> Response:
    return await _openapi(request, documents, "application/json", _as_json)


@router.get(
    "/openapi.yaml", tags=["status"], response_class=Response, responses={200: {"content": {"application/yaml": {}}}}
)
async def openapi_yaml(request: Request, documents: _DocumentsDep) -> Response:
    """The OpenAPI description as YAML."""
    return await _openapi(request, documents, "application/yaml", _as_yaml)


async def _openapi(
    request: Request, documents: DocumentCache, media_type: str, dump: Callable[[dict[str, Any]], str]
) -> Response:
    root_path = _root_path(request)

    def make() -> bytes:
        description = request.app.openapi()  # imports the marketplace, so not on the event loop
        if root_path:
            description = {**description, "servers": [{"url": root_path}]}
        return dump(description).encode()

    document = await documents.get(f"{media_type} {root_path}", make)
    return document.response_to(request, {"Content-Type": media_type, **_REVALIDATE})


def _root_path(request: Request) -> str:
    """The prefix that a proxy in front adds. It comes from the operator (`uvicorn --root-path`)."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def _as_json(description: dict[str, Any]) -> str:
    return json.dumps(description, ensure_ascii=False, separators=(",", ":"))


def _as_yaml(description: dict[str, Any]) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # in C, where PyYAML has it: a fifth of the time
    return str(yaml.dump(description, Dumper=dumper, sort_keys=False, allow_unicode=True))


def _asset(name: str) -> bytes:
    return (resources.files("fastapi_swagger") / "resources" / name).read_bytes()
