"""The feed of goods for merchant centres and agents: whole, or what changed since a cursor."""

import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from tis.http.client_address import client_address
from tis.http.json_compression import takes_gzip
from tis.marketplace.context import ContextDep, MarketServices, RequestContext
from tis.marketplace.feeds.feed_entries import BATCH_SIZE, FeedEntries
from tis.marketplace.feeds.feed_formats import CsvFeed, FeedFormat, JsonFeed, XmlFeed
from tis.marketplace.feeds.feed_log import FeedMoment, changed_batches, decode_cursor, encode_cursor, read_moment
from tis.marketplace.feeds.schemas import CSV_FEED, JSON_FEED, XML_FEED
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.kit.unknown_fields import CheckedRoute
from tis.marketplace.rates import limited

router = APIRouter(tags=["feeds"], route_class=CheckedRoute)
_MAX_SECONDS = 3600  # of an answer, however slowly it is read
_GZIP, _LEVEL = 31, 6
_COMMON = {"Vary": "Accept-Encoding", "Cache-Control": "no-cache"}

Since = Annotated[
    str | None, Query(max_length=200, description="what changed since the answer that had this `X-Feed-Cursor`")
]


@router.get("/feed.csv", response_class=StreamingResponse, responses=CSV_FEED, dependencies=[limited("feeds")])
async def csv_feed(request: Request, context: ContextDep, since: Since = None) -> Response:
    """Read all goods as CSV, in the fields of Google Merchant Center and of OpenAI's product feed.

    With `since`, what changed since an earlier answer; a row with `is_eligible_search` false says what went away.
    """
    return await _feed(request, context, "csv", CsvFeed(), since)


@router.get("/feed.json", response_class=StreamingResponse, responses=JSON_FEED, dependencies=[limited("feeds")])
async def json_feed(request: Request, context: ContextDep, since: Since = None) -> Response:
    """Read all goods as JSON, as the Feed API of the Agentic Commerce Protocol has products.

    With `since`, what changed since an earlier answer; what went away has the availability `discontinued`.
    """
    return await _feed(request, context, "json", JsonFeed(), since)


@router.get("/feed.xml", response_class=StreamingResponse, responses=XML_FEED, dependencies=[limited("feeds")])
async def xml_feed(request: Request, context: ContextDep, since: Since = None) -> Response:
    """Read all goods as RSS 2.0 with the fields of Google Merchant Center.

    With `since`, what changed since an earlier answer; what went away is an `at:deleted-entry`.
    """
    return await _feed(request, context, "xml", XmlFeed(context.market.rules.public_url), since)


async def _feed(request: Request, context: RequestContext, kind: str, form: FeedFormat, since: str | None) -> Response:
    market = context.market
    await in_thread(_authenticate, context)
    moment = await in_thread(read_moment, market)
    key = market.search.cursor_key
    after = None if since is None else decode_cursor(key, since, moment)
    last_modified = moment.last_modified if after is None else None
    headers = {**_COMMON, "ETag": moment.tag(f"{kind} {after}"), "X-Feed-Cursor": encode_cursor(key, moment)}
    if last_modified:
        headers["Last-Modified"] = format_datetime(last_modified, usegmt=True)
    if _is_known(request, headers["ETag"], last_modified):
        return Response(status_code=304, headers=headers)
    caller = client_address(request.scope)
    market.feed_slots.require_room(caller)
    parts = _parts(market, moment, form, after)
    if takes_gzip(request.headers):
        parts, headers = _compressed(parts), {**headers, "Content-Encoding": "gzip"}
    return StreamingResponse(_body(market, caller, parts), media_type=form.media_type, headers=headers)


def _authenticate(context: RequestContext) -> None:
    """A bad token is a 401 here, too."""
    with context.reading():
        pass


async def _body(market: MarketServices, caller: str, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    ends_at = time.monotonic() + _MAX_SECONDS
    with market.feed_slots.slot(caller):
        while (part := await in_thread(next, parts, None)) is not None:
            if time.monotonic() > ends_at:
                raise TimeoutError("a feed was read too slowly")  # ends the connection: the reader sees it is cut
            if part:
                yield part


def _parts(market: MarketServices, moment: FeedMoment, form: FeedFormat, after: int | None) -> Iterator[bytes]:
    entries = FeedEntries(market)
    yield form.begin().encode()
    if after is None:
        for batch in entries.all_batches():
            yield form.write(batch).encode()
    else:
        for ids in changed_batches(market, after, moment.latest, BATCH_SIZE):
            found = entries.batch(ids)
            yield form.write(found.values(), [one for one in ids if one not in found]).encode()
    yield form.end().encode()


def _compressed(parts: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()


def _is_known(request: Request, etag: str, last_modified: datetime | None) -> bool:
    """As RFC 9110 has it: a tag, if there is one, decides alone."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        return "*" in tags or etag in [tag.strip() for tag in tags.split(",")]
    since = request.headers.get("if-modified-since")
    if since is None or last_modified is None:
        return False
    with suppress(ValueError, TypeError):
        return last_modified.replace(microsecond=0) <= parsedate_to_datetime(since)
    return False
