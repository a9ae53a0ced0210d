"""Translates a `Grammar` into the text that llguidance compiles. Rejects what can be rejected without compiling."""

import re
from typing import Any

from tis.engine.grammar.call_rules import forced_calls_text, marked_calls_text
from tis.engine.grammar.grammar import CallableTool, Grammar
from tis.engine.grammar.harmony_rules import in_final_message
from tis.engine.grammar.json_rules import schema_text
from tis.engine.grammar.lark import HEADER, TokenIds, quoted
from tis.engine.grammar.schema_check import MAX_GRAMMAR_LENGTH, check_schema, require_text, schema_error
from tis.errors import BadRequest

_MAX_CHOICES = 1000


def to_llguidance(grammar: Grammar, token_ids: TokenIds) -> str:
    """`token_ids` has the markers that are one token in the vocabulary: the model must write them as that token."""
    match grammar.kind:
        case "json_object":
            text = _from_schema({"type": "object"}, grammar.param)
        case "json_schema":
            text = _from_schema(grammar.value, grammar.param)
        case "tool_calls":
            text = forced_calls_text(grammar, token_ids)
        case "marked_calls":
            text = marked_calls_text(grammar, token_ids)
        case "choice":
            text = _from_choice(grammar.value, grammar.param)
        case "regex":
            text = _from_regex(grammar.value, grammar.param)
        case "lark":
            text = require_text(grammar.value, grammar.param)
    if grammar.call_format == "harmony" and grammar.kind not in ("tool_calls", "marked_calls"):
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
    return f"{HEADER}start: %json {schema_text(schema)}\n"


def _from_choice(choices: Any, param: str) -> str:
    if not (isinstance(choices, list) and choices and all(isinstance(one, str) and one for one in choices)):
        raise BadRequest(f"{param}: must be a list of non-empty strings.", param=param)
    if len(choices) > _MAX_CHOICES:
        raise BadRequest(f"{param}: at most {_MAX_CHOICES} choices.", param=param, code="schema_too_large")
    return f"{HEADER}start: {' | '.join(map(quoted, choices))}\n"


def _from_regex(pattern: Any, param: str) -> str:
    from llguidance import LLMatcher

    return str(LLMatcher.grammar_from_regex(require_text(pattern, param)))
