"""The specification of a run: with the records of its events, all that another process needs to resume it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pydantic import TypeAdapter

from tis.admission.admission import Admission
from tis.chat.parse.config import ParserConfig
from tis.engine.engine import Engine
from tis.engine.grammar.grammar import Grammar
from tis.engine.prompt import ChatPrompt, with_placeholders
from tis.engine.resumable_request import ResumableRequest
from tis.mcp_client.client import McpClient
from tis.mcp_client.requested_server import RequestedServer
from tis.mcp_client.tool_types import McpTool
from tis.mcp_client.toolbox import tool_from_json, tool_to_json
from tis.media.loader import MediaLoader
from tis.observability.spans import NO_TRACER, Tracer

# It rises when the same records make other events, or mean something else: older runs are interrupted then, and servers
# of the version before leave later runs to others (`RedisReplica`).
VERSION = 3
ForcedCall = dict[str, str | None] | None  # of any tool ({}), of a server's tools, or of one tool


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of the app that runs use."""

    engine: Engine
    media: MediaLoader
    mcp_client: McpClient
    commit: Callable[[], Awaitable[bool]]  # returns whether everything so far is on disk
    admission: Admission = field(default_factory=Admission)
    tracer: Tracer = NO_TRACER


@dataclass(frozen=True, slots=True)
class McpSpec:
    """What a run needs if it may call MCP servers, or compacts first: it makes the prompt of each round."""

    prompt: ChatPrompt  # without the tools of the servers; from another process, without pictures and videos
    servers: Sequence[RequestedServer]
    form: Grammar | None  # of an answer without a call
    forced_call: ForcedCall
    offers_tools: bool = True
    one_call: bool = False
    max_calls: int | None = None
    listed: Mapping[str, Sequence[McpTool]] = field(default_factory=dict)  # earlier in the conversation
    approved: Sequence[dict[str, Any]] = ()  # approval requests whose calls come first

    def to_json(self) -> dict[str, Any]:
        prompt = self.prompt
        return {
            "messages": [dict(with_placeholders(message)) for message in prompt.messages],
            "tools": list(prompt.tools),
            "template_options": dict(prompt.template_options),
            "may_truncate": prompt.may_truncate,
            "servers": [server.to_json() for server in self.servers],
            "form": self.form and self.form.to_json(),
            "forced_call": self.forced_call,
            "offers_tools": self.offers_tools,
            "one_call": self.one_call,
            "max_calls": self.max_calls,
            "listed": {label: [tool_to_json(tool) for tool in tools] for label, tools in self.listed.items()},
            "approved": list(self.approved),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        messages, tools, options = given["messages"], given["tools"], given["template_options"]
        return cls(
            ChatPrompt(
                *(messages, tools, options),
                emit_markers=True,
                may_truncate=given["may_truncate"],
                one_call=given["one_call"],
            ),
            [RequestedServer.from_json(server) for server in given["servers"]],
            _FORM.validate_python(given["form"]),
            given["forced_call"],
            given["offers_tools"],
            given["one_call"],
            given["max_calls"],
            {label: [tool_from_json(tool) for tool in tools] for label, tools in given["listed"].items()},
            given["approved"],
        )


@dataclass(frozen=True, slots=True)
class CompactionSpec:
    """The model summarises the conversation before it answers, and the summary takes the place of the rest."""

    request: ResumableRequest  # asks for the summary
    parser: ParserConfig | None
    summary_at: int | None  # the message of the `McpSpec`'s prompt that the summary becomes; None: no answer follows

    def to_json(self) -> dict[str, Any]:
        parser = self.parser and self.parser.to_json()
        return {"request": self.request.to_json(), "parser": parser, "summary_at": self.summary_at}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        parser = given["parser"] and ParserConfig.from_json(given["parser"])
        return cls(ResumableRequest.from_json(given["request"]), parser, given["summary_at"])


class OtherVersion(ValueError):
    """Another version of the server began the run."""


@dataclass(frozen=True, slots=True)
class RunSpec:
    dialect: str  # names the writer
    answer_id: str
    writer_state: dict[str, Any]  # what the writer begins with
    request: ResumableRequest  # with MCP: without the prompt, which each round has its own of
    parser: ParserConfig | None = None
    mcp: McpSpec | None = None
    more_prompts: Sequence[ResumableRequest] = ()  # of a list, behind the first; their choices are behind its own
    compaction: CompactionSpec | None = None  # with `mcp`, of no server perhaps, as it changes the prompt of the answer
    caller: str = ""  # the name of the key whose tokens these are
    traceparent: str = ""  # of the span of the run, in the process that began it

    @property
    def num_choices(self) -> int:
        return sum(one.params.n for one in (self.request, *self.more_prompts))

    def to_json(self) -> dict[str, Any]:
        request = self.request
        if self.mcp:
            request = replace(request, prompt_ids=[], upstream=request.upstream and replace(request.upstream, body={}))
        return {
            "version": VERSION,
            "dialect": self.dialect,
            "answer_id": self.answer_id,
            "writer_state": self.writer_state,
            "request": request.to_json(),
            "parser": self.parser and self.parser.to_json(),
            "mcp": self.mcp and self.mcp.to_json(),
            "more_prompts": [one.to_json() for one in self.more_prompts],
            "compaction": self.compaction and self.compaction.to_json(),
            "caller": self.caller,
            "traceparent": self.traceparent,
        }

    @classmethod
    def from_json(cls, given: Any) -> Self:
        """Raises OtherVersion, or ValueError, KeyError or TypeError if it is no run at all."""
        version = given.get("version") if isinstance(given, dict) else None
        if version != VERSION:
            raise OtherVersion(f"a run of version {version!r}, not {VERSION}")
        return cls(
            given["dialect"],
            given["answer_id"],
            given["writer_state"],
            ResumableRequest.from_json(given["request"]),
            given["parser"] and ParserConfig.from_json(given["parser"]),
            given["mcp"] and McpSpec.from_json(given["mcp"]),
            [ResumableRequest.from_json(one) for one in given.get("more_prompts", ())],
            CompactionSpec.from_json(given["compaction"]) if given.get("compaction") else None,
            given.get("caller", ""),
            str(given.get("traceparent") or ""),
        )


_FORM: TypeAdapter[Grammar | None] = TypeAdapter(Grammar | None)
