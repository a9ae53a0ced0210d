"""/ (chat), /shop, /desk, /admin, /card, /status, /pages/styles and the files that they load."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from tis.pages.page_files import PageFiles, PageFilesDep
from tis.pages.web_files import WebFile

router = APIRouter(include_in_schema=False)

_GET = ["GET", "HEAD"]
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", **_NO_SNIFFING}


@router.api_route("/", methods=_GET)
async def chat(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "chat.html")


@router.api_route("/shop", methods=_GET)
async def shop(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "shop.html")


@router.api_route("/desk", methods=_GET)
async def desk(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "desk.html")


@router.api_route("/admin", methods=_GET)
async def admin(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "admin.html")


@router.api_route("/card", methods=_GET)
async def card(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "card.html")


@router.api_route("/status", methods=_GET)
async def status(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "status.html")


@router.api_route("/pages/styles", methods=_GET)
async def styles(request: Request, pages: PageFilesDep) -> Response:
    """The design system: for developers."""
    if not pages.in_development:
        raise HTTPException(404)
    return await _page(request, pages, "styles.html", depth=1)


@router.api_route("/pages/{digest}/{path:path}", methods=_GET)
async def asset(
    request: Request,
    pages: PageFilesDep,
    digest: Annotated[str, Path(max_length=64)],
    path: Annotated[str, Path(max_length=200)],
) -> Response:
    """A file of `web/`. A page of before an upgrade asks under an older digest: it gets what there is now."""
    files = await pages.files()
    file = files.get(path)
    if file is None or path.endswith(".html"):
        raise HTTPException(404)
    if not file.is_compressed:
        await run_in_threadpool(lambda: file.compressed)
    headers = _FOR_EVER if digest == files.digest else {"Cache-Control": "no-cache", **_NO_SNIFFING}
    return _file_response(request, file, headers)


async def _page(request: Request, pages: PageFiles, name: str, depth: int = 0) -> Response:
    document = await pages.page(name, depth)
    return document.response_to(request, pages.headers)


def _file_response(request: Request, file: WebFile, headers: dict[str, Any]) -> Response:
    headers = {**headers, "Content-Type": file.media_type, "Vary": "Accept-Encoding"}
    accepted = {name.split(";")[0].strip() for name in request.headers.get("accept-encoding", "").split(",")}
    if "gzip" in accepted and file.compressed is not None:
        return Response(file.compressed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.body, headers=headers)
