"""Begins a response: collects its history, converts and prepares it, and makes the run."""

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tis.admission.ticket import Ticket
from tis.chat.media import with_media
from tis.chat.parse.config import ParserConfig
from tis.chat.part_reader import parser_config
from tis.chat.run import Run, first_prompt
from tis.chat.run_spec import McpSpec, RunSpec, Services
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import media_of
from tis.errors import BadRequest
from tis.http.scanned_route import in_thread_if
from tis.openai_api.store.conversations import StoredConversation
from tis.openai_api.store.items import (
    Item,
    new_response_id,
    output_id,
    to_client_items,
)
from tis.openai_api.store.responses import RESPONSE, ResponseStore, StoredItem
from tis.openai_api.wire import response_writer
from tis.openai_api.wire.as_chat import as_chat, with_response_params
from tis.openai_api.wire.begin import EVENTS_BESIDE_TOKENS, cache_salt_of, converted_chat, keep_media
from tis.openai_api.wire.chat_prompt import require_template_options
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.client_items import call_ids_in
from tis.openai_api.wire.compact import Compacting, PreparedCompaction, written_summary
from tis.openai_api.wire.compacted_context import (
    COMPACTION,
    ToolContext,
    awaits_approval,
    compaction_item,
    plain_text,
    said_in,
)
from tis.openai_api.wire.request_items import RequestItems, mcp_parts
from tis.openai_api.wire.response_request import ENCRYPTED_REASONING, ResponseRequest
from tis.openai_api.wire.response_tools import HostedTools, ResponseTools
from tis.openai_api.wire.response_writer import Response, ResponseWriter, new_response, response_usage, writer_state
from tis.openai_api.wire.structured_output import response_format_grammar
from tis.openai_api.wire.tools import (
    tools_offered,
)
from tis.streaming.retention import Retention
from tis.streaming.session_request import SessionRequest

# A history beyond these is converted in a thread.
_MANY_ITEMS = 500
_MANY_BYTES = 256 * 1024

PrepareCompacting = Callable[[Compacting], Awaitable[PreparedRequest]]


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
        self._own = RequestItems(body, self.response_id)
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
        given, references = await self._own.with_references(store)
        earlier, own = self._own.in_context(earlier, given)
        origin = "conversation" if body.conversation_id else "previous_response_id"
        items = [*((origin, item) for item, _ in earlier), *own]
        self._context = [item for _, item in items]
        self._is_large |= len(items) > _MANY_ITEMS or store.num_bytes_read > _MANY_BYTES
        mcp = await in_thread_if(self._is_large, lambda: mcp_parts(body, self.tools.servers, own, items))
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
        await in_thread_if(self._is_large, lambda: self._own.name_media([item for _, item in own], digests))
        may_be_resumed = store.durability != "memory" or (self._body.background and store.lasts)
        if not may_be_resumed:  # by another process
            attachments = {name: data for name, data in attachments.items() if name in self._own.media_names}
        self._attachments = attachments
        keep_media(self._ticket, attachments, None if mcp else prepared)
        return prepared

    @property
    def is_large(self) -> bool:
        """Whether what is read for it, or made of it, takes long to convert."""
        return self._is_large or bool(self._attached)

    @property
    def calls_servers(self) -> bool:
        """Tools of MCP servers, which may do something each time."""
        return bool(self._mcp and self._mcp.servers)

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
        return prepared.num_prompt_tokens

    def require_room_in(self, conversation: StoredConversation) -> None:
        self._own.require_room_in(conversation, self._attachments)

    def response(self, prepared: PreparedRequest) -> Response:
        return new_response(self.response_id, self._model_id, self._body, self.tools.shown, prepared.params)

    def session(self, owner: str, prepared: PreparedRequest, ttl_seconds: float) -> SessionRequest:
        body = self._body
        # Nobody can come back to what is neither streamed nor in the background before it is over: its id is not known.
        grace = math.inf if body.background else None if body.stream and body.is_stored else 0.0
        retention = Retention(RESPONSE, ttl_seconds, grace, self._own.document, self._own.media_names)
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
        if self._own.only_compacts:
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


async def _prepare_as_it_is(compacting: Compacting) -> PreparedRequest:
    return await compacting.as_it_is()
