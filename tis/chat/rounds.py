"""The rounds of a run with MCP servers: what came of them so far, and the prompt and the grammar of the next one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tis.admission.ticket import Ticket
from tis.chat.mcp_calls import text_for_model
from tis.chat.media import ReloadMedia
from tis.chat.parse.config import ParserConfig
from tis.chat.part_reader import parser_config
from tis.chat.parts import (
    ArgumentsDelta,
    Part,
    ReasoningDelta,
    RunPart,
    ServerCall,
    ServerCallDelta,
    ServerCallEnd,
    ServerCallStart,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from tis.chat.run_spec import McpSpec, RunSpec
from tis.chat.written_arguments import arguments_object
from tis.engine.engine import Engine
from tis.engine.grammar.grammar import Grammar
from tis.engine.grammar.tool_grammars import forced_calls, form_or_calls, strict_calls
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, Medium
from tis.errors import BadRequest, GenerationFailed
from tis.mcp_client.errors import McpDependencyFailed
from tis.mcp_client.toolbox import Toolbox

MAX_RESULT_CHARS = 10 * 2**20


@dataclass(slots=True)
class TranscriptRound:
    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[ServerCall] = field(default_factory=list)
    num_functions: int = 0  # calls that the client has to make
    num_approvals: int = 0  # calls that the client has to approve first
    is_cut: bool = False  # within the last call of a function

    def messages(self) -> list[dict[str, Any]]:
        """As chat templates take them."""
        made = [call for call in self.calls if call.has_ended]
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.texts)}
        if reasoning := "".join(self.reasoning):
            message["reasoning_content"] = reasoning
        if made:
            message["tool_calls"] = [template_call(call.id, call.offered_name, call.arguments) for call in made]
        results = [template_result(call.id, text_for_model(call.output, call.error)) for call in made]
        return [message, *results]


class Transcript:
    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._rounds: list[TranscriptRound] = []
        self._calls: list[ServerCall] = []
        self._growing: ServerCall | None = None
        self._ended: ServerCall | None = None  # the last call, if it is one of a server
        self._now = TranscriptRound()  # before the first round: the calls that were approved

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What came of the request so far."""
        return [message for one in self._rounds for message in one.messages()]

    @property
    def waiting_calls(self) -> Sequence[ServerCall]:
        """Calls that are complete and to be made."""
        return [call for call in self._calls if call.is_whole and not call.has_ended]

    @property
    def unfinished_calls(self) -> Sequence[ServerCall]:
        return [call for call in self._calls if not call.has_ended]

    @property
    def call_in_flight(self) -> ServerCall | None:
        return next((call for call in self._calls if call.is_begun and not call.has_ended), None)

    @property
    def approved_ids(self) -> set[str | None]:
        return {call.approval_request_id for call in self._calls}

    @property
    def has_called_servers(self) -> bool:
        """In this round."""
        return any(call.is_whole for call in self._now.calls)

    @property
    def needs_the_client(self) -> bool:
        """In this round, the model called something that this server cannot do."""
        return self._now.num_functions + self._now.num_approvals > 0

    @property
    def has_whole_functions(self) -> bool:
        return self._now.num_functions > 0 and not self._now.is_cut

    def begin_round(self) -> None:
        self._now, self._growing, self._ended = TranscriptRound(), None, None
        self._rounds.append(self._now)

    def add_approved(self, request: Mapping[str, Any]) -> ServerCall:
        if not self._rounds:
            self._rounds.append(self._now)
        label, name = request["server_label"], request["name"]
        call = self._new_call(request["id"], label, name, self._toolbox.name_of(label, name))
        call.arguments, call.approval_request_id, call.is_whole = request["arguments"], request["id"], True
        return call

    def begin_call(self, number: int) -> ServerCall:
        call = self._calls[number]
        call.is_begun = True
        return call

    def end_call(self, number: int, output: str | None, error: Mapping[str, Any] | None) -> ServerCall:
        call = self._calls[number]
        call.output, call.error, call.has_ended = output, error, True
        return call

    def add(self, part: Part) -> RunPart:
        """The part for writers: calls of MCP servers have parts of their own, functions are numbered without them."""
        match part:
            case TextDelta(text):
                self._now.texts.append(text)
                if self._ended and not text:
                    part.logprobs = ()  # blanks behind a call that clients do not see
            case ReasoningDelta(text):
                self._now.reasoning.append(text)
            case ToolCallStart(_, call_id, name):
                return self._start(part, call_id, name)
            case ArgumentsDelta(_, text):
                if call := self._growing or self._ended:
                    call.arguments += text  # none behind the end
                    return ServerCallDelta(call, text)
                part.index = self._now.num_functions - 1
            case ToolCallEnd(_, is_cut):
                if call := self._growing:
                    self._growing, self._ended, call.is_whole = None, call, not is_cut
                    return ServerCallEnd(call, is_cut)
                part.index, self._now.is_cut = self._now.num_functions - 1, is_cut
        return part

    def _start(self, part: ToolCallStart, call_id: str, name: str) -> RunPart:
        offered, self._ended = self._toolbox.found(name), None
        if offered is None:
            part.index = self._now.num_functions
            self._now.num_functions += 1
            return part
        label, own_name = offered.server.label, offered.tool.name
        if offered.needs_approval:
            self._now.num_approvals += 1
            self._growing = ServerCall(-1, call_id, label, own_name, name)  # the client decides whether it is made
        else:
            self._growing = self._new_call(call_id, label, own_name, name)
        return ServerCallStart(self._growing, offered)

    def _new_call(self, call_id: str, label: str, name: str, offered_name: str) -> ServerCall:
        call = ServerCall(len(self._calls), call_id, label, name, offered_name)
        self._calls.append(call)
        self._now.calls.append(call)
        return call


