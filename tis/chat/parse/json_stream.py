"""Scans JSON that arrives in pieces: lists each member of an object as soon as it is complete."""

import json
import re
from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from tis.chat.parse.config import visible

_BLANKS = " \t\r\n"
_MAX_DEPTH = 256
_MAX_SCALAR_CHARS = 4300  # Python parses no longer integers
_SCALAR_CHARS = frozenset("-+.0123456789eEtrufalsn")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_ESCAPES = frozenset('"\\/bfnrtu')
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_CLOSING = {"[": "]", "{": "}"}

_Expected = Literal["value", "first value", "key", "first key", "colon", "next"]
_OUTSIDE_STRINGS = frozenset('-+.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ{}[]:,"' + _BLANKS)

_State = Literal["before", "key", "colon", "value", "next", "done", "broken"]


class JsonNesting:
    """A JSON array or object, character by character: it knows at once when a character cannot be part of it."""

    # Lenient in one thing: strings may contain control characters, because small models forget to escape them.

    def __init__(self) -> None:
        self.is_done = False
        self.num_chars = 0
        self.controls: list[int] = []  # the indices of control characters within strings
        self._open: list[str] = []  # the brackets
        self._expected: _Expected = "value"
        self._is_quoted = False
        self._is_escaped = False
        self._num_missing_hex = 0
        self._scalar = ""

    def read(self, character: str) -> bool:
        """Returns whether the character continues the value. Call it until `is_done`, or until it returns False."""
        fits = self._read_quoted(character) if self._is_quoted else self._read_between(character)
        self.num_chars += fits
        return fits

    def _read_quoted(self, character: str) -> bool:
        if self._num_missing_hex:
            self._num_missing_hex -= 1
            return character in _HEX_DIGITS
        if self._is_escaped:
            self._is_escaped = False
            self._num_missing_hex = 4 if character == "u" else 0
            return character in _ESCAPES
        if character == '"':
            self._is_quoted = False
            self._expected = "colon" if self._expected in ("key", "first key") else "next"
        elif character < " ":
            self.controls.append(self.num_chars)
        self._is_escaped = character == "\\"
        return True

    def _read_between(self, character: str) -> bool:
        if self._scalar and character in _SCALAR_CHARS:
            self._scalar += character
            return len(self._scalar) <= _MAX_SCALAR_CHARS
        if self._scalar:
            if not _SCALAR.fullmatch(self._scalar):
                return False
            self._scalar, self._expected = "", "next"
        return character in _BLANKS or self._read_token(character)

    def _read_token(self, character: str) -> bool:
        match self._expected:
            case "value" | "first value":
                if character in _CLOSING:
                    return self._begin(character)
                if character == "]" and self._expected == "first value":
                    return self._end(character)
                self._is_quoted = character == '"'
                self._scalar = character if character in _SCALAR_CHARS and self._open else ""
                return bool(self._open) and (self._is_quoted or bool(self._scalar))
            case "key" | "first key":
                self._is_quoted = character == '"'
                return self._is_quoted or (self._expected == "first key" and self._end(character))
            case "colon":
                self._expected = "value"
                return character == ":"
            case "next" if character == ",":
                self._expected = "key" if self._open[-1] == "{" else "value"
                return True
            case "next":
                return self._end(character)

    def _begin(self, bracket: str) -> bool:
        self._open.append(bracket)
        self._expected = "first key" if bracket == "{" else "first value"
        return len(self._open) <= _MAX_DEPTH

    def _end(self, bracket: str) -> bool:
        self._expected = "next"
        if _CLOSING[self._open.pop()] != bracket:
            return False
        self.is_done = not self._open
        return True


@dataclass(frozen=True, slots=True)
class JsonMember:
    key: str
    value: Any
    raw: str  # the text of the value
    end: int  # index in `JsonObjectScanner.text`, after the value
    nesting: JsonNesting | None = None  # of an array or object


