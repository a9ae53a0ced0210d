"""What a call came to when it came to nothing, in the shapes that OpenAI has for it."""

from typing import Any

from server.mcp.server import VisitFailed

_OUR_NUMBER = -32000  # of JSON-RPC: for whoever implements it
Error = dict[str, Any]

INTERRUPTED = "The server was restarted during this call. Nobody knows whether it was carried out; it is not repeated."
NOT_NOTED = "The call was not made: it could not be written down that it begins, and it must not be made twice."
CANCELLED = "The response was cancelled during this call."
NO_OBJECT = "The call was not made: its arguments are no JSON object."
TOO_MANY = "The call was not made: this response may make no more calls."


def ours(message: str) -> Error:
    return {"type": "mcp_protocol_error", "code": _OUR_NUMBER, "message": message}


def of_tool(text: str) -> Error:
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def of_visit(failed: VisitFailed) -> Error:
    kind = "http_error" if failed.kind == "http" else "mcp_protocol_error"
    return {"type": kind, "code": failed.number, "message": failed.message}
