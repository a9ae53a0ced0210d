"""JSON responses from views that Pydantic has serialized already, so that FastAPI does not do it twice."""

from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel


class JSONText(JSONResponse):
    """`content` is JSON text."""

    def render(self, content: Any) -> bytes:
        return str(content).encode()


class Message(BaseModel):
    detail: str


async def no_store(request: Request, response: Response) -> None:
    """For `dependencies=` of a route: no cache keeps its response, which has tokens or personal data.

    FastAPI adds the header where a route returns a view, `CheckedRoute` where it returns a response.
    """
    request.state.is_private = True
    response.headers["Cache-Control"] = "no-store"


def json_response(view: BaseModel) -> JSONResponse:
    return JSONText(view.model_dump_json())
