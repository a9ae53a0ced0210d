"""The span of a run, and those of its rounds and calls, named by OpenTelemetry's GenAI conventions.

Numbers and names only: no prompt, no answer, no argument and no result of a call.
"""

import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tis.admission.ticket import Ticket
from tis.chat.parts import ServerCall
from tis.chat.run_log import RunLog
from tis.chat.run_spec import RunSpec
from tis.observability.spans import NO_SPAN, PROVIDER, Attributes, Tracer, ending, use_span
from tis.observability.work_span import WorkSpan, reason_of

T = TypeVar("T")
CallResult = tuple[str | None, dict[str, Any] | None]  # the output, or the error


class RunTrace:
    def __init__(self, spec: RunSpec) -> None:
        self._work = WorkSpan(
            f"{_operation(spec)} {spec.request.model_id}", _request_attributes(spec), spec.traceparent
        )
        self._ticket: Ticket | None = None
        self._round = NO_SPAN
        self._is_over = False

    @property
    def traceparent(self) -> str:
        return self._work.traceparent

    def begin(self, ticket: Ticket) -> None:
        self._ticket = ticket
        self._work.begin()

    def resume(self, tracer: Tracer) -> None:
        self._work.resume(tracer)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What the engine does in this block belongs to the round, or to the run."""
        with use_span(self._work.span if self._round is NO_SPAN else self._round):
            yield

    def begin_round(self, number: int) -> None:
        self.end_round()  # one that waited for the model is begun again
        self._round = self._work.span.child("round", {"tis.round.number": number})

    def end_round(self, fault: BaseException | None = None) -> None:
        self._round.end(reason_of(fault))
        self._round = NO_SPAN

    async def calling(self, call: ServerCall, made: Awaitable[CallResult]) -> CallResult:
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "extension",
            "gen_ai.tool.call.id": call.id,
            "mcp.method.name": "tools/call",
        }
        span = self._work.span.child(f"execute_tool {call.name}", attributes, kind="client")
        with use_span(span), ending(span):
            output, error = await made
            span.end(str(error["type"]) if error else None)
            return output, error

    async def listing(self, listed: Awaitable[T]) -> T:
        span = self._work.span.child("tools/list", {"mcp.method.name": "tools/list"}, kind="client")
        with use_span(span), ending(span):
            return await listed

    def end(self, log: RunLog, fault: BaseException | None = None) -> None:
        if self._is_over:
            return
        self._is_over = True
        self.end_round(fault)
        if self._work.span.is_recorded:
            self._work.span.set({**_answer_attributes(log), "tis.run.outcome": "failed" if fault else log.outcome})
            if self._ticket and log.usage.first_token_at:
                arrived_at = time.time() - (time.monotonic() - self._ticket.began_at)
                seconds = round(log.usage.first_token_at / 1e9 - arrived_at, 6)
                self._work.span.set({"gen_ai.response.time_to_first_chunk": seconds})
        self._work.end(fault)


def _operation(spec: RunSpec) -> str:
    return "text_completion" if spec.request.is_raw else "chat"


def _request_attributes(spec: RunSpec) -> Attributes:
    params, num_choices = spec.request.params, spec.num_choices
    return {
        "gen_ai.operation.name": _operation(spec),
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": spec.request.model_id,
        "gen_ai.response.model": spec.request.model_id,
        "gen_ai.response.id": spec.answer_id if spec.answer_id != spec.dialect else None,  # one that nobody is shown
        "gen_ai.request.max_tokens": params.max_tokens,
        "gen_ai.request.temperature": params.temperature,
        "gen_ai.request.top_p": params.top_p,
        "gen_ai.request.choice.count": num_choices if num_choices > 1 else None,
        "tis.dialect": spec.dialect,
    }


def _answer_attributes(log: RunLog) -> Attributes:
    usage = log.usage
    return {
        "gen_ai.usage.input_tokens": usage.num_prompt,
        "gen_ai.usage.output_tokens": usage.num_made,
        "gen_ai.usage.cache_read.input_tokens": usage.num_cached,
        "gen_ai.usage.reasoning.output_tokens": usage.num_reasoning or None,
        "gen_ai.response.finish_reasons": log.finish_reasons,
        "tis.run.rounds": log.num_rounds if log.toolbox else None,
        "tis.run.calls": log.num_calls if log.toolbox else None,
    }
