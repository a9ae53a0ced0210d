"""Writes the events of one message."""

import secrets
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, Literal

from tis.anthropic_api.wire.thinking_signature import ThinkingSignature
from tis.chat.parts import (
    ArgumentsDelta,
    CallBegun,
    CallEnded,
    CallEvent,
    ChoiceEnd,
    Events,
    ReasoningDelta,
    RoundEnd,
    RunPart,
    RunUsage,
    ServerCall,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from tis.chat.written_arguments import arguments_object
from tis.engine.answer import FinishReason
from tis.errors import ServiceError
from tis.http.anthropic_errors import anthropic_error
from tis.http.error_handlers import internal_error
from tis.json_bytes import json_bytes

DIALECT = "message"
BlockKind = Literal["text", "thinking", "tool_use"]
_DELTAS: Mapping[BlockKind, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


def message_writer_state(
    model: str, *, num_input: int, stop_sequences: Sequence[str], shows_thinking: bool
) -> dict[str, Any]:
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "model": model,
        "num_input": num_input,
        "stop_sequences": list(stop_sequences),
        "shows_thinking": shows_thinking,
    }


class MessageWriter:
    def __init__(self, state: Mapping[str, Any]) -> None:
        self._id: str = state["id"]
        self._model: str = state["model"]
        self._num_input: int = state["num_input"]
        self._stop_sequences = frozenset(state["stop_sequences"])
        self._shows_thinking: bool = state["shows_thinking"]
        self._index = -1  # of the last block
        self._open: BlockKind | None = None  # the kind of the last block, while it grows
        self._before_text = b""  # of the deltas of this block
        self._signature = ThinkingSignature(carries_text=False)
        self._announced: set[int] = set()  # calls of MCP servers
        self._end: ChoiceEnd | None = None

    def begun(self, num_choices: int) -> Events:
        message: dict[str, Any] = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": message_usage(RunUsage(num_prompt=self._num_input)),
        }
        return [_event("message_start", message=message)]

    def part(self, choice: int, part: RunPart) -> Events:
        match part:
            case TextDelta(text) if text:
                return self._grow("text", text)
            case ReasoningDelta(text) if text:
                return self._grow("thinking", text)
            case ToolCallStart(_, call_id, name):
                block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
                return [*self._close(), *self._begin("tool_use", block)]
            case ArgumentsDelta(_, text) if text and self._open == "tool_use":
                return [self._delta(text)]
            case ToolCallEnd() | RoundEnd():
                return self._close()
            case ChoiceEnd():
                self._end = part
                return self._close()
        return []

    def call(self, event: CallEvent) -> Events:
        """A call stands before its result: it is shown when it is made, with the record that it begins."""
        match event:
            case CallBegun(call):
                return self._server_call(call)
            case CallEnded(call):
                announced = [] if call.number in self._announced else self._server_call(call)
                return [*announced, *self._whole_block(_result_block(call))]
        return []

    def ended(self, finish: FinishReason, usage: RunUsage) -> Events:
        reason, sequence = self._stop_reason(finish)
        delta: dict[str, Any] = {"stop_reason": reason, "stop_sequence": sequence}
        if finish == "cancelled":
            # Anthropic has no word for it: clients see an ordinary end, and whoever looks sees why.
            delta["cancelled"] = True
        more = {"context": self._end.context} if self._end and self._end.context else {}
        return [_event("message_delta", delta=delta, usage=message_usage(usage), **more), _event("message_stop")]

    def failed(self, error: Exception) -> bytes:
        return error_event_of(error)

    def summary(self, usage: RunUsage) -> bytes:
        return b"{}"  # all is in the events

    def _grow(self, kind: BlockKind, text: str) -> Events:
        events: list[bytes] = []
        if self._open != kind:
            empty = {"thinking": "", "signature": ""} if kind == "thinking" else {"text": ""}
            events += [*self._close(), *self._begin(kind, {"type": kind, **empty})]
            if kind == "thinking":
                self._signature = ThinkingSignature(carries_text=not self._shows_thinking)
        if kind == "thinking":
            self._signature.add(text)
            if not self._shows_thinking:
                return events
        return [*events, self._delta(text)]

    def _begin(self, kind: BlockKind, block: Mapping[str, Any]) -> Events:
        self._index += 1
        self._open = kind
        delta, name = _DELTAS[kind]
        self._before_text = b'{"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":' % (
            self._index,
            delta.encode(),
            name.encode(),
        )
        return [_event("content_block_start", index=self._index, content_block=block)]

    def _delta(self, text: str) -> bytes:
        """By hand, as this is the path of every token."""
        return b"%b%b}}" % (self._before_text, encode_basestring(text).encode())

    def _close(self) -> Events:
        kind, self._open = self._open, None
        if kind is None:
            return []
        events = [_event("content_block_stop", index=self._index)]
        if kind == "thinking":
            signature = {"type": "signature_delta", "signature": self._signature.whole()}
            events.insert(0, _event("content_block_delta", index=self._index, delta=signature))
        return events

    def _whole_block(self, block: Mapping[str, Any]) -> Events:
        before = self._close()
        self._index += 1
        begin = _event("content_block_start", index=self._index, content_block=block)
        return [*before, begin, _event("content_block_stop", index=self._index)]

    def _server_call(self, call: ServerCall) -> Events:
        self._announced.add(call.number)
        given = arguments_object(call.arguments)
        block = {
            "type": "mcp_tool_use",
            "id": call.id,
            "name": call.name,
            "server_name": call.label,
            "input": given if isinstance(given, dict) else {},
        }
        return self._whole_block(block)

    def _stop_reason(self, finish: FinishReason) -> tuple[str, str | None]:
        if finish == "length":
            return "max_tokens", None
        if finish == "content_filter":
            return "refusal", None
        if self._end and finish == "stop":
            if self._end.has_calls:
                return "tool_use", None
            if self._end.stop in self._stop_sequences:
                return "stop_sequence", self._end.stop
        return "end_turn", None


def _result_block(call: ServerCall) -> dict[str, Any]:
    text = call.output if call.error is None else _error_text(call.error)
    content = [{"type": "text", "text": text or ""}]
    return {
        "type": "mcp_tool_result",
        "tool_use_id": call.id,
        "is_error": call.error is not None,
        "content": content,
    }


def message_usage(usage: RunUsage) -> dict[str, Any]:
    """`input_tokens` are those that were not in the cache."""
    return {
        "input_tokens": usage.num_prompt - usage.num_cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.num_cached,
        "output_tokens": usage.num_made,
        "output_tokens_details": {"thinking_tokens": usage.num_reasoning},
        "service_tier": "standard",
    }


def error_event_of(error: Exception) -> bytes:
    known = error if isinstance(error, ServiceError) else internal_error()
    more = {} if known.retry_after is None else {"retry_after": known.retry_after}
    return _event("error", error=anthropic_error(known), **more)


def _error_text(error: Mapping[str, Any]) -> str:
    content = error.get("content")
    texts = [str(one.get("text", "")) for one in content] if isinstance(content, list) else []
    return "\n".join(texts) if texts else str(error.get("message", ""))


def _event(kind: str, **fields: Any) -> bytes:
    return json_bytes({"type": kind, **fields})
