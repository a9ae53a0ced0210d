"""Structured output: the `Grammar` that a request sets with response_format, tool_choice or vLLM's extensions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tis.engine.grammar.grammar import Grammar, Kind
from tis.engine.grammar.schema_check import MAX_GRAMMAR_LENGTH
from tis.engine.grammar.tool_grammars import forced_calls, form_or_calls, strict_calls
from tis.errors import BadRequest
from tis.openai_api.wire.chat_request import ChatRequest, ResponseFormat
from tis.openai_api.wire.tools import checked_tools

_KINDS: Mapping[str, Kind] = {"json": "json_schema", "regex": "regex", "choice": "choice", "grammar": "lark"}


class Constrained(Protocol):
    """A request that may ask for a format of the whole answer."""

    response_format: ResponseFormat | None
    structured_outputs: dict[str, Any] | None
    guided_json: str | dict[str, Any] | None
    guided_regex: str | None
    guided_choice: list[str] | None
    guided_grammar: str | None


def answer_grammar(body: Constrained) -> Grammar | None:
    """Of a request without tools."""
    requested = [
        *_of_response_format(body.response_format),
        *_of_structured_outputs(body.structured_outputs),
        *_of_guided(body),
    ]
    _require_one(requested)
    return requested[0] if requested else None


def requested_grammar(body: ChatRequest) -> Grammar | None:
    tools, parallel = checked_tools(body), body.parallel_tool_calls is not False
    forced = forced_calls(tools, body.tool_choice, parallel=parallel)
    # A response_format applies to content. With a forced call there is no content.
    form = None if forced else response_format_grammar(body)
    if form and body.tool_choice != "none":
        form = form_or_calls(form, tools, parallel=parallel)
    requested = [
        *([form] if form else []),
        *_of_structured_outputs(body.structured_outputs),
        *_of_guided(body),
        *([forced] if forced else []),
    ]
    _require_one(requested)
    if not requested and body.tool_choice != "none":
        return strict_calls(tools, parallel=parallel)
    return requested[0] if requested else None


def _require_one(requested: Sequence[Grammar]) -> None:
    if len(requested) > 1:
        params = " and ".join(grammar.param for grammar in requested)
        raise BadRequest(f"{params} exclude each other: an answer has only one format.", param=requested[1].param)


def response_format_grammar(body: ChatRequest) -> Grammar | None:
    """The grammar of `response_format`. The model may call a tool instead, unlike with vLLM's extensions."""
    found = _of_response_format(body.response_format)
    return found[0] if found else None


def schema_grammar(schema: Any, param: str) -> Grammar:
    return Grammar("json_schema", schema, param=param)


def _of_response_format(requested: Any) -> list[Grammar]:
    match requested and requested.type:
        case None | "text":
            return []
        case "json_object":
            return [_of_json_object(requested)]
        case "json_schema":
            schema = requested.json_schema.get("schema") if requested.json_schema else None
            if schema is None:
                param = "response_format.json_schema.schema"
                raise BadRequest(f"{param}: Field required", param=param, code="missing_required_parameter")
            return [schema_grammar(schema, "response_format.json_schema.schema")]
        case other:
            raise BadRequest(
                f"response_format.type must be text, json_object or json_schema, got {other[:40]!r}.",
                param="response_format.type",
                code="unsupported_value",
            )


def _of_json_object(requested: ResponseFormat) -> Grammar:
    given = {
        name: schema
        for name, schema in (("value", requested.value), ("schema", requested.schema_))
        if schema is not None
    }
    if len(given) > 1:
        raise BadRequest("response_format: value and schema exclude each other.", param="response_format.schema")
    for name, schema in given.items():
        return schema_grammar(schema, f"response_format.{name}")
    return Grammar("json_object", param="response_format")


def _of_structured_outputs(requested: Mapping[str, Any] | None) -> list[Grammar]:
    found = []
    for name, value in (requested or {}).items():
        param = f"structured_outputs.{name[:40]}"
        if value is None or value is False:
            continue
        if name in _KINDS:
            found.append(_guided(name, value, param))
        elif name == "json_object":
            found.append(Grammar("json_object", param=param))
        elif name not in _IGNORED_OPTIONS:
            raise BadRequest(f"{param} is not supported.", param=param, code="unsupported_value")
    return found


# Options of vLLM that have no effect here, because the server has one grammar engine and one JSON spacing.
_IGNORED_OPTIONS = frozenset({"disable_fallback", "disable_any_whitespace"})


def _of_guided(body: Constrained) -> list[Grammar]:
    given = {name: getattr(body, f"guided_{name}") for name in _KINDS}
    return [_guided(name, value, f"guided_{name}") for name, value in given.items() if value is not None]


def _guided(name: str, value: Any, param: str) -> Grammar:
    if name == "json" and isinstance(value, str):
        try:
            value = json.loads(value[: MAX_GRAMMAR_LENGTH + 1])
        except (ValueError, RecursionError):
            raise BadRequest(f"{param} must be a JSON schema, or a string that contains one.", param=param) from None
    return Grammar(_KINDS[name], value, param=param)
