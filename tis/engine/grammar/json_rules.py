"""JSON schemas as llguidance enforces them: the style of the JSON, and objects that are closed."""

import copy
import json
from typing import Any

from tis.engine.grammar.schema_check import subschemas

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

# If a schema has two of these, each may list other properties of the same object.
_DESCRIBES_OBJECT = frozenset({"properties", "anyOf", "oneOf", "$ref", "enum", "const"})
_ALREADY_LIMITED = frozenset({"additionalProperties", "patternProperties", "minProperties"})


def schema_text(schema: dict[str, Any]) -> str:
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
