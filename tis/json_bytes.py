"""How answers are written as JSON."""

import json
from typing import Any


def json_bytes(value: Any, *, allow_nan: bool = False) -> bytes:
    """As JSONResponse does. A string may contain half a surrogate pair, which UTF-8 cannot encode: then escapes all."""
    try:
        return _text(value, allow_nan, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _text(value, allow_nan, ensure_ascii=True).encode()


def _text(value: Any, allow_nan: bool, *, ensure_ascii: bool) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=allow_nan, separators=(",", ":"))
