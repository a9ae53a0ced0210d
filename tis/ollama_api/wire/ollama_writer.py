"""Writes the lines of an answer, as `/api/chat` and `/api/generate` have them, and folds the whole answer from them."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import Any, Literal

from tis.chat.parts import (
    ArgumentsDelta,
    CallEvent,
    Events,
    ReasoningDelta,
    RunPart,
    RunUsage,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from tis.chat.written_arguments import arguments_object
from tis.engine.answer import FinishReason, TokenLogprob
from tis.errors import GenerationFailed, ServiceError, error_with_code
from tis.http.error_handlers import error_body, internal_error
from tis.http.event_stream import Framing
from tis.json_bytes import json_bytes
from tis.ollama_api.wire.generate_context import TextMessage, context_of, max_answer_chars
from tis.openai_api.wire.chat_writer import logprob_entry
from tis.streaming.stores.store import Event

DIALECT = "ollama"
Kind = Literal["chat", "generate"]
_TEXT = "\0text\0"  # stands for the text while a line is made into a template


def ollama_writer_state(
    kind: Kind,
    model: str,
    *,
    received_at: int,
    loaded_at: int,
    hides_thinking: bool,
    conversation: Sequence[TextMessage] = (),
) -> dict[str, Any]:
    """Times are nanoseconds since 1970. `loaded_at`: when the model was there. `conversation`: the answer goes on with
    it, and has it in its `context`."""
    return {
        "kind": kind,
        "model": model,
        "received_at": received_at,
        "loaded_at": loaded_at,
        "prepared_at": time.time_ns(),
        "hides_thinking": hides_thinking,
        "conversation": list(conversation),
    }


class OllamaWriter:
    """All lines have the time of the request, and the last one durations between recorded times: another process
    makes the same lines."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._state = state
        self._is_chat = state["kind"] == "chat"
        self._hides_thinking: bool = state["hides_thinking"]
        self._head = {"model": state["model"], "created_at": rfc3339(state["received_at"] / 1e9)}
        self._conversation: Sequence[TextMessage] = state.get("conversation", ())
        self._answer: list[str] = []  # as far as it goes into the context
        self._context_room = max_answer_chars(self._conversation) if self._conversation else -1
        self._around_text: dict[type, list[bytes]] = {}
        self._call: ToolCallStart | None = None
        self._arguments: list[str] = []
        self._logprobs: list[TokenLogprob] = []  # of the call so far
        self._failure: dict[str, Any] | None = None

    def begun(self, num_choices: int) -> Events:
        return []

    def part(self, choice: int, part: RunPart) -> Events:
        match part:
            case TextDelta() | ReasoningDelta():
                return self._text(part)
            case ToolCallStart():
                self._call, self._arguments, self._logprobs = part, [], [*part.logprobs]
            case ArgumentsDelta(_, text):
                self._arguments.append(text)
                self._logprobs += part.logprobs
            case ToolCallEnd(_, is_cut):
                return self._end_of_call(is_cut)
        return []

    def call(self, event: CallEvent) -> Events:
        return []  # Ollama has no MCP servers

    def ended(self, finish: FinishReason, usage: RunUsage) -> Events:
        """A marker that ends a call comes behind it, and its logprobs come with the last line."""
        state = self._state
        first_token_at = usage.first_token_at or usage.ended_at
        last = {
            "done_reason": "stop" if finish == "cancelled" else finish,
            **({"cancelled": True} if finish == "cancelled" else {}),
            "total_duration": max(0, usage.ended_at - state["received_at"]),
            "load_duration": max(0, state["loaded_at"] - state["received_at"]),
            "prompt_eval_count": usage.num_prompt,
            "prompt_eval_duration": max(0, first_token_at - state["prepared_at"]),
            "eval_count": usage.num_made,
            "eval_duration": max(0, usage.ended_at - first_token_at),
            **self._context(),
        }
        logprobs, self._logprobs = self._logprobs, []
        return [self._line({}, logprobs, done=True, more=last)]

    def failed(self, error: Exception) -> bytes:
        refused = error if isinstance(error, ServiceError) else internal_error()
        known = error_body(refused)["error"]
        self._failure = {**known, "retry_after": refused.retry_after}
        return error_line(refused)

    def summary(self, usage: RunUsage) -> bytes:
        """What the line of an error does not say, so that the whole answer fails with the status of the error."""
        return json.dumps({"failure": self._failure} if self._failure else {}).encode()

    def _text(self, part: TextDelta | ReasoningDelta) -> Events:
        kind, text = type(part), part.text
        if kind is ReasoningDelta and self._hides_thinking:
            return []
        if self._context_room >= 0 and kind is TextDelta:
            self._context_room -= len(text)
            self._answer.append(text)
            if self._context_room < 0:
                self._answer.clear()
        if part.logprobs:
            return [self._line(_said(kind, text), part.logprobs)]
        return [self._text_line(kind, text)] if text else []

    def _text_line(self, kind: type, text: str) -> bytes:
        """All except the text is written once, as this is the path of every token."""
        around = self._around_text.get(kind)
        if around is None:
            line = self._line(_said(kind, _TEXT), ())
            around = self._around_text[kind] = line.split(encode_basestring(_TEXT).encode())
        return encode_basestring(text).encode().join(around)

    def _context(self) -> dict[str, Any]:
        if self._context_room < 0:
            return {}
        answer: TextMessage = {"role": "assistant", "content": "".join(self._answer)}
        context = context_of([*self._conversation, answer])
        return {} if context is None else {"context": context}

    def _end_of_call(self, is_cut: bool) -> Events:
        call, self._call = self._call, None
        if call is None or is_cut:
            return []
        function = {"index": call.index, "name": call.name, "arguments": _arguments("".join(self._arguments))}
        logprobs, self._logprobs = self._logprobs, []
        return [self._line({"tool_calls": [{"id": call.id, "function": function}]}, logprobs)]

    def _line(
        self,
        said: Mapping[str, Any],
        logprobs: Sequence[TokenLogprob],
        *,
        done: bool = False,
        more: Mapping[str, Any] | None = None,
    ) -> bytes:
        entries = {"logprobs": [logprob_entry(one) for one in logprobs]} if logprobs else {}
        if self._is_chat:
            told: dict[str, Any] = {"message": {"role": "assistant", "content": "", **said}}
        else:
            text, thinking = said.get("content", ""), said.get("thinking")
            told = {"response": text, **({"thinking": thinking} if thinking is not None else {})}
        return encoded({**self._head, **told, "done": done, **(more or {}), **entries})


