"""Translates a `Grammar` into the text that llguidance compiles. Rejects what can be rejected without compiling."""

import copy
import json
import re
from typing import Any

from tis.engine.grammar.glm_rules import can_write_tagged, tagged_call_rules
from tis.engine.grammar.grammar import CallableTool, Grammar
from tis.engine.grammar.harmony_rules import call_header, in_final_message, message_rules
from tis.engine.grammar.lark import HEADER, TokenIds, marker, quoted
from tis.engine.grammar.schema_check import MAX_GRAMMAR_LENGTH, check_schema, schema_error, subschemas
from tis.engine.grammar.tool_input import MAX_INPUTS, around_input, input_format_of, input_place
from tis.engine.text.markers import ToolFormat
from tis.errors import BadRequest

# The style of json.dumps, which models know best. Fixed whitespace also makes everything between two values forced, and
# a weak model cannot write whitespace for ever.
_JSON_STYLE = {
    "item_separator": ", ",
    "key_separator": ": ",
    "whitespace_flexible": False,
    "coerce_one_of": False,
    "lenient": False,
    "json_allowed_escapes": 'nrbtf\\"',  # \\u could write half a surrogate pair, which clients cannot decode
}
_MAX_CHOICES = 1000
_MAX_TOOLS = MAX_INPUTS
_MAX_CALLS = 16  # in one answer

# If a schema has two of these, each may list other properties of the same object.
_DESCRIBES_OBJECT = frozenset({"properties", "anyOf", "oneOf", "$ref", "enum", "const"})
_ALREADY_LIMITED = frozenset({"additionalProperties", "patternProperties", "minProperties"})


def to_llguidance(grammar: Grammar, token_ids: TokenIds) -> str:
    """`token_ids` has the markers that are one token in the vocabulary: the model must write them as that token."""
    match grammar.kind:
        case "json_object":
            text = _from_schema({"type": "object"}, grammar.param)
        case "json_schema":
            text = _from_schema(grammar.value, grammar.param)
        case "tool_calls":
            text = _from_tools(grammar, token_ids)
        case "marked_calls":
            text = _from_marked_calls(grammar, token_ids)
        case "choice":
            text = _from_choice(grammar.value, grammar.param)
        case "regex":
            text = _from_regex(grammar.value, grammar.param)
        case "lark":
            text = _non_empty_text(grammar.value, grammar.param)
    if grammar.call_format == "harmony" and grammar.kind != "tool_calls":
        text = in_final_message(grammar, text, token_ids)
    if len(text) > MAX_GRAMMAR_LENGTH:
        raise BadRequest(
            f"{grammar.param}: at most {MAX_GRAMMAR_LENGTH} characters, this one has {len(text)}.",
            param=grammar.param,
            code="schema_too_large",
        )
    return text


def compile_error(grammar: Grammar, message: str) -> BadRequest:
    """Turns a message of the compiler into an error that names the place in the request."""
    message = _clean(message)
    if grammar.kind == "json_schema":
        return schema_error(grammar.value, grammar.param, message)
    schemas = [(tool.parameters, tool.param) for tool in grammar.tools]
    for schema, param in [*schemas, (grammar.value, grammar.param)] if grammar.tools else ():
        error = schema_error(schema or {}, param, message)
        if error.param != param:
            return error
    return BadRequest(f"{grammar.param}: {message}"[:400], param=grammar.param, code="invalid_grammar")


def input_error(tool: CallableTool, message: str) -> BadRequest:
    """What is wrong with the grammar of a tool's input."""
    return BadRequest(f"{tool.param}: {_clean(message)}"[:400], param=tool.param, code="invalid_grammar")


def _clean(message: str) -> str:
    """Removes the position in our own text, and the text itself."""
    if message.startswith("NoExtension"):
        return "no text can match it."
    message = " ".join(message.partition("\n   1 |")[0].split())
    return re.sub(r"^at \d+\(\d+\): (failed to compile JSON schema: )?", "", message)


def _from_schema(schema: Any, param: str) -> str:
    check_schema(schema, param)
    return f"{HEADER}start: %json {_schema_text(schema)}\n"


def _schema_text(schema: dict[str, Any]) -> str:
    return json.dumps({**close_objects(schema), "x-guidance": _JSON_STYLE}, ensure_ascii=False)


