"""The log of a run: records, which are short JSON lists that say what happened.

The events for clients are made from the records alone, and the records are stored as the resume states of those events;
so a process that reads the records can resume the run.
"""

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

from tis.chat.parse.config import ParserConfig
from tis.chat.part_reader import PartReader
from tis.chat.parts import (
    CallApproved,
    CallBegun,
    CallDropped,
    CallEnded,
    ChoiceEnd,
    CompactionBegun,
    CompactionEnded,
    Events,
    PromptScores,
    RoundEnd,
    RunUsage,
    TextDelta,
    ToolsListed,
    ToolsListing,
    Writer,
)
from tis.chat.prediction_match import PredictionMatch
from tis.chat.rounds import Transcript
from tis.chat.run_spec import CompactionSpec
from tis.engine.answer import AnswerDelta, FinishReason, Piece, ReportedUsage, TokenLogprob
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.mcp_client.toolbox import Toolbox, tool_from_json
from tis.streaming.source import Block
from tis.streaming.stores.store import Status


class ModelRound:
    """One prompt, or a list of prompts, and what the model has made of it so far."""

    def __init__(
        self, request: ResumableRequest, parser: ParserConfig | None, more_prompts: Sequence[ResumableRequest] = ()
    ) -> None:
        prompts = (request, *more_prompts)
        choices = range(sum(one.params.n for one in prompts))
        self.request = request
        self.more_prompts = more_prompts
        self.emitted = [EmittedTokens() for _ in choices]
        self.readers = [PartReader(parser, choice, request.visible_markers) for choice in choices]
        self.predictions = [PredictionMatch(request.prediction_ids) for _ in choices] if request.prediction_ids else []
        self.stops: list[str | None] = [None for _ in choices]  # the stop strings that ended the choices
        self._prompt_of = [number for number, one in enumerate(prompts) for _ in range(one.params.n)]  # by choice
        self._num_cached = [0] * len(prompts)
        self._num_made = [0] * len(prompts)
        self._num_prompt = [one.num_prompt_tokens for one in prompts]
        self._reported: dict[int, ReportedUsage] = {}  # by an engine elsewhere, of each prompt

    def add_cached(self, choice: int, num_cached: int) -> None:
        """`num_cached`: of the prompt of this choice. After a resume, it may be another number than before."""
        number = self._prompt_of[choice]
        if num_cached > self._num_cached[number]:
            self._num_cached[number] = num_cached

    @property
    def num_cached(self) -> int:
        return sum(self._num_cached)

    def add_made(self, choice: int, num_made: int) -> None:
        self._num_made[self._prompt_of[choice]] += num_made

    def correct(self, choice: int, usage: ReportedUsage) -> tuple[int, int]:
        """An engine elsewhere has counted what was estimated here. Returns how many tokens there are more."""
        number = self._prompt_of[choice]
        more = usage.num_prompt - self._num_prompt[number], usage.num_made - self._num_made[number]
        self._num_prompt[number], self._num_made[number] = usage.num_prompt, usage.num_made
        self._reported[number] = usage
        self.add_cached(choice, usage.num_cached)
        return more

    @property
    def is_over(self) -> bool:
        return all(one.finish for one in self.emitted)

    @property
    def finish(self) -> FinishReason | None:
        """Of the only choice, or of the first that was cancelled."""
        finishes = [one.finish for one in self.emitted]
        return "cancelled" if "cancelled" in finishes else finishes[0]

    @property
    def num_reasoning(self) -> int:
        if self._reported:
            return sum(usage.num_reasoning for usage in self._reported.values())
        return sum(reader.num_reasoning for reader in self.readers)


