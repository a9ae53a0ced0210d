"""Turns a request of the Messages API into the chat request that means the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tis.anthropic_api.wire.message_history import MessageHistory
from tis.anthropic_api.wire.message_tools import ChatTools, chat_tools_of
from tis.anthropic_api.wire.messages_request import InputMessage, MessagesRequest, OutputFormat, Thinking
from tis.anthropic_api.wire.tool_changes import ADDITION, REMOVAL, ToolsInEffect
from tis.errors import BadRequest
from tis.http.error_handlers import bad_request_from
from tis.openai_api.wire.chat_request import ChatRequest

# Fields of a chat by their names here, where they differ.
_NAMES: Mapping[str, str] = {
    "stop": "stop_sequences",
    "max_completion_tokens": "max_tokens",
    "thinking_token_budget": "thinking.budget_tokens",
    "response_format.json_schema.schema": "output_config.format.schema",
    "response_format": "output_config.format",
    "tool_choice.function.name": "tool_choice.name",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "chat_template_kwargs": "thinking",
    "continue_final_message": "messages",
}
_OF_TOOLS: Mapping[str, str] = {
    "function.parameters": "input_schema",
    "function.name": "name",
    "server_label": "name",
    "server_url": "url",
    "authorization": "authorization_token",
    "allowed_tools": "tool_configuration.allowed_tools",
}


@dataclass(frozen=True, slots=True)
class RequestPlaces:
    """Which part of the request became which part of the chat."""

    messages: Sequence[tuple[str, Sequence[str]]]  # of each message, and of its parts
    tools: Sequence[str]

    def named(self, error: BadRequest) -> BadRequest:
        """An error about a field of the chat, with the name of the field of the request."""
        given = error.param or ""
        param = self._param(given)
        if param != given:
            error.param = param
            error.message = error.message.replace(given, param, 1)
            error.args = (error.message,)
        return error

    def _param(self, given: str) -> str:
        for theirs, ours in _NAMES.items():
            if given == theirs or given.startswith(f"{theirs}."):
                return ours + given.removeprefix(theirs)
        kind, _, rest = given.partition(".")
        number, _, rest = rest.partition(".")
        if not number.isdecimal():
            return given
        if kind == "tools" and int(number) < len(self.tools):
            return _joined(self.tools[int(number)], _renamed(rest))
        if kind == "messages" and int(number) < len(self.messages):
            place, parts = self.messages[int(number)]
            among, _, rest = rest.partition(".")
            at, _, rest = rest.partition(".")
            return parts[int(at)] if among == "content" and at.isdecimal() and int(at) < len(parts) else place
        return given


@dataclass(frozen=True, slots=True)
class ConvertedMessages:
    chat: ChatRequest
    max_tokens: int | None  # as the client wishes
    places: RequestPlaces
    stop_sequences: Sequence[str]
    shows_thinking: bool
    ignored: Sequence[str]  # paths of what was dropped

    def fingerprint(self) -> str:
        """The same for requests that differ only in how the answer is sent."""
        as_wished = self.chat.model_copy(update={"max_tokens": self.max_tokens})
        return f"message:{int(self.shows_thinking)}{as_wished.fingerprint()}"


def chat_of_messages(body: MessagesRequest, *, max_context: int | None = None) -> ConvertedMessages:
    """Takes long if the body is large: see `in_thread_if`.

    `max_context`: clients that know only Anthropic's models wish for more tokens than others have.
    """
    history = MessageHistory(ToolsInEffect(body.tools or ()))
    history.add_system(body.system, "system")
    given = body.messages or ()
    last_of_user = max((number for number, one in enumerate(given) if _is_of_user(one)), default=-1)
    for number, message in enumerate(given):
        is_cleared = message.role == "system" and message.clear_at == "next_user_message" and number < last_of_user
        history.add(_cleared(message) if is_cleared else message, f"messages.{number}")
    continues = history.end()
    messages, message_places = history.as_chat()
    tools = chat_tools_of(body, history.tools)
    places = RequestPlaces(message_places, tools.places)
    fields: dict[str, Any] = {
        "model": body.model,
        "messages": messages,
        "max_tokens": min((one for one in (body.max_tokens, max_context) if one is not None), default=None),
        **{name: getattr(body, name) for name in ("temperature", "top_p", "top_k", "seed", "stream", "session_id")},
        **_thinking(body.thinking),
        **_output(body),
        **({"continue_final_message": True, "add_generation_prompt": False} if continues else {}),
    }
    try:
        chat = ChatRequest.model_validate(ChatRequest.prepare_large(fields))
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        raise places.named(bad_request_from(problems)) from None
    chat = chat.model_copy(update=_beyond_the_limits_of_chats(body, tools))
    shows_thinking = not (body.thinking and body.thinking.display == "omitted")
    stops = body.stop_sequences or ()
    ignored = (*history.ignored, *(("tools.type",) if tools.has_search else ()))
    return ConvertedMessages(chat, body.max_tokens, places, stops, shows_thinking, ignored)


def _cleared(message: InputMessage) -> InputMessage:
    """Of its blocks, those that change the tools stay in effect."""
    blocks = message.content if isinstance(message.content, list) else []
    return message.model_copy(update={"content": [one for one in blocks if one.type in (ADDITION, REMOVAL)]})


def _is_of_user(message: InputMessage) -> bool:
    """The user has said something: not the results of tools alone, in the middle of a turn."""
    blocks = message.content if isinstance(message.content, list) else ()
    return message.role == "user" and not (blocks and all(one.type == "tool_result" for one in blocks))


def _effort_of_turn(messages: Sequence[InputMessage]) -> str | None:
    """What a message of the system asks for since the user has said something."""
    for message in reversed(messages):
        if message.role == "system" and message.output_config and message.output_config.effort:
            return message.output_config.effort
        if _is_of_user(message):
            return None
    return None


def _beyond_the_limits_of_chats(body: MessagesRequest, tools: ChatTools) -> dict[str, Any]:
    """A chat has at most 128 tools and 4 stop strings, as OpenAI's. Both are bounded here, too."""
    return {
        "tools": tools.tools or None,
        "tool_choice": tools.choice,
        "parallel_tool_calls": tools.parallel,
        "stop": list(body.stop_sequences) if body.stop_sequences else None,
    }


def _thinking(given: Thinking | None) -> dict[str, Any]:
    """Without it, the template of the model decides."""
    if given is None:
        return {}
    thinks = given.type != "disabled"
    # Templates know it by one name or the other.
    return {
        "chat_template_kwargs": {"enable_thinking": thinks, "thinking": thinks},
        **({"thinking_token_budget": given.budget_tokens} if thinks else {}),
    }


def _output(body: MessagesRequest) -> dict[str, Any]:
    config = body.output_config
    fields: dict[str, Any] = {}
    effort = _effort_of_turn(body.messages or ()) or (config.effort if config else None)
    if effort and not (body.thinking and body.thinking.type == "disabled"):
        fields["reasoning_effort"] = effort
    if form := (config.format if config else None) or body.output_format:
        fields["response_format"] = _response_format(form)
    return fields


def _response_format(form: OutputFormat) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "output", "schema": form.schema_}}


def _renamed(field: str) -> str:
    for theirs, ours in _OF_TOOLS.items():
        if field == theirs or field.startswith(f"{theirs}."):
            return ours + field.removeprefix(theirs)
    return field


def _joined(place: str, field: str) -> str:
    return f"{place}.{field}" if field else place
