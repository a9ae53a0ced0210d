"""POST /ktp-ocr/, /ktp-ocr/batch, /ktp-ocr/check: pictures or fields of identity cards in, checked fields out. Nothing
is stored."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from tis.cancellation import Cancelled, race_cancel
from tis.errors import ServiceError, Unprocessable
from tis.http.admission import ticket_of
from tis.http.dependencies import DOCUMENTED_KEY
from tis.http.error_handlers import detail_body, internal_error
from tis.http.multipart import FormPart
from tis.ktp.card_answer import Detail, Mask, answer_of, check_answer
from tis.ktp.errors import CardTimeout
from tis.ktp.lazy_ocr import Stage
from tis.ktp.reader import CardReader
from tis.ktp.schemas import (
    BATCH_FORM,
    BATCH_RESPONSES,
    CARD_FORM,
    CARD_RESPONSES,
    CHECK_RESPONSES,
    GIVEN_EXAMPLE,
    GivenCard,
)
from tis.ktp.uploads import read_pictures
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id

router = APIRouter(prefix="/ktp-ocr", tags=["KTP"], dependencies=[DOCUMENTED_KEY])

T = TypeVar("T")
MAX_CHECK_BYTES = 64 * 1024  # of a body with fields: the longest values, each letter of them escaped
_NOT_STORED = {"Cache-Control": "no-store"}
_CLIENT_CLOSED_REQUEST = 499
_EVENT_STREAM = "text/event-stream"
_HEARTBEAT_SECONDS = 15.0


async def _reader(request: Request) -> CardReader:
    return cast(CardReader, request.app.state.ktp)


ReaderDep = Annotated[CardReader, Depends(_reader)]
DetailQuery = Annotated[
    Detail, Query(description="`basic`: the eleven fields alone; `full`: also what each reader read")
]
MaskQuery = Annotated[Mask, Query(description="`nik`: of the NIK only the first six and the last four digits")]


@router.post("", response_model=None, include_in_schema=False)
@router.post("/", response_model=None, responses=CARD_RESPONSES, openapi_extra=CARD_FORM)
async def read_card(
    request: Request, reader: ReaderDep, detail: DetailQuery = None, mask: MaskQuery = None
) -> Response:
    """Read an Indonesian identity card (KTP): its fields, how sure each is, where it stands, and what the checks say.

    Nothing of the card is stored or logged. With `Accept: text/event-stream` the answer is a stream: events `stage`
    (`found`, `rectified`, `read`, `checked`), then `result` or `error`.
    """
    _refuse_unknown_parameters(request, "detail", "mask")
    [picture] = await read_pictures(request, ("image",), max_pictures=1, max_bytes=reader.max_bytes)
    job = _CardJob(reader, _owner(request), detail, mask)
    if _EVENT_STREAM in request.headers.get("accept", ""):
        headers = {**_NOT_STORED, "X-Accel-Buffering": "no"}
        return StreamingResponse(job.events(picture), media_type=_EVENT_STREAM, headers=headers)
    return await _unless_gone(request, job.answer(picture, "image"))


@router.post("/batch", response_model=None, responses=BATCH_RESPONSES, openapi_extra=BATCH_FORM)
async def read_cards(
    request: Request, reader: ReaderDep, detail: DetailQuery = None, mask: MaskQuery = None
) -> Response:
    """Read several cards. Results have the order of the pictures; one that fails does not fail the others."""
    _refuse_unknown_parameters(request, "detail", "mask")
    pictures = await read_pictures(
        request, ("images[]", "images"), max_pictures=reader.limits.max_batch, max_bytes=reader.max_bytes
    )
    job = _CardJob(reader, _owner(request), detail, mask)
    return await _unless_gone(request, job.batch(pictures))


@router.post("/check", response_model=None, responses=CHECK_RESPONSES)
async def check_fields(
    request: Request,
    reader: ReaderDep,
    card: Annotated[GivenCard, Body(openapi_examples={"a doubtful date": {"value": GIVEN_EXAMPLE}})],
    mask: MaskQuery = None,
) -> Response:
    """Check the fields of a card without a picture, such as after a correction: what the reader's own checks say.

    Fields are those of the answer of `POST /ktp-ocr/`; all are optional. Given values count as certain, so no digit of
    a NIK is repaired. Nothing is stored or logged.
    """
    _refuse_unknown_parameters(request, "mask")
    ticket_of(request).answer()
    return JSONResponse(check_answer(await reader.check(card.values()), mask), headers=_NOT_STORED)


class _CardJob:
    """The pictures of one request."""

    def __init__(self, reader: CardReader, owner: str, detail: Detail, mask: Mask) -> None:
        self._reader, self._owner, self._detail, self._mask = reader, owner, detail, mask

    async def answer(self, picture: FormPart, field: str) -> dict[str, Any]:
        return await self._answer(picture, field, asyncio.Queue())

    async def events(self, picture: FormPart) -> AsyncIterator[str]:
        stages: asyncio.Queue[Stage | None] = asyncio.Queue()  # four at most, and the end
        working = asyncio.create_task(self._answer(picture, "image", stages))
        working.add_done_callback(lambda _: stages.put_nowait(None))
        try:
            while (stage := await _next(stages)) is not None:
                yield _event("stage", {"stage": stage}) if stage else ": waiting\n\n"
            yield _event("result", working.result())
        except ServiceError as error:
            yield _event("error", {"status": error.status, **detail_body(error)})
        except Exception as fault:  # the last place that can tell the client
            log_exception("unhandled fault", fault, current_request_id())
            failure = internal_error()
            yield _event("error", {"status": failure.status, **detail_body(failure)})
        finally:
            working.cancel()

    async def batch(self, pictures: list[FormPart]) -> dict[str, Any]:
        # Few at a time: the others keep their files, which are smaller than their pixels.
        slots = asyncio.Semaphore(self._reader.limits.num_workers + 1)
        tasks = [asyncio.create_task(self._item(index, one, slots)) for index, one in enumerate(pictures)]
        try:
            await asyncio.wait(tasks, timeout=self._reader.limits.batch_seconds)
            late = CardTimeout("The batch took longer than KTP_BATCH_TIMEOUT_SECONDS before this picture was read.")
            results = [task.result() if task.done() else _failed(index, late) for index, task in enumerate(tasks)]
            return {"results": results}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _item(self, index: int, picture: FormPart, slots: asyncio.Semaphore) -> dict[str, Any]:
        try:
            async with slots:
                return {"index": index, "ok": True, "data": await self.answer(picture, f"images[{index}]")}
        except ServiceError as error:
            return _failed(index, error)
        except Exception as fault:  # boundary of a picture: the others go on
            log_exception("a card of a batch failed", fault, current_request_id())
            return _failed(index, internal_error())
        finally:
            picture.take()

    async def _answer(self, picture: FormPart, field: str, stages: "asyncio.Queue[Stage | None]") -> dict[str, Any]:
        result = await self._reader.read(picture, self._owner, field, stages.put_nowait)
        return answer_of(result, self._detail, self._mask)


def _owner(request: Request) -> str:
    """The pictures have tickets of their own; while they wait, other requests are received and prepared."""
    ticket = ticket_of(request)
    ticket.answer()
    return ticket.owner


def _failed(index: int, error: ServiceError) -> dict[str, Any]:
    return {"index": index, "ok": False, "error": detail_body(error)["detail"]}


def _refuse_unknown_parameters(request: Request, *known: str) -> None:
    """A misspelled `mask` must not show a NIK."""
    for name in request.query_params:
        if name not in known:
            message = f"There is no parameter {name[:40]!r}, only {' and '.join(f'`{one}`' for one in known)}."
            raise Unprocessable(message, param=name[:40], code="invalid_parameter")


async def _unless_gone(request: Request, work: Coroutine[Any, Any, dict[str, Any]]) -> Response:
    try:
        return JSONResponse(await race_cancel(_disconnected(request), work), headers=_NOT_STORED)
    except Cancelled:
        return Response(status_code=_CLIENT_CLOSED_REQUEST)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _next(stages: "asyncio.Queue[Stage | None]") -> Stage | str | None:
    """ "" where nothing happened for a while, so that proxies keep the connection."""
    try:
        async with asyncio.timeout(_HEARTBEAT_SECONDS):
            return await stages.get()
    except TimeoutError:
        return ""


def _event(kind: str, data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
