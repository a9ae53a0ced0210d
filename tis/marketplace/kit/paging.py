"""Pages of lists: keyset paging, the `Link` header and `X-Total-Count`.

Two styles, both documented: newest first with `before=<last id>` (`page_response`), and oldest first with an opaque
`cursor` (`CursorPage`). The product search has its own cursor, which carries the state of its ranking.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import urlencode

from fastapi import Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from sqlalchemy import Select, false, func, null, select, tuple_
from sqlalchemy.orm import Session

from tis.marketplace.kit.cursor_key import CursorKey
from tis.marketplace.kit.fields import MAX_ID
from tis.marketplace.kit.responses import JSONText
from tis.marketplace.tables import Supplier, User

MAX_COUNTED = 1000  # more rows than these are not counted: the total is a lower bound then
BEFORE_DESCRIPTION = "where the page before ended: see the header `Link`"
Before = Annotated[int | None, Query(ge=1, le=MAX_ID, description=BEFORE_DESCRIPTION)]
Limit = Annotated[int, Query(ge=1, le=100)]
Row = TypeVar("Row")
TableRow = TypeVar("TableRow", User, Supplier)


def link_headers(request: Request, parameters: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """The next page has the same path with these query parameters."""
    return {"Link": f'<{request.url.path}?{urlencode(list(parameters))}>; rel="next"'}


def parameters_without(request: Request, *names: str) -> list[tuple[str, str]]:
    return [pair for pair in request.query_params.multi_items() if pair[0] not in names]


def total_headers(total: int, *, is_exact: bool = True) -> dict[str, str]:
    headers = {"X-Total-Count": str(total)}
    return headers if is_exact else {**headers, "X-Total-Count-Is": "lower-bound"}


def page_response(
    request: Request,
    rows: Sequence[Row],
    limit: int,
    view: Callable[[Row], object],
    id_of: Callable[[Row], object],
    total: int | None = None,
) -> JSONResponse:
    """A JSON array. The caller reads `limit + 1` rows: the last one only tells that there is a next page.

    It counts up to `MAX_COUNTED + 1` rows for `total`.
    """
    page = rows[:limit]
    response = JSONText(TypeAdapter(list[object]).dump_json([view(row) for row in page]).decode())
    if len(rows) > limit:
        parameters = [*parameters_without(request, "before"), ("before", str(id_of(page[-1])))]
        response.headers.update(link_headers(request, parameters))
    if total is not None:
        response.headers.update(total_headers(min(total, MAX_COUNTED), is_exact=total <= MAX_COUNTED))
    return response


class CursorPage:
    """A page by `cursor`, or by `skip` for old clients. A cursor is valid only with the filters it was made for."""

    def __init__(
        self,
        request: Request,
        response: Response,
        skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
        limit: Limit = 100,
        cursor: Annotated[str | None, Query(max_length=200, description="from the `Link` of the page before")] = None,
    ) -> None:
        self._request, self._headers = request, response.headers
        self._skip, self._limit, self._cursor = skip, limit, cursor

    def read(self, session: Session, table: type[TableRow], statement: Select[TableRow]) -> Sequence[TableRow]:
        """Reads the rows in the order of their ids and sets the headers of the response."""
        self._set_total(session, statement.with_only_columns(table.id))
        page = statement.order_by(table.id).limit(self._limit + 1)
        page = page.offset(self._skip) if self._cursor is None else page.where(table.id > self._last_id(self._cursor))
        rows = session.scalars(page).all()
        if len(rows) > self._limit:
            self._set_next(str(rows[self._limit - 1].id))
        return rows[: self._limit]

    def read_ranked(self, session: Session, statements: Sequence[Select[Any]]) -> list[int]:
        """The ids of a page, sorted by the columns of the statements, of which the last is the id.

        The last statement has all rows, each before it fewer, which come first: one that fills the page is enough.
        """
        after = None if self._cursor is None else self._last_row(self._cursor)
        rows: Sequence[Sequence[Any]] = []
        for statement in statements:
            columns = list(statement.subquery().c)
            page = select(*columns).order_by(*columns).limit(self._limit + 1)
            page = page.offset(self._skip) if after is None else page.where(tuple_(*columns) > tuple_(*after))
            rows = session.execute(page).all()
            if len(rows) > self._limit:
                break
        self._set_total(session, statements[-1] if statements else select(null()).where(false()))
        if len(rows) > self._limit:
            *values, last_id = rows[self._limit - 1]
            self._set_next(json.dumps([*map(float, values), last_id]))
        return [row[-1] for row in rows[: self._limit]]

    def _set_total(self, session: Session, statement: Select[Any]) -> None:
        counted = statement.order_by(None).limit(MAX_COUNTED + 1).subquery()
        total = session.scalar(select(func.count()).select_from(counted)) or 0
        self._headers.update(total_headers(min(total, MAX_COUNTED), is_exact=total <= MAX_COUNTED))

    def _set_next(self, position: str) -> None:
        cursor = self._key.encode(position.encode(), self._list_bytes())
        parameters = [*self._filters(), ("limit", self._limit), ("cursor", cursor)]
        self._headers.update(link_headers(self._request, parameters))

    def _last_id(self, cursor: str) -> int:
        return int(self._key.decode(cursor, self._list_bytes()))

    def _last_row(self, cursor: str) -> list[float]:
        values: list[float] = json.loads(self._key.decode(cursor, self._list_bytes()))
        return values

    def _list_bytes(self) -> bytes:
        return f"{self._request.url.path}?{urlencode(self._filters())}".encode()

    @property
    def _key(self) -> CursorKey:
        return cast(CursorKey, self._request.app.state.marketplace.market.search.cursor_key)

    def _filters(self) -> list[tuple[str, Any]]:
        return sorted(parameters_without(self._request, "skip", "limit", "cursor"))


CursorPageDep = Annotated[CursorPage, Depends()]
