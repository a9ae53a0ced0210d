"""JSON bodies of answers: large ones are encoded in a thread, in slices.

One call of `json.dumps` holds the interpreter until its end, in a thread too: a hundred thousand logprobs stopped the
event loop for a second. A large answer is also freed in the thread, which takes time, too.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fastapi import Response

from tis.http.scanned_route import in_thread_if
from tis.json_bytes import json_bytes

_SLICED_LEVELS = 6  # down to the logprobs of a choice; what is below is encoded at once


async def json_response(
    make: Callable[[], Mapping[str, Any]], headers: Mapping[str, str] | None = None, *, is_large: bool
) -> Response:
    """`make` runs where its result is encoded: in a thread if that is large."""
    body = await in_thread_if(is_large, lambda: encode_sliced(make()) if is_large else json_bytes(make()))
    return Response(body, media_type="application/json", headers=headers)


def encode_sliced(value: Any) -> bytes:
    """The bytes that one call of `json.dumps` makes, by many."""
    return b"".join(_slices(value, _SLICED_LEVELS))


def _slices(value: Any, levels: int) -> Iterator[bytes]:
    if not levels or not value or not isinstance(value, (dict, list)):
        yield json_bytes(value)
        return
    is_object = isinstance(value, dict)
    separator = b"{" if is_object else b"["
    for one in value:
        yield separator
        separator = b","
        if is_object:
            yield json_bytes(one) + b":"
        yield from _slices(value[one] if is_object else one, levels - 1)
    yield b"}" if is_object else b"]"
