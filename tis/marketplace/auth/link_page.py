"""Links in mails open the page `/account/link`, which sends what stands behind the `#`: a redirect keeps that."""

from fastapi import APIRouter
from fastapi.responses import RedirectResponse

router = APIRouter(prefix="/auth", include_in_schema=False)  # mail programs add query parameters (`utm_source`)


@router.get("/link")
async def link_page() -> RedirectResponse:
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return RedirectResponse("../../account/link", 302, headers)
