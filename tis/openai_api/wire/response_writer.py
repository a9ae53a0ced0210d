"""Writes the events of one response, and the response object, which always has every field; unknown values are null."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tis.chat.parts import (
    ArgumentsDelta,
    CallApproved,
    CallBegun,
    CallDropped,
    CallEnded,
    CallEvent,
    ChoiceEnd,
    CompactionBegun,
    CompactionEnded,
    Events,
    PromptScores,
    ReasoningDelta,
    RoundEnd,
    RunPart,
    RunUsage,
    ServerCallDelta,
    ServerCallEnd,
    ServerCallStart,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolsListed,
    ToolsListing,
)
from tis.engine.answer import FinishReason
from tis.engine.sampling.params import SamplingParams
from tis.errors import ServiceError
from tis.http.error_handlers import internal_error
from tis.openai_api.wire.chat_writer import logprob_entry
from tis.openai_api.wire.compacted_context import sealed_context
from tis.openai_api.wire.encoded_json import EncodedValue, encode_json
from tis.openai_api.wire.response_items import NumberedEvents, OutputItems
from tis.openai_api.wire.response_request import ResponseRequest

DIALECT = "response"
Response = dict[str, Any]
_STATUS = {"stop": "completed", "length": "incomplete", "content_filter": "incomplete", "cancelled": "cancelled"}


_OWN = "writer"  # what the writer begins with beside the response; no event has it
_REPEATED = ("instructions", "tools", "text", "metadata")  # of the request, in each event with the whole response


class ResponseWriter:
    def __init__(self, state: Response) -> None:
        """Takes long if the response repeats megabytes of the request: see `in_thread_if`."""
        response = {name: value for name, value in state.items() if name != _OWN}
        own = state.get(_OWN, {})
        self._compaction = own.get("compaction")
        repeated = {name: EncodedValue(response[name]) for name in _REPEATED if response.get(name)}
        self._response = response | repeated
        self._numbered = NumberedEvents()
        wants_summary = bool((response.get("reasoning") or {}).get("summary"))
        self._items = OutputItems(
            response["id"],
            self._numbered,
            summarises=wants_summary,
            seals_reasoning=own.get("seals_reasoning", False),
            calls=own.get("calls"),
            namespaces=own.get("namespaces"),
        )
        self._is_over = False

    def begun(self, num_choices: int) -> Events:
        status = self._response["status"]
        return [self._lifecycle("created"), self._lifecycle("queued" if status == "queued" else "in_progress")]

    def part(self, choice: int, part: RunPart) -> Events:
        if self._response["status"] == "queued":
            return [self._start(), *self._part(part)]
        return self._part(part)

    def call(self, event: CallEvent) -> Events:
        started = [self._start()] if self._response["status"] == "queued" else []
        return [*started, *self._call(event)]

    def ended(self, finish: FinishReason, usage: RunUsage) -> Events:
        started = [self._start()] if self._response["status"] == "queued" else []
        nothing = self._items.empty_message() if self._items.is_empty else []
        status = _STATUS[finish]
        closed = self._items.close("completed" if status == "completed" else "incomplete")
        changes: dict[str, Any] = {"status": status, "usage": response_usage(usage)}
        if status == "completed":
            changes["completed_at"] = int(time.time())
        elif status == "incomplete":
            changes["incomplete_details"] = {"reason": "max_output_tokens" if finish == "length" else finish}
        # `response.cancelled` is no event of OpenAI's streams, but the name that its webhooks have for this.
        return [*started, *nothing, *closed, self._last(status, changes)]

    def failed(self, error: Exception) -> bytes:
        refused = error if isinstance(error, ServiceError) else internal_error()
        return self._last("failed", {"status": "failed", "error": response_error(refused)})

    def summary(self, usage: RunUsage) -> bytes:
        """The response as it is; once it is over, its last event has that."""
        return b"" if self._is_over else encode_json(self.snapshot())

    def snapshot(self) -> Response:
        """As it is now."""
        return self._response if self._is_over else self._response | {"output": self._items.items()}

    def _part(self, part: RunPart) -> Events:
        items = self._items
        match part:
            case TextDelta(text):
                entries = [logprob_entry(one) for one in part.logprobs]
                return items.text(text, entries)
            case ReasoningDelta(text):
                return items.reasoning(text) if text else []
            case ToolCallStart(_, call_id, name):
                return items.start_call(name, call_id)
            case ArgumentsDelta(_, text):
                return items.call_arguments(text) if text else []
            case ServerCallStart(call, tool):
                return items.start_server_call(call, needs_approval=tool.needs_approval)
            case ServerCallDelta(_, text):
                return items.server_call_arguments(text) if text else []
            case ToolCallEnd(_, is_cut) | ServerCallEnd(_, is_cut):
                return items.close("incomplete" if is_cut else "completed")
            case PromptScores():
                return []  # of a raw prompt, which no response has
            case RoundEnd(finish) | ChoiceEnd(finish):
                return items.close("completed" if finish == "stop" else "incomplete")

    def _call(self, event: CallEvent) -> Events:
        items = self._items
        match event:
            case CompactionBegun():
                return items.start_compaction()
            case CompactionEnded(summary):
                return items.end_compaction(sealed_context(self._compaction, summary))
            case ToolsListing(label, server_url):
                return items.start_tool_list(label, server_url)
            case ToolsListed(_, tools, error):
                return items.end_tool_list(tools, error)
            case CallApproved(call):
                return items.approved_call(call)
            case CallBegun(call):
                return items.begin_server_call(call)
            case CallEnded(call):
                return items.end_server_call(call)
            case CallDropped(call):
                return items.drop_server_call(call)

    def _start(self) -> bytes:
        self._response = self._response | {"status": "in_progress"}
        return self._lifecycle("in_progress")

    def _last(self, kind: str, changes: dict[str, Any]) -> bytes:
        self._response = self._response | {"output": self._items.items(is_over=True)} | changes
        self._is_over = True
        return self._lifecycle(kind)

    def _lifecycle(self, kind: str) -> bytes:
        return self._numbered.event(f"response.{kind}", {"response": self._response})


def writer_state(
    response: Response,
    *,
    seals_reasoning: bool,
    calls: Mapping[str, str],
    namespaces: Mapping[str, tuple[str, str]] | None = None,
    compaction: Mapping[str, Any] | None = None,
) -> Response:
    """`calls`: the types of the items that calls of some tools become, by name. `namespaces`: those of some tools, with
    their names in them. `compaction`: of `context_to_seal`."""
    own = {
        "seals_reasoning": seals_reasoning,
        "calls": dict(calls),
        "namespaces": {name: list(place) for name, place in (namespaces or {}).items()},
        "compaction": compaction,
    }
    return response | {_OWN: own}


def new_response(
    response_id: str,
    model_id: str,
    body: ResponseRequest,
    tools: Sequence[Mapping[str, Any]],
    params: SamplingParams,
) -> Response:
    """The response object before the answer begins."""
    text, reasoning = body.text, body.reasoning
    shape = text.format.model_dump(by_alias=True, exclude_none=True) if text and text.format else {"type": "text"}
    verbosity = {"verbosity": text.verbosity} if text and text.verbosity else {}
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": None,
        "status": "queued" if body.background else "in_progress",
        "background": bool(body.background),
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "conversation": {"id": body.conversation_id} if body.conversation_id else None,
        "previous_response_id": body.previous_response_id,
        "model": model_id,
        "output": [],
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "tools": list(tools),
        "tool_choice": body.tool_choice or "auto",
        "max_tool_calls": body.max_tool_calls,
        "text": {"format": shape, **verbosity},
        "reasoning": {
            "effort": reasoning.effort if reasoning else None,
            "summary": reasoning.wanted_summary if reasoning else None,
        },
        "temperature": params.temperature,
        "top_p": params.top_p,
        "presence_penalty": params.presence_penalty,
        "frequency_penalty": params.frequency_penalty,
        "top_logprobs": body.top_logprobs or 0,
        "max_output_tokens": body.max_output_tokens,
        "truncation": body.truncation or "disabled",
        "usage": None,
        "user": body.user,
        "safety_identifier": body.safety_identifier,
        "prompt_cache_key": body.prompt_cache_key,
        "service_tier": "default",
        "store": body.is_stored,
        "metadata": body.metadata or {},
    }


def response_usage(usage: RunUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.num_prompt,
        "input_tokens_details": {"cached_tokens": usage.num_cached, "cache_write_tokens": 0},
        "output_tokens": usage.num_made,
        "output_tokens_details": {"reasoning_tokens": usage.num_reasoning},
        "total_tokens": usage.num_prompt + usage.num_made,
    }


def response_error(error: ServiceError) -> dict[str, Any]:
    """`code` is one of OpenAI's closed set; `type` is the more exact code of this server."""
    code = "rate_limit_exceeded" if error.status == 429 else "server_error"
    return {"code": code, "message": error.message, "param": error.param, "type": error.code}
