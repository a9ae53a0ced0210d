"""Unsupported keywords are rejected with their name and place; hostile schemas are rejected soon."""

import time
from typing import Any

import pytest

from tests.engine.batching.grammars import grammars
from tis.engine.grammar.compile import CompiledGrammar
from tis.engine.grammar.compile_sandbox import CompileSandbox, TooExpensive
from tis.engine.grammar.grammar import CallableTool, Grammar, tool_call_grammar
from tis.errors import BadRequest

pytestmark = pytest.mark.slow

WHERE = "response_format.json_schema.schema"
ITEMS = {"type": "array", "items": {"type": "integer"}}


def compiled(schema: Any) -> CompiledGrammar:
    return grammars().compile(Grammar("json_schema", schema, param=WHERE))


def refusal(schema: Any) -> BadRequest:
    with pytest.raises(BadRequest) as refused:
        compiled(schema)
    return refused.value


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"properties": {"x": {**ITEMS, "uniqueItems": True}}}, "properties.x.uniqueItems"),
        ({"not": {"type": "string"}}, "not"),
        ({"type": "array", "prefixItems": [{}, {"contains": {}}]}, "prefixItems.1.contains"),
        ({"if": {}, "then": {}}, "if"),
        ({"$defs": {"a": {"dependentRequired": {}}}, "$ref": "#/$defs/a"}, "$defs.a.dependentRequired"),
        ({"additionalProperties": {"propertyNames": {"maxLength": 3}}}, "additionalProperties.propertyNames"),
        ({"anyOf": [{"type": "null"}, {"unevaluatedProperties": False}]}, "anyOf.1.unevaluatedProperties"),
        ({"type": "array", "items": [{"type": "integer"}]}, "items"),
        ({"$ref": "http://127.0.0.1/schema"}, "$ref"),
        ({"type": "string", "format": "made-up"}, "format"),
        ({"properties": {"a": {"oneOf": [{"type": "number"}, {"type": "integer"}]}}}, "properties.a.oneOf"),
        ({"properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2}, "minProperties"),
        ({"type": "object", "minProperties": 3}, "minProperties"),
        ({"type": "array", "uniqueItems": True, "x-guidance": {"lenient": True}}, "uniqueItems"),
        ({"type": "string", "x-guidance": {"lenient": True}}, "x-guidance"),
    ],
)
def test_an_unsupported_keyword_is_named_with_its_place(schema: dict[str, Any], path: str) -> None:
    refused = refusal(schema)
    assert (refused.code, refused.param) == ("unsupported_schema_keyword", f"{WHERE}.{path}")
    assert path.rsplit(".")[-1] in refused.message


@pytest.mark.parametrize(
    "schema",
    [
        {"title": "t", "description": "uniqueItems", "default": {"not": 1}, "examples": [{"if": 1}], "type": "object"},
        {"type": "object", "properties": {"uniqueItems": {"type": "integer"}, "not": {"type": "null"}}},
        {"enum": [{"not": 1}, {"uniqueItems": True}]},
        {"type": "integer", "format": "int32"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/a", "type": "null"},
        {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}, "discriminator": {}},
        {"definitions": {"a": {"type": "integer"}}, "$ref": "#/definitions/a"},
    ],
)
def test_annotations_and_property_names_are_not_keywords(schema: dict[str, Any]) -> None:
    assert compiled(schema)