def close_objects(schema: dict[str, Any]) -> dict[str, Any]:
    """Forbids unlisted properties in objects that list some, because a weak model might write properties for ever.

    The result accepts only answers that the schema itself accepts too, and answers are validated with that one. Returns
    the schema unchanged if one part of it may require what another part does not list.
    """
    if any("allOf" in one or len(_DESCRIBES_OBJECT & one.keys()) > 1 for _, one in subschemas(schema, "")):
        return schema
    closed = copy.deepcopy(schema)
    for _, one in subschemas(closed, ""):
        listed, required = one.get("properties"), one.get("required", [])
        if not isinstance(listed, dict) or not isinstance(required, list) or _ALREADY_LIMITED & one.keys():
            continue  # or the schema is invalid, which is reported later
        if all(isinstance(name, str) and name in listed for name in required):
            one["additionalProperties"] = False
    return closed


def _from_choice(choices: Any, param: str) -> str:
    if not (isinstance(choices, list) and choices and all(isinstance(one, str) and one for one in choices)):
        raise BadRequest(f"{param}: must be a list of non-empty strings.", param=param)
    if len(choices) > _MAX_CHOICES:
        raise BadRequest(f"{param}: at most {_MAX_CHOICES} choices.", param=param, code="schema_too_large")
    return f"{HEADER}start: {' | '.join(map(quoted, choices))}\n"


def _from_regex(pattern: Any, param: str) -> str:
    from llguidance import LLMatcher

    return str(LLMatcher.grammar_from_regex(_non_empty_text(pattern, param)))


def _non_empty_text(text: Any, param: str) -> str:
    if not isinstance(text, str) or not text:
        raise BadRequest(f"{param}: must be a non-empty string.", param=param)
    if len(text) > MAX_GRAMMAR_LENGTH:
        raise BadRequest(f"{param}: at most {MAX_GRAMMAR_LENGTH} characters.", param=param, code="schema_too_large")
    return text


def _from_tools(grammar: Grammar, token_ids: TokenIds) -> str:
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
        rules.append(f"answer: %json {_schema_text(grammar.value)}")
    if is_harmony:
        rules += message_rules(token_ids)[: None if answer else 2]
    head, tail = _around_call(grammar.call_format, token_ids)
    is_unmarked = grammar.value is not None and not (before or head)
    rules += _json_call_rules(grammar, token_ids, head, tail, is_unmarked=is_unmarked)
    return HEADER + "\n".join(rules) + "\n"


def _from_marked_calls(grammar: Grammar, token_ids: TokenIds) -> str:
    """What follows the opening marker, until text is free again."""
    _check_num_tools(grammar)
    call_format = grammar.call_format
    if call_format == "mistral" and "[ARGS]" in token_ids:
        return HEADER + "\n".join(_named_call_rules(grammar, token_ids)) + "\n"
    before, between, after = {
        "hermes": (quoted("\n"), "", f"{quoted(chr(10))} {marker('</tool_call>', token_ids)}"),
        "mistral": (f"{quoted(' ')}? {quoted('[')}", quoted(", "), quoted("]")),
    }.get(call_format, ("", quoted("; "), ""))
    more = "" if grammar.one_call or not between else f" ({between} call){{0,{_MAX_CALLS - 1}}}"
    rules = [f"start: {before} call{more} {after}", *_json_call_rules(grammar, token_ids)]
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


def _json_call_rules(
    grammar: Grammar, token_ids: TokenIds, head: str = "", tail: str = "", *, is_unmarked: bool = False
) -> list[str]:
    """`is_unmarked`: the answer may be another JSON object, and nothing before the call tells them apart."""
    arguments_key = "parameters" if grammar.call_format == "llama" else "arguments"
    rules = [f"call: {head} ({' | '.join(f'call_{at}' for at in range(len(grammar.tools)))}) {tail}"]
    for at, tool in enumerate(grammar.tools):
        check_schema(tool.parameters, tool.param)
        if grammar.call_format == "glm" and can_write_tagged(tool):
            rules += tagged_call_rules(f"call_{at}", tool, token_ids, _schema_text)
            continue
        if is_unmarked:
            _require_no_input_format(tool)
            rules.append(f"call_{at}: %json {_schema_text(_call_schema(tool, arguments_key))}")
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
        _non_empty_text(form.definition, tool.param)
        begin, end = around_input()
        return f"arguments_{at}: {begin} {marker(input_place(at), token_ids)} {end}"
    return f"arguments_{at}: %json {_schema_text(_arguments_schema(tool))}"


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
            return '("\\n")?', '("\\n")?', ""
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
