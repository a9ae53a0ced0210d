"""Grammar rules for the arguments of GLM's tool calls: strings as they are, any other value as JSON."""

from collections.abc import Callable, Mapping
from typing import Any

from tis.engine.grammar.grammar import CallableTool
from tis.engine.grammar.lark import TokenIds, marker, quoted, text_until_rule
from tis.engine.grammar.schema_types import types_of

SchemaText = Callable[[dict[str, Any]], str]
_BREAK = '("\\n")?'  # GLM 4.5 and 4.6 write line breaks, 4.7 does not
_DESCRIBES_OBJECT = frozenset({"type", "properties", "required", "additionalProperties"})
_NO_CONSTRAINTS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "format"}
)
_DEFINITIONS = ("$defs", "definitions")
_IN_A_STRING = _NO_CONSTRAINTS | {"type", "enum", "const"}


def can_write_tagged(tool: CallableTool) -> bool:
    """Whether each argument has a schema of its own, and text needs no constraint that only JSON rules can express."""
    parameters = tool.parameters
    listed = parameters.get("properties", {})
    if not parameters.keys() <= _DESCRIBES_OBJECT | _NO_CONSTRAINTS | set(_DEFINITIONS):
        return False
    if parameters.get("type", "object") != "object" or not isinstance(listed, Mapping):
        return False
    if not isinstance(parameters.get("additionalProperties", False), bool):
        return False
    required = parameters.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) and name in listed for name in required):
        return False
    return all(_can_write_value(parameters, name, one) for name, one in listed.items())


def _can_write_value(parameters: Mapping[str, Any], name: str, schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    types = types_of(parameters, name)
    if "string" not in types:
        return True
    if not types <= {"string", "null"}:
        return schema.keys() <= _NO_CONSTRAINTS | {"type"}
    choices = _choices(schema)
    if choices is not None:
        return schema.keys() <= _IN_A_STRING and all(isinstance(one, str) or one is None for one in choices)
    if "anyOf" in schema or "oneOf" in schema:
        inner = schema.get("anyOf") or schema.get("oneOf")
        return schema.keys() <= _NO_CONSTRAINTS | {"anyOf", "oneOf"} and all(
            one.keys() <= _NO_CONSTRAINTS | {"type"} for one in inner or ()
        )
    return schema.keys() <= _NO_CONSTRAINTS | {"type"}


def _choices(schema: Mapping[str, Any]) -> list[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def tagged_call_rules(name: str, tool: CallableTool, token_ids: TokenIds, schema_text: SchemaText) -> list[str]:
    """The rule `name` for a call, and the rules that it needs."""
    parameters = tool.parameters
    required = parameters.get("required", [])
    key, key_end, value = (marker(one, token_ids) for one in ("<arg_key>", "</arg_key>", "<arg_value>"))
    arguments, rules = [], []
    for number, (argument, schema) in enumerate(parameters.get("properties", {}).items()):
        rule = f"{name}_{number}"
        arguments.append(rule if argument in required else f"{rule}?")
        before = f"{key} {quoted(argument)} {key_end} {_BREAK} {value}"
        rules.append(f"{rule}: {before} {rule}_value {_BREAK}")
        rules.append(_value_rule(f"{rule}_value", parameters, argument, schema, token_ids, schema_text))
    return [f"{name}: {quoted(tool.name)} {_BREAK} {' '.join(arguments)}", *rules]


def _value_rule(
    rule: str,
    parameters: Mapping[str, Any],
    argument: str,
    schema: Mapping[str, Any],
    token_ids: TokenIds,
    schema_text: SchemaText,
) -> str:
    end = marker("</arg_value>", token_ids)
    if "string" not in types_of(parameters, argument):
        definitions = {one: parameters[one] for one in _DEFINITIONS if one in parameters}
        return f"{rule}: %json {schema_text({**definitions, **schema})} {end}"
    if choices := _choices(schema):
        return f"{rule}: ({' | '.join(quoted('null' if one is None else one) for one in choices)}) {end}"
    return text_until_rule(rule, "</arg_value>", token_ids)
