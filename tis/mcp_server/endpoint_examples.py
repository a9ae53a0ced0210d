"""What /docs shows of `POST /mcp`."""

from typing import Any

_REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "search_catalog", "arguments": {"text": "laptop gaming", "max_price": 16_000_000, "limit": 1}},
}
_RESULT = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {
        "content": [
            {
                "type": "text",
                "text": '{"understood":{"category":"laptop","text":"gaming","max_price":16000000},"products":['
                '{"id":1,"name":"Laptop Gaming Rinjani G15","price":11799000,"currency":"IDR",'
                '"stock":7,"shop":"Gudang Laptop Menteng","city":"Jakarta","rating":4.5}],"total":2}',
            }
        ],
        "isError": False,
    },
}


def _refusal(description: str, message: str) -> dict[str, Any]:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    return {"description": description, "content": {"application/json": {"example": error}}}


MCP_BODY: dict[str, Any] = {
    "security": [{"MarketplaceToken": []}],  # for the button "Authorize" of /docs
    "requestBody": {
        "required": True,
        "description": "One JSON-RPC message of at most 64 KiB",
        "content": {"application/json": {"schema": {"type": "object"}, "example": _REQUEST}},
    },
}
MCP_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The result of the request", "content": {"application/json": {"example": _RESULT}}},
    202: {"description": "A notification was received"},
    401: _refusal("The token is not valid", "The token is not valid."),
    429: _refusal("Too many searches", "Too many searches: at most 120 per minute. Try again in 17 s."),
}
