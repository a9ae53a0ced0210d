"""Grammar rules for calls whose arguments stand between tags: strings as they are, any other value as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tis.engine.grammar.grammar import CallableTool
from tis.engine.grammar.json_rules import schema_text
from tis.engine.grammar.lark import TokenIds, marker, quoted, text_until_rule
from tis.engine.grammar.schema_types import types_of
from tis.engine.grammar.tool_input import InputFormat, input_format_of

BREAK = '("\\n")?'  # GLM 4.5 and 4.6 write line breaks, 4.7 does not
_DESCRIBES_OBJECT = frozenset({"type", "properties", "required", "additionalProperties"})
_NO_CONSTRAINTS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "format"}
)
_DEFINITIONS = ("$defs", "definitions")
_IN_A_STRING = _NO_CONSTRAINTS | {"type", "enum", "const"}
_ANY_KEY = r"/[^<>\n]+/"


@dataclass(frozen=True, slots=True)
class CallTags:
    """What a model writes around a name, a key and a value, as parts of rules; `value_end` is the text of a marker."""

    before_name: str
    after_name: str
    before_key: str
    after_key: str
    value_end: str
    after_value: str
    end: str

    @classmethod
    def of_glm(cls, token_ids: TokenIds) -> "CallTags":
        key, key_end, value = (marker(one, token_ids) for one in ("<arg_key>", "</arg_key>", "<arg_value>"))
        return cls("", BREAK, key, f"{key_end} {BREAK} {value}", "</arg_value>", BREAK, "")

    @classmethod
    def of_xml(cls) -> "CallTags":
        """As Qwen-Coder writes calls: these tags are no tokens."""
        line = quoted(">\n")
        return cls(
            *(quoted("<function="), line, quoted("<parameter="), line),
            *("\n</parameter>", quoted("\n"), quoted("</function>")),
        )


def has_any_arguments(tool: CallableTool) -> bool:
    """Whether all that the schema says is that they are an object."""
    parameters = tool.parameters
    is_open = parameters.get("additionalProperties", True) is True
    return bool(parameters) and is_open and not parameters.keys() - _NO_CONSTRAINTS - {"type", "additionalProperties"}


def can_be_between_tags(tool: CallableTool) -> bool:
    """Whether a call that the model chooses to make can be held to what the tool takes."""
    return bool(input_format_of(tool.parameters)) or has_any_arguments(tool) or can_write_tagged(tool)


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


def tagged_call_rules(name: str, tool: CallableTool, tags: CallTags, token_ids: TokenIds) -> list[str]:
    """The rule `name` for a call, and the rules that it needs."""
    before, after = f"{tags.before_name} {quoted(tool.name)} {tags.after_name}", tags.end
    if has_any_arguments(tool):
        key = f"{tags.before_key} {_ANY_KEY} {tags.after_key}"
        return [
            f"{name}: {before} {name}_any* {after}",
            f"{name}_any: {key} {name}_any_value {tags.after_value}",
            text_until_rule(f"{name}_any_value", tags.value_end, token_ids),
        ]
    parameters = tool.parameters
    required = parameters.get("required", [])
    arguments, rules = [], []
    for number, (argument, schema) in enumerate(parameters.get("properties", {}).items()):
        rule = f"{name}_{number}"
        arguments.append(rule if argument in required else f"{rule}?")
        key = f"{tags.before_key} {quoted(argument)} {tags.after_key}"
        rules.append(f"{rule}: {key} {rule}_value {tags.after_value}")
        rules += _value_rules(f"{rule}_value", tool, argument, schema, tags.value_end, token_ids)
    return [f"{name}: {before} {' '.join(arguments)} {after}", *rules]


def _input_rules(rule: str, form: InputFormat, value_end: str, token_ids: TokenIds) -> list[str]:
    """An expression that takes line breaks would take the end, too, if that were a rule behind it."""
    if form.syntax == "regex" and value_end not in token_ids:
        return [f"{rule}[suffix={quoted(value_end)}]: {form.rules().removeprefix('start: ')}"]
    return [f"{rule}: {rule}_text {marker(value_end, token_ids)}", f"{rule}_text: %lark {{\n{form.rules()}\n}}"]


def _value_rules(
    rule: str, tool: CallableTool, argument: str, schema: Mapping[str, Any], value_end: str, token_ids: TokenIds
) -> list[str]:
    end, parameters = marker(value_end, token_ids), tool.parameters
    if form := input_format_of(parameters):
        return _input_rules(rule, form, value_end, token_ids)
    if "string" not in types_of(parameters, argument):
        definitions = {one: parameters[one] for one in _DEFINITIONS if one in parameters}
        return [f"{rule}: %json {schema_text({**definitions, **schema})} {end}"]
    if choices := _choices(schema):
        return [f"{rule}: ({' | '.join(quoted('null' if one is None else one) for one in choices)}) {end}"]
    return [text_until_rule(rule, value_end, token_ids)]
