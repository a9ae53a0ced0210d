"""Parses tool calls whose arguments are text between tags.

Qwen-Coder writes <function=name><parameter=key>value</parameter></function>; GLM writes a name, then
<arg_key>key</arg_key><arg_value>value</arg_value> for each argument.
"""

import re
from abc import ABC, abstractmethod
from typing import Any

from tis.chat.parse.arguments import XmlArguments
from tis.chat.parse.config import ParserConfig, ToolSchemas, find_first, longest_beginning, may_become, visible
from tis.engine.grammar.schema_types import value_of_text

HEAD = "<function="
_END = "</function>"
_PARAMETER, _PARAMETER_END = "<parameter=", "</parameter>"
_BLANKS = " \t\r\n"
_SOME_BLANKS = re.compile(f"[{_BLANKS}]*+")
_MAX_TAG_CHARS = 256
_MAX_NAME_CHARS = 256


class TaggedCallParser(ABC):
    """Parses a call whose arguments are text between tags, step by step as its text arrives."""

    def __init__(self, tools: ToolSchemas, value_end: str) -> None:
        self.name: str | None = None
        self.arguments: XmlArguments | None = None
        self.is_done = self.is_broken = False
        self._tools = tools
        self._value_end = value_end
        self._waiting = ""

    def feed(self, text: str) -> str:
        self._waiting += text
        while not (self.is_done or self.is_broken) and self._step():
            pass
        if not (self.is_done or self.is_broken):
            return ""
        rest, self._waiting = self._waiting, ""
        return rest

    def _step(self) -> bool:
        """Returns whether the waiting text may contain more."""
        if self.arguments is None:
            return self._read_name()
        if self.arguments.key is not None:
            return self._read_value(self.arguments)
        return self._read_tag(self.arguments)

    @abstractmethod
    def _read_name(self) -> bool: ...

    @abstractmethod
    def _read_tag(self, arguments: XmlArguments) -> bool: ...

    def _read_value(self, arguments: XmlArguments) -> bool:
        at = self._waiting.find(self._value_end)
        end = len(self._waiting) - longest_beginning(self._waiting, (self._value_end,)) if at < 0 else at
        arguments.add(visible(self._waiting[:end]))
        self._waiting = self._waiting[end:] if at < 0 else self._waiting[at + len(self._value_end) :]
        if at >= 0:
            arguments.end()
        return at >= 0


