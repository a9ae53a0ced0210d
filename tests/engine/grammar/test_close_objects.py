from typing import Any

import pytest

from tis.engine.grammar.json_rules import close_objects

NAME = {"type": "string"}


def test_objects_with_listed_properties_allow_no_others() -> None:
    city = {"type": "object", "properties": {"city": NAME}}
    schema = {
        "properties": {"home": city, "all": {"type": "array", "items": {"$ref": "#/$defs/c"}}},
        "$defs": {"c": city},
    }
    closed = close_objects(schema)
    assert closed["additionalProperties"] is False
    for one in (closed["properties"]["home"], closed["$defs"]["c"]):
        assert one == {**city, "additionalProperties": False}
    assert "additionalProperties" not in schema and "additionalProperties" not in city


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"properties": {"a": NAME}, "additionalProperties": True},
        {"properties": {"a": NAME}, "additionalProperties": {"type": "integer"}},
        {"properties": {"a": NAME}, "patternProperties": {"^x": NAME}},
        {"properties": {"a": NAME}, "required": ["a", "b"]},
        {"properties": {"a": NAME}, "minProperties": 2},
        {"properties": {"a": NAME}, "anyOf": [{"properties": {"b": NAME}}, {"properties": {"c": NAME}}]},
        {"properties": {"a": NAME}, "$ref": "#/$defs/b", "$defs": {"b": {"properties": {"b": NAME}}}},
        {"allOf": [{"properties": {"a": NAME}}, {"properties": {"b": NAME}}]},
        {"properties": {"a": NAME}, "enum": [{"a": "x", "b": "y"}]},
    ],
)
def test_objects_that_may_need_unlisted_properties_stay_open(schema: dict[str, Any]) -> None:
    assert close_objects(schema) == schema


@pytest.mark.parametrize("required", [5, [{}], None], ids=["a number", "objects", "null"])
def test_an_invalid_schema_is_left_unchanged(required: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": required}
    assert close_objects(schema) == schema
