"""The body of POST /v1/chat/completions.

This file checks types; `SamplingParams` checks ranges. Null means absent. Unknown fields and hints that the
model cannot follow are ignored (`name_ignored`). What would change the answer and is not supported is rejected.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictStr,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
)

from tis.bounds import MaxItems
from tis.chat.written_arguments import arguments_object
from tis.errors import BadRequest
from tis.openai_api.wire.custom_tools import CustomTool, CustomToolCall
from tis.openai_api.wire.examples import CHAT_REQUESTS
from tis.openai_api.wire.fields import (
    MAX_CALLS,
    MAX_CHOICES,
    MAX_MESSAGES,
    MAX_PARTS,
    MAX_TOOLS,
    CacheSalt,
    Integer,
    JsonObject,
    Medium,
    Metadata,
    Name,
    ReasoningEffort,
    RequestModel,
    SamplingFields,
    Text,
    ToolName,
    Verbosity,
)
from tis.openai_api.wire.slices import next_slice, num_in_lists

TEXT_TYPES = ("text", "input_text", "output_text", "refusal")
SESSION_ID = r"^[A-Za-z0-9._-]{1,128}$"
_LONG_TEXT = 4096
_HASHED_CHARS = 2**20  # hashlib releases the interpreter meanwhile, a copy of the text does not
_LISTS = ("content", "tool_calls", "mcp_calls")
Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
_NOT_SUPPORTED: Any = Field(None, exclude=True, description="not supported")
# Fields of OpenAI, and one of vLLM, that the server does not support, and what a client can do.
_INSTEAD = {
    "audio": "the server answers with text only",
    "web_search_options": "add an MCP server that searches the web as a tool, or have the operator name one in "
    "HOSTED_TOOLS",
    "chat_template": "use chat_template_kwargs to set options of the model's own template",
}


class MediaRef(RequestModel):
    url: Medium | None = None
    detail: Name | None = None
    b64_json: Medium | None = None
    data: Medium | None = None


class SoundRef(RequestModel):
    data: Medium | None = None
    format: Name | None = None  # a hint: the file itself says what it is


class ContentPart(RequestModel):
    type: Name
    text: Text | None = None
    refusal: Text | None = None
    # Clients name a picture, a video or a sound in many ways.
    image_url: Medium | MediaRef | None = None
    image: Medium | MediaRef | None = None
    video_url: Medium | MediaRef | None = None
    video: Medium | MediaRef | None = None
    audio_url: Medium | MediaRef | None = None
    audio: Medium | MediaRef | None = None
    input_audio: SoundRef | None = None
    url: Medium | None = None
    b64_json: Medium | None = None
    data: Medium | None = None
    detail: Name | None = None


def _kind(given: Any) -> str:
    """The branch of a union that errors are about; what has no known type is taken for a function."""
    kind = given.get("type") if isinstance(given, dict) else getattr(given, "type", None)
    return str(kind).capitalize() if kind in ("custom", "mcp") else "Function"


class CalledFunction(RequestModel):
    name: Name
    arguments: Text | JsonObject = "{}"


class ToolCall(RequestModel):
    id: Name | None = None
    type: Literal["function"] = "function"
    function: CalledFunction

    def for_template(self) -> dict[str, Any]:
        plain: dict[str, Any] = self.model_dump(exclude_none=True)
        if isinstance(self.function.arguments, str):
            plain["function"]["arguments"] = arguments_object(self.function.arguments)
        return plain


class FunctionTool(RequestModel):
    # This order of fields is the one in the prompts that models were trained on.
    name: ToolName
    description: Text | None = None
    parameters: JsonObject | None = None

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)  # chat templates print all fields


class Tool(RequestModel):
    type: Literal["function"]
    function: FunctionTool

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def parameters(self) -> dict[str, Any]:
        return self.function.parameters or {}

    def for_template(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True)


class McpServerTool(RequestModel):
    """An MCP server, whose tools this server calls. `requested_servers` checks the other fields."""

    type: Literal["mcp"]

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)


# The names of the branches are no fields, so errors leave out what begins with a capital letter.
AnyTool = Annotated[
    Annotated[Tool, Tag("Function")] | Annotated[CustomTool, Tag("Custom")] | Annotated[McpServerTool, Tag("Mcp")],
    Discriminator(_kind),
]
AnyToolCall = Annotated[
    Annotated[ToolCall, Tag("Function")] | Annotated[CustomToolCall, Tag("Custom")], Discriminator(_kind)
]


class McpCall(RequestModel):
    """A call that the server made for an earlier answer, as the client got it."""

    id: Name | None = None
    name: Name
    arguments: Text | JsonObject = "{}"
    output: Text | None = None
    error: Any = None


class ChatMessage(RequestModel):
    role: Role
    content: Text | Annotated[list[ContentPart], MaxItems(MAX_PARTS)] | None = None
    name: Name | None = None
    tool_calls: Annotated[list[AnyToolCall], MaxItems(MAX_CALLS)] | None = None
    tool_call_id: Name | None = None
    function_call: CalledFunction | None = None  # the one call of `functions`
    mcp_calls: Annotated[list[McpCall], MaxItems(MAX_CALLS)] | None = None
    reasoning_content: Text | None = None
    reasoning: Text | None = None


class ChosenFunction(RequestModel):
    name: Name


class StreamOptions(RequestModel):
    include_usage: StrictBool | None = None


class ResponseFormat(RequestModel):
    type: Name
    json_schema: JsonObject | None = None
    # Of a json_object: the schema as Hugging Face TGI and as llama.cpp have it.
    value: JsonObject | None = None
    schema_: JsonObject | None = Field(None, alias="schema")


class PredictedPart(RequestModel):
    type: Literal["text"]
    text: Text


class Prediction(RequestModel):
    type: Literal["content"]
    content: Text | Annotated[list[PredictedPart], MaxItems(MAX_PARTS)]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class ChatRequest(SamplingFields):
    model: Name | None = None
    # May be absent if the client resumes a session.
    messages: Annotated[list[ChatMessage], Field(min_length=1), MaxItems(MAX_MESSAGES)] | None = None
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    session_id: Annotated[StrictStr, StringConstraints(pattern=SESSION_ID, max_length=128)] | None = None

    max_tokens: Integer | None = None
    max_completion_tokens: Integer | None = None
    logprobs: StrictBool | None = None
    top_logprobs: Integer | None = None
    n: Integer | None = None
    cache_salt: CacheSalt | None = None
    prediction: Prediction | None = None

    tools: Annotated[list[AnyTool], MaxItems(MAX_TOOLS)] | None = None
    parallel_tool_calls: StrictBool | None = None
    include_reasoning: StrictBool | None = None  # false: reasoning is generated and counted, but not sent
    tool_choice: Name | JsonObject | None = None
    # The old names of `tools` and `tool_choice`.
    functions: Annotated[list[FunctionTool], MaxItems(MAX_TOOLS)] | None = None
    function_call: Name | ChosenFunction | None = None
    response_format: ResponseFormat | None = None
    add_generation_prompt: StrictBool | None = None
    continue_final_message: StrictBool | None = None
    chat_template_kwargs: JsonObject | None = None

    # Hints: for models that follow them.
    reasoning_effort: ReasoningEffort = None
    verbosity: Verbosity = None

    # Extensions of vLLM.
    structured_outputs: JsonObject | None = None
    guided_json: Text | JsonObject | None = None
    guided_regex: Text | None = None
    guided_choice: Annotated[list[Text], MaxItems(MAX_CHOICES)] | None = None
    guided_grammar: Text | None = None

    # Of the clients of `transformers serve`.
    generation_config: Annotated[StrictStr, Field(max_length=65_536)] | None = Field(
        None, description="settings of `generate()` as JSON; fields of the request win"
    )

    # Validated, without any effect.
    metadata: Annotated[Metadata | None, Field(exclude=True)] = None

    # Not supported: `check` rejects them.
    modalities: Any = Field(None, exclude=True, description="only text")
    audio: Any = _NOT_SUPPORTED
    web_search_options: Any = Field(None, exclude=True, description="needs a server of HOSTED_TOOLS")
    chat_template: Any = _NOT_SUPPORTED

    model_config = ConfigDict(json_schema_extra={"examples": CHAT_REQUESTS})

    @staticmethod
    def prepare_large(fields: dict[str, Any]) -> dict[str, Any]:
        """Validates messages in slices: one call of pydantic for all of them would hold up every thread.

        Stops at the first wrong one, which the validation of the whole then reports.
        """
        messages = fields.get("messages")
        if not isinstance(messages, list) or len(messages) > MAX_MESSAGES:
            return fields
        validated: list[Any] = []
        while some := next_slice(messages, len(validated), lambda message: num_in_lists(message, _LISTS)):
            try:
                validated += _MESSAGES.validate_python(some)
            except ValidationError:
                break
        return {**fields, "messages": [*validated, *messages[len(validated) :]]}

    def check(self) -> None:
        """Rejects fields that the server does not support, and fields that need another one."""
        for name, instead in _INSTEAD.items():
            if getattr(self, name) not in (None, []):
                raise BadRequest(f"{name} is not supported: {instead}.", param=name, code="unsupported_parameter")
        if self.modalities not in (None, [], ["text"]):
            raise BadRequest(
                'modalities must be ["text"]: the server answers with text only.',
                param="modalities",
                code="unsupported_value",
            )
        for position, message in enumerate(self.messages or ()):
            if message.role == "user" and message.content is None:
                where = f"messages.{position}.content"
                raise BadRequest(
                    f"{where}: a message of the user needs content, a text or a list of parts.",
                    param=where,
                    code="missing_required_parameter",
                )
        if self.stream_options is not None and not self.stream:
            raise BadRequest(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
            )

    @property
    def has_prompt(self) -> bool:
        return self.messages is not None

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def fingerprint(self) -> str:
        """The same for requests that differ only in how the answer is sent: a repeated POST attaches to the answer."""
        fields = self.model_dump(exclude={"stream", "stream_options", "session_id"}, exclude_none=True)
        for message in fields.get("messages", ()):
            message["content"] = digested(message.get("content"))
        if prediction := fields.get("prediction"):
            prediction["content"] = digested(prediction["content"])
        return fingerprint_of(fields)


def fingerprint_of(fields: Mapping[str, Any]) -> str:
    canonical = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    try:
        return hashlib.sha256(canonical.encode()).hexdigest()
    except UnicodeEncodeError:
        # JSON may contain half a surrogate pair, which cannot be encoded in the answer.
        raise BadRequest("The body contains half a surrogate pair (like \\ud800), which is not valid text.") from None


_MESSAGES = TypeAdapter(list[ChatMessage])


def digested(content: Any) -> Any:
    """Hashes long strings directly: to print megabytes of base64 as JSON would block the event loop."""
    if isinstance(content, str) and len(content) > _LONG_TEXT and content.isascii():
        return {"sha256": _sha256(content)}
    if isinstance(content, dict):
        return {name: digested(value) for name, value in content.items()}
    return [digested(part) for part in content] if isinstance(content, list) else content


def _sha256(text: str) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(text), _HASHED_CHARS):
        digest.update(text[start : start + _HASHED_CHARS].encode())
    return digest.hexdigest()
