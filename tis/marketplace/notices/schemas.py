"""The events of `/notices/stream`, and their example for /docs."""

from tis.marketplace.auth.schemas import TOKEN_REQUIRED
from tis.marketplace.kit.docs import Responses, json_example

_EXAMPLE = (
    'id: notices:41\nevent: connected\ndata: {"type":"connected"}\n\n'
    'id: notices:42\nevent: hold.accepted\ndata: {"type":"hold.accepted","reservation_id":'
    '"3f0e1c52-9c0b-4a5e-8f0c-0d1f6f2a7b11","product_id":7,"supplier_id":2,"quantity":1,"role":"buyer",'
    '"at":"2026-11-28T09:00:00Z"}\n\n'
)
STREAM_RESPONSES: Responses = {
    200: {
        "description": "OK",
        "content": {"text/event-stream": {"example": _EXAMPLE}},
    },
    400: json_example("Bad cursor", {"detail": "There is no notice 99 yet: the latest is 42."}),
    401: json_example("No token", {"detail": TOKEN_REQUIRED[401]}),
    410: json_example("Gone", {"detail": "Notices before 12 are no longer kept: read your reservations anew."}),
    429: json_example("Too many", {"detail": "Too many streams of notices of this account are open."}),
}
