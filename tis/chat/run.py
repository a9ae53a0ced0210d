"""An answer as the one `Source` of `streaming`: rounds of the model and, between them, calls of MCP servers.

A plain chat is a run of one round. A run writes records, a `Writer` makes events of them, and to resume a run is to
replay its records.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tis.admission.ticket import Ticket
from tis.cancellation import Cancelled, race_cancel
from tis.chat.mcp_calls import INTERRUPTED, McpCaller, ToolServers, list_failed, protocol_error
from tis.chat.media import ReloadMedia
from tis.chat.parts import Writer
from tis.chat.rounds import Rounds, Transcript
from tis.chat.run_log import ModelRound, RunLog
from tis.chat.run_spec import McpSpec, RunSpec, Services
from tis.chat.run_trace import RunTrace
from tis.engine.answer import Answer, FinishReason, Piece
from tis.engine.grammar.grammar import Grammar
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import Medium
from tis.errors import GenerationFailed, ServiceError, Unavailable
from tis.mcp_client.errors import McpOperationFailed
from tis.mcp_client.toolbox import Toolbox, tool_to_json
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id
from tis.streaming.source import Block
from tis.streaming.stores.store import Status


@dataclass(frozen=True)
class LocalTools:
    """Tools of this process, and the form of an answer that what they find may change."""

    servers: ToolServers
    form: Callable[[], Grammar]


class Run:
    # Gets the last event before clients do, and returns what they get.
    before_end: Callable[[bytes], Awaitable[bytes]] | None = None

    def __init__(
        self,
        spec: RunSpec,
        services: Services,
        writer: Writer,
        *,
        prepared: PreparedRequest | None = None,
        more_prompts: Sequence[PreparedRequest] = (),
        attachments: Mapping[str, bytes] | None = None,
        reload_media: ReloadMedia | None = None,
        ticket: Ticket | None = None,
        local: LocalTools | None = None,
    ) -> None:
        """`prepared`: the only round of a run without MCP servers, or the summary of one that compacts first;
        `more_prompts`: of a list, behind it.

        `reload_media`: of a run of another process. `local`: the tools are of this process, so it cannot be resumed.

        `ticket`: of the request that begins the run; a run of another process takes one when it goes on. From
        `hold_ticket` on, the run gives it back when its events end.
        """
        self.is_waiting_to_resume = False
        self.attachments: Mapping[str, bytes] = attachments or {}
        self._spec = replace(spec, caller=ticket.caller) if ticket else spec
        self._engine = services.engine
        self._admission = services.admission
        self._ticket = ticket
        self._reload_media = reload_media
        self._cancelled = asyncio.Event()
        self._tools = ServerTools(spec, spec.mcp, services, reload_media, local) if spec.mcp else None
        self._trace, self._tracer = RunTrace(spec), services.tracer
        if ticket:
            self._trace.begin(ticket)
        self._log = RunLog(writer, self._tools.toolbox if self._tools else None, spec.compaction)
        if self._tools is None and spec.compaction is None:
            self._log.begin_round(spec.request, spec.parser, spec.more_prompts)
        self._answer: Answer | None = None
        if prepared:
            engine = services.engine
            listed = [prepared, *more_prompts]
            try:
                with self._trace.inside():
                    self._answer = (
                        engine.submit_list(listed, ticket=ticket)
                        if more_prompts
                        else engine.submit(prepared, ticket=ticket)
                    )
            except BaseException as fault:
                self._trace.end(self._log, fault)
                raise

    def hold_ticket(self) -> None:
        """The turn of the run has begun: its events will be read to their end."""
        if self._ticket:
            self._ticket.begin_run()

    def replay(self, resume_states: Sequence[bytes]) -> None:
        """Goes to where the process was that began the run."""
        self._log.replay(resume_states)
        self.is_waiting_to_resume = not self.is_over

    @property
    def is_over(self) -> bool:
        return self._log.is_over

    @property
    def may_be_repeated(self) -> bool:
        return not self._log.num_calls

    @property
    def outcome(self) -> Status:
        return self._log.outcome

    @property
    def summary(self) -> bytes:
        return self._log.summary

    @property
    def request(self) -> bytes:
        spec = replace(self._spec, traceparent=self.traceparent)
        return json.dumps(spec.to_json(), ensure_ascii=False).encode()

    @property
    def traceparent(self) -> str:
        return self._trace.traceparent

    def cancel(self) -> None:
        self._cancelled.set()
        if self._tools:
            self._tools.caller.cancel()
        if self._answer:
            self._answer.cancel()

    def failure(self, error: Exception) -> Block:
        if not isinstance(error, ServiceError):
            log_exception("an answer could not be recorded", error, current_request_id())
        return self._log.fail(error)

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        if self.is_over:
            return  # only the note that it is over was missing
        if self._ticket is None:
            self._ticket = self._admission.resumed_ticket()
            self._ticket.begin_run()
            self._trace.resume(self._tracer)
        try:
            if not self._log.has_begun:
                yield self._log.add("begun", self._spec.num_choices)
            async for blocks in self._summary_and_answer():
                yield blocks
            last = self._log.add("ended", self._finish, time.time_ns())
            if self.before_end:
                last[-1].data = await self.before_end(last[-1].data)
            self._trace.end(self._log)
            if last:
                last[-1].is_last = True
            yield last
        except BaseException as fault:
            if not (isinstance(fault, Unavailable) and self.is_waiting_to_resume):  # else it is tried again
                self._trace.end(self._log, fault)
            raise
        finally:
            self._ticket.end_run()
            self._ticket = None

    async def _summary_and_answer(self) -> AsyncIterator[Sequence[Block]]:
        if self._spec.compaction:
            async for blocks in self._compact():
                yield blocks
            if self._log.summary_text is None or self._spec.compaction.summary_at is None:
                return
        rounds = self._rounds_with_calls(self._tools) if self._tools else self._generate()
        async for blocks in rounds:
            yield blocks

    async def _compact(self) -> AsyncIterator[Sequence[Block]]:
        """Tokens of the summary make no events: after a kill, the next process makes the same tokens again."""
        log = self._log
        if log.summary_text is not None:
            return
        if log.round is None:
            yield log.add("compacting")
        async for blocks in self._generate():
            yield blocks
        if log.round and log.round.finish != "cancelled":
            if not log.has_summary:  # nothing would take the place of the conversation
                raise GenerationFailed("The model wrote no summary of the conversation.")
            self._answer = None
            yield log.add("compacted")

    async def _rounds_with_calls(self, tools: "ServerTools") -> AsyncIterator[Sequence[Block]]:
        async for blocks in self._list_tools(tools):
            yield blocks
        if call := tools.transcript(self._log).call_in_flight:
            yield self._log.add("called", call.number, None, protocol_error(INTERRUPTED))
        while True:
            if self._is_between_rounds:
                async for blocks in self._make_calls(tools):
                    yield blocks
                if self._finish:
                    return
                self._trace.begin_round(self._log.num_rounds)
                with self._trace.inside():
                    await self._begin_round(tools)
            else:
                self._trace.begin_round(self._log.num_rounds - 1)
            async for blocks in self._generate():
                yield blocks
            self._trace.end_round()

    async def _list_tools(self, tools: "ServerTools") -> AsyncIterator[Sequence[Block]]:
        for server in tools.toolbox.unlisted:
            if self._log.listing != server.label:
                yield self._log.add("listing", server.label)
            try:
                listed = await self._trace.listing(tools.caller.list_tools(server))
            except McpOperationFailed as failed:
                yield self._log.add("listed", server.label, [], failed.message)
                if self._cancelled.is_set():
                    return
                raise list_failed(server, failed) from None
            yield self._log.add("listed", server.label, [tool_to_json(tool) for tool in listed], None)
        for request in tools.spec.approved:
            if request["id"] not in tools.transcript(self._log).approved_ids:
                yield self._log.add("approved", request)

    async def _make_calls(self, tools: "ServerTools") -> AsyncIterator[Sequence[Block]]:
        """One after the other: at most one is in flight when this process ends."""
        if self._log.round and self._log.round.finish != "stop":
            return
        for call in tools.transcript(self._log).waiting_calls:
            if self._cancelled.is_set():
                return
            if refusal := tools.caller.refusal(call, self._log.num_calls):
                yield self._log.add("called", call.number, None, refusal)
                continue
            yield self._log.add("calling", call.number)
            if self._ticket:
                self._ticket.enter("calling")
            output, error = await self._trace.calling(call, tools.caller.make(call))
            yield self._log.add("called", call.number, output, error)

    async def _begin_round(self, tools: "ServerTools") -> None:
        log = self._log
        is_resumed = log.num_rounds > 0 or log.num_calls > 0 or log.summary_text is not None
        # If it failed now, the client would send the request again, and its calls would run twice.
        self.is_waiting_to_resume |= is_resumed
        assert self._ticket
        self._admission.meter_resumed(self._ticket, self._spec.caller)
        prepared, parser = await tools.rounds.prepare(
            tools.transcript(log).messages,
            log.num_rounds,
            self._spec.request.params.max_tokens - log.num_made,
            offers_servers=tools.offers_calls(log),
            ticket=self._ticket,
            is_resumed=is_resumed,
            summary_text=log.summary_text,
        )
        self.attachments = tools.rounds.attachments or self.attachments
        self._answer = self._engine.submit(prepared, is_resumed=is_resumed, ticket=self._ticket)
        log.add("round", prepared.resumable.to_json(), parser and parser.to_json())

    async def _generate(self) -> AsyncIterator[Sequence[Block]]:
        """What the model makes in a round: a new one, or one that another process began."""
        current = self._log.round
        assert current
        if self._answer is None and not current.is_over:
            self._answer = await self._resumed_answer(current)
        self.is_waiting_to_resume = False
        if self._answer is None:
            for choice, emitted in enumerate(current.emitted):
                if emitted.finish is None and (
                    blocks := self._log.add_piece(Piece(choice, "", (), finish="cancelled"), 0)
                ):
                    yield blocks
            return
        if self._cancelled.is_set():
            self._answer.cancel()
        async for pieces in self._answer.batches():
            if not self._log.has_tokens:
                self._log.add("first_token", time.time_ns())
            made: list[Block] = []
            for piece in pieces:
                made += self._log.add_piece(piece, self._answer.cached_tokens_of(piece.choice))
                if piece.prompt_logprobs:  # milliseconds of encoding
                    await asyncio.sleep(0)
            if made:
                yield made

    async def _resumed_answer(self, current: ModelRound) -> Answer | None:
        """None if it is cancelled before the engine has resumed it."""
        if self._cancelled.is_set():
            return None
        try:
            with self._trace.inside():
                return await race_cancel(self._cancelled.wait(), self._resume(current))
        except Cancelled:
            return None

    async def _resume(self, current: ModelRound) -> Answer:
        media: Sequence[Medium] = ()
        assert self._ticket
        if self._reload_media and current.request.media:
            media, self.attachments = await self._reload_media(self._ticket)
        if current.more_prompts:
            listed = [current.request, *current.more_prompts]
            answer = await self._engine.resume_list(listed, current.emitted, self._ticket)
        else:
            answer = await self._engine.resume(current.request, current.emitted, media, self._ticket)
        self._admission.meter_resumed(self._ticket, self._spec.caller)  # its prompt was counted before
        return answer

    @property
    def _is_between_rounds(self) -> bool:
        return self._log.round is None or self._log.round.is_over

    @property
    def _finish(self) -> FinishReason | None:
        """Why the run ends here; None if the model has to go on."""
        current, transcript, compaction = self._log.round, self._log.transcript, self._spec.compaction
        if compaction and self._log.summary_text is None:
            return "cancelled"  # nothing else ends a run without an error
        if compaction and compaction.summary_at is None:
            return "stop"
        if transcript is None:
            return current.finish if current else None
        if self._cancelled.is_set():
            return "cancelled"
        if current is None:
            return None
        if current.finish != "stop" or transcript.needs_the_client or not transcript.has_called_servers:
            return current.finish
        return None if self._log.num_made < self._spec.request.params.max_tokens else "length"


class ServerTools:
    """The MCP servers of a run."""

    def __init__(
        self,
        spec: RunSpec,
        mcp: McpSpec,
        services: Services,
        reload_media: ReloadMedia | None = None,
        local: LocalTools | None = None,
    ) -> None:
        self.spec = mcp
        self.toolbox = Toolbox(mcp.servers, (tool["function"]["name"] for tool in mcp.prompt.tools))
        for label, tools in mcp.listed.items():
            self.toolbox.put(label, tools)
        servers = local.servers if local else services.mcp_client
        self.caller = McpCaller(servers, self.toolbox, services.commit, mcp.max_calls)
        self.rounds = Rounds(spec, mcp, self.toolbox, services.engine, reload_media, local.form if local else None)

    def transcript(self, log: RunLog) -> Transcript:
        assert log.transcript
        return log.transcript

    def offers_calls(self, log: RunLog) -> bool:
        is_within_limits = self.caller.may_call(log.num_calls) and log.num_rounds < self.caller.limits.max_rounds
        return self.spec.offers_tools and is_within_limits


async def first_prompt(spec: RunSpec, mcp: McpSpec, services: Services, ticket: Ticket) -> PreparedRequest:
    """The prompt of the first round, with the tools of the servers: lists them, and calls none."""
    tools = ServerTools(spec, mcp, services)
    for server in tools.toolbox.unlisted:
        try:
            tools.toolbox.put(server.label, await tools.caller.list_tools(server))
        except McpOperationFailed as failed:
            raise list_failed(server, failed) from None
    offers = mcp.offers_tools and tools.caller.may_call(0)
    max_tokens = spec.request.params.max_tokens
    prepared, _ = await tools.rounds.prepare([], 0, max_tokens, offers_servers=offers, ticket=ticket, is_resumed=False)
    return prepared
