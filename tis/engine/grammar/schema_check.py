"""Rejects JSON Schema keywords that cannot be enforced while an answer is generated, and names their place.

No keyword is silently ignored: llguidance rejects keywords that it does not support, and this module says where in the
request they are.
"""

from collections.abc import Iterator
from typing import Any

from tis.errors import BadRequest

# Enough for nearly all schemas found in practice; compiling takes a second or less.
MAX_GRAMMAR_LENGTH = 128 * 1024
MAX_DEPTH = 64
_MAX_PROPERTIES = 1000
_MAX_ENUM_VALUES = 5000
_MAX_COUNT = 100_000  # of minLength and the like
_MAX_DIVISOR = 10_000  # llguidance needs an automaton of as many states

_UNSUPPORTED = frozenset(
    {
        "not", "if", "then", "else", "uniqueItems", "contains", "minContains", "maxContains", "propertyNames",
        "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedItems", "unevaluatedProperties",
        "additionalItems", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
        "x-guidance",  # llguidance's own options: one of them silently ignores keywords
    }
)  # fmt: skip
# Enforced in most schemas; llguidance rejects the others.
_SOMETIMES_UNSUPPORTED = ("oneOf", "allOf", "patternProperties", "minProperties", "maxProperties", "pattern", "$ref")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties")
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"}
)  # fmt: skip


class UnsupportedKeyword(BadRequest):
    code = "unsupported_schema_keyword"


def check_schema(schema: Any, param: str) -> None:
    if not isinstance(schema, dict):
        raise BadRequest(f"{param}: a JSON schema must be an object.", param=param, code="invalid_json_schema")
    num_properties = num_enum_values = 0
    for path, one in subschemas(schema, param):
        for keyword, value in one.items():
            _check_keyword(keyword, value, f"{path}.{keyword}", one, is_root=one is schema)
        num_properties += _size(one.get("properties"))
        num_enum_values += _size(one.get("enum"))
    if num_properties > _MAX_PROPERTIES or num_enum_values > _MAX_ENUM_VALUES:
        raise BadRequest(
            f"{param}: a schema may have {_MAX_PROPERTIES} properties and {_MAX_ENUM_VALUES} enumerated values, "
            f"this one has {num_properties} and {num_enum_values}.",
            param=param,
            code="schema_too_large",
        )


def schema_error(schema: dict[str, Any], param: str, message: str) -> BadRequest:
    """Finds the place of an error of llguidance, which names only the keyword, or quotes the regular expression."""
    for path, one in subschemas(schema, param):
        if error := _pattern_error(path, one, message):
            return error
        for keyword in _SOMETIMES_UNSUPPORTED:
            if keyword in one and keyword in message:
                return UnsupportedKeyword(f"{path}.{keyword}: {message}"[:400], param=f"{path}.{keyword}"[:300])
    return BadRequest(f"{param}: {message}"[:400], param=param, code="invalid_json_schema")


def _pattern_error(path: str, schema: dict[str, Any], message: str) -> BadRequest | None:
    by_name = schema.get("patternProperties")
    patterns = [("pattern", schema.get("pattern"))]
    patterns += [("patternProperties", name) for name in by_name] if isinstance(by_name, dict) else []
    for keyword, pattern in patterns:
        if "regex" in message and isinstance(pattern, str) and pattern and " ".join(pattern.split()) in message:
            where, reason = f"{path}.{keyword}"[:300], message.rpartition("error: ")[2]
            is_unsupported = "not supported" in message
            code = UnsupportedKeyword.code if is_unsupported else "invalid_json_schema"
            return BadRequest(f"{where}: {pattern[:100]!r}: {reason}"[:400], param=where, code=code)
    return None


def subschemas(schema: dict[str, Any], param: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every subschema with its path. Skips annotations and values such as `enum`."""
    pending: list[tuple[str, Any, int]] = [(param, schema, 0)]
    while pending:
        path, one, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise BadRequest(f"{param}: nested more than {MAX_DEPTH} deep.", param=param, code="schema_too_large")
        if not isinstance(one, dict):
            continue
        yield path, one
        for keyword in _SINGLE:
            pending.append((f"{path}.{keyword}", one.get(keyword), depth + 1))
        for keyword in _LISTS:
            if isinstance(parts := one.get(keyword), list):
                pending += [(f"{path}.{keyword}.{at}", part, depth + 1) for at, part in enumerate(parts)]
        for keyword in _MAPS:
            if isinstance(parts := one.get(keyword), dict):
                pending += [(f"{path}.{keyword}.{name[:64]}", part, depth + 1) for name, part in parts.items()]


def _check_keyword(keyword: str, value: Any, path: str, schema: dict[str, Any], *, is_root: bool) -> None:
    if keyword in _UNSUPPORTED:
        raise _unsupported(keyword, path)
    if keyword == "items" and isinstance(value, list):
        raise _unsupported(keyword, path, " as a list; prefixItems can")
    if keyword in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
        raise _unsupported(keyword, path, " as true or false; a number can")
    if keyword == "$ref" and not (isinstance(value, str) and value.startswith("#")):
        raise _unsupported(keyword, path, " to another document")
    if keyword == "$id" and not is_root:
        raise _unsupported(keyword, path, " within a schema")
    if keyword == "format" and _may_be_string(schema) and value not in _FORMATS:
        raise _unsupported(keyword, path, f" {str(value)[:40]!r}")
    if keyword == "minProperties" and isinstance(value, int) and value > max(1, _size(schema.get("required"))):
        # The model may write an unlisted name twice, which counts as one property.
        raise _unsupported(keyword, path, " beyond the required properties")
    if keyword in _COUNTS and isinstance(value, int | float) and value > _MAX_COUNT:
        raise BadRequest(f"{path}: at most {_MAX_COUNT}.", param=path, code="schema_too_large")
    if keyword == "multipleOf" and _step_as_integer(value) > _MAX_DIVISOR:
        raise BadRequest(f"{path}: too fine or too large a step.", param=path, code="schema_too_large")


def _unsupported(keyword: str, path: str, how: str = "") -> UnsupportedKeyword:
    return UnsupportedKeyword(
        f"{path[:300]}: {keyword}{how} cannot be enforced while an answer is generated.", param=path[:300]
    )


def _may_be_string(schema: dict[str, Any]) -> bool:
    """For numbers, `format` is only an annotation (int32, double)."""
    kind = schema.get("type", "string")
    return kind == "string" or (isinstance(kind, list) and "string" in kind)


def _step_as_integer(value: Any) -> float:
    """Returns 25 for a step of 0.25."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    text = f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return float(text.replace(".", "").lstrip("-") or 0)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, dict | list) else 0


def require_text(text: Any, param: str) -> str:
    if not isinstance(text, str) or not text:
        raise BadRequest(f"{param}: must be a non-empty string.", param=param)
    if len(text) > MAX_GRAMMAR_LENGTH:
        raise BadRequest(f"{param}: at most {MAX_GRAMMAR_LENGTH} characters.", param=param, code="schema_too_large")
    return text
