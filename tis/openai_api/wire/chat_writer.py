"""Writes the chunks of a streamed chat answer, and folds the whole answer from them."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

from tis.chat.parts import (
    ArgumentsDelta,
    CallBegun,
    CallDropped,
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
from tis.engine.answer import FinishReason, TokenLogprob
from tis.errors import ServiceError, error_with_code
from tis.http.error_handlers import error_body, internal_error
from tis.openai_api.wire.citations import ReturnedUrls
from tis.openai_api.wire.custom_tools import CustomInput

DIALECT = "chat"
DONE = b"[DONE]"
_TEXT = "\0text\0"  # stands for the text while a chunk is made into a template; no name of a model has it


def chat_writer_state(
    model: str,
    *,
    with_usage: bool,
    may_call: bool = False,
    hides_reasoning: bool = False,
    custom_tools: Sequence[str] = (),
    has_old_shape: bool = False,
    cites: bool = False,
) -> dict[str, Any]:
    return {
        "model": model,
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "with_usage": with_usage,
        "may_call": may_call,
        "hides_reasoning": hides_reasoning,
        "custom_tools": list(custom_tools),
        "has_old_shape": has_old_shape,
        "cites": cites,
    }


class ChatWriter:
    def __init__(self, state: Mapping[str, Any]) -> None:
        self._head = {
            "id": state["id"],
            "object": "chat.completion.chunk",
            "created": state["created"],
            "model": state["model"],
            "system_fingerprint": None,
        }
        self._with_usage: bool = state["with_usage"]  # then every chunk has the field, null in all but the last
        self._may_call: bool = state["may_call"]  # then an answer has no content until there is some
        self._hides_reasoning: bool = state["hides_reasoning"]
        self._custom_tools = frozenset(state.get("custom_tools", ()))
        self._has_old_shape: bool = state.get("has_old_shape", False)  # `function_call`, for a request with `functions`
        self._inputs: dict[tuple[int, int], CustomInput] = {}  # of calls of custom tools, by choice and index
        self._around_text: dict[tuple[int, type], list[bytes]] = {}
        self._context: Mapping[str, Any] | None = None
        # The kinds of text of earlier rounds, and of this one: what is written in two rounds is no single sentence.
        self._kinds_before: set[type] = set()
        self._kinds: set[type] = set()
        self._announced: set[int] = set()  # calls of MCP servers
        self._returned_urls = ReturnedUrls() if state.get("cites") else None
        self._content: list[str] = []  # where URLs are cited

    def begun(self, num_choices: int) -> Events:
        delta = {"role": "assistant", "content": None if self._may_call else ""}
        return [self._chunk(choice, delta) for choice in range(num_choices)]

    def part(self, choice: int, part: RunPart) -> Events:
        match part:
            case TextDelta() | ReasoningDelta():
                return self._text(choice, part)
            case ToolCallStart(index, call_id, name):
                return [self._chunk(choice, self._begun_call(choice, index, call_id, name), part.logprobs)]
            case ArgumentsDelta(index, text):
                found = self._inputs.get((choice, index))
                text = found.add(text) if found else text
                if text or part.logprobs:
                    return [self._chunk(choice, self._more_of_call(choice, index, text), part.logprobs)]
            case ToolCallEnd(index) if rest := self._rest_of_input(choice, index):
                return [self._chunk(choice, self._more_of_call(choice, index, rest))]
            case ChoiceEnd():
                self._context = part.context
                return [*self._citations(choice), self._end(choice, part)]
            case RoundEnd():
                self._kinds_before |= self._kinds
                self._kinds = set()
        return []

    def call(self, event: CallEvent) -> Events:
        match event:
            case CallBegun(call):
                return [self._mcp_call(call, self._announced_fields(call))]
            case CallEnded(call):
                if self._returned_urls:
                    self._returned_urls.add(call.output)
                outcome = {"error": call.error} if call.error else {"output": call.output}
                announced = (
                    [] if call.number in self._announced else [self._mcp_call(call, self._announced_fields(call))]
                )
                status = "failed" if call.error else "completed"
                return [*announced, self._mcp_call(call, {"status": status, **outcome})]
            case CallDropped(call):
                return [self._mcp_call(call, {**self._announced_fields(call), "status": "incomplete"})]
        return []

    def ended(self, finish: FinishReason, usage: RunUsage) -> Events:
        return [*([self._usage_chunk(usage)] if self._with_usage else []), DONE]

    def failed(self, error: Exception) -> bytes:
        return error_event(error)

    def summary(self, usage: RunUsage) -> bytes:
        """What the folded answer has beside its choices, and for `UsageView` the usage that no event has."""
        usage_chunk = None if self._with_usage else self._usage_chunk(usage).decode()
        summary = {"usage": chat_usage(usage), "usage_chunk": usage_chunk}
        return json.dumps({**summary, **({"context": self._context} if self._context else {})}).encode()

    def _text(self, choice: int, part: TextDelta | ReasoningDelta) -> Events:
        kind, text = type(part), part.text
        if kind is ReasoningDelta and self._hides_reasoning:
            return []
        if kind not in self._kinds and text:
            self._kinds.add(kind)
            if kind in self._kinds_before:
                text = f"\n\n{text}"
        if self._returned_urls and kind is TextDelta:
            self._content.append(text)
        if part.logprobs:
            return [self._chunk(choice, _text_delta(kind, text), part.logprobs)]
        return [self._text_chunk(choice, kind, text)] if text else []

    def _text_chunk(self, choice: int, kind: type, text: str) -> bytes:
        """What `_chunk` makes of it; but all except the text is written once, as this is the path of every token."""
        around = self._around_text.get((choice, kind))
        if around is None:
            chunk = self._chunk(choice, _text_delta(kind, _TEXT))
            around = self._around_text[choice, kind] = chunk.split(encode_basestring(_TEXT).encode())
        return encode_basestring(text).encode().join(around)

    def _begun_call(self, choice: int, index: int, call_id: str, name: str) -> dict[str, Any]:
        if self._has_old_shape:
            return {"function_call": {"name": name, "arguments": ""}}
        if name in self._custom_tools:
            self._inputs[choice, index] = CustomInput()
            custom = {"name": name, "input": ""}
            return {"tool_calls": [{"index": index, "id": call_id, "type": "custom", "custom": custom}]}
        function = {"name": name, "arguments": ""}
        return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}

    def _more_of_call(self, choice: int, index: int, text: str) -> dict[str, Any]:
        if self._has_old_shape:
            return {"function_call": {"arguments": text}}
        if (choice, index) in self._inputs:
            return {"tool_calls": [{"index": index, "custom": {"input": text}}]}
        return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}

    def _rest_of_input(self, choice: int, index: int) -> str:
        found = self._inputs.get((choice, index))
        return found.end() if found else ""

    def _end(self, choice: int, end: ChoiceEnd) -> bytes:
        if end.finish == "cancelled":
            # OpenAI has no word for it: clients see an ordinary stop, and whoever looks sees why.
            return self._chunk(choice, {}, finish="stop", cancelled=True)
        of_calls = "function_call" if self._has_old_shape else "tool_calls"
        finish = of_calls if end.has_calls and end.finish == "stop" else end.finish
        return self._chunk(choice, {}, finish=finish)

    def _citations(self, choice: int) -> list[bytes]:
        cited = self._returned_urls.cited_in("".join(self._content)) if self._returned_urls else ()
        return [self._chunk(choice, {"annotations": [one.of_chat() for one in cited]})] if cited else []

    def _announced_fields(self, call: ServerCall) -> dict[str, Any]:
        self._announced.add(call.number)
        return {"id": call.id, "server_label": call.label, "name": call.name, "arguments": call.arguments}

    def _mcp_call(self, call: ServerCall, fields: Mapping[str, Any]) -> bytes:
        """Not OpenAI's, whose clients would answer what stands in `tool_calls`."""
        return self._chunk(0, {"mcp_calls": [{"index": call.number, **fields}]})

    def _usage_chunk(self, usage: RunUsage) -> bytes:
        return self._dump([], {"usage": chat_usage(usage)})

    def _chunk(
        self,
        choice: int,
        delta: Mapping[str, Any],
        logprobs: Sequence[TokenLogprob] = (),
        *,
        finish: str | None = None,
        cancelled: bool = False,
    ) -> bytes:
        body: dict[str, Any] = {
            "index": choice,
            "delta": delta,
            "logprobs": {"content": [logprob_entry(one) for one in logprobs]} if logprobs else None,
            "finish_reason": finish,
        }
        if cancelled:
            body["cancelled"] = True
        more: dict[str, Any] = {"usage": None} if self._with_usage else {}
        if finish and self._context:
            more["context"] = self._context
        return self._dump([body], more)

    def _dump(self, choices: list[dict[str, Any]], more: Mapping[str, Any]) -> bytes:
        chunk = {**self._head, "choices": choices, **more}
        return _encoded(chunk)


