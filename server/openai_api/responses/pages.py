"""A part of a list of items, as OpenAI's clients page through them."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Query

from server.errors import BadRequest
from server.openai_api.responses.records import Found

Limit = Annotated[int, Query(ge=1, le=100, description="items of a page")]
Order = Annotated[Literal["asc", "desc"], Query(description="oldest or newest first")]
After = Annotated[str | None, Query(description="only items behind this one, in that order")]


def page(found: Sequence[Found], limit: int, order: str, after: str | None) -> tuple[list[Found], bool]:
    """And whether there is more."""
    ordered = list(found) if order == "asc" else list(reversed(found))
    if after:
        places = [place for place, (item, _) in enumerate(ordered) if item["id"] == after]
        if not places:
            raise BadRequest(f"There is no item {after[:80]!r} here.", param="after")
        ordered = ordered[places[-1] + 1 :]
    return ordered[:limit], len(ordered) > limit
