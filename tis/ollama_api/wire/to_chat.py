"""Makes a `ChatRequest` of a request of Ollama's, and says in Ollama's names what is wrong with it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from tis.errors import BadRequest, ServiceError
from tis.http.error_handlers import bad_request_from
from tis.ollama_api.wire.chat_fields import (
    GenerationFields,
    OllamaChatRequest,
    OllamaGenerateRequest,
    OllamaMessage,
    OllamaOptions,
    OllamaTool,
)
from tis.ollama_api.wire.generate_context import TextMessage, messages_of_context
from tis.openai_api.wire.chat_request import ChatRequest, FunctionTool, Tool

_EFFORTS = ("low", "medium", "high", "max")
# Our names of options, where they differ.
_OPTIONS: Mapping[str, str] = {"max_tokens": "num_predict", "repetition_penalty": "repeat_penalty"}
_SAME_OPTIONS = ("temperature", "top_k", "top_p", "min_p", "seed", "stop", "presence_penalty", "frequency_penalty")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")
_IMAGE = re.compile(r"messages\.(\d+)\.content\.(\d+)")
_NOT_SUPPORTED: Mapping[str, str] = {
    "suffix": "this server has no template that fills in the middle",
    "template": "the chat template of the model is used",
}
_NOT_WITH_RAW = ("template", "system", "context", "images", "suffix")


def as_chat_request(body: OllamaChatRequest | OllamaGenerateRequest) -> ChatRequest:
    """Raises BadRequest in Ollama's names. Takes long if the body is large."""
    if isinstance(body, OllamaGenerateRequest):
        _refuse_unsupported(body)
        messages: list[Any] = [
            *earlier_messages(body),
            {"role": "user", "content": _content(body.prompt or "", body.images)},
        ]
        tools: Sequence[OllamaTool] = ()
    else:
        messages = _history(body.messages or ())
        tools = body.tools or ()
    fields: dict[str, Any] = {
        "messages": messages,
        "stream": body.is_streamed,
        "logprobs": body.logprobs or None,
        "top_logprobs": body.top_logprobs if body.logprobs else None,
        "response_format": _response_format(body.format),
        **({} if is_raw(body) else _thinking(body.think)),
        **_sampling(body.options or OllamaOptions()),
    }
    stop = fields.pop("stop", None)
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        chat = ChatRequest.model_validate(ChatRequest.prepare_large(given))
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        raise in_ollama_names(bad_request_from(problems), body) from None
    # Beyond the limits of chats: Ollama takes more stop strings than OpenAI, and other names of tools.
    made = [_tool(tool, f"tools.{number}") for number, tool in enumerate(tools)]
    return chat.model_copy(update={"stop": stop, "tools": made or None})


def is_raw(body: GenerationFields) -> bool:
    """Whether the prompt goes to the model without its template."""
    return isinstance(body, OllamaGenerateRequest) and body.raw is True


def in_ollama_names(error: ServiceError, body: GenerationFields) -> ServiceError:
    """The same error, about the field that the client has sent."""
    theirs = _theirs(error.param, isinstance(body, OllamaGenerateRequest)) if error.param else None
    if not (theirs and error.param) or theirs == error.param:
        return error
    message = error.message
    error.message = message.replace(error.param, theirs) if error.param in message else f"{theirs}: {message}"
    error.param = theirs
    return error


def _theirs(param: str, is_generate: bool) -> str:
    if param in _OPTIONS or param in _SAME_OPTIONS:
        return f"options.{_OPTIONS.get(param, param)}"
    if param.startswith("response_format"):
        return "format"
    if image := _IMAGE.match(param):
        number = max(0, int(image[2]) - 1)
        return f"images.{number}" if is_generate else f"messages.{image[1]}.images.{number}"
    return "prompt" if is_generate and param.startswith("messages") else param


def _refuse_unsupported(body: OllamaGenerateRequest) -> None:
    for name in _NOT_WITH_RAW if body.raw else ():
        if getattr(body, name):
            message = f"{name} is not supported with raw: the prompt alone goes to the model, as it is."
            raise BadRequest(message, param=name, code="unsupported_parameter")
    for name, why in _NOT_SUPPORTED.items():
        if getattr(body, name):
            raise BadRequest(f"{name} is not supported: {why}.", param=name, code="unsupported_parameter")