def _text_delta(kind: type, text: str) -> dict[str, Any]:
    if kind is ReasoningDelta:
        return {"reasoning_content": text, "reasoning": text}  # clients look for one or the other
    return {"content": text}


def logprob_entry(one: TokenLogprob) -> dict[str, Any]:
    """The logprob object of a token, for chat and responses."""
    return {**_bare(one), "top_logprobs": [_bare(other) for other in one.top]}


def _bare(one: TokenLogprob) -> dict[str, Any]:
    return {"token": one.text, "logprob": one.logprob, "bytes": list(one.bytes)}


def chat_usage(usage: RunUsage) -> dict[str, Any]:
    details = {"reasoning_tokens": usage.num_reasoning}
    if usage.num_predicted:
        details["accepted_prediction_tokens"] = usage.num_predicted_right
        details["rejected_prediction_tokens"] = usage.num_predicted - usage.num_predicted_right
    of_prompt = {"cached_tokens": usage.num_cached}
    if usage.num_audio:
        of_prompt["audio_tokens"] = usage.num_audio
    return {
        "prompt_tokens": usage.num_prompt,
        "completion_tokens": usage.num_made,
        "total_tokens": usage.num_prompt + usage.num_made,
        "prompt_tokens_details": of_prompt,
        "completion_tokens_details": details,
    }


