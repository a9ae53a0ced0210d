"""Begins a chat or a response: collects its history, converts and prepares it, and makes the run."""

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tis.admission.ticket import Ticket
from tis.chat.media import with_media
from tis.chat.parse.config import ParserConfig
from tis.chat.part_reader import parser_config
from tis.chat.parts import NewWriter
from tis.chat.run import Run, first_prompt
from tis.chat.run_spec import ForcedCall, McpSpec, RunSpec, Services
from tis.engine.grammar.grammar import Grammar
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, media_of
from tis.errors import BadRequest
from tis.http.scanned_route import in_thread_if
from tis.mcp_client.client import McpClient
from tis.openai_api.store.conversations import StoredConversation
from tis.openai_api.store.items import (
    Item,
    media_names,
    media_parts,
    new_response_id,
    output_id,
    to_client_items,
    with_media_names,
)
from tis.openai_api.store.responses import RESPONSE, ResponseStore, StoredItem, encode_document
from tis.openai_api.wire import chat_writer, response_writer
from tis.openai_api.wire.as_chat import as_chat, with_response_params
from tis.openai_api.wire.chat_prompt import chat_prompt, requested_sampling, require_template_options
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.chat_writer import ChatWriter, chat_writer_state
from tis.openai_api.wire.client_items import call_ids_in
from tis.openai_api.wire.compact import Compacting, PreparedCompaction, written_summary
from tis.openai_api.wire.compacted_context import (
    COMPACTION,
    COMPACTION_TRIGGER,
    ToolContext,
    awaits_approval,
    compaction_item,
    places_in_context,
    plain_text,
    replaces_earlier,
    said_in,
)
from tis.openai_api.wire.input_items import PlacedItem, approved_requests, checked_items, listed_before
from tis.openai_api.wire.old_functions import naming_old_functions, with_tools_of_functions
from tis.openai_api.wire.response_request import ENCRYPTED_REASONING, ResponseRequest
from tis.openai_api.wire.response_tools import HostedTools, ResponseTools
from tis.openai_api.wire.response_writer import Response, ResponseWriter, new_response, response_usage, writer_state
from tis.openai_api.wire.structured_output import requested_grammar, response_format_grammar
from tis.openai_api.wire.tools import (
    ServerTool,
    custom_names,
    forced_mcp_call,
    requested_servers,
    tools_offered,
    with_allowed_tools,
    with_custom_choice,
)
from tis.streaming.retention import Retention
from tis.streaming.session import Session
from tis.streaming.sessions import SessionRequest, Sessions
from tis.streaming.turn import Turn

# Events of an answer beyond its tokens: roles, items, ends, usage, with room to spare.
EVENTS_BESIDE_TOKENS = 256
_MAX_REFERENCES = 256  # each may be of another response, which has to be read
# A history beyond these is converted in a thread.
_MANY_ITEMS = 500
_MANY_BYTES = 256 * 1024


class Salted(Protocol):
    cache_salt: str | None


def cache_salt_of(body: Salted, owner: str) -> str:
    """Without a salt of its own, a request shares cached prefixes with those of its owner."""
    return f"salt:{body.cache_salt}" if body.cache_salt else f"owner:{owner}"


