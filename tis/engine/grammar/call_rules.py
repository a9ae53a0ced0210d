"""Grammar rules of tool calls: forced ones, and those that the model may make among free text."""

import json
from typing import Any

from tis.engine.grammar.grammar import CallableTool, Grammar
from tis.engine.grammar.harmony_rules import call_header, free_message_rules, message_rules
from tis.engine.grammar.json_rules import schema_text
from tis.engine.grammar.lark import HEADER, TokenIds, marker, quoted
from tis.engine.grammar.schema_check import check_schema, require_text
from tis.engine.grammar.tagged_rules import BREAK, CallTags, can_write_tagged, has_any_arguments, tagged_call_rules
from tis.engine.grammar.tool_input import MAX_INPUTS, around_input, input_format_of, input_place
from tis.engine.text.markers import ToolFormat
from tis.errors import BadRequest

_MAX_TOOLS = MAX_INPUTS
_MAX_CALLS = 16  # in one answer


def forced_calls_text(grammar: Grammar, token_ids: TokenIds) -> str:
    _check_num_tools(grammar)
    rules = []
    is_harmony = grammar.call_format == "harmony"
    before, between, after = _around_calls(grammar.call_format, token_ids)
    # gpt-oss ends its answer with each call.
    more = "" if grammar.one_call or is_harmony else f" ({between} call){{0,{_MAX_CALLS - 1}}}"
    answer = "" if grammar.value is None else " | final" if is_harmony else " | answer"
    rules.append(f"start: {before} {'(' if is_harmony else ''}call{more} {after}{answer}{')' if is_harmony else ''}")
    if grammar.value is not None:
        check_schema(grammar.value, grammar.param)
        rules.append(f"answer: %json {schema_text(grammar.value)}")
    if is_harmony:
        rules += message_rules(token_ids)[: None if answer else 2]
    head, tail = _around_call(grammar.call_format, token_ids)
    is_unmarked = grammar.value is not None and not (before or head)
    rules += _call_rules(grammar, token_ids, head, tail, is_unmarked=is_unmarked)
    return HEADER + "\n".join(rules) + "\n"


def marked_calls_text(grammar: Grammar, token_ids: TokenIds) -> str:
    """What follows the opening marker, until text is free again; for gpt-oss, the whole answer."""
    _check_num_tools(grammar)
    call_format = grammar.call_format
    if call_format == "mistral" and "[ARGS]" in token_ids:
        return HEADER + "\n".join(_named_call_rules(grammar, token_ids)) + "\n"
    if call_format == "harmony":
        rules = [*free_message_rules(token_ids), *_call_rules(grammar, token_ids)]
        return HEADER + "\n".join(rules) + "\n"
    call_end = marker("</tool_call>", token_ids)
    before, between, after = {
        "hermes": (quoted("\n"), "", f"{quoted(chr(10))} {call_end}"),
        "glm": (BREAK, "", call_end),
        "mistral": (f"{quoted(' ')}? {quoted('[')}", quoted(", "), quoted("]")),
    }.get(call_format, ("", quoted("; "), ""))
    head = tail = ""
    if call_format in ("deepseek_v3", "deepseek_v31"):
        _, between, after = _around_calls(call_format, token_ids)
        head, tail = _around_call(call_format, token_ids)
    repeats = bool(between) or call_format == "deepseek_v31"
    more = f" ({between} call){{0,{_MAX_CALLS - 1}}}" if repeats and not grammar.one_call else ""
    tags = CallTags.of_xml() if grammar.writes_xml else CallTags.of_glm(token_ids) if call_format == "glm" else None
    rules = [f"start: {before} call{more} {after}", *_call_rules(grammar, token_ids, head, tail, tags=tags)]
    return HEADER + "\n".join(rules) + "\n"


def _named_call_rules(grammar: Grammar, token_ids: TokenIds) -> list[str]:
    """Calls of newer Mistral models: name[ARGS]{...}, some with an id before the arguments."""
    args = marker("[ARGS]", token_ids)
    call_id = f"({marker('[CALL_ID]', token_ids)} /[A-Za-z0-9]{{9}}/)? " if "[CALL_ID]" in token_ids else ""
    calls = [f"{quoted(tool.name)} {call_id}{args} arguments_{at}" for at, tool in enumerate(grammar.tools)]
    for tool in grammar.tools:
        check_schema(tool.parameters, tool.param)
    rules = [_arguments_rule(at, tool, token_ids) for at, tool in enumerate(grammar.tools)]
    return [f"start: {' | '.join(calls)}", *rules]