def error_event(error: Exception) -> bytes:
    refused = error if isinstance(error, ServiceError) else internal_error()
    body: dict[str, Any] = dict(error_body(refused))
    if refused.retry_after is not None:
        body["retry_after"] = refused.retry_after
    return _encoded(body)


def fold(events: Iterable[bytes], summary: bytes) -> bytes:
    """The answer as one object; a recorded error is raised as what it was.

    Logprobs are copied as they are: parsed, those of a long answer are millions of objects, which the garbage collector
    walks while everybody waits.
    """
    first: dict[str, Any] = {}
    parts: dict[int, list[Mapping[str, Any]]] = {}
    logprobs: dict[int, list[bytes]] = {}
    for event in events:
        if event == DONE:
            continue
        chunk, entries = _without_logprobs(event)
        if error := chunk.get("error"):
            raise error_with_code(
                error["message"], error["type"], error["code"], error["param"], chunk.get("retry_after")
            )
        first = first or chunk
        for part in chunk["choices"]:
            parts.setdefault(part["index"], []).append(part)
            if entries:
                logprobs.setdefault(part["index"], []).append(entries)
    more = json.loads(summary)
    more.pop("usage_chunk", None)
    head = {
        "id": first["id"],
        "object": "chat.completion",
        "created": first["created"],
        "model": first["model"],
        "system_fingerprint": first["system_fingerprint"],
    }
    choices = b",".join(_folded_choice(index, parts[index], logprobs.get(index, ())) for index in sorted(parts))
    return b'%b,"choices":[%b]%b}' % (_encoded(head)[:-1], choices, b"," + _encoded(more)[1:-1] if more else b"")


def _without_logprobs(event: bytes) -> tuple[dict[str, Any], bytes]:
    """A chunk, and the entries of its logprobs as JSON. In a JSON string the quotes of what is searched are escaped."""
    before, found, rest = event.partition(b'"logprobs":{"content":[')
    entries, _, after = rest.rpartition(b']},"finish_reason":')
    chunk: dict[str, Any] = json.loads(before + b'"logprobs":null,"finish_reason":' + after if found else event)
    return chunk, entries


def _folded_choice(index: int, parts: Sequence[Mapping[str, Any]], logprobs: Sequence[bytes]) -> bytes:
    message = GrowingMessage()
    for part in parts:
        message.add(part["delta"])
    last = parts[-1]
    end = {"finish_reason": last["finish_reason"], **({"cancelled": True} if last.get("cancelled") else {})}
    return b'%b,"logprobs":%b,%b' % (
        _encoded({"index": index, "message": message.whole()})[:-1],
        b'{"content":[%b],"refusal":null}' % b",".join(logprobs) if logprobs else b"null",
        _encoded(end)[1:],
    )


def _encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class GrowingMessage:
    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._mcp_calls: dict[int, dict[str, Any]] = {}
        self._old_call: dict[str, Any] | None = None  # the call of `functions`
        self._annotations: list[Any] = []

    def add(self, delta: Mapping[str, Any]) -> None:
        if content := delta.get("content"):
            self._content.append(content)
        if reasoning := delta.get("reasoning_content"):
            self._reasoning.append(reasoning)
        for call in delta.get("tool_calls", ()):
            called, text = ("custom", "input") if "custom" in call else ("function", "arguments")
            if "id" in call:
                self._calls[call["index"]] = {"id": call["id"], "type": called, "name": call[called]["name"], text: []}
            self._calls[call["index"]][text].append(call[called][text])
        if old := delta.get("function_call"):
            self._old_call = self._old_call or {"name": old["name"], "arguments": []}
            self._old_call["arguments"].append(old["arguments"])
        self._annotations += delta.get("annotations", ())
        for call in delta.get("mcp_calls", ()):
            self._mcp_calls.setdefault(call["index"], {}).update(call)

    def whole(self) -> dict[str, Any]:
        content, reasoning = "".join(self._content), "".join(self._reasoning)
        calls: dict[str, Any] = {"tool_calls": self._client_calls(), "mcp_calls": self._server_calls()}
        if old := self._old_call:
            calls["function_call"] = {"name": old["name"], "arguments": "".join(old["arguments"])}
        return {
            "role": "assistant",
            "content": content if content or not (self._calls or self._old_call) else None,
            "refusal": None,
            **({"reasoning_content": reasoning, "reasoning": reasoning} if reasoning else {}),
            **({"annotations": self._annotations} if self._annotations else {}),
            **{name: some for name, some in calls.items() if some},
        }

    def _server_calls(self) -> list[dict[str, Any]]:
        calls = [call for _, call in sorted(self._mcp_calls.items())]
        return [{name: value for name, value in call.items() if name != "index"} for call in calls]

    def _client_calls(self) -> list[dict[str, Any]]:
        calls = []
        for _, call in sorted(self._calls.items()):
            text = "input" if call["type"] == "custom" else "arguments"
            called = {"name": call["name"], text: "".join(call[text])}
            calls.append({"id": call["id"], "type": call["type"], call["type"]: called})
        return calls
