"""The body of an import: a sheet as it is, or as the file of a form, which may have edits of its cells."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect

from tis.errors import BadRequest, TooLarge, Unprocessable
from tis.marketplace.context import ContextDep
from tis.marketplace.kit.fields import Id
from tis.marketplace.products.service import supplier_for_member

MAX_SHEET_BYTES = 10_000_000
_MAX_EDITS_BYTES = 1_000_000
_FORM_OVERHEAD_BYTES = _MAX_EDITS_BYTES + 10_000
_MAX_NAME_CHARS = 100
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OPENAPI_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {
                "schema": {"type": "string"},
                "example": "sku,name,price,stock_quantity,category\nASU-1,Laptop ASUS ROG,15.999.000,5,laptop\n",
            },
            XLSX: {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "edits": {
                            "type": "string",
                            "description": "JSON: cells that take the place of those in the file, at most 1,000",
                            "example": '[[7, 3, "349000"]]',
                        },
                    },
                }
            },
        },
    }
}


def _require_member(supplier_id: Id, context: ContextDep) -> None:
    """Before the body is read: nobody else makes the server hold megabytes."""
    with context.reading() as (session, principal):
        supplier_for_member(session, principal, supplier_id)


@dataclass(frozen=True)
class SentSheet:
    data: bytes
    edits: str = ""  # JSON

    @property
    def content(self) -> bytes:
        """For an `Idempotency-Key`: other edits are another request."""
        return self.data + self.edits.encode()


async def _read_sheet(request: Request, _: Annotated[None, Depends(_require_member)]) -> SentSheet:
    """A dependency, because routes run in threads and only the event loop can read the body."""
    try:
        if int(request.headers.get("content-length", "0")) > MAX_SHEET_BYTES + _FORM_OVERHEAD_BYTES:
            raise _too_large()
        is_form = request.headers.get("content-type", "").lower().startswith("multipart/form-data")
        sent = await _read_form(request) if is_form else SentSheet(await _read_body(request))
    except ClientDisconnect:
        raise BadRequest("The body ended before it was complete.") from None
    if len(sent.data) > MAX_SHEET_BYTES:
        raise _too_large()
    return sent


async def _read_body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_SHEET_BYTES:
            raise _too_large()
    return bytes(data)


async def _read_form(request: Request) -> SentSheet:
    try:
        async with request.form(max_files=2, max_fields=10, max_part_size=_MAX_EDITS_BYTES) as form:
            if others := form.keys() - {"file", "edits"}:
                # `dry_run` in the form would otherwise import the sheet.
                raise Unprocessable(
                    f"The form takes only `file` and `edits`, not `{min(others)[:_MAX_NAME_CHARS]}`: "
                    "options stand in the URL."
                )
            files = form.getlist("file")
            if not files or not isinstance(files[0], UploadFile):
                raise Unprocessable("The form has no file called `file`.")
            if len(files) > 1:
                raise Unprocessable("The form has more than one `file`.")
            edits = form.getlist("edits")
            if len(edits) > 1 or not all(isinstance(one, str) for one in edits):
                raise Unprocessable("`edits` of the form is one JSON text.")
            return SentSheet(await files[0].read(MAX_SHEET_BYTES + 1), "".join(map(str, edits)))
    except HTTPException as error:
        raise BadRequest(f"The form could not be read: {error.detail}") from None


def _too_large() -> TooLarge:
    return TooLarge(f"A sheet has at most {MAX_SHEET_BYTES:,} bytes.")


SheetDep = Annotated[SentSheet, Depends(_read_sheet)]