def earlier_messages(body: OllamaGenerateRequest) -> list[TextMessage]:
    """What comes before the prompt. A new text of the system takes the place of that in the context."""
    messages = messages_of_context(body.context) if body.context else []
    if body.system:
        said = [one for one in messages if one["role"] != "system"]
        messages = [{"role": "system", "content": body.system}, *said]
    return messages


def _history(messages: Sequence[OllamaMessage]) -> list[dict[str, Any]]:
    """Gives calls ids, and their results those of the calls: Ollama's clients name the function only."""
    history: list[dict[str, Any]] = []
    waiting: list[tuple[str, str]] = []  # calls without a result: id and name
    num_calls = 0
    for message in messages:
        plain: dict[str, Any] = {"role": message.role, "content": _content(message.content or "", message.images)}
        if message.thinking:
            plain["reasoning_content"] = message.thinking
        if message.role == "assistant" and message.tool_calls:
            waiting = []
            plain["tool_calls"] = []
            for call in message.tool_calls:
                call_id, function = call.id or f"call_{num_calls}", call.function
                num_calls += 1
                waiting.append((call_id, function.name))
                called = {"name": function.name, "arguments": function.arguments}
                plain["tool_calls"].append({"id": call_id, "function": called})
        if message.role == "tool":
            found = _called(waiting, message)
            plain["tool_call_id"] = message.tool_call_id or (found and found[0])
            plain["name"] = message.tool_name or (found and found[1])
        history.append(plain)
    return history


def _called(waiting: list[tuple[str, str]], result: OllamaMessage) -> tuple[str, str] | None:
    """Takes the call that this is the result of: by its id, by its name, or the next one."""
    for place, value in ((0, result.tool_call_id), (1, result.tool_name)):
        for call in waiting:
            if value and call[place] == value:
                waiting.remove(call)
                return call
    return waiting.pop(0) if waiting and not (result.tool_call_id or result.tool_name) else None


def _content(text: str, images: Sequence[str] | None) -> Any:
    if not images:
        return text
    return [{"type": "text", "text": text}, *({"type": "image", "b64_json": image} for image in images)]


def _tool(tool: OllamaTool, where: str) -> Tool:
    name = tool.function.name
    if not _TOOL_NAME.fullmatch(name):
        place = f"{where}.function.name"
        raise BadRequest(f"{place} must be 1 to 128 letters, digits, _, . or -.", param=place)
    given = tool.model_dump(exclude_none=True)
    function = FunctionTool.model_validate({**given["function"], "name": "f"}).model_copy(update={"name": name})
    return Tool.model_validate({**given, "type": "function", "function": function})


def _response_format(wanted: Any) -> dict[str, Any] | None:
    if wanted is None or wanted == "":
        return None
    if wanted == "json":
        return {"type": "json_object"}
    if isinstance(wanted, str):
        raise BadRequest(
            f'format: {wanted[:40]!r} is neither "json" nor a JSON schema, which is an object.', param="format"
        )
    return {"type": "json_schema", "json_schema": {"name": "format", "schema": wanted}}


def _thinking(think: bool | str | None) -> dict[str, Any]:
    if isinstance(think, str):
        if think not in _EFFORTS:
            raise BadRequest(f"think must be true, false, {', '.join(_EFFORTS)}, got {think[:40]!r}.", param="think")
        return {"reasoning_effort": think}
    if think is None:
        return {}
    template_options = {"enable_thinking": think, "thinking": think}
    return {"chat_template_kwargs": template_options, "include_reasoning": None if think else False}


def _sampling(options: OllamaOptions) -> dict[str, Any]:
    given: dict[str, Any] = {name: getattr(options, name) for name in _SAME_OPTIONS}
    given |= {ours: getattr(options, theirs) for ours, theirs in _OPTIONS.items()}
    if given["max_tokens"] is not None and given["max_tokens"] <= 0:
        given["max_tokens"] = None  # -1: until the answer ends
    if given["seed"] == -1:
        given["seed"] = None  # another one each time
    stop = given["stop"]
    given["stop"] = [one for one in ([stop] if isinstance(stop, str) else stop or ()) if one] or None
    return given
