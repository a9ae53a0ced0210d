"""Optimistic locking: `ETag` and `If-Match`, or `version` in the body, which means the same."""

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Header, Response
from pydantic import Field

from tis.errors import PreconditionFailed
from tis.marketplace.kit.unknown_fields import StrictBody


@dataclass(frozen=True)
class IfMatch:
    """Accepts weak tags (proxies weaken tags), lists of tags, and `*` for any version."""

    header: str | None = None
    body_version: int | None = None

    def with_body_version(self, version: int | None) -> "IfMatch":
        return replace(self, body_version=version)

    def check(self, version: int) -> None:
        """Call it after the row is locked: only then is `version` still the current one when the row is written."""
        if self.body_version not in (None, version) or not self._matches_header(version):
            raise PreconditionFailed(f"It was changed meanwhile: it is version {version} now.")

    def _matches_header(self, version: int) -> bool:
        if self.header is None or self.header.strip() == "*":
            return True
        return str(version) in _TAG.findall(self.header)


_TAG = re.compile(r'"([^"]*)"')


class VersionedChange(StrictBody):
    """A body that changes only the fields it sends."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None

    def changes(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True, exclude={"version"})


def set_etag(response: Response, version: int) -> None:
    response.headers["ETag"] = f'"{version}"'


async def _read_if_match(
    if_match: Annotated[
        str | None, Header(max_length=1000, description="`ETag` of what you saw: 412 if it is not that any more")
    ] = None,
) -> IfMatch:
    return IfMatch(if_match)


IfMatchDep = Annotated[IfMatch, Depends(_read_if_match)]
