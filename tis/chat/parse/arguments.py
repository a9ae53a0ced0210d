"""Streams the arguments of a call as JSON, member by member, and long values while they grow.

The model writes them as a JSON object, or as text between tags.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from tis.chat.parse.config import visible
from tis.chat.parse.json_stream import JsonMember, JsonNesting, JsonObjectScanner, escape_controls
from tis.engine.grammar.schema_types import MAX_CAST_CHARS, coerce, types_of, value_of_text

# A shorter string is sent when it is complete, because it may still be converted. What is shorter and comes first is
# sent when it is complete, because all of it may still turn out to be no argument.
LONG_VALUE_CHARS = 64
_MAX_CHARS_PER_ESCAPE = 6
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f]")
_BLANKS = " \t\r\n"
_TYPES_OF_BRACKETS: Mapping[str, str] = {"[": "array", "{": "object"}


class JsonArguments:
    """Emits nothing before the first complete member or long value: until then, the text may turn out to be no object.

    If it is certain to be one, the first value is treated like all others.
    """

    def __init__(self, parameters: Mapping[str, Any], *, is_certain: bool = False) -> None:
        self.scanner = JsonObjectScanner()
        self._parameters = parameters
        self._is_certain = is_certain
        self._num_sent_members = 0
        self._num_sent_of_value = 0  # characters of the unfinished value
        self._sent_until = 0  # index in the scanner's text
        self._is_closed = False

    @property
    def has_begun(self) -> bool:
        is_object = bool(self.scanner.members) or self.scanner.is_done or self._growing_value is not None
        return is_object or self._is_certain

    @property
    def is_done(self) -> bool:
        return self.scanner.is_done

    def take_json(self) -> str:
        """The JSON that is certain by now and was not returned before."""
        text = "".join(map(self._member, self.scanner.members[self._num_sent_members :]))
        if (value := self._growing_value) is not None:
            text += "" if self._num_sent_of_value else self._opening(self.scanner.key)
            text += self._rest_of_value(value, self.scanner.nesting)
            self._num_sent_of_value = len(value)
        if self.scanner.is_done and not self._is_closed:
            self._is_closed = True
            text += "}" if self._num_sent_members else "{}"
        return text

    def take_raw(self) -> str:
        """The text that was not returned and does not continue as JSON, exactly as the model wrote it."""
        begin = self._sent_until
        if self._num_sent_of_value:
            assert self.scanner.value_begin is not None
            begin = self.scanner.value_begin + self._num_sent_of_value
        self._num_sent_of_value = 0
        self._sent_until = len(self.scanner.text)
        return visible(self.scanner.text[begin:]) if not self._is_closed else ""

    @property
    def _growing_value(self) -> str | None:
        """The unfinished value, if it is sent while it grows."""
        if (nested := self.scanner.unfinished_nested) is not None:
            may_be_text = not (self._num_sent_members or self._num_sent_of_value or self._is_certain)
            return None if may_be_text and len(nested) < LONG_VALUE_CHARS else nested
        string = self.scanner.unfinished_string
        if string is None or (len(string) < LONG_VALUE_CHARS and not self._num_sent_of_value):
            return None
        types = types_of(self._parameters, self.scanner.key)
        may_be_converted = types and "string" not in types
        is_short = len(string) <= MAX_CAST_CHARS * _MAX_CHARS_PER_ESCAPE
        return None if may_be_converted and is_short and not self._num_sent_of_value else string

    def _member(self, member: JsonMember) -> str:
        if self._num_sent_of_value:
            text = self._rest_of_value(member.raw, member.nesting)
        elif member.nesting:
            text = self._opening(member.key) + self._rest_of_value(member.raw, member.nesting)
        else:
            text = self._opening(member.key) + _json_of(member, types_of(self._parameters, member.key))
        self._num_sent_members += 1
        self._num_sent_of_value = 0
        self._sent_until = member.end
        return text

    def _rest_of_value(self, value: str, nesting: JsonNesting | None) -> str:
        begin = self._num_sent_of_value
        if nesting is None:
            return _escaped(value[begin:])
        return visible(escape_controls(value[begin:], begin, nesting.controls))

    def _opening(self, key: str) -> str:
        return f"{', ' if self._num_sent_members else '{'}{to_json_text(key)}: "


def _json_of(member: JsonMember, types: frozenset[str]) -> str:
    value = coerce(member.value, types)
    return _escaped(member.raw) if value is member.value else to_json_text(value)


def to_json_text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # A JSON string may contain half a surrogate pair, which UTF-8 cannot encode: then escape all of it.
    return text if text.isascii() or not _HALF_A_PAIR.search(text) else json.dumps(value)


def _escaped(raw: str) -> str:
    """Escapes control characters, which JSON does not allow in strings."""
    if _CONTROL.search(raw):
        raw = _CONTROL.sub(lambda character: json.dumps(character[0])[1:-1], raw)
    return visible(raw)


class XmlArguments:
    """Arguments whose values are text between tags."""

    has_own_lines = True  # each value stands on lines of its own: the line breaks around it belong to the tags

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.key: str | None = None  # of the current value
        self.is_closed = False
        self._parameters = parameters
        self._value = ""
        self._num_sent_of_value = 0
        self._nested: _NestedValue | None = None  # the current value, if it is one
        self._num_members = 0
        self._pending = ""

    @property
    def has_begun(self) -> bool:
        return self._num_members > 0 or self.is_closed or self._is_long

    @property
    def is_done(self) -> bool:
        return self.is_closed

    @property
    def value_has_begun(self) -> bool:
        return bool(self._value)

    def begin(self, key: str) -> None:
        self.key, self._value, self._num_sent_of_value, self._nested = key, "", 0, None

    def add(self, text: str) -> None:
        self._value += text
        if self._nested:
            self._nested.add(text)
        elif "string" not in self._types:
            value = self._value.lstrip(_BLANKS)
            if _TYPES_OF_BRACKETS.get(value[:1]) in self._types:
                self._nested = _NestedValue()
                self._nested.add(value)

    def end(self) -> None:
        value = self._unframed
        if self._nested and self._nested.is_long:
            self._add_nested(self._nested, is_complete=True)
        elif self._num_sent_of_value or self._is_long:
            self._add_string(value)
            self._pending += '"'
        else:
            self._pending += self._opening + to_json_text(self._convert(value))
        self._num_members += 1
        self.key = None

    def take_json(self) -> str:
        if self._nested and self._nested.is_long:
            self._add_nested(self._nested)
        elif self._is_long:
            self._add_string(self._unframed)
        text, self._pending = self._pending, ""
        if self.is_closed:
            text += "}" if self._num_members else "{}"
        return text

    def take_raw(self) -> str:
        """The rest of the arguments of an answer that ended within them."""
        if self.key is not None and self._nested:
            self._add_nested(self._nested)
        elif self.key is not None and self._value.strip():
            self._add_string(self._value.removeprefix("\n") if self.has_own_lines else self._value)
        text, self._pending = self._pending, ""
        return text

    @property
    def _is_long(self) -> bool:
        if self.key is None:
            return False
        if self._nested:
            return self._nested.is_long
        return len(self._value) >= LONG_VALUE_CHARS and self._types <= {"string", "null"}

    @property
    def _types(self) -> frozenset[str]:
        return types_of(self._parameters, self.key or "")

    @property
    def _opening(self) -> str:
        return f"{', ' if self._num_members else '{'}{to_json_text(self.key)}: "

    @property
    def _unframed(self) -> str:
        return self._value.removesuffix("\n").removeprefix("\n") if self.has_own_lines else self._value

    def _convert(self, value: str) -> Any:
        """All values are text in this format: only the schema names their types."""
        return value_of_text(value, self._types) if self._types else value

    def _add_string(self, value: str) -> None:
        if not self._num_sent_of_value:
            self._pending += self._opening + '"'
        self._pending += json.dumps(value[self._num_sent_of_value :], ensure_ascii=False)[1:-1]
        self._num_sent_of_value = max(len(value), 1)

    def _add_nested(self, nested: "_NestedValue", *, is_complete: bool = False) -> None:
        if not self._num_sent_of_value:
            self._pending += self._opening
            self._num_sent_of_value = 1
        self._pending += nested.take(is_complete=is_complete)


class _NestedValue:
    """An array or object between two tags. From a certain length on it is sent while it grows."""

    def __init__(self) -> None:
        self._nesting = JsonNesting()
        self._text = ""
        self._num_sent = 0

    @property
    def is_long(self) -> bool:
        return self._nesting.num_chars >= LONG_VALUE_CHARS

    def add(self, text: str) -> None:
        begin, self._text = len(self._text), self._text + text
        if self._nesting.num_chars < begin:
            return  # it is complete, or no JSON
        for character in text:
            if self._nesting.is_done or not self._nesting.read(character):
                return

    def take(self, *, is_complete: bool) -> str:
        """What was not returned before. The last blanks belong to the closing tag."""
        end = len(self._text.rstrip(_BLANKS)) if is_complete else self._nesting.num_chars
        text = escape_controls(self._text[self._num_sent : end], self._num_sent, self._nesting.controls)
        self._num_sent = max(end, self._num_sent)
        return text
