"""The arguments of a call as an object that can be written as JSON again, whatever the model wrote."""

import json
import math
from typing import Any

_MAX_LEVELS = 500  # Python reads and writes fewer than 1000, wherever it stands
_MAX_DIGITS = 4300  # Python reads no longer integers


def arguments_object(arguments: str) -> Any:
    """The text itself if it is no JSON object: show the model what it wrote."""
    try:
        given = json.loads(arguments or "{}", parse_float=_float, parse_int=_integer, parse_constant=str)
    except (ValueError, RecursionError):
        return arguments
    return given if isinstance(given, dict) and not _is_too_deep(arguments, given) else arguments


def _float(text: str) -> float | str:
    """1e999 is valid JSON. JSON has no infinity."""
    number = float(text)
    return number if math.isfinite(number) else text


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= _MAX_DIGITS else text


def _is_too_deep(text: str, given: Any) -> bool:
    if text.count("[") + text.count("{") <= _MAX_LEVELS:
        return False
    level = [given]
    for _ in range(_MAX_LEVELS):
        entries = (entry for one in level for entry in (one.values() if isinstance(one, dict) else one))
        level = [entry for entry in entries if isinstance(entry, dict | list)]
        if not level:
            return False
    return True