class XmlCallParser(TaggedCallParser):
    """The tag that ends a value stands on a line of its own. Inside a line it may be a part of the value, or a small
    model forgot the line break: what follows it tells.
    """

    def __init__(self, config: ParserConfig) -> None:
        super().__init__(config.tools, _PARAMETER_END)
        self._behind_value = (_PARAMETER, _END, *config.call_ends)
        self._longest_behind = max(map(len, self._behind_value))
        self._num_of_value = 0  # characters of the waiting text that are of the value, with tags in them

    def _read_value(self, arguments: XmlArguments) -> bool:
        at = self._waiting.find(_PARAMETER_END, self._num_of_value)
        if at < 0:
            ends = (_PARAMETER_END, f"\n{_PARAMETER_END}")
            self._add(arguments, len(self._waiting) - longest_beginning(self._waiting, ends))
            return False
        behind = at + len(_PARAMETER_END)
        is_line = self._waiting.endswith("\n", 0, at) and (at > 1 or arguments.value_has_begun)
        is_end = is_line or self._ends_value(behind)
        if is_end is None:
            return False
        if is_end:
            self._add(arguments, at)
            self._waiting = self._waiting[len(_PARAMETER_END) :]
            arguments.end()
        else:
            self._num_of_value = behind
        return True

    def _ends_value(self, behind: int) -> bool | None:
        """None while that is not certain. A value may have many tags, and the text waits until all are read."""
        blanks = _SOME_BLANKS.match(self._waiting, behind)
        start = blanks.end() if blanks else behind
        following = self._waiting[start : start + self._longest_behind]
        if following.startswith(self._behind_value):
            return True
        return None if not following or may_become(following, self._behind_value) else False

    def _add(self, arguments: XmlArguments, end: int) -> None:
        arguments.add(visible(self._waiting[:end]))
        self._waiting, self._num_of_value = self._waiting[end:], 0

    def _read_name(self) -> bool:
        name = self._tag(HEAD)
        if name is None:
            return False
        if name not in self._tools:
            self.is_broken = True
            return False
        self.name, self.arguments = name, XmlArguments(self._tools[name])
        self._waiting = self._waiting[self._waiting.index(">") + 1 :]
        return True

    def _read_tag(self, arguments: XmlArguments) -> bool:
        text = self._waiting.lstrip(_BLANKS)
        if text.startswith(_PARAMETER):
            key = self._tag(_PARAMETER)
            if key is not None:
                arguments.begin(key)
                self._waiting = text[text.index(">") + 1 :]
            return key is not None
        if not text or may_become(text, (_PARAMETER, _END)):
            return False
        # Small models forget the closing tag. Once arguments were sent, the call counts as complete.
        has_end = text.startswith(_END)
        self.is_done = has_end or arguments.has_begun
        self.is_broken = not self.is_done
        arguments.is_closed = self.is_done
        self._waiting = text[len(_END) :] if has_end else self._waiting
        return False

    def _tag(self, head: str) -> str | None:
        """The text between the head of a tag and its bracket; None while the bracket is missing."""
        text = self._waiting.lstrip(_BLANKS)[len(head) :]
        name, bracket, _ = text.partition(">")
        if not bracket:
            self.is_broken = len(text) > _MAX_TAG_CHARS
            return None
        return visible(name.strip())


class GlmCallParser(TaggedCallParser):
    def __init__(self, config: ParserConfig) -> None:
        self._key, self._key_end, self._value, value_end = map(
            config.spelled, ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
        )
        super().__init__(config.tools, value_end)
        self._ends = config.call_ends
        self._key_to_come: str | None = None  # read, but its value has not begun

    def _read_name(self) -> bool:
        text = self._waiting.lstrip(_BLANKS)
        at, _ = find_first(text, ("\n", self._key, *self._ends))
        if at is None or at > _MAX_NAME_CHARS:
            self.is_broken = len(text) > _MAX_NAME_CHARS
            return False
        name = visible(text[:at].strip())
        if name not in self._tools:
            self.is_broken = True
            return False
        self.name, self.arguments = name, GlmArguments(self._tools[name])
        self._waiting = text[at:]
        return True

    def _read_tag(self, arguments: XmlArguments) -> bool:
        if self._key_to_come is not None:
            return self._begin_value(arguments, self._key_to_come)
        text = self._waiting.lstrip(_BLANKS)
        if text.startswith(self._key):
            key, end, rest = text[len(self._key) :].partition(self._key_end)
            if not end or len(key) > _MAX_NAME_CHARS:
                self.is_broken = len(key) > _MAX_NAME_CHARS
                return False
            self._key_to_come, self._waiting = visible(key.strip()), rest
            return True
        if not text or (may_become(text, (self._key, *self._ends)) and text not in self._ends):
            return False
        # The marker that ends the call is left to the caller. Without it, a call that was sent counts as complete.
        self.is_done = arguments.is_closed = text.startswith(self._ends) or arguments.has_begun
        self.is_broken = not self.is_done
        return False

    def _begin_value(self, arguments: XmlArguments, key: str) -> bool:
        text = self._waiting.lstrip(_BLANKS)
        if text.startswith(self._value):
            arguments.begin(key)
            self._key_to_come, self._waiting = None, text[len(self._value) :]
            return True
        self.is_broken = bool(text) and not may_become(text, (self._value,))
        return False


class GlmArguments(XmlArguments):
    """The template prints strings as they are and any other value as JSON."""

    has_own_lines = False

    @property
    def _is_long(self) -> bool:
        return bool(self._types) and super()._is_long

    def _convert(self, value: str) -> Any:
        return value_of_text(value, self._types)
