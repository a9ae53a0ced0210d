"""The grammars of tool calls: forced ones, and those that the model may make instead of an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tis.engine.grammar.grammar import CallableTool, Grammar, marked_calls_grammar, tool_call_grammar
from tis.engine.grammar.tool_input import input_format_of
from tis.errors import BadRequest


def forced_calls(tools: Sequence[Mapping[str, Any]], tool_choice: Any, *, parallel: bool) -> Grammar | None:
    """The grammar for tool_choice `required` or a named tool. None: the model may choose."""
    if tool_choice in (None, "none", "auto"):
        return None
    if not tools:
        raise BadRequest("tool_choice needs tools.", param="tool_choice")
    callable_tools = [_callable(at, tool) for at, tool in enumerate(tools)]
    if tool_choice == "required":
        return tool_call_grammar(tuple(callable_tools), one_call=not parallel)
    name = _name_chosen(tool_choice)
    named = tuple(tool for tool in callable_tools if tool.name == name)
    if not named:
        raise BadRequest(f"tool_choice: there is no tool named {name[:64]!r}.", param="tool_choice.function.name")
    return tool_call_grammar(named[:1], one_call=True)


def form_or_calls(form: Grammar, tools: Sequence[Mapping[str, Any]], *, parallel: bool) -> Grammar:
    """The model may choose. As always on auto, only the arguments of strict tools follow their schema."""
    if not tools:
        return form
    callable_tools = [_constrained_if_strict(at, tool) for at, tool in enumerate(tools)]
    instead = form.value if form.kind == "json_schema" else {"type": "object"}
    return tool_call_grammar(tuple(callable_tools), one_call=not parallel, param=form.param, answer_schema=instead)


def strict_calls(tools: Sequence[Mapping[str, Any]], *, parallel: bool) -> Grammar | None:
    """Constrains the calls that the model chooses to make, if any tool is strict."""
    if not any(map(_is_strict, tools)):
        return None
    callable_tools = [_constrained_if_strict(at, tool) for at, tool in enumerate(tools)]
    return marked_calls_grammar(tuple(callable_tools), one_call=not parallel)


def _name_chosen(tool_choice: Any) -> str:
    if isinstance(tool_choice, dict) and tool_choice.get("type", "function") == "function":
        function = tool_choice.get("function")
        # Chat has the name within `function`, Responses beside the type.
        name = function.get("name") if isinstance(function, dict) else tool_choice.get("name")
        if isinstance(name, str):
            return name
    raise BadRequest(
        "tool_choice must be none, auto, required, or the name of a function.",
        param="tool_choice",
        code="unsupported_value",
    )


def _constrained_if_strict(at: int, tool: Mapping[str, Any]) -> CallableTool:
    one = _callable(at, tool)
    return one if _is_strict(tool) else replace(one, parameters={"type": "object"})


def _is_strict(tool: Mapping[str, Any]) -> bool:
    function = tool.get("function")
    return (function if isinstance(function, dict) else tool).get("strict") is True


def _callable(at: int, tool: Mapping[str, Any]) -> CallableTool:
    inside = tool.get("function")
    function, where = (inside, f"tools.{at}.function") if isinstance(inside, dict) else (tool, f"tools.{at}")
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not name:
        raise BadRequest(f"{where}.name: Field required", param=f"{where}.name", code="missing_required_parameter")
    if parameters is not None and not isinstance(parameters, dict):
        raise BadRequest(f"{where}.parameters must be a JSON schema, which is an object.", param=f"{where}.parameters")
    if input_format_of(parameters or {}):
        return CallableTool(name, parameters or {}, f"tools.{at}.custom.format.grammar.definition")
    return CallableTool(name, parameters or {}, f"{where}.parameters")
