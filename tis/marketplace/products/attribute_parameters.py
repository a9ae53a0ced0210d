"""Query parameters that filter by attributes: `attr.ram_gb>=16`, or `attr.ram_gb.gte=16`, which needs no escapes.

The first form arrives as the parameter `attr.ram_gb>` with the value 16, and `attr.ram_gb>16` as one without a value.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, get_args

from fastapi import Depends, Request
from pydantic import TypeAdapter, ValidationError

from tis.errors import Unprocessable
from tis.marketplace.kit.fields import Words
from tis.marketplace.kit.unknown_fields import ATTRIBUTE_PREFIX
from tis.marketplace.reading.attribute_values import AttributeValue, attribute_key, attribute_value
from tis.marketplace.search.query import AttributeFilter, AttributeOperator

_MAX_FILTERS = 10
_MAX_VALUES = 20  # of one name
_MAX_PARAMETERS = 50  # they are read in the event loop
_MAX_CHARS = 100
_JSON_NUMBER = re.compile(r"[+-]?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?")
_SIGN = re.compile(r">=|<=|!=|[<>=!]")
# Before the "=" of a parameter stands the rest of the sign.
_OF_CUT_SIGNS: dict[str, AttributeOperator] = {">": "gte", "<": "lte", "!": "ne"}
_OF_SIGNS: dict[str, AttributeOperator] = {">": "gt", "<": "lt", ">=": "gte", "<=": "lte", "!=": "ne", "=": "eq"}
_OPERATORS: tuple[AttributeOperator, ...] = get_args(AttributeOperator)
_WORDS: TypeAdapter[str] = TypeAdapter(Words)
_EXAMPLE = "Write attr.ram_gb.gte=16 (or eq, ne, gt, lte, lt), attr.ram_gb>=16 or attr.color=black."

# The way of OpenAPI to say that parameters have names of their own.
ATTRIBUTE_DOCS: dict[str, Any] = {
    "parameters": [
        {
            "name": "attributes",
            "in": "query",
            "required": False,
            "style": "form",
            "explode": True,
            "schema": {"type": "object", "additionalProperties": {"type": "string"}},
            "description": "filters by attributes, each a parameter of its own: `attr.ram_gb.gte=16` (also `eq`, `ne`, "
            "`gt`, `lte`, `lt`), `attr.color=black`. A name that is sent again with another value passes one of them. "
            "`attr.ram_gb>=16` works, too. At most 10.",
            "example": {"attr.ram_gb.gte": "16"},
        }
    ]
}


async def _attribute_filters(request: Request) -> tuple[AttributeFilter, ...]:
    said = [pair for pair in request.query_params.multi_items() if pair[0].startswith(ATTRIBUTE_PREFIX)]
    if len(said) > _MAX_PARAMETERS:
        raise Unprocessable(f"At most {_MAX_PARAMETERS} parameters filter by attributes.")
    return read_filters(said)


AttributesDep = Annotated[tuple[AttributeFilter, ...], Depends(_attribute_filters)]


def read_filters(parameters: Iterable[tuple[str, str]]) -> tuple[AttributeFilter, ...]:
    """In an order of their own, so that a cursor is valid whatever the order of the parameters."""
    filters, equal = set[AttributeFilter](), dict[str, list[AttributeValue]]()
    for parameter, value in parameters:
        name, operator, text = _parts(parameter, value)
        key = attribute_key(_cleaned(parameter, name))
        if not key:
            raise Unprocessable(f"{_shown(parameter)}: the name of an attribute is missing. {_EXAMPLE}")
        asked = asked_value(key, _cleaned(parameter, text))
        if asked is None:
            raise Unprocessable(f"{_shown(parameter)}: a value is missing, or no finite number. {_EXAMPLE}")
        if operator == "eq":
            equal.setdefault(key, []).append(asked)
        elif operator == "ne":
            filters.add(_of_values(key, operator, [asked]))
        elif asked.number is None:
            raise Unprocessable(f"{_shown(parameter)}: only numbers are more or less than others.")
        else:
            filters.add(AttributeFilter(key, operator, (asked.number,)))
        if len(filters) + len(equal) > _MAX_FILTERS or any(len(one) > _MAX_VALUES for one in equal.values()):
            raise Unprocessable(f"At most {_MAX_FILTERS} attributes filter, with {_MAX_VALUES} values of one.")
    filters |= {_of_values(key, "eq", values) for key, values in equal.items()}
    return tuple(sorted(filters, key=repr))


def _parts(parameter: str, value: str) -> tuple[str, AttributeOperator, str]:
    """The name, the operator and the value."""
    said = parameter.removeprefix(ATTRIBUTE_PREFIX)
    name, _, ending = said.rpartition(".")
    for operator in _OPERATORS:
        if ending == operator:
            return name, operator, value
    sign = _SIGN.search(said)
    if sign is None:
        return said, "eq", value
    name, rest = said[: sign.start()], said[sign.end() :]
    if not rest and value and sign[0] in _OF_CUT_SIGNS:
        return name, _OF_CUT_SIGNS[sign[0]], value
    if sign[0] not in _OF_SIGNS or (rest and value):
        raise Unprocessable(f"{_shown(parameter)}: this is no filter. {_EXAMPLE}")
    return name, _OF_SIGNS[sign[0]], rest or value


def _of_values(key: str, operator: AttributeOperator, values: Iterable[AttributeValue]) -> AttributeFilter:
    """A number alone equals each text with that number; a number with a unit that the name does not say is a text."""
    numbers, keys = set[float](), set[str]()
    for value in values:
        if value.is_bare_number and value.number is not None:
            numbers.add(value.number)
        else:
            keys.add(value.key)
    return AttributeFilter(key, operator, tuple(sorted(numbers)), tuple(sorted(keys)))


def _cleaned(parameter: str, text: str) -> str:
    try:
        return _WORDS.validate_python(text)
    except ValidationError:
        raise Unprocessable(
            f"{_shown(parameter)}: names and values of attributes have at most {_MAX_CHARS} characters."
        ) from None


def _shown(parameter: str) -> str:
    return repr(parameter[:_MAX_CHARS])


def asked_value(key: str, text: str) -> AttributeValue | None:
    """What a filter says: `15.625` is a number as in JSON, everything else is read as sellers write it."""
    if _JSON_NUMBER.fullmatch(text.strip()):
        return attribute_value(key, float(text))
    return attribute_value(key, text)