@dataclass(frozen=True, slots=True)
class ConvertedChat:
    """A chat request in the terms of the engine."""

    body: ChatRequest
    servers: list[ServerTool]
    forced: ForcedCall
    prompt: ChatPrompt
    sampling: dict[str, Any]
    grammar: Grammar | None


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The dialect of an answer: the name by which another process finds the writer, and what that begins with."""

    dialect: str
    answer_id: str
    writer_state: dict[str, Any]
    new_writer: NewWriter


PrepareCompacting = Callable[[Compacting], Awaitable[PreparedRequest]]
ChooseForm = Callable[[ConvertedChat, PreparedRequest], AnswerForm]


def form_of_chat(model_id: str) -> ChooseForm:
    """The chunks of `/v1/chat/completions`."""

    def choose(chat: ConvertedChat, prepared: PreparedRequest) -> AnswerForm:
        body = chat.body
        state = chat_writer_state(
            model_id,
            with_usage=bool(body.stream and body.wants_usage),
            may_call=bool(tools_offered(body) or chat.servers),
            hides_reasoning=body.include_reasoning is False,
            custom_tools=custom_names(body),
            has_old_shape=body.functions is not None,
        )
        return AnswerForm(chat_writer.DIALECT, state["id"], state, ChatWriter)

    return choose


def converted_chat(body: ChatRequest, mcp_client: McpClient) -> ConvertedChat:
    body = with_custom_choice(with_allowed_tools(with_tools_of_functions(body)))
    servers = mcp_servers_of(body, mcp_client)
    forced = forced_mcp_call([one.server for one in servers], body.tool_choice) if servers else None
    if forced is not None:  # tools that are not listed yet cannot be checked before
        body = body.model_copy(update={"tool_choice": None})
    return ConvertedChat(body, servers, forced, chat_prompt(body), requested_sampling(body), requested_grammar(body))


async def begin_chat(
    body: ChatRequest,
    services: Services,
    sessions: Sessions,
    wanted: SessionRequest,
    model_id: str,
    ticket: Ticket,
    *,
    choose_form: ChooseForm | None = None,
    is_large: bool = False,
) -> tuple[Session, Turn]:
    """Dialects beside OpenAI's convert their requests into a `ChatRequest`, and choose the form of the answer."""
    engine = services.engine
    with naming_old_functions(body):
        chat = await in_thread_if(is_large, lambda: converted_chat(body, services.mcp_client))
    body, servers, forced = chat.body, chat.servers, chat.forced
    await require_template_options(body, engine, model_id)
    prompt, attachments = await with_media(chat.prompt, model_id, engine, services.media, ticket)
    if sessions.durability == "memory":
        attachments = {}  # nobody will read them again
    with naming_old_functions(body):
        prepared = await engine.prepare(
            model_id, prompt, chat.sampling, chat.grammar, cache_salt=cache_salt_of(body, wanted.owner), ticket=ticket
        )
    keep_media(ticket, attachments, None if servers else prepared)
    max_events = prepared.params.n * (prepared.params.max_tokens + 2) + EVENTS_BESIDE_TOKENS
    form = (choose_form or form_of_chat(model_id))(chat, prepared)
    mcp: McpSpec | None = None
    parser: ParserConfig | None = None
    if servers:
        mcp = chat_mcp_spec(body, servers, prompt, forced)
    else:
        one_call = body.parallel_tool_calls is False
        parser = parser_config(prepared, form.answer_id, tools_offered(body), one_call=one_call)
    spec = RunSpec(form.dialect, form.answer_id, form.writer_state, prepared.resumable, parser, mcp)

    def begin() -> Run:
        only_round, writer = None if servers else prepared, form.new_writer(form.writer_state)
        return Run(spec, services, writer, prepared=only_round, attachments=attachments, ticket=ticket)

    return start_run(sessions, wanted.with_window(max_events), begin)


def start_run(sessions: Sessions, wanted: SessionRequest, begin: Callable[[], Run]) -> tuple[Session, Turn]:
    """Begins a run and its turn, or finds the turn that answers the request already.

    The run holds its ticket once its turn has begun: until then the request gives it back.
    """
    run: Run | None = None

    def begin_run() -> Run:
        nonlocal run
        run = begin()
        return run

    try:
        started = sessions.start(wanted, begin_run)
    except Exception:
        if run:
            run.cancel()
        raise
    if run:
        run.hold_ticket()
    return started


def chat_mcp_spec(body: ChatRequest, servers: list[ServerTool], prompt: ChatPrompt, forced: ForcedCall) -> McpSpec:
    one_call = body.parallel_tool_calls is False
    return McpSpec(prompt, [one.server for one in servers], response_format_grammar(body), forced, one_call=one_call)


def mcp_servers_of(body: ChatRequest, mcp_client: McpClient) -> list[ServerTool]:
    """The MCP servers that the model may call; empty if there are none."""
    tools = [tool.model_dump(exclude_unset=True) for tool in body.tools or ()]
    servers = requested_servers(tools, mcp_client)
    if not servers:
        return []
    for position, tool in enumerate(tools):
        if tool["type"] == "mcp" and tool.get("require_approval") != "never":
            raise _refused(
                "must be `never`, because a chat cannot ask for approval.", f"tools.{position}.require_approval"
            )
    if (body.n or 1) > 1:
        raise _refused("must be 1 with MCP tools.", "n")
    if isinstance(body, ChatRequest) and body.prediction:
        raise _refused("is not supported with MCP tools, because the answer takes several rounds.", "prediction")
    if body.continue_final_message or body.add_generation_prompt is False:
        name = "continue_final_message" if body.continue_final_message else "add_generation_prompt"
        raise _refused("is not supported with MCP tools, because the answer takes several rounds.", name)
    return [] if body.tool_choice == "none" else servers


