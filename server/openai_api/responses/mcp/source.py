"""A response with MCP as a `Source`: rounds of asking the model and calling what it calls.

Whatever happens is first a record: a short list that says what. What readers are shown is made from records alone, and
the records are kept as marks; so another process that reads them stands where this one stood.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from server.engine.answer import Answer, FinishReason, Piece
from server.engine.kept import KeptRequest, ShownChoice
from server.errors import ServiceError
from server.mcp.server import VisitFailed
from server.observability.logs import log_fault
from server.observability.request_log import current_request_id
from server.openai_api.reading.reading import Reading
from server.openai_api.responses.mcp import errors
from server.openai_api.responses.mcp.caller import Caller, list_failed
from server.openai_api.responses.mcp.items import as_told, tool_of
from server.openai_api.responses.mcp.plan import Plan
from server.openai_api.responses.mcp.rounds import Rounds
from server.openai_api.responses.mcp.writer import McpWriter
from server.openai_api.responses.progress import read_piece, written_piece
from server.openai_api.resumption import Resumption, ShownAgain
from server.streaming.event import Block
from server.streaming.stores.store import Status

Record = list[Any]


class McpSource:
    digest = None

    def __init__(self, plan: Plan, rounds: Rounds, caller: Caller) -> None:
        self.waits_to_go_on = False
        self._plan = plan
        self._rounds = rounds
        self._caller = caller
        self._toolbox = rounds.toolbox
        for label, tools in plan.listed.items():
            self._toolbox.put(label, tools)
        self._writer = McpWriter(plan.response, self._toolbox)
        self._unmarked: list[str] = []  # records, as they are written
        self._outcome: Status = "finished"
        self._answer: Answer | None = None
        self._resumption: Resumption | None = None
        self._listing: str | None = None  # what was begun, and not ended: of which server, and which call
        self._in_flight: int | None = None
        # Of the round under way, or the last one:
        self._kept: KeptRequest | None = None
        self._shown = ShownChoice()
        self._cached = 0
        # Of all rounds:
        self._num_rounds = self._num_made = self._num_cached = 0

    @property
    def is_over(self) -> bool:
        return self._writer.is_over

    @property
    def outcome(self) -> Status:
        return self._outcome

    @property
    def summary(self) -> bytes:
        return b"" if self.is_over else json.dumps(self._writer.snapshot(), ensure_ascii=False).encode()

    @property
    def request(self) -> bytes:
        return json.dumps(self._plan.to_json(), ensure_ascii=False).encode()

    @property
    def attachments(self) -> Mapping[str, bytes]:
        return self._rounds.attachments or (self._resumption.attachments if self._resumption else {})

    def cancel(self) -> None:
        self._caller.cancel()
        if self._resumption:
            self._resumption.cancel()
        if self._answer:
            self._answer.cancel()

    def failure(self, error: Exception) -> Block:
        if not isinstance(error, ServiceError):
            log_fault("a response could not be recorded", error, current_request_id())
        self._unmarked.append('["failed"]')
        [block] = self._marked([self._writer.failed(error)])
        return block

    async def events(self) -> AsyncIterator[Sequence[Block]]:
        if self.is_over:
            return  # all that was missing is the note that it is over
        if not self._writer.num_events:
            yield self._tell("begun")
        if self._writer.waits_in_a_queue:
            yield self._tell("started")
        async for blocks in self._list_all():
            yield blocks
        if self._in_flight is not None:
            yield self._tell("called", self._in_flight, None, errors.ours(errors.INTERRUPTED))
        finish: FinishReason | None = None
        while finish is None:
            if self._is_between_rounds:
                async for blocks in self._call_all():
                    yield blocks
                finish = self._why_it_ends()
            if finish is None:
                async for blocks in self._ask():
                    yield blocks
        yield self._end(finish)

    # What is done

    async def _list_all(self) -> AsyncIterator[Sequence[Block]]:
        for server in self._toolbox.unlisted:
            if self._listing != server.label:
                yield self._tell("listing", server.label)
            try:
                tools = await self._caller.list_tools(server)
            except VisitFailed as failed:
                yield self._tell("listed", server.label, [], failed.message)
                if self._caller.is_cancelled:
                    return
                raise list_failed(server, failed) from None
            yield self._tell("listed", server.label, [as_told(tool) for tool in tools], None)
        begun = {item.get("approval_request_id") for item in self._writer.items}
        for request in self._plan.approved:
            if request["id"] not in begun:
                yield self._tell("approved", request)

    async def _call_all(self) -> AsyncIterator[Sequence[Block]]:
        """One after the other: no more than one is in flight when this process ends."""
        if self._shown.finish not in (None, "stop"):
            return
        for number, call in self._writer.waiting:
            if self._caller.is_cancelled:
                return
            if refused := self._caller.refused(call):
                yield self._tell("called", number, None, refused)
                continue
            yield self._tell("calling", number)
            output, error = await self._caller.outcome(call)
            yield self._tell("called", number, output, error)

    async def _ask(self) -> AsyncIterator[Sequence[Block]]:
        """The model, for a new round, or to go on with one that another process began."""
        if self._is_between_rounds:
            left = self._plan.asked.params.max_tokens - self._num_made
            offers = self._plan.offers and self._caller.may_call and self._num_rounds < self._caller.rules.max_rounds
            prepared, reading = await self._rounds.prepare(
                self._writer.items, self._num_rounds, left, offers_servers=offers
            )
            self._answer = self._rounds.engine.submit(prepared)
            if blocks := self._tell("round", prepared.kept.to_json(), reading.to_json() if reading else None):
                yield blocks
        elif self._resumption:
            self._answer = await self._resumption.answer()
        self.waits_to_go_on = False
        if self._answer is None or self._caller.is_cancelled:
            if self._answer:
                self._answer.cancel()
            else:
                yield self._tell_piece(Piece(0, "", (), finish="cancelled"), 0)
                return
        async for pieces in self._answer.batches():
            cached = self._answer.cached_tokens
            blocks = [block for piece in pieces for block in self._tell_piece(piece, cached)]
            if blocks:
                yield blocks

    def _why_it_ends(self) -> FinishReason | None:
        if self._caller.is_cancelled:
            return "cancelled"
        if self._kept is None:
            return None
        kinds = {item["type"] for item in self._writer.items_of_round}
        is_for_client = bool(kinds & {"function_call", "mcp_approval_request"})
        if self._shown.finish != "stop" or is_for_client or "mcp_call" not in kinds:
            return self._shown.finish
        return None if self._num_made < self._plan.asked.params.max_tokens else "length"

    def _end(self, finish: FinishReason) -> Sequence[Block]:
        if finish == "cancelled":
            self._outcome = "cancelled"
        self._unmarked.append(json.dumps(["ended", finish]))
        return self._marked(self._writer.ended(finish, self._num_made, self._num_cached + self._cached))

    # What is told of it

    def _tell(self, *record: Any) -> Sequence[Block]:
        self._unmarked.append(json.dumps(record))
        return self._marked(self._apply(list(record)))

    def _tell_piece(self, piece: Piece, cached: int) -> Sequence[Block]:
        """The record `piece`; by hand, as this is the path of every token."""
        self._unmarked.append(f'["piece",{cached},{written_piece(piece)}]')
        return self._marked(self._of_piece(piece, cached))

    def _marked(self, events: Sequence[bytes]) -> Sequence[Block]:
        """All of them are kept or none, so one of them carries the records: those before it that had no events, too."""
        if not events:
            return []
        mark, self._unmarked = f"[{','.join(self._unmarked)}]".encode(), []
        return [Block(event, b"" if number else mark) for number, event in enumerate(events)]

    def _apply(self, record: Record) -> list[bytes]:
        match record:
            case ["begun"]:
                return self._writer.begun()
            case ["started"]:
                return self._writer.started()
            case ["listing", label]:
                self._listing = label
                return self._writer.listing(label)
            case ["listed", label, tools, error]:
                self._listing = None
                if not error:
                    self._toolbox.put(label, map(tool_of, tools))
                return self._writer.listed(tools, error)
            case ["approved", request]:
                return self._writer.approved(request)
            case ["calling", number]:
                self._in_flight = number
                self._caller.num_calls += 1
                return self._writer.calling(number)
            case ["called", number, output, error]:
                self._in_flight = None
                return self._writer.called(number, output, error)
            case ["round", kept, reading]:
                return self._begin_round(KeptRequest.from_json(kept), Reading.from_json(reading) if reading else None)
            case ["piece", cached, written]:
                return self._of_piece(read_piece(written), cached)
            case ["failed"]:
                self._writer.is_over, self._outcome = True, "failed"
                return []
            case ["ended", finish]:
                self._writer.is_over = True
                self._outcome = "cancelled" if finish == "cancelled" else "finished"
                return []
        raise ValueError(f"unknown record {record[:1]}")

    def _begin_round(self, kept: KeptRequest, reading: Reading | None) -> list[bytes]:
        self._num_rounds += 1
        self._num_cached += self._cached
        self._kept, self._shown, self._cached = kept, ShownChoice(), 0
        return self._writer.new_round(kept, reading)

    def _of_piece(self, piece: Piece, cached: int) -> list[bytes]:
        self._shown.token_ids += piece.token_ids
        self._shown.finish = piece.finish
        self._num_made += len(piece.token_ids)
        self._cached = max(self._cached, cached)
        return self._writer.of_piece(piece)

    @property
    def _is_between_rounds(self) -> bool:
        return self._kept is None or self._shown.finish is not None


class ContinuedMcp(McpSource):
    """Another process began it."""

    def __init__(
        self, plan: Plan, rounds: Rounds, caller: Caller, shown_again: ShownAgain, marks: Sequence[bytes]
    ) -> None:
        super().__init__(plan, rounds, caller)
        for mark in filter(None, marks):
            for record in json.loads(mark):
                self._apply(record)
        if not self.is_over and self._writer.num_events != len(marks):
            raise ValueError(f"{len(marks)} events were kept, and {self._writer.num_events} come of their marks")
        self.waits_to_go_on = not self.is_over
        if self._kept and not self._is_between_rounds:
            self._resumption = Resumption(rounds.engine, self._kept, [self._shown], shown_again)