@pytest.mark.parametrize(
    "schema",
    [
        None, [], "object", {"type": "objekt"}, {"properties": []}, {"required": "a"}, {"enum": []},
        {"type": "integer", "minimum": 5, "maximum": 3}, {"$ref": "#/$defs/gone"}, {"pattern": "(?!a)b"},
        {"type": "string", "pattern": "["}, {"type": "object", "properties": {"a": False}, "required": ["a"]},
    ],
    ids=str,
)  # fmt: skip
def test_an_invalid_or_unsatisfiable_schema_is_rejected(schema: Any) -> None:
    assert refusal(schema).param.startswith(WHERE)  # type: ignore[union-attr]


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(10_000)}},
        {"enum": [f"v{n}" for n in range(100_000)]},
        {"enum": ["x" * 200_000]},
        nested(200),
        {"type": "integer", "multipleOf": 999_983},
        {"type": "integer", "allOf": [{"multipleOf": 9973}, {"multipleOf": 9967}]},  # a multiple of both: 10 s, 400 MB
        {"type": "array", "minItems": 10_000_000},
        {"type": "string", "allOf": [{"pattern": f"(a|b)*a(a|b){{{n}}}c"} for n in range(10, 20)]},
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_a_hostile_schema_is_rejected_in_bounded_time_and_memory(schema: dict[str, Any]) -> None:
    before, began = _max_memory(), time.process_time()
    refused = refusal(schema)
    assert refused.param.startswith(WHERE)  # type: ignore[union-attr]
    # Of this process. The compiling process has its own limits, and is killed.
    assert time.process_time() - began < 5
    assert _max_memory() - before < 200 * 2**20


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(x+x+)+y", "(.*a){30}$", "^(a{1000}){1000}$", "(a|b)*a(a|b){300}c"])
def test_a_catastrophic_pattern_is_rejected_or_cheap(pattern: str) -> None:
    began = time.process_time()
    try:
        matcher = compiled({"type": "string", "pattern": pattern}).matcher.copy()
        assert matcher.allowed().any()
    except BadRequest as refused:
        assert refused.param.startswith(WHERE)  # type: ignore[union-attr]
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar("regex", "[", param="guided_regex"),
        Grammar("regex", "(" * 20_000 + "a" + ")" * 20_000, param="guided_regex"),
        Grammar("regex", ".*" * 2000, param="guided_regex"),
        Grammar("regex", "", param="guided_regex"),
        Grammar("lark", "start: nowhere", param="guided_grammar"),
        Grammar("lark", "start: " + "(" * 20_000 + '"a"' + ")" * 20_000, param="guided_grammar"),
        Grammar("lark", "start: A\nA: /(.*a.{20}b)/ & ~/.*b.{15}c.*/", param="guided_grammar"),
        Grammar("choice", [], param="guided_choice"),
        Grammar("choice", ["a", ""], param="guided_choice"),
        Grammar("choice", [str(n) for n in range(5000)], param="guided_choice"),
    ],
    ids=lambda grammar: str(grammar)[:60],
)
def test_other_invalid_grammars_are_rejected(grammar: Grammar) -> None:
    with pytest.raises(BadRequest) as refused:
        grammars().compile(grammar)
    assert refused.value.param == grammar.param and "%llguidance" not in refused.value.message


def test_an_unsupported_keyword_of_a_tool_is_named_with_its_place() -> None:
    tools = (
        CallableTool("a", {}, "tools.0.function.parameters"),
        CallableTool("b", {"properties": {"x": ITEMS | {"uniqueItems": True}}}, "tools.1.function.parameters"),
    )
    with pytest.raises(BadRequest) as refused:
        grammars().compile(tool_call_grammar(tools, one_call=False))
    assert refused.value.param == "tools.1.function.parameters.properties.x.uniqueItems"
    assert refused.value.code == "unsupported_schema_keyword"


def test_a_killed_compiler_is_replaced() -> None:
    sandbox = CompileSandbox(seconds=0.2)
    with pytest.raises(TooExpensive):
        sandbox.compile('start: %json {"type": "integer", "multipleOf": 999983}')
    assert sandbox.compile('start: "a"') == ""
    assert "nowhere" in sandbox.compile("start: nowhere")
    sandbox.close()


def test_the_same_grammar_is_compiled_once() -> None:
    schema = {"type": "object", "properties": {"once": {"type": "integer"}}}
    assert compiled(schema).matcher is compiled(dict(schema)).matcher
    other = {"properties": {"once": {"type": "integer"}}, "type": "object"}
    assert compiled(schema).matcher is not compiled(other).matcher


def _max_memory() -> int:
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
