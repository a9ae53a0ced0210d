"""The pages, from / (chat) to /account/link and /pages/styles, the files that they load, and what crawlers read."""

from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, HTTPException, Path, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from tis.errors import ServiceError
from tis.http.client_address import client_address
from tis.http.json_compression import takes_gzip
from tis.pages.page_files import PageFiles, PageFilesDep
from tis.pages.shop_window import ShopWindow, UnknownHead, page_with
from tis.pages.web_files import WebFile

router = APIRouter(include_in_schema=False)

_GET = ["GET", "HEAD"]
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", **_NO_SNIFFING}


async def _shop_window(request: Request) -> ShopWindow:
    return cast(ShopWindow, request.app.state.shop_window)


ShopWindowDep = Annotated[ShopWindow, Depends(_shop_window)]


@router.api_route("/", methods=_GET)
async def chat(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "chat.html")


@router.api_route("/shop", methods=_GET)
async def shop(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "shop.html")


@router.api_route("/shop/products/{product_id:int}", methods=_GET)
async def product(pages: PageFilesDep, window: ShopWindowDep, product_id: int) -> Response:
    """The page of the shop, with a head that says to crawlers what the product is."""
    try:
        head = await run_in_threadpool(window.product_head, product_id)
    except ServiceError as error:
        if error.status < 500:
            raise
        # The page itself works again as soon as the database does.
        head = UnknownHead(error.status)
    document = await pages.page("shop.html", depth=2)
    headers = pages.headers if head.status == 200 else {**pages.headers, "X-Robots-Tag": "noindex"}
    return Response(page_with(document.body, head), status_code=head.status, headers=headers)


@router.api_route("/robots.txt", methods=_GET)
async def robots(window: ShopWindowDep) -> PlainTextResponse:
    return PlainTextResponse(window.robots())


@router.api_route("/sitemap.xml", methods=_GET)
async def sitemap(request: Request, window: ShopWindowDep) -> Response:
    await window.count_read(client_address(request.scope))
    return Response(await run_in_threadpool(window.sitemap), media_type="application/xml")


@router.api_route("/sitemap-{number:int}.xml", methods=_GET)
async def sitemap_part(request: Request, window: ShopWindowDep, number: int) -> StreamingResponse:
    await window.count_read(client_address(request.scope))
    part = await run_in_threadpool(window.sitemap_part, number)
    return StreamingResponse(part, media_type="application/xml")


@router.api_route("/desk", methods=_GET)
async def desk(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "desk.html")


@router.api_route("/admin", methods=_GET)
async def admin(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "admin.html")


@router.api_route("/card", methods=_GET)
async def card(request: Request, pages: PageFilesDep) -> Response:
    return await _page(request, pages, "card.html")


@router.api_route("/account/link", methods=_GET)
async def account_link(request: Request, pages: PageFilesDep) -> Response:
    """What a link in a mail of the marketplace opens; its secret stands behind the `#`."""
    return await _page(request, pages, "link.html", depth=1)


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
    if takes_gzip(request.headers) and file.compressed is not None:
        return Response(file.compressed, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.body, headers=headers)
