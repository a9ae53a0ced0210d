"""`functions` and `function_call`, the old names of tools and tool_choice: to the model they are tools."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tis.errors import BadRequest
from tis.openai_api.wire.chat_request import ChatMessage, ChatRequest, ChosenFunction, Tool, ToolCall


def with_tools_of_functions(body: ChatRequest) -> ChatRequest:
    """The same request with tools: an answer has one call, as `function_call` has room for one."""
    update: dict[str, object] = {}
    if any(message.function_call or message.role == "function" for message in body.messages or ()):
        update["messages"] = _with_tool_calls(body.messages or ())
    if body.functions is None and body.function_call is None:
        return body.model_copy(update=update) if update else body
    for name in ("tools", "tool_choice"):
        if getattr(body, name):
            raise BadRequest(
                f"{name} and functions exclude each other: functions is the old name of tools.", param=name
            )
    if body.function_call not in (None, "none", "auto") and not body.functions:
        raise BadRequest("function_call needs functions.", param="function_call")
    choice: object = body.function_call
    if isinstance(choice, ChosenFunction):
        if choice.name not in [one.name for one in body.functions or ()]:
            param = "function_call.name"
            raise BadRequest(f"{param}: there is no function {choice.name[:64]!r}.", param=param)
        choice = {"type": "function", "function": {"name": choice.name}}
    elif choice not in (None, "none", "auto"):
        raise BadRequest("function_call must be none, auto, or an object with a name.", param="function_call")
    tools = [Tool(type="function", function=one) for one in body.functions or ()] or None
    update |= {"tools": tools, "tool_choice": choice, "parallel_tool_calls": False}
    return body.model_copy(update=update)


@contextmanager
def naming_old_functions(body: ChatRequest) -> Iterator[None]:
    """An error about a field of tools has the name that the request has for it."""
    try:
        yield
    except BadRequest as error:
        if body.functions is not None and (error.param or "").startswith("tools."):
            given = error.param or ""
            error.param = given.replace("tools.", "functions.", 1).replace(".function", "", 1)
            error.message = error.message.replace(given, error.param, 1)
            error.args = (error.message,)
        raise


def _with_tool_calls(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Old calls have no ids: a result belongs to the call before it."""
    converted: list[ChatMessage] = []
    number = 0
    for message in messages:
        if called := message.function_call:
            number += 1
            call = ToolCall(id=f"call_{number}", function=called)
            calls = [*(message.tool_calls or ()), call]
            message = message.model_copy(update={"tool_calls": calls, "function_call": None})
        elif message.role == "function":
            message = message.model_copy(update={"role": "tool", "tool_call_id": f"call_{number}"})
        converted.append(message)
    return converted