class JsonObjectScanner:
    def __init__(self, keys: Container[str] | None = None) -> None:
        """With `keys`, any other key makes the object broken."""
        self.text = ""  # the object so far
        self.members: list[JsonMember] = []
        self.key = ""  # of the current member
        self.value_begin: int | None = None  # of the current member
        self.nesting: JsonNesting | None = None  # of the current member, if its value is an array or object
        self._keys = keys
        self._unconfirmed: JsonMember | None = None  # waits for a comma or brace: `"a"b"` is no string
        self._state: _State = "before"
        self._token_begin = 0
        self._quoted = self._escaped = False

    @property
    def is_done(self) -> bool:
        return self._state == "done"

    @property
    def is_broken(self) -> bool:
        return self._state == "broken"

    @property
    def unfinished_nested(self) -> str | None:
        """The current value if it is an array or object."""
        if self.value_begin is None or self.nesting is None:
            return None
        return self.text[self.value_begin : self.value_begin + self.nesting.num_chars]

    @property
    def unfinished_string(self) -> str | None:
        """The current value if it is a string: with the opening quote, without the closing one."""
        if self.value_begin is None or not self.text.startswith('"', self.value_begin):
            return None
        if self._unconfirmed:
            return self._unconfirmed.raw[:-1]
        return self.text[self.value_begin : len(self.text) - self._escaped]

    def feed(self, text: str) -> str:
        """Returns the text after the object, or the text that cannot be part of it."""
        begin = len(self.text)
        self.text += text
        for at in range(begin, len(self.text)):
            self._read(self.text[at], at)
            if self._state in ("done", "broken"):
                end = at + 1 if self._state == "done" else at
                rest, self.text = self.text[end:], self.text[:end]
                return rest
        return ""

    def _read(self, character: str, at: int) -> None:
        if self._quoted:
            self._read_quoted(character, at)
        elif self.nesting and not self.nesting.is_done:
            self._read_nested(self.nesting, character, at)
        elif character not in _OUTSIDE_STRINGS:
            self._state = "broken"
        elif self._state == "value":
            self._read_value(character, at)
        elif character not in _BLANKS:
            self._read_between(character, at)

    def _read_quoted(self, character: str, at: int) -> None:
        if self._escaped:
            self._escaped = False
        elif character == "\\":
            self._escaped = True
        elif character == '"':
            self._quoted = False
            if self._state == "key":
                self._end_key(at + 1)
            else:
                self._end_value(at + 1)

    def _read_nested(self, nesting: JsonNesting, character: str, at: int) -> None:
        if not nesting.read(character):
            self._state = "broken"
        elif nesting.is_done:
            self._end_value(at + 1)

    def _read_between(self, character: str, at: int) -> None:
        if self._state == "before" and character == "{":
            self._state = "key"
        elif self._state == "key" and character == '"':
            self._quoted, self._token_begin = True, at
        elif self._state == "colon" and character == ":":
            self._state = "value"
        elif self._unconfirmed and character in ",}":
            self.members.append(self._unconfirmed)
            self._unconfirmed = self.value_begin = self.nesting = None
            self._state = "key" if character == "," else "done"
        elif self._state == "key" and character == "}" and not self.members:
            self._state = "done"
        else:
            self._state = "broken"

    def _read_value(self, character: str, at: int) -> None:
        if self.value_begin is None:
            if character in _BLANKS:
                return
            self.value_begin = at
        if character in '"{[':
            if at != self.value_begin:
                self._state = "broken"
            elif character == '"':
                self._quoted = True
            else:
                self.nesting = JsonNesting()
                self.nesting.read(character)
        elif character in ",}":
            self._end_value(at)
            if self._unconfirmed:
                self._read_between(character, at)

    def _end_key(self, end: int) -> None:
        try:
            self.key = _parsed(visible(self.text[self._token_begin : end]))
        except ValueError:
            self._state = "broken"
        else:
            self._state = "colon" if self._keys is None or self.key in self._keys else "broken"

    def _end_value(self, end: int) -> None:
        raw = self.text[self.value_begin : end].rstrip(_BLANKS)
        try:
            self._unconfirmed = JsonMember(self.key, _parsed(visible(raw)), raw, end, self.nesting)
        except ValueError:
            self._state = "broken"
        else:
            self._state = "next"


def _parsed(raw: str) -> Any:
    """Not strict: small models forget to escape line breaks within strings."""
    return json.loads(raw, strict=False, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def escape_controls(text: str, begin: int, controls: Sequence[int]) -> str:
    """Escapes the control characters of a piece of a value. `begin` is its index in the value."""
    parts, at = [], 0
    for control in controls[bisect_left(controls, begin) :]:
        if control >= begin + len(text):
            break
        parts += [text[at : control - begin], f"\\u{ord(text[control - begin]):04x}"]
        at = control - begin + 1
    return "".join([*parts, text[at:]]) if parts else text
