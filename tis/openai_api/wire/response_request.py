"""The bodies of /v1/responses and /v1/conversations. As in chat, unknown fields are ignored and null means absent."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool

from tis.bounds import MaxItems
from tis.errors import BadRequest
from tis.openai_api.store.responses import MAX_HISTORY_ITEMS
from tis.openai_api.wire.fields import (
    MAX_CONTEXT_ENTRIES,
    MAX_INCLUDES,
    MAX_ITEMS,
    MAX_TOOLS,
    CacheSalt,
    HintText,
    Integer,
    JsonObject,
    Metadata,
    Name,
    ReasoningEffort,
    RequestModel,
    SamplingFields,
    Text,
    Verbosity,
)

LOGPROBS = "message.output_text.logprobs"
MIN_COMPACT_THRESHOLD = 256  # tokens; a summary of less saves nothing
ENCRYPTED_REASONING = "reasoning.encrypted_content"
IMAGE_URLS = "message.input_image.image_url"
Include = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
]
Includes = Annotated[list[Include], MaxItems(MAX_INCLUDES)]
Summary = Literal["auto", "concise", "detailed"]
Items = Annotated[list[JsonObject], MaxItems(MAX_ITEMS)]


class TextFormat(RequestModel):
    type: Literal["text", "json_object", "json_schema"] = "text"
    name: Name | None = None
    description: Text | None = None
    schema_: JsonObject | None = Field(None, alias="schema")
    strict: StrictBool | None = None


class TextConfig(RequestModel):
    format: TextFormat | None = None
    verbosity: Verbosity = None


class Reasoning(RequestModel):
    effort: ReasoningEffort = None
    summary: Summary | None = None
    generate_summary: Summary | None = None  # the old name of `summary`, which wins

    @property
    def wanted_summary(self) -> Summary | None:
        return self.summary or self.generate_summary


class ContextManagement(RequestModel):
    type: Literal["compaction"]
    compact_threshold: Annotated[Integer, Field(ge=MIN_COMPACT_THRESHOLD)] | None = None


class ConversationRef(RequestModel):
    id: Name


class ResponseRequest(SamplingFields):
    model: Name | None = None
    input: Text | Items | None = None
    instructions: Text | None = None
    previous_response_id: Name | None = None
    conversation: Name | ConversationRef | None = None
    store: StrictBool | None = None
    background: StrictBool | None = None
    stream: StrictBool | None = None
    include: Includes | None = None
    metadata: Metadata | None = None

    tools: Annotated[list[JsonObject], MaxItems(MAX_TOOLS)] | None = None
    tool_choice: Name | JsonObject | None = None
    parallel_tool_calls: StrictBool | None = None
    max_tool_calls: Integer | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    truncation: Literal["auto", "disabled"] | None = None
    context_management: Annotated[list[ContextManagement], MaxItems(MAX_CONTEXT_ENTRIES)] | None = None

    max_output_tokens: Annotated[Integer, Field(ge=1)] | None = None
    top_logprobs: Integer | None = None

    # Copied into the response, without any effect.
    user: HintText = None
    safety_identifier: HintText = None
    prompt_cache_key: HintText = None
    cache_salt: CacheSalt | None = None
    service_tier: HintText = None
    prompt: Any = None  # rejected: the server stores no prompts

    # Extensions, as in chat.
    chat_template_kwargs: JsonObject | None = None
    structured_outputs: JsonObject | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "qwen-local", "input": "Halo! Siapa kamu?", "max_output_tokens": 256}]
        }
    )

    @property
    def is_stored(self) -> bool:
        return self.store is not False

    @property
    def conversation_id(self) -> str | None:
        return self.conversation.id if isinstance(self.conversation, ConversationRef) else self.conversation

    @property
    def compact_threshold(self) -> int | None:
        """The lowest that is given."""
        given = (entry.compact_threshold for entry in self.context_management or ())
        return min((one for one in given if one is not None), default=None)

    @property
    def wants_logprobs(self) -> bool:
        return LOGPROBS in (self.include or ()) or bool(self.top_logprobs)

    def check(self) -> None:
        """Checks fields that exclude each other. Everything else is checked where it is used."""
        if self.background and not self.is_stored:
            raise BadRequest("background can only be used when `store` is true.", param="background")
        if self.previous_response_id is not None and self.conversation_id is not None:
            raise BadRequest(
                "previous_response_id and conversation exclude each other.",
                param="previous_response_id",
                code="mutually_exclusive_parameters",
            )
        if self.prompt is not None:
            raise BadRequest(
                "prompt is not supported: the server stores no prompts.", param="prompt", code="unsupported_value"
            )


class CompactRequest(RequestModel):
    """The body of /v1/responses/compact."""

    model: Name | None = None
    input: Text | Items | None = None
    instructions: Text | None = None
    previous_response_id: Name | None = None
    prompt_cache_key: HintText = None
    cache_salt: CacheSalt | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "qwen-local",
                    "input": [
                        {"role": "user", "content": "Namaku Sari."},
                        {"role": "assistant", "content": "Halo Sari! Ada yang bisa saya bantu?"},
                    ],
                }
            ]
        }
    )

    def as_response(self) -> ResponseRequest:
        """The same conversation, as one that is to be answered."""
        return ResponseRequest.model_construct(
            model=self.model,
            input=self.input,
            instructions=self.instructions,
            previous_response_id=self.previous_response_id,
            cache_salt=self.cache_salt,
            store=False,
        )


class NewConversation(RequestModel):
    items: Annotated[list[JsonObject], MaxItems(MAX_HISTORY_ITEMS)] | None = None
    metadata: Metadata | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"metadata": {"topic": "demo"}, "items": [{"role": "user", "content": "Halo!"}]}]
        }
    )


class ConversationUpdate(RequestModel):
    metadata: Metadata | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"metadata": {"topic": "demo"}}]})


class NewItems(RequestModel):
    items: Annotated[list[JsonObject], Field(min_length=1), MaxItems(MAX_ITEMS)]

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [{"role": "user", "content": "Halo!"}]}]})


def require_text(given: Mapping[str, Any], name: str, where: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{where}.{name} must be a string.", param=f"{where}.{name}", code="invalid_type")
    return value


def require_encodable(given: Any) -> None:
    """JSON may contain half a surrogate pair, which cannot be encoded in the answer."""
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadRequest("The body contains half a surrogate pair (like \\ud800), which is not valid text.") from None
