"""The bodies of `/api/chat` and `/api/generate`. Null means absent; unknown fields and options are ignored."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, TypeAdapter, ValidationError

from tis.bounds import MaxItems
from tis.ollama_api.wire.generate_context import MAX_CONTEXT
from tis.ollama_api.wire.ollama_examples import CHAT_BODIES, GENERATE_BODIES
from tis.openai_api.wire.fields import (
    MAX_CALLS,
    MAX_MESSAGES,
    MAX_PARTS,
    MAX_TOOLS,
    Integer,
    JsonObject,
    Medium,
    Name,
    Number,
    RequestModel,
    Text,
)
from tis.openai_api.wire.slices import next_slice, num_in_lists

_MAX_STOPS = 16
_LISTS = ("images", "tool_calls")


def _whole(value: Any) -> Any:
    """Ollama takes 40.0 for an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Count = Annotated[Integer, BeforeValidator(_whole)]
Images = Annotated[list[Medium], MaxItems(MAX_PARTS)]
KeepAlive = Number | Name
Format = Text | JsonObject


class OllamaOptions(RequestModel):
    """Those that the engine follows. A client reads the names of the others in `X-Ignored-Parameters`."""

    num_predict: _Count | None = None
    temperature: Number | None = None
    top_k: _Count | None = None
    top_p: Number | None = None
    min_p: Number | None = None
    seed: _Count | None = None
    stop: Text | Annotated[list[Text], MaxItems(_MAX_STOPS)] | None = None
    repeat_penalty: Number | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    num_ctx: _Count | None = None  # the context of the model is always there as a whole


class OllamaCalledFunction(RequestModel):
    name: Name
    arguments: JsonObject | Text = {}
    index: _Count | None = None


class OllamaToolCall(RequestModel):
    id: Name | None = None
    type: Name | None = None
    function: OllamaCalledFunction


class OllamaMessage(RequestModel):
    role: Literal["system", "user", "assistant", "tool"]
    content: Text | None = None
    thinking: Text | None = None
    images: Images | None = None
    tool_calls: Annotated[list[OllamaToolCall], MaxItems(MAX_CALLS)] | None = None
    tool_name: Name | None = None
    tool_call_id: Name | None = None


class OllamaFunction(RequestModel):
    name: Name
    description: Text | None = None
    parameters: JsonObject | None = None

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)  # chat templates print all fields


class OllamaTool(RequestModel):
    type: Literal["function"] | None = None
    function: OllamaFunction

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)


class GenerationFields(RequestModel):
    """What `/api/chat` and `/api/generate` have in common."""

    model: Name | None = None
    stream: StrictBool | None = None
    format: Format | None = None
    options: OllamaOptions | None = None
    think: StrictBool | Name | None = None
    keep_alive: KeepAlive | None = None
    logprobs: StrictBool | None = None
    top_logprobs: _Count | None = None
    # Accepted without effect: what is too long is a 400, or cut where the operator wants that.
    truncate: StrictBool | None = None
    shift: StrictBool | None = None

    @property
    def is_streamed(self) -> bool:
        return self.stream is not False


class OllamaChatRequest(GenerationFields):
    messages: Annotated[list[OllamaMessage], MaxItems(MAX_MESSAGES)] | None = None
    tools: Annotated[list[OllamaTool], MaxItems(MAX_TOOLS)] | None = None

    model_config = ConfigDict(json_schema_extra={"examples": CHAT_BODIES})

    @staticmethod
    def prepare_large(fields: dict[str, Any]) -> dict[str, Any]:
        """Validates messages in slices, as `ChatRequest` does. Stops at the first wrong one."""
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


class OllamaGenerateRequest(GenerationFields):
    prompt: Text | None = None
    system: Text | None = None
    images: Images | None = None
    raw: StrictBool | None = Field(None, description="the prompt goes to the model as it is, without a chat template")
    context: Annotated[list[Integer], MaxItems(MAX_CONTEXT)] | None = Field(
        None, description="that of the last answer, which makes this prompt the next one of its conversation"
    )
    # Refused by name, unless they are empty.
    suffix: Text | None = None
    template: Text | None = None

    model_config = ConfigDict(json_schema_extra={"examples": GENERATE_BODIES})


_MESSAGES = TypeAdapter(list[OllamaMessage])
