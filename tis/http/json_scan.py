"""Scans a JSON body while it arrives, before any parser sees it: counts its values and levels, and sets media aside.

A long string behind a name such as `image_url`, or in a list behind `images`, is media. It is taken out of the body,
and a short placeholder is put in its place, so that the parser and pydantic only see the text, which is bounded.
`ScannedBody.restore` puts them back.
"""

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tis.errors import BadRequest, TooLarge

MIB = 2**20
# Of the whole body: limits of single lists multiply where lists contain lists.
MAX_VALUES = 100_000
MAX_DEPTH = 200  # pydantic gives up at 255
# A body above one of these is parsed, validated and converted in a thread, in slices.
_LARGE_BODY_BYTES = 256 * 1024
_LARGE_BODY_VALUES = 2_000
_CHUNK_BYTES = 64 * 1024
_MIN_MEDIA_BYTES = 4096  # shorter ones stay where they are, as text
_NEVER_IN_UTF8_JSON = (b"\x00", b"\xfe", b"\xff")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_OPENING = frozenset(b"[{")
# The names of fields that may hold media: see `ContentPart` of the chat API, and `BlockSource` of the Messages API.
_MEDIA_NAME = re.compile(
    rb'"(?:url|image_url|image|video_url|video|audio_url|audio|b64_json|data)"[ \t\r\n]*:[ \t\r\n]*\Z'
)
_LIST_NAME = b"images"  # as Ollama has them
_LIST_BEGINS = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*\[[ \t\r\n]*")
_LIST_GOES_ON = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_NAME_BYTES = 64  # enough of what is before a string to find its name
_LISTS = ("messages", "input", "items")
_PARTS = ("content", "output")
# Of the Messages API: what they hold is text for the model, whatever its names are.
_PARTS_OF_TEXT = ("tool_use", "mcp_tool_use", "server_tool_use", "redacted_thinking")


@dataclass(slots=True)
class ScannedBody:
    """What the scan of a body has found so far."""

    max_text_bytes: int
    num_bytes: int = 0
    num_text_bytes: int = 0  # without what is set aside
    num_values: int = 1
    depth: int = 0  # the deepest so far
    media: dict[str, list[bytes]] = field(default_factory=dict)  # by placeholder, in the pieces that arrived

    @property
    def is_large(self) -> bool:
        return self.num_bytes > _LARGE_BODY_BYTES or self.num_values > _LARGE_BODY_VALUES

    def restore(self, body: Any) -> None:
        """Puts the media back into the parsed body. Those that are no parts of messages count as text."""
        values = {name: _unescaped(pieces) for name, pieces in self.media.items()}
        for holder, key in _parts_of(body) if values else ():
            _put_back(holder, key, values)
            if not values:
                break
        if values and self.num_text_bytes + sum(map(len, values.values())) > self.max_text_bytes:
            raise text_too_large(self.max_text_bytes)
        for holder, key in _everywhere(body) if values else ():
            _put_back(holder, key, values)
        self.media.clear()


class JsonScanner:
    """Takes a body chunk by chunk. It does not validate JSON; the parser does that later."""

    def __init__(self, max_text_bytes: int) -> None:
        self.body = ScannedBody(max_text_bytes)
        self._current_depth = 0
        self._in_text = False  # inside a string that stays in the body
        self._pieces: list[bytes] | None = None  # of the media string that is arriving
        self._held = b""  # the beginning of a string, or a backslash whose character has not arrived
        self._before = b""  # the end of what was passed on
        self._nonce = ""
        self._last_string = b""  # a short one
        self._was_image = False  # the last string stands in a list of images
        self._since_string = b""  # what is between the last string and the next one

    def add(self, chunk: bytes, *, is_last: bool = False) -> bytes:
        """What remains of the body. Raises at the first limit, so that a huge body costs no more than its start."""
        self.body.num_bytes += len(chunk)
        remaining = [self._add(chunk[start : start + _CHUNK_BYTES]) for start in range(0, len(chunk), _CHUNK_BYTES)]
        if is_last:
            remaining.append(self._pass(self._held))
            self._held = b""
        return remaining[0] if len(remaining) == 1 else b"".join(remaining)

    def _add(self, chunk: bytes) -> bytes:
        # The parser also accepts UTF-16 and UTF-32, where a byte equal to `"` may be half of another character.
        if any(byte in chunk for byte in _NEVER_IN_UTF8_JSON):
            raise not_utf8_json()
        data, passed = self._held + chunk, b""
        self._held = b""
        if _ends_in_escape(data):
            data, self._held = data[:-1], b"\\"
        while data:
            some, data = self._step(data)
            passed += some
        return passed

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        """Reads up to the end of the data or of a long string: what remains of that, and what was not read."""
        masked = data.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in data else data
        if self._pieces is not None or self._in_text:
            end = masked.find(b'"')
            inside = data if end < 0 else data[:end]
            if self._pieces is not None:
                self._pieces.append(inside)
                inside = b""
            if end < 0:
                return self._pass(inside), b""
            quote = b'"' if self._in_text else b""
            self._pieces, self._in_text = None, False
            return self._pass(inside + quote), data[end + 1 :]
        parts = masked.split(b'"')
        if max(map(len, parts)) >= _MIN_MEDIA_BYTES:
            at = 0
            for number, part in enumerate(parts):
                if number % 2 and len(part) >= _MIN_MEDIA_BYTES:
                    return self._begin_long(data, at, parts[:number])
                at += len(part) + 1
        at = len(data)
        if len(parts) % 2 == 0:  # a string has begun: it may become a long one
            at -= len(parts.pop()) + 1
            self._held = data[at:] + self._held
        self._count(parts)
        return self._pass(data[:at]), b""

    def _begin_long(self, data: bytes, at: int, parts: list[bytes]) -> tuple[bytes, bytes]:
        """`at` is the place behind the quote that opens a long string."""
        self._count(parts)
        before = (self._before + data[: at - 1])[-_NAME_BYTES:]
        is_image = self._is_image
        self._last_string, self._was_image, self._since_string = b"", is_image, b""
        if not (is_image or _MEDIA_NAME.search(before)):
            self._in_text = True
            return self._pass(data[:at]), data[at:]
        self._nonce = self._nonce or secrets.token_hex(16)
        placeholder = f"set aside {self._nonce} {len(self.body.media)}"
        self._pieces = self.body.media[placeholder] = []
        return self._pass(data[:at] + placeholder.encode() + b'"'), data[at:]

    @property
    def _is_image(self) -> bool:
        """Whether the string that begins here stands in a list of images."""
        if self._was_image:
            return _LIST_GOES_ON.fullmatch(self._since_string) is not None
        return self._last_string == _LIST_NAME and _LIST_BEGINS.fullmatch(self._since_string) is not None

    def _follow_lists(self, parts: list[bytes]) -> None:
        """`parts`: as in `_count`. Most bodies have no list of images, and are not looked at."""
        if not (self._was_image or self._last_string == _LIST_NAME or _LIST_NAME in parts):
            return
        for number, part in enumerate(parts):
            if number % 2:
                self._was_image = self._is_image
                self._last_string, self._since_string = part, b""
            else:
                self._since_string = (self._since_string + part)[: _NAME_BYTES + 1]

    def _pass(self, remaining: bytes) -> bytes:
        self.body.num_text_bytes += len(remaining)
        if self.body.num_text_bytes > self.body.max_text_bytes:
            raise text_too_large(self.body.max_text_bytes)
        if remaining:
            self._before = (self._before + remaining[-_NAME_BYTES:])[-_NAME_BYTES:]
        return remaining

    def _count(self, parts: list[bytes]) -> None:
        """Counts commas and brackets outside of strings, which are every second part."""
        self._follow_lists(parts)
        outside = b"".join(parts[::2])
        found = self.body
        found.num_values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if found.num_values > MAX_VALUES:
            raise BadRequest(f"The body has more than {MAX_VALUES:,} JSON values.", code="too_many_values")
        for bracket in outside.translate(None, _ALL_BUT_BRACKETS):
            self._current_depth += 1 if bracket in _OPENING else -1
            if self._current_depth < 0:
                raise not_utf8_json()
            if self._current_depth > found.depth:
                found.depth = self._current_depth
        if found.depth > MAX_DEPTH:
            raise BadRequest(f"The body has JSON nested more than {MAX_DEPTH} levels deep.", code="nested_too_deep")


def text_too_large(max_text_bytes: int) -> TooLarge:
    return TooLarge(
        f"The text of the body is larger than {max_text_bytes / MIB:.3g} MiB, without images and videos (MAX_TEXT_MB).",
        code="text_too_large",
    )


def not_utf8_json() -> BadRequest:
    return BadRequest("The body must be JSON in UTF-8.", code="invalid_json")


def _ends_in_escape(data: bytes) -> bool:
    return data.endswith(b"\\") and (len(data) - len(data.rstrip(b"\\"))) % 2 == 1


def _unescaped(pieces: list[bytes]) -> str:
    data = b"".join(pieces)
    pieces.clear()
    try:
        if b"\\" not in data:
            return data.decode()
        if b"\\\\" not in data:  # PHP escapes slashes, .NET escapes plus signs
            data = data.replace(b"\\/", b"/").replace(b"\\u002B", b"+").replace(b"\\u002b", b"+")
        text: str = json.loads(b'"%b"' % data, strict=False)
    except ValueError:
        raise not_utf8_json() from None
    return text


def _put_back(holder: Any, key: Any, values: dict[str, str]) -> None:
    if (value := values.pop(holder[key], None)) is not None:
        holder[key] = value


def _parts_of(body: Any) -> Iterator[tuple[Any, Any]]:
    """The texts of the parts of messages and items, each with its holder; and what stands in lists of images."""
    yield from _images_in(body)
    for name in _LISTS if isinstance(body, dict) else ():
        for message in _list_in(body, name):
            yield from _images_in(message)
            for parts in _PARTS:
                waiting = list(_list_in(message, parts))
                while waiting:
                    part = waiting.pop()
                    if isinstance(part, dict) and part.get("type") not in _PARTS_OF_TEXT:
                        yield from _texts_in(part, depth=2)
                        # A result of a tool, and a document, in the Messages API.
                        waiting += _list_in(part, "content") + _list_in(part.get("source"), "content")


def _images_in(holder: Any) -> Iterator[tuple[Any, Any]]:
    images = _list_in(holder, "images")
    return ((images, number) for number, image in enumerate(images) if isinstance(image, str))


def _texts_in(part: Any, depth: int) -> Iterator[tuple[dict[str, Any], str]]:
    if not isinstance(part, dict) or (part.get("type") == "text" and "data" in part):
        return  # the data of a document that is text
    for key, value in list(part.items()) if depth else ():
        if isinstance(value, str):
            yield part, key
        elif key != "input":  # the arguments of a call
            yield from _texts_in(value, depth - 1)


def _list_in(holder: Any, name: str) -> list[Any]:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, list) else []


def _everywhere(body: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [body]
    while waiting:
        holder = waiting.pop()
        for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(value, str):
                yield holder, key
            elif isinstance(value, dict | list):
                waiting.append(value)