class LineFraming:
    """A line of JSON per event: it has no ids and no heartbeats, as the clients parse every line."""

    def block(self, id_prefix: bytes, event: Event, retry: bytes) -> bytes:
        return event.data + b"\n"

    def error_block(self, error: ServiceError) -> bytes:
        return error_line(error) + b"\n"


LINES: Framing = LineFraming()


def error_line(error: ServiceError) -> bytes:
    return encoded({"error": error_body(error)["error"]["message"]})


def whole_answer(lines: Iterable[bytes], summary: bytes) -> bytes:
    """The answer as one object; a recorded error is raised as what it was."""
    texts: dict[str, list[str]] = {"content": [], "thinking": [], "response": []}
    calls: list[Any] = []
    logprobs: list[Any] = []
    last: dict[str, Any] = {}
    for data in lines:
        line = json.loads(data)
        if "error" in line:
            raise _recorded_error(line["error"], summary)
        message = line.pop("message", None)
        for name, found in texts.items():
            if text := (line if name == "response" or message is None else message).get(name):
                found.append(text)
        calls += (message or {}).get("tool_calls", ())
        logprobs += line.pop("logprobs", ())
        last = line
        if message is not None:
            last["message"] = message
    whole = {name: "".join(found) for name, found in texts.items()}
    told = {name: last.pop(name) for name in ("model", "created_at")}
    thinking = {"thinking": whole["thinking"]} if whole["thinking"] else {}
    if last.pop("message", None) is None:
        told |= {"response": whole["response"], **thinking}
    else:
        more = {"tool_calls": calls} if calls else {}
        told["message"] = {"role": "assistant", "content": whole["content"], **thinking, **more}
    entries = {"logprobs": logprobs} if logprobs else {}
    return encoded({**told, **{name: value for name, value in last.items() if name not in told}, **entries})


def encoded(value: Mapping[str, Any]) -> bytes:
    return json_bytes(value, allow_nan=True)  # a logarithm of 0 is infinite


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _said(kind: type, text: str) -> dict[str, Any]:
    return {"thinking": text} if kind is ReasoningDelta else {"content": text}


def _arguments(text: str) -> Any:
    given = arguments_object(text)
    return given if isinstance(given, dict) else {"arguments": text}


def _recorded_error(message: Any, summary: bytes) -> ServiceError:
    failure = json.loads(summary or b"{}").get("failure")
    if failure is None:  # the process that made it has gone before it could say more
        return GenerationFailed(message if isinstance(message, str) else str(message.get("message")))
    return error_with_code(
        failure["message"], failure["type"], failure["code"], failure["param"], failure["retry_after"]
    )
