"""A response as the chat request that means the same, so that both are understood, refused and answered alike."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from tis.errors import BadRequest
from tis.http.error_handlers import bad_request_from
from tis.openai_api.store.items import MEDIA_KINDS, Item
from tis.openai_api.wire.chat_request import ChatRequest
from tis.openai_api.wire.client_items import as_function_items
from tis.openai_api.wire.compacted_context import COMPACTION, REQUEST_OF_SUMMARY, messages_in, replaces_earlier
from tis.openai_api.wire.fields import SamplingFields
from tis.openai_api.wire.input_items import as_functions
from tis.openai_api.wire.namespaces import name_for_model
from tis.openai_api.wire.response_request import ResponseRequest, TextFormat
from tis.openai_api.wire.response_tools import chat_tools

_SAME = ("model", "parallel_tool_calls", "chat_template_kwargs", "structured_outputs", *SamplingFields.model_fields)
_RESPONSE_PARAMS = {
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "messages": "input",
}


def as_chat(
    body: ResponseRequest,
    items: Sequence[tuple[str, Item]],
    tools: Sequence[Mapping[str, Any]],
    attached: Mapping[str, bytes],
) -> tuple[ChatRequest, list[str]]:
    """And which item each message came from."""
    if body.instructions:
        content = [{"type": "input_text", "text": body.instructions}]
        items = [("instructions", {"type": "message", "role": "system", "content": content}), *items]
    messages, origins = messages_of(as_functions(as_function_items(items)), attached)
    fields = {name: getattr(body, name) for name in _SAME}
    fields |= {"messages": messages, "max_completion_tokens": body.max_output_tokens}
    fields |= chat_tools(tools, body.tool_choice)
    if body.wants_logprobs:
        fields |= {"logprobs": True, "top_logprobs": body.top_logprobs}
    if body.text and body.text.format:
        fields["response_format"] = _response_format(body.text.format)
    if body.text and body.text.verbosity:
        fields["verbosity"] = body.text.verbosity
    if body.reasoning and body.reasoning.effort:
        fields["reasoning_effort"] = body.reasoning.effort
    try:
        return ChatRequest.model_validate(ChatRequest.prepare_large(fields)), origins
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        raise with_response_params(bad_request_from(problems), origins) from None


def with_response_params(error: BadRequest, origins: Sequence[str]) -> BadRequest:
    """An error about a field of chat, with the name of the field of this API."""
    given_param = error.param or ""
    param = given_param
    if given_param.startswith("messages."):
        number, dot, rest = given_param.removeprefix("messages.").partition(".")
        if number.isdecimal() and int(number) < len(origins):
            origin = origins[int(number)]
            param = f"{origin}{dot}{rest}" if origin.startswith("input") else origin
    for theirs, ours in _RESPONSE_PARAMS.items():
        if param == theirs or param.startswith(f"{theirs}."):
            param = ours + param.removeprefix(theirs)
            break
    if param.startswith("tools."):
        param = param.replace(".function", "", 1).replace(".custom", "", 1).replace(".format.grammar", ".format", 1)
    if param != given_param:
        error.param = param
        error.message = error.message.replace(given_param, param, 1)
        error.args = (error.message,)
    return error


def _response_format(given: TextFormat) -> dict[str, Any]:
    if given.type != "json_schema":
        return {"type": given.type}
    if given.schema_ is None:
        raise BadRequest(
            "text.format.schema is missing.", param="text.format.schema", code="missing_required_parameter"
        )
    named = {"name": given.name or "response", "schema": given.schema_}
    more = {"description": given.description, "strict": given.strict}
    return {"type": "json_schema", "json_schema": named | {k: v for k, v in more.items() if v is not None}}


def messages_of(
    items: Sequence[tuple[str, Item]], attached: Mapping[str, bytes]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The messages, and for each the place of its first item in the request."""
    messages: list[dict[str, Any]] = []
    origins: list[str] = []
    for where, item in items:
        if item["type"] == COMPACTION:
            if not replaces_earlier(item):
                _join_questions(messages, origins)
                if all(message["role"] != "user" for message in messages):
                    messages.append({"role": "user", "content": REQUEST_OF_SUMMARY})
                    origins.append(where)
            found = messages_in(item)
            messages += found
            origins += [where] * len(found)
            continue
        if (part := _of_assistant(item)) and messages and _joins(messages[-1], part):
            _join(messages[-1], part)
            continue
        messages.append(part or _of_others(item, attached))
        origins.append(where)
    return messages, origins


def _join_questions(messages: list[dict[str, Any]], origins: list[str]) -> None:
    """A summary follows all that the user said: one message, as many templates want an answer between two."""
    while len(messages) > 1 and messages[-2]["role"] == messages[-1]["role"] == "user":
        last = messages.pop()
        del origins[-1]
        parts = [*_as_parts(messages[-1]["content"]), {"type": "text", "text": "\n\n"}, *_as_parts(last["content"])]
        messages[-1] = {**messages[-1], "content": parts}


def _as_parts(content: str | Sequence[Item]) -> Sequence[Item]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _of_assistant(item: Item) -> dict[str, Any] | None:
    if item["type"] == "reasoning":
        text = "".join(part["text"] for part in item["content"] or item["summary"])
        return {"role": "assistant", "reasoning_content": text or None}
    if item["type"] == "function_call":
        called = {"name": name_for_model(item), "arguments": item["arguments"]}
        return {
            "role": "assistant",
            "tool_calls": [{"id": item["call_id"], "type": "function", "function": called}],
        }
    if item["type"] == "message" and item["role"] == "assistant":
        return {
            "role": "assistant",
            "content": "".join(part.get("text", part.get("refusal")) for part in item["content"]),
        }
    return None


def _of_others(item: Item, attached: Mapping[str, bytes]) -> dict[str, Any]:
    if item["type"] == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": _content(item["output"], attached)}
    return {"role": item["role"], "content": _content(item["content"], attached)}


def _joins(message: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """One message has reasoning, then text, then calls. An item that breaks this order starts the next message."""
    if message["role"] != "assistant" or "reasoning_content" in part:
        return False
    return "tool_calls" in part or not ("content" in message or "tool_calls" in message)


def _join(message: dict[str, Any], part: Mapping[str, Any]) -> None:
    if "tool_calls" in part:
        message["tool_calls"] = [*message.get("tool_calls", ()), *part["tool_calls"]]
    else:
        message["content"] = part["content"]


def _content(parts: str | Sequence[Item], attached: Mapping[str, bytes]) -> str | list[Item]:
    return parts if isinstance(parts, str) else [_shown(part, attached) for part in parts]


def _shown(part: Item, attached: Mapping[str, bytes]) -> Item:
    if part["type"] not in MEDIA_KINDS or "attached" not in part:
        return part
    data = base64.b64encode(attached[part["attached"]]).decode()
    return {"type": part["type"], "b64_json": data, **({"detail": part["detail"]} if "detail" in part else {})}
