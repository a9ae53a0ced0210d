"""Begins a chat: converts and prepares it, and makes the run. What other answers begin with, too, is here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tis.admission.ticket import Ticket
from tis.chat.media import with_media
from tis.chat.parse.config import ParserConfig
from tis.chat.part_reader import parser_config
from tis.chat.parts import NewWriter
from tis.chat.run import Run
from tis.chat.run_spec import ForcedCall, McpSpec, RunSpec, Services
from tis.engine.grammar.grammar import Grammar
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.errors import BadRequest
from tis.http.scanned_route import in_thread_if
from tis.mcp_client.client import McpClient
from tis.openai_api.wire import chat_writer
from tis.openai_api.wire.chat_prompt import chat_prompt, requested_sampling, require_template_options
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.chat_writer import ChatWriter, chat_writer_state
from tis.openai_api.wire.old_functions import naming_old_functions, with_tools_of_functions
from tis.openai_api.wire.structured_output import requested_grammar, response_format_grammar
from tis.openai_api.wire.tools import (
    WEB_SEARCH,
    ServerTool,
    custom_names,
    forced_mcp_call,
    requested_servers,
    tools_offered,
    with_allowed_tools,
    with_custom_choice,
)
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

# Events of an answer beyond its tokens: roles, items, ends, usage, with room to spare.
EVENTS_BESIDE_TOKENS = 256


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
            cites=any(one.server.label == WEB_SEARCH for one in chat.servers),
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


def keep_media(ticket: Ticket, attachments: Mapping[str, bytes], prepared: PreparedRequest | None) -> None:
    """Gives back the room of files and pixels that nobody needs any more. With MCP, each round needs the pixels."""
    files = {**attachments, **(prepared.upstream_media if prepared else {})}
    ticket.keep("media_bytes", sum(map(len, files.values())))
    if prepared:
        ticket.keep("decoded_bytes", prepared.num_media_bytes)
