"""Versions of what is changed: `ETag` on the way out, `If-Match` on the way in."""

from typing import Annotated

from fastapi import Header

from server.errors import PreconditionFailed

IfMatch = Annotated[str | None, Header(description="the `ETag` of what you looked at; if it has changed since: 412")]


def etag(version: int) -> str:
    return f'"{version}"'


def require_version(version: int, if_match: str | None, said: int | None = None) -> None:
    """`said` is the `version` of a body. Who says neither overwrites whatever is there."""
    tags = None if if_match is None else {tag.strip().removeprefix("W/").strip('"') for tag in if_match.split(",")}
    if (tags is not None and not tags & {"*", str(version)}) or (said is not None and said != version):
        raise PreconditionFailed(f"Somebody changed it in the meantime: it is at version {version} now.")
