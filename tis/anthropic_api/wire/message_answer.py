"""How a client gets a recorded message: as events, or as the one object that is folded from them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import from_json

from tis.anthropic_api.wire.message_writer import error_event_of
from tis.chat.written_arguments import arguments_object
from tis.errors import BadRequest, QueueFull, ServiceError, error_with_code
from tis.json_bytes import json_bytes
from tis.openai_api.wire.sse import ResponseFraming

PING = b'event: ping\ndata: {"type":"ping"}\n\n'


class MessageFraming(ResponseFraming):
    def error_block(self, error: ServiceError) -> bytes:
        return b"event: error\ndata: %s\n\n" % error_event_of(error)


def fold_message(events: Iterable[bytes]) -> dict[str, Any]:
    """Raises a recorded error as what it was."""
    message: dict[str, Any] = {}
    pieces: dict[tuple[int, str], list[str]] = {}  # of each block, by the field that they are of
    for data in events:
        event = json.loads(data)
        match event.get("type"):
            case "message_start":
                message = event["message"]
            case "content_block_start":
                message["content"].append(event["content_block"])
            case "content_block_delta":
                name, piece = _grown(event["delta"])
                pieces.setdefault((event["index"], name), []).append(piece)
            case "message_delta":
                message |= event["delta"]
                message["usage"] = event["usage"]
                message |= {"context": event["context"]} if "context" in event else {}
            case "content_block_stop" | "message_stop":
                pass
            case _:
                raise _recorded_error(event)
    for (index, name), some in pieces.items():
        text = "".join(some)
        message["content"][index][name] = _input(text) if name == "input" else text
    return message


def _grown(delta: Mapping[str, Any]) -> tuple[str, str]:
    """The field of a block that a delta is of, and what it adds."""
    [(name, piece)] = [(name, value) for name, value in delta.items() if name != "type"]
    return "input" if name == "partial_json" else name, piece


def _input(text: str) -> dict[str, Any]:
    """An answer that was cut may end within its JSON: what there is of it, as Anthropic's clients read it."""
    given = arguments_object(text)
    if isinstance(given, dict):
        return given
    try:
        found = from_json(text, allow_partial=True)
        json_bytes(found)  # fails if a number is infinite
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _recorded_error(event: Mapping[str, Any]) -> ServiceError:
    error, retry_after = event["error"], event.get("retry_after")
    details = error.get("details") or error  # of a process that could not read the answer, the error is a chat's
    code, param = details.get("error_code", error.get("code")), details.get("param")
    kind = error["type"]
    if kind in ("api_error", "overloaded_error", "timeout_error"):
        kind = ServiceError.type
    elif kind != QueueFull.type and kind != ServiceError.type:
        kind = BadRequest.type
    return error_with_code(error["message"], kind, code, param, retry_after)
