"""`ETag` and `If-Match`: nobody writes over what they have not seen, if they say what they have seen."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import Depends, Header
from fastapi.responses import JSONResponse

from server.errors import PreconditionFailed


class Versioned(Protocol):
    @property
    def version(self) -> int: ...
    def model_dump_json(self) -> str: ...


@dataclass(frozen=True)
class Precondition:
    """Weak tags and lists of tags are taken, too: proxies weaken tags, and `*` is anything that exists."""

    if_match: str | None = None

    def check(self, version: int) -> None:
        """After the row was locked: only then it is still this version when it is written."""
        if self.if_match is None or self.if_match.strip() == "*":
            return
        if str(version) not in _TAG.findall(self.if_match):
            raise PreconditionFailed(f"It was changed meanwhile: it is version {version} now.")


_TAG = re.compile(r'"([^"]*)"')


def tagged(view: Versioned) -> JSONResponse:
    response = JSONText(view.model_dump_json())
    response.headers["ETag"] = f'"{view.version}"'
    return response


class JSONText(JSONResponse):
    """JSON that is written already."""

    def render(self, content: Any) -> bytes:
        return str(content).encode()


async def _precondition(
    if_match: Annotated[
        str | None, Header(description="`ETag` of what you saw: 412 if it is not that any more")
    ] = None,
) -> Precondition:
    return Precondition(if_match)


PreconditionDep = Annotated[Precondition, Depends(_precondition)]