def template_call(call_id: str | None, name: str, arguments: str) -> dict[str, Any]:
    """Templates expect the arguments as an object, because most of them print it as JSON themselves."""
    return {
        **({"id": call_id} if call_id else {}),
        "type": "function",
        "function": {"name": name, "arguments": arguments_object(arguments)},
    }


def template_result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text[:MAX_RESULT_CHARS]}


class Rounds:
    def __init__(
        self,
        spec: RunSpec,
        mcp: McpSpec,
        toolbox: Toolbox,
        engine: Engine,
        reload_media: ReloadMedia | None = None,
        form: Callable[[], Grammar | None] | None = None,
    ) -> None:
        """`reload_media`: where the prompt came from another process, without pictures and videos.

        `form`: of an answer without a call, where it changes from round to round.
        """
        self._form = form or (lambda: mcp.form)
        self.attachments: Mapping[str, bytes] = {}
        self._request = spec.request
        self._answer_id = spec.answer_id
        self._mcp = mcp
        self._compaction = spec.compaction
        self._prompt = mcp.prompt
        self._toolbox = toolbox
        self._engine = engine
        self._reload_media = reload_media

    async def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        number: int,
        max_tokens: int,
        *,
        offers_servers: bool,
        ticket: Ticket,
        is_resumed: bool,
        summary_text: str | None = None,
    ) -> tuple[PreparedRequest, ParserConfig | None]:
        """`messages`: what came of the request so far; `summary_text`: of a conversation that was compacted."""
        prompt = await self._with_media(ticket)
        functions = [*prompt.tools, *(self._toolbox.functions if offers_servers else ())]
        prompt = replace(prompt, messages=[*self._summarised(prompt, summary_text), *messages], tools=functions)
        params = self._request.params.with_max_tokens(max_tokens)
        upstream = self._request.upstream
        unset = upstream.unset if upstream else ()
        sampling = {one.name: getattr(params, one.name) for one in fields(params) if one.name not in unset}
        try:
            grammar = self._grammar(functions, number)
            prepared = await self._engine.prepare(
                self._request.model_id,
                prompt,
                sampling,
                grammar,
                is_resumed=is_resumed,
                cache_salt=self._request.cache_salt,
                ticket=ticket,
            )
        except BadRequest as refused:
            # The request itself was accepted before any server was called.
            if not self._mcp.servers:
                raise GenerationFailed(f"The answer cannot go on behind the summary. {refused.message}") from None
            raise McpDependencyFailed(
                f"The answer cannot go on with what the MCP servers returned. {refused.message}"
            ) from None
        tools = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in functions}
        # Calls are numbered anew in each round, and their ids are made from that.
        round_id = f"{self._answer_id}:{number}"
        return prepared, parser_config(prepared, round_id, tools, one_call=self._mcp.one_call)

    def _summarised(self, prompt: ChatPrompt, summary_text: str | None) -> Sequence[Mapping[str, Any]]:
        at = self._compaction.summary_at if self._compaction else None
        if at is None or summary_text is None:
            return prompt.messages
        summary = {**prompt.messages[at], "content": summary_text}
        return [*prompt.messages[:at], summary, *prompt.messages[at + 1 :]]

    def _grammar(self, functions: Sequence[Mapping[str, Any]], number: int) -> Grammar | None:
        """A call is forced in the first round only: else the model could never answer."""
        given, forced, parallel = self._request.grammar, self._mcp.forced_call, not self._mcp.one_call
        if forced is not None and not number:
            if label := forced.get("server_label"):
                functions = self._toolbox.functions_of(label, forced["name"])
            return forced_calls(functions, "required", parallel=parallel and not forced.get("name"))
        is_forced = given is not None and given.kind == "tool_calls" and given.value is None
        if is_forced and not number:
            return given
        if form := self._form():
            return form_or_calls(form, functions, parallel=parallel)
        if given is None or is_forced or not given.covers_answer:
            return strict_calls(functions, parallel=parallel)
        return given

    async def _with_media(self, ticket: Ticket) -> ChatPrompt:
        if self._reload_media:
            media, self.attachments = await self._reload_media(ticket)
            shown = iter(media)
            messages = [_with_media(message, shown) for message in self._prompt.messages]
            self._prompt, self._reload_media = replace(self._prompt, messages=messages), None
        return self._prompt


def _with_media(message: Mapping[str, Any], shown: Iterator[Medium]) -> Mapping[str, Any]:
    if not isinstance(message.get("content"), list):
        return message
    parts = [part if part["type"] == "text" else {**part, part["type"]: next(shown)} for part in message["content"]]
    return {**message, "content": parts}