class RunLog:
    def __init__(self, writer: Writer, toolbox: Toolbox | None, compaction: CompactionSpec | None = None) -> None:
        self.toolbox = toolbox  # None: the run calls no MCP server
        self.transcript = Transcript(toolbox) if toolbox else None
        self.round: ModelRound | None = None  # the current one, or the last
        self.num_rounds = 0
        self.num_calls = 0
        self.has_begun = self.is_over = False
        self.outcome: Status = "finished"
        self.listing: str | None = None  # a server whose tools are being listed
        self.summary_text: str | None = None  # of the conversation, once it is compacted
        self._compaction = compaction
        self._summary: list[str] | None = None  # as it grows
        self._num_summary_tokens = 0
        self._writer = writer
        self._usage = RunUsage()  # of all rounds; of the current one, without cached tokens and reasoning
        self._num_events = 0
        self._unsaved: list[str] = []  # records that have made no event yet

    @property
    def num_made(self) -> int:
        """Of the answer, without a summary that came before it."""
        return self._usage.num_made - self._num_summary_tokens

    @property
    def has_summary(self) -> bool:
        """Of the summary as it grows: whether it says anything."""
        return bool("".join(self._summary or ()).strip())

    @property
    def has_tokens(self) -> bool:
        return bool(self._usage.first_token_at)

    @property
    def usage(self) -> RunUsage:
        usage, current = self._usage, self.round
        if current is None:
            return usage
        return RunUsage(
            usage.num_prompt,
            usage.num_cached + current.num_cached,
            usage.num_made,
            usage.num_reasoning + current.num_reasoning,
            # A run of several rounds has no prediction.
            len(current.predictions) * len(current.request.prediction_ids),
            sum(one.num_right for one in current.predictions),
            usage.num_audio,
            usage.first_token_at,
            usage.ended_at,
        )

    @property
    def finish_reasons(self) -> list[str]:
        """Of the choices of the last round that have ended, in OpenAI's words."""
        current, transcript = self.round, self.transcript
        if current is None:
            return []
        return [
            "tool_calls"
            if one.finish == "stop" and (transcript.has_whole_functions if transcript else reader.has_whole_calls)
            else one.finish
            for one, reader in zip(current.emitted, current.readers, strict=True)
            if one.finish
        ]

    @property
    def summary(self) -> bytes:
        return self._writer.summary(self.usage)

    def add(self, *record: Any) -> Sequence[Block]:
        self._unsaved.append(json.dumps(record))
        return self._saved(self._apply(list(record)))

    def add_piece(self, piece: Piece, num_cached: int) -> Sequence[Block]:
        record, events = encode_piece(piece, num_cached), self._piece(piece, num_cached)
        if len(events) == 1 and not self._unsaved:  # nearly every token
            self._num_events += 1
            return (Block(events[0], f"[{record}]".encode()),)
        self._unsaved.append(record)
        return self._saved(events)

    def begin_round(
        self, request: ResumableRequest, parser: ParserConfig | None, more_prompts: Sequence[ResumableRequest] = ()
    ) -> None:
        """Of a run that has one round only, which its specification describes: no record says so."""
        self.num_rounds += 1
        self._open_round(request, parser, more_prompts)
        if self.transcript:
            self.transcript.begin_round()

    def _open_round(
        self, request: ResumableRequest, parser: ParserConfig | None, more_prompts: Sequence[ResumableRequest] = ()
    ) -> None:
        self._count_round()
        self._usage.num_prompt += sum(one.num_prompt_tokens for one in (request, *more_prompts))
        self._usage.num_audio += sum(one.num_audio_tokens for one in (request, *more_prompts))
        self.round = ModelRound(request, parser, more_prompts)

    def _count_round(self) -> None:
        """What is counted with a round until the next one begins."""
        if self.round:
            self._usage.num_cached += self.round.num_cached
            self._usage.num_reasoning += self.round.num_reasoning
            self.round = None

    def _begin_summary(self) -> Events:
        if self._compaction is None:
            raise ValueError("a summary in a run that compacts nothing")
        self._open_round(self._compaction.request, self._compaction.parser)
        self._summary = []
        return self._writer.call(CompactionBegun())

    def _end_summary(self) -> Events:
        self.summary_text, self._summary = "".join(self._summary or ()).strip(), None
        self._num_summary_tokens = self._usage.num_made
        self._count_round()
        return self._writer.call(CompactionEnded(self.summary_text))

    def fail(self, error: Exception) -> Block:
        self._unsaved.append('["failed"]')
        [block] = self._saved([self._writer.failed(error)])
        self._apply(["failed"])
        return block

    def replay(self, resume_states: Sequence[bytes]) -> None:
        """Makes the events once more and drops them: parsers, writer and counts are then where they were."""
        for resume_state in filter(None, resume_states):
            for record in json.loads(resume_state):
                if isinstance(record[0], int):
                    self._num_events += len(self._piece(*decode_piece(record)))
                else:
                    self._num_events += len(self._apply(record))
        if not self.is_over and self._num_events != len(resume_states):
            raise ValueError(f"{len(resume_states)} events are stored, and {self._num_events} follow from the records")

    def _saved(self, events: Events) -> Sequence[Block]:
        """All of these events are stored, or none: the first has the records of all of them."""
        if not events:
            return []
        self._num_events += len(events)
        resume_state, self._unsaved = f"[{','.join(self._unsaved)}]".encode(), []
        return [Block(event, b"" if number else resume_state) for number, event in enumerate(events)]

    def _apply(self, record: list[Any]) -> Events:
        match record:
            case ["begun", num_choices]:
                self.has_begun = True
                return self._writer.begun(num_choices)
            case ["round", request, parser]:
                self.begin_round(ResumableRequest.from_json(request), parser and ParserConfig.from_json(parser))
                return []
            case ["compacting"]:
                return self._begin_summary()
            case ["compacted"]:
                return self._end_summary()
            case ["failed"]:
                self.is_over, self.outcome = True, "failed"
                return []
            case ["first_token", at]:
                self._usage.first_token_at = at
                return []
            case ["ended", finish, *at]:
                self._usage.ended_at = next(iter(at), 0)
                return self._end(finish)
        if not (self.toolbox and self.transcript):
            raise ValueError(f"the record {record[:1]} in a run without MCP servers")
        match record:
            case ["listing", label]:
                self.listing = label
                return self._writer.call(ToolsListing(label, self.toolbox.servers[label].server.url))
            case ["listed", label, tools, error]:
                self.listing = None
                if not error:
                    self.toolbox.put(label, map(tool_from_json, tools))
                return self._writer.call(ToolsListed(label, tools, error))
            case ["approved", request]:
                return self._writer.call(CallApproved(self.transcript.add_approved(request)))
            case ["calling", number]:
                self.num_calls += 1
                return self._writer.call(CallBegun(self.transcript.begin_call(number)))
            case ["called", number, output, error]:
                return self._writer.call(CallEnded(self.transcript.end_call(number, output, error)))
        raise ValueError(f"unknown record {record[:1]}")

    def _piece(self, piece: Piece, num_cached: int) -> Events:
        current = self.round
        if current is None:
            raise ValueError("a piece before the first round")
        emitted, reader = current.emitted[piece.choice], current.readers[piece.choice]
        if piece.prompt_logprobs:
            emitted.num_scored += len(piece.prompt_logprobs)
            return self._writer.part(piece.choice, PromptScores(piece.prompt_logprobs))
        emitted.token_ids += piece.token_ids
        if current.predictions:
            current.predictions[piece.choice].feed(piece.token_ids)
        emitted.finish = piece.finish
        if piece.stop:
            current.stops[piece.choice] = piece.stop
        num_made = len(piece.token_ids)
        if current.request.upstream:
            num_made = _add_foreign(emitted, piece)
        self._usage.num_made += num_made
        current.add_made(piece.choice, num_made)
        current.add_cached(piece.choice, num_cached)
        if piece.usage:
            of_prompt, made = current.correct(piece.choice, piece.usage)
            self._usage.num_prompt += of_prompt
            self._usage.num_made += made
        parts = reader.read(piece)
        if self._summary is not None:
            self._summary += [part.text for part in parts if isinstance(part, TextDelta)]
            return []
        if len(parts) == 1 and not (piece.finish or self.transcript):
            return self._writer.part(piece.choice, parts[0])  # the path of nearly every token
        events: list[bytes] = []
        for part in parts:
            shown = self.transcript.add(part) if self.transcript else part
            events += self._writer.part(piece.choice, shown)
        if piece.finish:
            events += self._writer.part(
                piece.choice, RoundEnd(piece.finish) if self.transcript else self._choice_end(piece.choice)
            )
        return events

    def _end(self, finish: FinishReason) -> Events:
        self.is_over = True
        self.outcome = "cancelled" if finish == "cancelled" else "finished"
        events: list[bytes] = []
        if self.transcript:
            for call in self.transcript.unfinished_calls:
                events += self._writer.call(CallDropped(call))
            context, stop = (self.round.request.context, self.round.stops[0]) if self.round else (None, None)
            events += self._writer.part(0, ChoiceEnd(finish, self.transcript.has_whole_functions, context, stop))
        return [*events, *self._writer.ended(finish, self.usage)]

    def _choice_end(self, choice: int) -> ChoiceEnd:
        assert self.round
        finish = self.round.emitted[choice].finish
        assert finish
        has_calls, stop = self.round.readers[choice].has_whole_calls, self.round.stops[choice]
        return ChoiceEnd(finish, has_calls, self.round.request.context, stop)


