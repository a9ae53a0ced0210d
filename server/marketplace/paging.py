"""Lists that go on: newest first, the next page behind the last id shown."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter

from server.marketplace.answers import JSONText
from server.marketplace.fields import MOST_ID

Before = Annotated[
    int | None, Query(ge=1, le=MOST_ID, description="where the page before ended: see the header `Link`")
]
Limit = Annotated[int, Query(ge=1, le=100)]


def page_of(views: Sequence[object], request: Request, next_before: int | None) -> JSONResponse:
    """A bare array, with the way to the next page in the header `Link`."""
    response = JSONText(TypeAdapter(list[object]).dump_json(list(views)).decode())
    if next_before is not None:
        kept = [(name, value) for name, value in request.query_params.multi_items() if name != "before"]
        query = urlencode([*kept, ("before", next_before)])
        response.headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    return response
