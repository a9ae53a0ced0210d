"""The body of POST /v1/messages, and of /v1/messages/count_tokens.

This file checks types, `chat_of_messages` what the types of blocks and tools need. Null means absent. What is not here
is ignored and named in `X-Ignored-Parameters`. `cache_control` is accepted everywhere: every prefix is cached anyway.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictStr, StringConstraints, TypeAdapter, ValidationError

from tis.anthropic_api.wire.message_examples import MESSAGE_REQUESTS
from tis.bounds import MaxItems
from tis.engine.sampling.params import MAX_STOPS
from tis.errors import BadRequest
from tis.openai_api.wire.chat_request import SESSION_ID
from tis.openai_api.wire.fields import (
    MAX_KEYS,
    MAX_MESSAGES,
    MAX_PARTS,
    Integer,
    JsonObject,
    Key,
    Medium,
    Name,
    Number,
    ReasoningEffort,
    RequestModel,
    Text,
    Url,
)
from tis.openai_api.wire.slices import SLICE_COST, next_slice

MAX_MESSAGE_TOOLS = 1024  # agents offer the tools of several MCP servers
_MAX_SERVERS = 16
_MAX_EXAMPLES = 64
# By this code, Anthropic's SDKs know that they have to send the whole conversation; their tool runner does so.
_NO_THREADS = "thread_unsupported_request"


class BlockSource(RequestModel):
    """Of an image or a document."""

    type: Name
    media_type: Name | None = None
    data: Medium | None = None
    url: Medium | None = None
    file_id: Name | None = None
    content: "Text | Annotated[list[MessageBlock], MaxItems(MAX_PARTS)] | None" = None


class McpToolConfig(RequestModel):
    enabled: StrictBool | None = None
    defer_loading: Any = None


class MessageTool(RequestModel):
    type: Name | None = None
    name: Name | None = None
    description: Text | None = None
    input_schema: JsonObject | None = None
    input_examples: Annotated[list[JsonObject], MaxItems(_MAX_EXAMPLES)] | None = None
    strict: StrictBool | None = None
    # Of a toolset of an MCP server.
    mcp_server_name: Name | None = None
    default_config: McpToolConfig | None = None
    configs: Annotated[dict[Key, McpToolConfig], MaxItems(MAX_KEYS)] | None = None
    # Of the service: the server shows all tools to the model, which calls each of them itself.
    cache_control: Any = None
    defer_loading: Any = None
    allowed_callers: Any = None
    eager_input_streaming: Any = None
    max_characters: Any = None


class ToolChange(RequestModel):
    """What a `tool_addition` or a `tool_removal` is about."""

    type: Name
    name: Name | None = None
    server_name: Name | None = None
    definition: MessageTool | None = None


class ToolChangeBlock(RequestModel):
    """A `tool_addition` or a `tool_removal` of a compaction."""

    type: Name
    tool: ToolChange | None = None
    cache_control: Any = None


class MessageBlock(RequestModel):
    """A block of content of any type."""

    type: Name
    text: Text | None = None
    source: BlockSource | Text | None = None
    title: Text | None = None
    context: Text | None = None
    citations: Any = None
    # Calls and their results.
    id: Name | None = None
    name: Name | None = None
    input: JsonObject | None = None
    server_name: Name | None = None
    tool_use_id: Name | None = None
    # An object is a result of a tool that runs on Anthropic's servers, or an error of one.
    content: "Text | Annotated[list[MessageBlock], MaxItems(MAX_PARTS)] | JsonObject | None" = None
    is_error: StrictBool | None = None
    tool_name: Name | None = None
    # Of messages of the system, and of a compaction.
    tool: ToolChange | None = None
    tool_changes: Annotated[list[ToolChangeBlock], MaxItems(MAX_MESSAGE_TOOLS)] | None = None
    encrypted_content: Medium | None = None
    # Reasoning.
    thinking: Text | None = None
    signature: Medium | None = None
    data: Medium | None = None
    # Of the service, without a meaning here.
    cache_control: Any = None
    caller: Any = None
    toolset_name: Any = None
    transformations: Any = None


BlockSource.model_rebuild()  # it has blocks


class SystemMessageConfig(RequestModel):
    effort: ReasoningEffort = None


class InputMessage(RequestModel):
    role: Literal["user", "assistant", "system"]
    content: Text | Annotated[list[MessageBlock], MaxItems(MAX_PARTS)] | None = Field(
        None, description="required but for a message of the system with `output_config`"
    )
    # Of the system: until when it is shown, and the effort of the turn that it stands in.
    clear_at: Literal["next_user_message", "never"] | None = None
    output_config: SystemMessageConfig | None = None


class MessageToolChoice(RequestModel):
    type: Literal["auto", "any", "tool", "none"]
    name: Name | None = None
    disable_parallel_tool_use: StrictBool | None = None


class Thinking(RequestModel):
    type: Literal["enabled", "adaptive", "between_tools", "disabled"]
    budget_tokens: Integer | None = None
    display: Literal["summarized", "omitted", "updates"] | None = None


class OutputFormat(RequestModel):
    type: Literal["json_schema"]
    schema_: JsonObject = Field(alias="schema")


class OutputConfig(RequestModel):
    effort: ReasoningEffort = None
    format: OutputFormat | None = None


class McpToolConfiguration(RequestModel):
    enabled: StrictBool | None = None
    allowed_tools: Annotated[list[Name], MaxItems(MAX_KEYS)] | None = None


class UrlMcpServer(RequestModel):
    type: Literal["url"]
    name: Name
    url: Url
    authorization_token: Text | None = None
    tool_configuration: McpToolConfiguration | None = None


class MessagesRequest(RequestModel):
    model: Name | None = None
    # May be absent if the client resumes a session.
    messages: Annotated[list[InputMessage], Field(min_length=1), MaxItems(MAX_MESSAGES)] | None = None
    max_tokens: Integer | None = Field(None, description="required, except for counting")
    system: Text | Annotated[list[MessageBlock], MaxItems(MAX_PARTS)] | None = None
    stream: StrictBool | None = None
    session_id: Annotated[StrictStr, StringConstraints(pattern=SESSION_ID, max_length=128)] | None = Field(
        None, description="not Anthropic's: names the recording, as the header `X-Session-Id` does"
    )

    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Integer | None = None
    seed: Integer | None = Field(None, description="not Anthropic's: as in chats")
    stop_sequences: Annotated[list[Text], MaxItems(MAX_STOPS)] | None = None

    tools: Annotated[list[MessageTool], MaxItems(MAX_MESSAGE_TOOLS)] | None = None
    tool_choice: MessageToolChoice | None = None
    mcp_servers: Annotated[list[UrlMcpServer], MaxItems(_MAX_SERVERS)] | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = Field(None, description="the older name of `output_config.format`")
    cache_control: Any = None

    # Validated, without any effect.
    metadata: JsonObject | None = None
    service_tier: Any = None
    container: Any = None
    context_management: Any = None

    # Not supported: `check` rejects them.
    thread: Any = Field(None, description="not supported")
    compaction: Any = Field(None, description="not supported")

    model_config = ConfigDict(json_schema_extra={"examples": MESSAGE_REQUESTS})

    @staticmethod
    def prepare_large(fields: dict[str, Any]) -> dict[str, Any]:
        """Validates messages and blocks in slices, as `ChatRequest` does, and for the same reason."""
        prepared = {
            "messages": _validated(fields.get("messages"), _MESSAGES, MAX_MESSAGES),
            "system": _validated(fields.get("system"), _BLOCKS, MAX_PARTS),
        }
        return {**fields, **{name: value for name, value in prepared.items() if name in fields}}

    def check(self) -> None:
        """Rejects what the server does not support, and what changes the answer."""
        if self.thread is not None:
            message = "thread is not supported: send the whole conversation in messages."
            refused = BadRequest(message, param="thread", code=_NO_THREADS)
            refused.details = {"unsupported": ["thread"]}
            raise refused
        if self.compaction is not None:
            message = "compaction is not supported: ask for a summary in a message of the user."
            raise BadRequest(message, param="compaction", code="unsupported_parameter")


NO_EFFECT = ("metadata", "service_tier", "container", "context_management")
_MESSAGES = TypeAdapter(list[InputMessage])


_BLOCKS = TypeAdapter(list[MessageBlock])


def _validated(given: Any, adapter: TypeAdapter[Any], max_entries: int) -> Any:
    """Of a wrong list, as much as the validation of the whole body needs to say what is wrong."""
    if not isinstance(given, list) or len(given) > max_entries:
        return given
    validated: list[Any] = []
    while some := next_slice(given, len(validated), _num_blocks):
        opened = [_with_validated_blocks(one) for one in some]
        try:
            validated += adapter.validate_python(opened)
        except ValidationError:
            return [*validated, *opened]
    return validated


def _with_validated_blocks(entry: Any) -> Any:
    """Of a message, or a block. If one slice has no room for all of its blocks, they are validated first."""
    if _num_blocks(entry) < SLICE_COST:
        return entry
    opened = {**entry, "content": _validated(entry.get("content"), _BLOCKS, MAX_PARTS)}
    if isinstance(source := entry.get("source"), dict):
        opened["source"] = {**source, "content": _validated(source.get("content"), _BLOCKS, MAX_PARTS)}
    return opened


def _num_blocks(entry: Any) -> int:
    """With those within blocks, and their changes of tools; not above the cost of a slice."""
    found, waiting = 0, [entry]
    while waiting and found < SLICE_COST:
        one = waiting.pop()
        for holder in (one, one.get("source")) if isinstance(one, dict) else ():
            content = holder.get("content") if isinstance(holder, dict) else None
            if isinstance(content, list):
                found += len(content)
                waiting += content
        changes = one.get("tool_changes") if isinstance(one, dict) else None
        found += len(changes) if isinstance(changes, list) else 0
    return min(found, SLICE_COST)