def _add_foreign(emitted: EmittedTokens, piece: Piece) -> int:
    """Remembers what another engine has to continue if the first one fails; a piece counts as a token until it ends."""
    if piece.text:
        emitted.texts.append(piece.text)
    for delta in piece.deltas:
        if delta.kind == "text":
            emitted.texts.append(delta.text)
        elif delta.kind == "reasoning":
            emitted.reasoning.append(delta.text)
        emitted.num_calls += delta.kind == "call"
    num_made = int(bool(piece.text or piece.deltas))
    emitted.num_pieces += num_made
    return num_made


def encode_piece(piece: Piece, num_cached: int) -> str:
    """The record of a piece. By hand, as this is the path of every token; a list of numbers prints as JSON."""
    text, token_ids = encode_basestring_ascii(piece.text), piece.token_ids
    if not (piece.finish or piece.markers or piece.logprobs or piece.prompt_logprobs or piece.deltas):
        if len(token_ids) == 1:
            return f"[{piece.choice},{text},[{token_ids[0]}],{num_cached}]"
        return f"[{piece.choice},{text},{list(token_ids)},{num_cached}]"
    logprobs, scores = ([_logprob_to_json(one) for one in some] for some in (piece.logprobs, piece.prompt_logprobs))
    usage = piece.usage
    rare: list[Any] = [
        *(piece.stop, scores, piece.offsets),
        [[one.kind, one.text, one.index, one.call_id] for one in piece.deltas],
        usage and [usage.num_prompt, usage.num_made, usage.num_cached, usage.num_reasoning],
    ]
    while rare and not rare[-1]:
        del rare[-1]
    more = json.dumps([piece.finish, piece.markers, logprobs, *rare])
    return f"[{piece.choice},{text},{list(token_ids)},{num_cached},{more[1:]}"


def decode_piece(record: Sequence[Any]) -> tuple[Piece, int]:
    choice, text, token_ids, num_cached, *more = record
    finish, markers, logprobs, *rare = more or (None, (), ())
    known: list[Any] = [*rare, *(None, (), (), (), None)[len(rare) :]]
    stop, scores, offsets, deltas, usage = known
    placed = tuple((at, marker) for at, marker in markers)
    parsed, scored = (tuple(map(_logprob_from_json, some)) for some in (logprobs, scores))
    return Piece(
        *(choice, text, tuple(token_ids), parsed, finish, placed, scored, stop, tuple(offsets)),
        deltas=tuple(AnswerDelta(*delta) for delta in deltas),
        usage=usage and ReportedUsage(*usage),
    ), num_cached


def _logprob_to_json(one: TokenLogprob) -> list[object]:
    return [one.token_id, one.text, one.bytes.hex(), one.logprob, [_logprob_to_json(top) for top in one.top]]


def _logprob_from_json(given: Sequence[Any]) -> TokenLogprob:
    token_id, text, data, logprob, top = given
    return TokenLogprob(token_id, text, bytes.fromhex(data), logprob, tuple(map(_logprob_from_json, top)))
