"""POST /mcp: checks a request as every other API does, then the SDK answers it."""

from dataclasses import dataclass
from typing import Any, cast

from fastapi import APIRouter, Request, Response
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from tis.errors import BadRequest, Forbidden, ServiceError
from tis.http.error_handlers import MCP_PATH, json_rpc_error
from tis.mcp_server.endpoint_examples import MCP_BODY, MCP_RESPONSES
from tis.mcp_server.server import ToolServer

router = APIRouter(tags=["MCP"])
# What the tools take fits many times. The SDK parses on the event loop: 64 KiB take some milliseconds at worst.
MAX_BODY_BYTES = 64 * 1024
_CALL = "tools/call"


@router.post(MCP_PATH, response_model=None, responses=MCP_RESPONSES, openapi_extra=MCP_BODY)
async def answer_mcp_client(request: Request) -> Response:
    """Search, look up and compare products as tools of an MCP server (Streamable HTTP, stateless, JSON answers).

    The tools are `search_catalog`, `lookup_catalog` and `compare_products`; all of them only read. Without a token they
    see what everybody sees. With `Authorization: Bearer <access token>` of a user, distances are measured from the
    place of that user. With MCP_BUYING such a user also has `hold_product`, `release_hold` and `order_status`; the
    first two need a second call that confirms the first.
    """
    server = cast(ToolServer, request.app.state.mcp_server)
    _require_known_page(request, server)
    _require_json(request)
    access = await server.access()
    await access.authorize(request)
    body = await request.body()
    message = _read_message(body)
    if message.method == _CALL:
        try:
            await access.count_call(request)
        except ServiceError as error:
            return json_rpc_error(error, message.id)
    return await server.answer(body)


def _require_known_page(request: Request, server: ToolServer) -> None:
    """Against DNS rebinding. `Host` is checked for all APIs, by `HostMiddleware`."""
    own = {f"{scheme}://{host}" for scheme in ("http", "https") for host in request.headers.getlist("host")}
    if not all(origin in own or origin in server.origins for origin in request.headers.getlist("origin")):
        raise Forbidden("Web pages of this origin may not use the MCP server. If it is yours, add it to CORS_ORIGINS.")


def _require_json(request: Request) -> None:
    if _media_type(request.headers.get("content-type", "")) != "application/json":
        raise HTTPException(415, "Send a JSON-RPC message with Content-Type: application/json.")
    accepted = {_media_type(one) for one in request.headers.get("accept", "*/*").split(",")}
    if not accepted & {"application/json", "application/*", "*/*"}:
        raise HTTPException(406, "The answer is application/json: accept it.")


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


@dataclass(frozen=True)
class RpcMessage:
    method: str
    id: str | int | None  # None in a notification


def _read_message(body: bytes) -> RpcMessage:
    """What the SDK would refuse with the text of pydantic is refused here."""
    try:
        message: Any = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise BadRequest("The body is not valid JSON.", code="invalid_json") from None
    if isinstance(message, list):
        raise BadRequest("Batches are not supported: send one JSON-RPC message per request.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise BadRequest('The body must be a JSON-RPC message: {"jsonrpc": "2.0", "id": 1, "method": ...}.')
    # Responses of clients have no method; this server asks clients nothing.
    method, number, params = message.get("method"), message.get("id"), message.get("params")
    if not isinstance(method, str):
        raise BadRequest("A JSON-RPC message needs a method, which is a string.")
    if isinstance(number, bool) or not isinstance(number, str | int | None):
        raise BadRequest("The id of a JSON-RPC request is a string or an integer.")
    if not isinstance(params, dict | None):
        raise BadRequest("The params of a JSON-RPC message are an object.")
    return RpcMessage(method, number)
