"""The body of POST /v1/chat/completions.

Types are checked here, ranges where they are known (`SamplingParams`). Unknown fields are ignored, null means absent,
and what OpenAI knows but this server cannot do yet is refused by name rather than ignored.
"""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, StringConstraints

from server.errors import BadRequest
from server.openai_api.examples import CHAT_REQUESTS

TEXT_TYPES = ("text", "input_text", "output_text", "refusal")
SESSION_ID = r"^[A-Za-z0-9._-]{1,128}$"
TOOL_NAME = r"^[a-zA-Z0-9_-]{1,64}$"
_LONG_TEXT = 4096
Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
# JSON knows integers of any length, the machine does not.
Integer = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Number = Integer | Annotated[StrictFloat, Field(allow_inf_nan=False)]


class Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class MediaRef(Lenient):
    url: StrictStr | None = None
    detail: StrictStr | None = None
    b64_json: StrictStr | None = None
    data: StrictStr | None = None


class ContentPart(Lenient):
    type: StrictStr
    text: StrictStr | None = None
    refusal: StrictStr | None = None
    # Clients spell a picture or a video in many ways.
    image_url: StrictStr | MediaRef | None = None
    image: StrictStr | MediaRef | None = None
    video_url: StrictStr | MediaRef | None = None
    video: StrictStr | MediaRef | None = None
    url: StrictStr | None = None
    b64_json: StrictStr | None = None
    data: StrictStr | None = None
    detail: StrictStr | None = None


class CalledFunction(Lenient):
    name: StrictStr
    arguments: StrictStr | dict[str, Any] = "{}"


class ToolCall(Lenient):
    id: StrictStr | None = None
    type: Literal["function"] = "function"
    function: CalledFunction


class FunctionTool(Lenient):
    # In the order in which models have seen them.
    name: Annotated[StrictStr, StringConstraints(pattern=TOOL_NAME)]
    description: StrictStr | None = None
    parameters: dict[str, Any] | None = None

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)  # templates print all of it


class Tool(Lenient):
    type: Literal["function"]
    function: FunctionTool

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)


class ServerTool(Lenient):
    """An MCP server, whose tools this server calls; what is said of it is read where it is visited from."""

    type: Literal["mcp"]

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)


class McpCall(Lenient):
    """One that was made for an earlier answer, as that said it."""

    id: StrictStr | None = None
    name: StrictStr
    arguments: StrictStr | dict[str, Any] = "{}"
    output: StrictStr | None = None
    error: Any = None


class ChatMessage(Lenient):
    role: Role
    # More would take minutes to check, and no model has room for them.
    content: StrictStr | Annotated[list[ContentPart], Field(max_length=4096)] | None = None
    name: StrictStr | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: StrictStr | None = None
    mcp_calls: list[McpCall] | None = None
    reasoning_content: StrictStr | None = None
    reasoning: StrictStr | None = None


class StreamOptions(Lenient):
    include_usage: StrictBool | None = None


class ResponseFormat(Lenient):
    type: StrictStr
    json_schema: dict[str, Any] | None = None


class ChatRequest(Lenient):
    model: StrictStr | None = None
    # Absent where a known session is picked up again: its request is known.
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=65536)] | None = None
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    session_id: Annotated[StrictStr, StringConstraints(pattern=SESSION_ID)] | None = None

    max_tokens: Integer | None = None
    max_completion_tokens: Integer | None = None
    min_tokens: Integer | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Integer | None = None
    min_p: Number | None = None
    repetition_penalty: Number | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    logit_bias: dict[str, Number] | None = None
    seed: Integer | None = None
    stop: StrictStr | list[StrictStr] | None = None
    stop_token_ids: list[Integer] | None = None
    ignore_eos: StrictBool | None = None
    logprobs: StrictBool | None = None
    top_logprobs: Integer | None = None
    n: Integer | None = None

    tools: list[Tool | ServerTool] | None = None
    parallel_tool_calls: StrictBool | None = None
    include_reasoning: StrictBool | None = None  # false: thoughts are made, counted and not shown
    tool_choice: StrictStr | dict[str, Any] | None = None
    response_format: ResponseFormat | None = None
    add_generation_prompt: StrictBool | None = None
    continue_final_message: StrictBool | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    reasoning_effort: ReasoningEffort | None = None
    thinking_token_budget: Integer | None = None

    # vLLM's.
    structured_outputs: dict[str, Any] | None = None
    guided_json: StrictStr | dict[str, Any] | None = None
    guided_regex: StrictStr | None = None
    guided_choice: list[StrictStr] | None = None
    guided_grammar: StrictStr | None = None

    model_config = ConfigDict(json_schema_extra={"examples": CHAT_REQUESTS})

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def has_media(self) -> bool:
        return any(
            isinstance(message.content, list) and any(part.type not in TEXT_TYPES for part in message.content)
            for message in self.messages or ()
        )

    def fingerprint(self) -> str:
        """Of what is asked; not of how the answer is delivered, so that a repeated POST is recognised."""
        asked = self.model_dump(exclude={"stream", "stream_options", "session_id"}, exclude_none=True)
        if self.stream and self.wants_usage:
            asked["include_usage"] = True  # it is one of the recorded blocks
        for message in asked.get("messages", ()):
            message["content"] = _digested(message.get("content"))
        canonical = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        try:
            return hashlib.sha256(canonical.encode()).hexdigest()
        except UnicodeEncodeError:
            # JSON can spell half of a surrogate pair. It is no text: nothing could encode it on the way out.
            raise BadRequest("The body has half a surrogate pair (like \\ud800), which is no text.") from None


def _digested(content: Any) -> Any:
    """Megabytes of pictures are hashed where they lie: to print them as JSON would hold up everybody."""
    if isinstance(content, str) and len(content) > _LONG_TEXT and content.isascii():
        return {"sha256": hashlib.sha256(content.encode()).hexdigest()}
    if isinstance(content, dict):
        return {name: _digested(value) for name, value in content.items()}
    return [_digested(part) for part in content] if isinstance(content, list) else content