def _call_rules(
    grammar: Grammar,
    token_ids: TokenIds,
    head: str = "",
    tail: str = "",
    *,
    is_unmarked: bool = False,
    tags: CallTags | None = None,
) -> list[str]:
    """`is_unmarked`: the answer may be another JSON object, and nothing before the call tells them apart.

    `tags`: all arguments stand between these. In a forced call of GLM, those of tools that can have them so.
    """
    arguments_key = "parameters" if grammar.call_format == "llama" else "arguments"
    rules = [f"call: {head} ({' | '.join(f'call_{at}' for at in range(len(grammar.tools)))}) {tail}"]
    for at, tool in enumerate(grammar.tools):
        check_schema(tool.parameters, tool.param)
        may_have_tags = grammar.call_format == "glm" and (has_any_arguments(tool) or can_write_tagged(tool))
        if tags or may_have_tags:
            rules += tagged_call_rules(f"call_{at}", tool, tags or CallTags.of_glm(token_ids), token_ids)
            continue
        if is_unmarked:
            _require_no_input_format(tool)
            rules.append(f"call_{at}: %json {schema_text(_call_schema(tool, arguments_key))}")
            continue
        begin, end = _around_arguments(tool.name, arguments_key, grammar.call_format, token_ids)
        rules.append(f"call_{at}: {begin} arguments_{at} {end}")
        rules.append(_arguments_rule(at, tool, token_ids))
    return rules


def _require_no_input_format(tool: CallableTool) -> None:
    if input_format_of(tool.parameters):
        raise BadRequest(
            f"{tool.param}: this model's calls look like its JSON answers, so the grammar cannot be enforced beside a "
            "response_format.",
            param=tool.param,
            code="unsupported_value",
        )


def _arguments_rule(at: int, tool: CallableTool, token_ids: TokenIds) -> str:
    if form := input_format_of(tool.parameters):
        require_text(form.definition, tool.param)
        begin, end = around_input()
        return f"arguments_{at}: {begin} {marker(input_place(at), token_ids)} {end}"
    return f"arguments_{at}: %json {schema_text(_arguments_schema(tool))}"


def _check_num_tools(grammar: Grammar) -> None:
    if len(grammar.tools) > _MAX_TOOLS:
        raise BadRequest(f"tools: at most {_MAX_TOOLS}.", param="tools", code="schema_too_large")


def _call_schema(tool: CallableTool, arguments_key: str) -> dict[str, Any]:
    """Makes a call one schema, so that its lexemes equal those of a similar answer: longer ones would win."""
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, arguments_key: tool.parameters},
        "required": ["name", arguments_key],
    }


def _arguments_schema(tool: CallableTool) -> dict[str, Any]:
    """Arguments are always an object, even if the schema does not say so."""
    if not tool.parameters:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    return {"type": "object", **tool.parameters}


def _around_calls(call_format: ToolFormat, token_ids: TokenIds) -> tuple[str, str, str]:
    """Returns the text before the first call, between two calls, and after the last."""
    match call_format:
        case "hermes":
            return "", quoted("\n"), ""
        case "mistral":
            return f"{marker('[TOOL_CALLS]', token_ids)} {quoted('[')}", quoted(", "), quoted("]")
        case "llama":
            return "", quoted("; "), ""
        case "json":
            return "", quoted("\n"), ""
        case "glm":
            return BREAK, BREAK, ""
        case "deepseek_v3" | "deepseek_v31":
            between = quoted("\n") if call_format == "deepseek_v3" else ""
            return marker("<｜tool▁calls▁begin｜>", token_ids), between, marker("<｜tool▁calls▁end｜>", token_ids)
        case "harmony":
            return "analysis?", "", ""


def _around_call(call_format: ToolFormat, token_ids: TokenIds) -> tuple[str, str]:
    if call_format in ("hermes", "glm"):
        opening, closing = (marker(one, token_ids) for one in ("<tool_call>", "</tool_call>"))
        lines = quoted("\n") if call_format == "hermes" else ""
        return f"{opening} {lines}", f"{lines} {closing}"
    if call_format in ("deepseek_v3", "deepseek_v31"):
        return marker("<｜tool▁call▁begin｜>", token_ids), marker("<｜tool▁call▁end｜>", token_ids)
    return "", ""


def _around_arguments(name: str, arguments_key: str, call_format: ToolFormat, token_ids: TokenIds) -> tuple[str, str]:
    separator = marker("<｜tool▁sep｜>", token_ids)
    match call_format:
        case "deepseek_v3":
            return f'"function" {separator} {quoted(f"{name}{chr(10)}```json{chr(10)}")}', quoted("\n```")
        case "deepseek_v31":
            return f"{quoted(name)} {separator}", ""
        case "harmony":
            return call_header(name, token_ids), ""
    return quoted(f'{{"name": {json.dumps(name, ensure_ascii=False)}, "{arguments_key}": '), quoted("}")
