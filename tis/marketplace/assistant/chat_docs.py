"""Examples of the assistant's routes, for /docs."""

from typing import Any

from tis.marketplace.kit.docs import Responses, json_example, responses

SEARCH_EXAMPLE = {"user_id": 1, "query": "Saya butuh laptop gaming di Jakarta, budget 12 juta"}
ANSWER_EXAMPLE: dict[str, Any] = {
    "session_id": "chat_2f1d0c9b8a7e6f5d4c3b2a1908f7e6d5",
    "response": "Saya menemukan 1 barang.\n1. Acer Nitro 5: Rp 11.499.000, stok 4, Nusa Komputer (Jakarta), 3,2 km.",
    "products_found": 1,
    "conversation_id": 1,
    "products": [
        {
            "id": 2,
            "name": "Acer Nitro 5",
            "price": 11_499_000,
            "currency": "IDR",
            "category": "laptop",
            "brand": "Acer",
            "condition": "new",
            "available_quantity": 4,
            "supplier_id": 1,
            "supplier_name": "Nusa Komputer",
            "city": "Jakarta",
            "rating": 4.5,
            "rating_count": 2,
            "distance_km": 3.2,
            "fulfilment": {"suggestion": "pickup", "reason": "Toko hanya 3,2 km dari Anda: bisa diambil sendiri."},
        }
    ],
    "citations": [{"product_id": 2, "name": "Acer Nitro 5", "url": "/api/products/2"}],
    "interpreted": {
        "query": {
            "intent": "search",
            "category": "laptop",
            "text": "gaming",
            "max_price": 12_000_000,
            "cities": ["Jakarta"],
        },
        "source": "rules",
        "explain": [{"field": "max_price", "rule": "budget", "words": "budget 12 juta"}],
    },
    "suggestions": ["Yang lebih murah", "Kalau di Bandung?"],
    "relaxations": [],
    "language": "id",
    "answered_by": "template",
    "notice": None,
}
_EVENTS = (
    'id: chat_2f1d:0\nevent: chat.search.created\ndata: {"type":"chat.search.created","session_id":"chat_2f1d",'
    '"conversation_id":1,"turn_id":"5b0c"}\n\nid: chat_2f1d:3\nevent: chat.search.text.delta\n'
    'data: {"type":"chat.search.text.delta","delta":"Saya menemukan 1 barang.\\n"}\n\n'
)
_STREAM = {"description": "Events", "content": {"text/event-stream": {"example": _EVENTS}}}
_ERRORS = {
    401: "This needs an access token.",
    403: "AI access not enabled for this user",
    404: "Conversation not found",
    409: "Session 'chat_2f1d' is answering another request. Wait for its end, cancel it, or use another id.",
    422: "This Idempotency-Key was used for another question.",
}

CHAT_RESPONSES: Responses = responses(ANSWER_EXAMPLE, _ERRORS)
CHAT_RESPONSES[200]["content"] |= _STREAM["content"]
STREAM_RESPONSES: Responses = {
    200: _STREAM,
    204: {"description": "The answer has ended, and you have all of it."},
    404: json_example("Unknown", {"detail": "There is no session 'chat_2f1d'."}),
    410: json_example("Gone", {"detail": "Session 'chat_2f1d' is over and no longer kept."}),
}
CANCEL_EXAMPLE = {"session_id": "chat_2f1d0c9b8a7e6f5d4c3b2a1908f7e6d5", "status": "cancelled"}