def _refused(message: str, param: str) -> BadRequest:
    return BadRequest(f"{param} {message}", param=param, code="unsupported_value")


def _require_few_references(items: Sequence[Item]) -> None:
    if sum(item["type"] == "item_reference" for item in items) > _MAX_REFERENCES:
        raise BadRequest(
            f"input: at most {_MAX_REFERENCES} items may be an item_reference.",
            param="input",
            code="too_many_references",
        )


class ResponseBeginning:
    """A request on its way to the engine."""

    def __init__(
        self,
        body: ResponseRequest,
        model_id: str,
        services: Services,
        ticket: Ticket,
        *,
        hosted: HostedTools,
        is_large: bool = False,
    ) -> None:
        """Takes long if the body is large: see `in_thread_if`."""
        if body.input is None and body.conversation_id is None and body.previous_response_id is None:
            raise BadRequest("input: Field required", param="input", code="missing_required_parameter")
        self.response_id = new_response_id()
        self.tools = ResponseTools(body.tools or (), services.mcp_client, hosted)
        self._body = body
        self._model_id = model_id
        self._services = services
        self._is_large = is_large
        self._ticket = ticket
        given = [] if body.input is None else body.input
        last = given[-1] if isinstance(given, list) and given else {}
        self._is_only_compacted = last.get("type") == COMPACTION_TRIGGER
        if self._is_only_compacted:
            given = given[:-1]
        self._items = checked_items(given, self.response_id, "input")
        _require_few_references(self._items)
        self._document = b""
        self._media_names: frozenset[str] = frozenset()  # of its own items
        self._attachments: Mapping[str, bytes] = {}
        self._context: Sequence[Item] = ()  # the items that the model reads
        self._attached: Mapping[str, bytes] = {}  # to the stored ones of them
        self._parser: ParserConfig | None = None
        self._mcp: McpSpec | None = None
        self._compaction: PreparedCompaction | None = None

    async def prepare(self, store: ResponseStore, earlier: Sequence[StoredItem]) -> PreparedRequest:
        return await self._prepare(store, earlier, self._prepare_answer)

    async def _prepare(
        self, store: ResponseStore, earlier: Sequence[StoredItem], prepare_with: PrepareCompacting
    ) -> PreparedRequest:
        body, services = self._body, self._services
        engine = services.engine
        given, references = await self._with_references(store)
        earlier, own = self._in_context(earlier, given)
        origin = "conversation" if body.conversation_id else "previous_response_id"
        items = [*((origin, item) for item, _ in earlier), *own]
        self._context = [item for _, item in items]
        self._is_large |= len(items) > _MANY_ITEMS or store.num_bytes_read > _MANY_BYTES
        mcp = await in_thread_if(self._is_large, lambda: self._mcp_parts(own, items))
        limits = services.media.limits
        attached = await store.read_attachments(
            [*earlier, *references], max_items=limits.max_items, max_bytes=limits.max_request_bytes
        )
        self._attached = attached
        if mcp and mcp["forced_call"] is not None:  # tools that are not listed yet cannot be checked before
            body = body.model_copy(update={"tool_choice": None})

        def convert() -> tuple[ChatRequest, list[str], ToolContext]:
            self.tools.add_found(items)
            chat, origins = as_chat(body, items, self.tools.functions, attached)
            return chat, origins, ToolContext(self.tools.found, call_ids_in(self._context))

        chat, origins, tools = await in_thread_if(self._is_large or bool(attached), convert)
        try:
            converted = await in_thread_if(self._is_large, lambda: converted_chat(chat, services.mcp_client))
            await require_template_options(chat, engine, self._model_id)
            prompt = replace(converted.prompt, may_truncate=body.truncation == "auto")
            prompt, attachments = await with_media(prompt, self._model_id, engine, services.media, self._ticket)
            compacting = Compacting(
                engine,
                self._model_id,
                self._ticket,
                cache_salt_of(body, store.owner),
                prompt,
                chat.messages or (),
                1 if body.instructions else 0,
                tools,
                converted.sampling,
                converted.grammar,
            )
            prepared = await prepare_with(compacting)
        except BadRequest as error:
            raise with_response_params(error, origins) from None
        one_call = body.parallel_tool_calls is False
        of_rounds = prompt
        if self._compaction and self._compaction.answer:
            of_rounds = self._compaction.prompt
            mcp = mcp or {"servers": (), "forced_call": None, "one_call": one_call}
        if mcp:
            self._mcp = McpSpec(of_rounds, form=response_format_grammar(chat), **mcp)
        else:
            self._parser = parser_config(prepared, self.response_id, tools_offered(chat), one_call=one_call)
        digests = [medium.digest for medium in media_of(prompt.messages)]
        await in_thread_if(self._is_large, lambda: self._name_media([item for _, item in own], digests))
        if store.durability == "memory":  # no other process will resume it
            attachments = {name: data for name, data in attachments.items() if name in self._media_names}
        self._attachments = attachments
        keep_media(self._ticket, attachments, None if mcp else prepared)
        return prepared

    @property
    def is_large(self) -> bool:
        """Whether what is read for it, or made of it, takes long to convert."""
        return self._is_large or bool(self._attached)

    async def compact(self, store: ResponseStore, earlier: Sequence[StoredItem]) -> dict[str, Any]:
        """The messages that are not the assistant's, and the item that stands for all else."""
        said: list[Item] = []

        async def prepare_with(compacting: Compacting) -> PreparedRequest:
            limit = await compacting.limit(None)
            self._compaction = await compacting.window(limit)
            given = await in_thread_if(self.is_large, lambda: said_in(self._context, self.response_id))
            num_said = await compacting.newest_within([plain_text(item) for item in given], limit // 2)
            newest = given[len(given) - num_said :]
            said.extend(await in_thread_if(self.is_large, lambda: to_client_items(newest, self._attached)))
            return self._compaction.summary

        await self._prepare(store, earlier, prepare_with)
        assert self._compaction
        written = await written_summary(self._compaction, self.response_id, self._services, self._ticket)
        item = compaction_item(output_id(self.response_id, COMPACTION, len(said)), written.encrypted_content)
        return {
            "id": self.response_id,
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [*said, item],
            "usage": response_usage(written.usage),
        }

    async def count_tokens(self, store: ResponseStore, earlier: Sequence[StoredItem]) -> int:
        """What would be compacted counts as it is."""
        prepared = await self._prepare(store, earlier, _prepare_as_it_is)
        if self._mcp:
            prepared = await first_prompt(
                self._spec(prepared, self.response(prepared)), self._mcp, self._services, self._ticket
            )
        return len(prepared.prompt_ids)

    def require_room_in(self, conversation: StoredConversation) -> None:
        """Raises if the conversation has become too large, or if another request changed it."""
        if not self._body.is_stored:
            own = {name: data for name, data in self._attachments.items() if name in self._media_names}
            conversation.require_room_for_items(self._items, own)
        conversation.require_room_for(self.response_id)
        conversation.require_unchanged()

    def response(self, prepared: PreparedRequest) -> Response:
        return new_response(self.response_id, self._model_id, self._body, self.tools.shown, prepared.params)

    def session(self, owner: str, prepared: PreparedRequest, ttl_seconds: float) -> SessionRequest:
        body = self._body
        # Nobody can come back to what is neither streamed nor in the background before it is over: its id is not known.
        grace = math.inf if body.background else None if body.stream and body.is_stored else 0.0
        retention = Retention(RESPONSE, ttl_seconds, grace, self._document, self._media_names)
        fingerprint = self.response_id
        wanted = SessionRequest(owner, self.response_id, fingerprint, resumable=body.is_stored, retention=retention)
        return wanted.with_window(prepared.params.max_tokens + EVENTS_BESIDE_TOKENS)

    async def writer(self, response: Response) -> ResponseWriter:
        return await in_thread_if(self._is_large, lambda: ResponseWriter(self._writer_state(response)))

    def run(self, prepared: PreparedRequest, response: Response, writer: ResponseWriter) -> Run:
        only_round, spec = None if self._mcp else prepared, self._spec(prepared, response)
        if self._compaction:
            only_round = self._compaction.summary
        return Run(
            spec, self._services, writer, prepared=only_round, attachments=self._attachments, ticket=self._ticket
        )

    def _spec(self, prepared: PreparedRequest, response: Response) -> RunSpec:
        state = self._writer_state(response)
        compaction = self._compaction.spec if self._compaction else None
        dialect, request = response_writer.DIALECT, prepared.resumable
        return RunSpec(dialect, self.response_id, state, request, self._parser, self._mcp, compaction=compaction)

    def _writer_state(self, response: Response) -> Response:
        seals_reasoning = ENCRYPTED_REASONING in (self._body.include or ())
        compaction = self._compaction.sealing if self._compaction else None
        tools = self.tools
        return writer_state(
            response,
            seals_reasoning=seals_reasoning,
            calls=tools.calls,
            namespaces=tools.namespaces,
            compaction=compaction,
        )

    async def _prepare_answer(self, compacting: Compacting) -> PreparedRequest:
        body = self._body
        if self._is_only_compacted:
            self._compaction = await compacting.alone(await compacting.limit(None))
            return self._compaction.summary
        if not body.context_management or awaits_approval(self._context):
            return await compacting.as_it_is()
        limit = await compacting.limit(body.compact_threshold)
        if whole := await compacting.whole_prompt(limit):
            return whole
        self._compaction = await compacting.before_answer(limit)
        if self._compaction is None or self._compaction.answer is None:
            return await compacting.as_it_is()
        return self._compaction.answer

    def _in_context(
        self, earlier: Sequence[StoredItem], own: Sequence[PlacedItem]
    ) -> tuple[Sequence[StoredItem], Sequence[PlacedItem]]:
        places = places_in_context([*(item for item, _ in earlier), *(item for _, item in own)])
        num_earlier = len(earlier)
        of_own = [at - num_earlier for at in places if at >= num_earlier]
        self._items = [self._items[at] for at in of_own]
        return [earlier[at] for at in places if at < num_earlier], [own[at] for at in of_own]

    def _mcp_parts(self, own: Sequence[PlacedItem], items: Sequence[PlacedItem]) -> dict[str, Any] | None:
        """What an `McpSpec` has beside the prompt; None if no server is called."""
        body, servers = self._body, self.tools.servers
        approved = approved_requests(own, items, {server.label for server in servers})
        if not servers or (body.tool_choice == "none" and not approved):
            return None
        lists = [(server, listed_before(items, server)) for server in servers]
        return {
            "servers": servers,
            "forced_call": forced_mcp_call(servers, body.tool_choice),
            "offers_tools": body.tool_choice != "none",
            "one_call": body.parallel_tool_calls is False,
            "max_calls": body.max_tool_calls,
            "listed": {one.label: tools for one, tools in lists if tools is not None and one.finds_all_in(tools)},
            "approved": approved,
        }

    def _name_media(self, items: Sequence[Item], digests: Sequence[str]) -> None:
        """The pictures and videos of the request itself are the last of the prompt, in this order."""
        named = with_media_names(items, digests[len(digests) - len(list(media_parts(items))) :])
        self._items = [
            item if item["type"] == "item_reference" else own for item, own in zip(self._items, named, strict=True)
        ]
        self._media_names = media_names(self._items)
        body = self._body
        if body.is_stored or body.conversation_id:
            self._document = encode_document(
                {"items": self._items, "previous": body.previous_response_id, "conversation": body.conversation_id}
            )

    async def _with_references(self, store: ResponseStore) -> tuple[list[PlacedItem], list[StoredItem]]:
        """The items of the request, and those among them that an `item_reference` names."""
        items: list[PlacedItem] = []
        references: list[StoredItem] = []
        for position, item in enumerate(self._items):
            where = f"input.{position}" if isinstance(self._body.input, list) else "input"
            if item["type"] == "item_reference":
                references.append(await store.resolve_reference(item, where))
                item = references[-1][0]
            items.append((where, item))
        return items, references


async def _prepare_as_it_is(compacting: Compacting) -> PreparedRequest:
    return await compacting.as_it_is()


def keep_media(ticket: Ticket, attachments: Mapping[str, bytes], prepared: PreparedRequest | None) -> None:
    """Gives back the room of files and pixels that nobody needs any more. With MCP, each round needs the pixels."""
    ticket.keep("media_bytes", sum(map(len, attachments.values())))
    if prepared:
        ticket.keep("decoded_bytes", prepared.num_media_bytes)


async def read_history(
    store: ResponseStore, body: ResponseRequest
) -> tuple[StoredConversation | None, Sequence[StoredItem]]:
    """The conversation of the request, and the items that come before its own."""
    if body.conversation_id:
        conversation = await StoredConversation.read(store, body.conversation_id, "conversation")
        return conversation, await conversation.items()
    if body.previous_response_id is not None:
        return None, await store.items_until(body.previous_response_id, replaces_earlier)
    return None, []
