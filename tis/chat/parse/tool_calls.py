"""Parses the section of an answer that contains tool calls: from the first marker until the answer is text again."""

from collections.abc import Callable
from typing import Protocol

from tis.chat.parse.config import ParserConfig, find_first, first_of, longest_beginning, may_become, visible
from tis.chat.parse.json_call import CallHeadPattern, JsonCallParser, NamedCallParser
from tis.chat.parse.xml_call import HEAD, GlmCallParser, XmlCallParser
from tis.chat.parts import ArgumentsDelta, Part, TextDelta, ToolCallEnd, ToolCallStart

_BETWEEN = " \t\r\n,;[]}"  # separators of calls, and superfluous braces
_DEEPSEEK_CALL_END = "<｜tool▁call▁end｜>"
_NAME_FIRST = ("mistral", "deepseek_v3", "deepseek_v31")

StartCall = Callable[[str], ToolCallStart]


class StreamedArguments(Protocol):
    """The arguments of a call while they arrive."""

    @property
    def has_begun(self) -> bool: ...

    @property
    def is_done(self) -> bool: ...

    def take_json(self) -> str:
        """The JSON that is certain by now and was not returned before."""
        ...

    def take_raw(self) -> str:
        """The text that was not returned and does not continue as JSON, exactly as the model wrote it."""
        ...


class CallParser(Protocol):
    """Parses one call, which may turn out to be text until it has the name of a tool and its first argument."""

    @property
    def name(self) -> str | None: ...

    @property
    def arguments(self) -> StreamedArguments | None: ...

    @property
    def is_done(self) -> bool: ...

    @property
    def is_broken(self) -> bool: ...

    def feed(self, text: str) -> str:
        """Returns the text after the call, or the text that cannot be part of it."""
        ...


class ToolCallsParser:
    def __init__(self, config: ParserConfig, start_call: StartCall, marker: str) -> None:
        self.rest: str | None = None  # the text after the section, once it is over
        self.has_calls = False
        self._config = config
        self._start_call = start_call
        self._begins, self._ends = config.call_begins, config.call_ends
        self.is_certain = config.certain_calls == "all" or (config.certain_calls == "marked" and bool(marker))
        self._inner_ends = (config.spelled(_DEEPSEEK_CALL_END), _DEEPSEEK_CALL_END)
        self._head_pattern = CallHeadPattern(config) if config.tool_format in _NAME_FIRST and marker else None
        # DeepSeek V3 writes the arguments as a block of code.
        self._between = _BETWEEN + "`" if config.tool_format == "deepseek_v3" else _BETWEEN
        self._text_if_no_call = marker  # the content to emit if the next call turns out to be none
        self._waiting = ""
        self._call: CallParser | None = None
        self._begun: ToolCallStart | None = None  # of the current call
        self._is_invalid = False  # a call whose start was sent does not continue as JSON

    def feed(self, text: str) -> list[Part]:
        parts: list[Part] = []
        self._waiting += text
        while self.rest is None and self._step(parts):
            pass
        return parts

    def flush(self) -> list[Part]:
        """Call it at the end of the answer."""
        parts: list[Part] = []
        if self._begun:
            parts += self._arguments(self._raw_rest() + visible(self._waiting))
            is_whole = self._is_invalid or bool(self._call and self._call.arguments and self._call.arguments.is_done)
            parts.append(ToolCallEnd(self._begun.index, is_cut=not is_whole))
        elif self.is_certain:
            if name := self._head_pattern and self._head_pattern.name_of(self._waiting):
                parts += [begun := self._start_call(name), ToolCallEnd(begun.index, is_cut=True)]
        elif text := visible(self._text_if_no_call + self._waiting).strip(self._between if self.has_calls else ""):
            parts.append(TextDelta(text))
        self.rest = ""
        return parts

    def _step(self, parts: list[Part]) -> bool:
        """Returns whether the waiting text may contain more."""
        if self._is_invalid:
            return self._skip_to_end(parts)
        if self._call is None:
            return self._find_call(parts)
        return self._follow(self._call, parts)

    def _find_call(self, parts: list[Part]) -> bool:
        self._take(self._num_separators())
        text = self._waiting
        if end := first_of(text, self._ends):
            self._take(len(end))
            if self.has_calls:
                self._text_if_no_call = ""
            # DeepSeek has a marker at the end of each call, and one more at the end of all.
            return end in self._inner_ends or self._leave(parts)
        if begin := first_of(text, self._begins):
            self._take(len(begin))
            return True
        if not text or may_become(text, (*self._ends, *self._begins)):
            return False
        self._call = self._new_call(text)
        if self._call is None and not self._may_become_call(text):
            return self._leave(parts)
        return self._call is not None

    def _num_separators(self) -> int:
        """Of the characters before the next call. A marker may begin with one, too: `[TOOL_CALLS]`."""
        at, markers = 0, (*self._ends, *self._begins)
        while at < len(self._waiting) and self._waiting[at] in self._between:
            rest = self._waiting[at:]
            if first_of(rest, markers) or may_become(rest, markers):
                break
            at += 1
        return at

    def _new_call(self, text: str) -> CallParser | None:
        tools = self._config.tools
        if text[0] == "{":
            return JsonCallParser(tools, is_certain=self.is_certain)
        if self._config.tool_format == "hermes" and text.startswith(HEAD):
            return XmlCallParser(self._config)
        if self._config.tool_format == "glm":
            return GlmCallParser(self._config)
        if self._head_pattern and (head := self._head_pattern.match(text)):
            name, begin = head
            self._take(begin)
            return NamedCallParser(name, tools, is_certain=self.is_certain)
        return None

    def _may_become_call(self, text: str) -> bool:
        if self._config.tool_format == "hermes":
            return HEAD.startswith(text)
        return self._head_pattern is not None and self._head_pattern.may_match(text)

    def _follow(self, call: CallParser, parts: list[Part]) -> bool:
        written = self._text_if_no_call + self._waiting
        self._waiting = call.feed(self._waiting)
        # A call that was sent is not withdrawn.
        self._text_if_no_call = "" if self._begun else written[: len(written) - len(self._waiting)]
        parts += self._new_parts(call)
        if call.is_broken and self._begun:
            self._is_invalid = True
            parts += self._arguments(self._raw_rest())
        elif call.is_broken:
            self._leave(parts)
        elif call.is_done:
            parts += self._end_call()
        return call.is_broken or call.is_done

    def _new_parts(self, call: CallParser) -> list[Part]:
        if not call.name or not (self.is_certain or (call.arguments and call.arguments.has_begun)):
            return []
        begin: list[Part] = []
        if self._begun is None:
            begin = [begun := self._start_call(call.name)]
            self._begun = begun
        return begin + self._arguments(call.arguments.take_json() if call.arguments else "")

    def _end_call(self) -> list[Part]:
        assert self._begun
        ended = ToolCallEnd(self._begun.index)
        self._call = self._begun = None
        self._is_invalid, self.has_calls, self._text_if_no_call = False, True, ""
        return [ended]

    def _skip_to_end(self, parts: list[Part]) -> bool:
        """The end of invalid arguments is unknown, so all text before the next marker belongs to them."""
        markers = (*self._ends, *self._begins)
        at, _ = find_first(self._waiting, markers)
        end = len(self._waiting) - longest_beginning(self._waiting, markers) if at is None else at
        parts += self._arguments(visible(self._waiting[:end]))
        self._waiting = self._waiting[end:]
        if at is not None:
            parts += self._end_call()
        return at is not None

    def _leave(self, parts: list[Part]) -> bool:
        text = visible(self._text_if_no_call)
        if self.has_calls:
            text = text.lstrip(self._between)
        if text:
            parts.append(TextDelta(text))
        self.rest, self._waiting = self._waiting, ""
        return False

    def _take(self, count: int) -> None:
        self._text_if_no_call += self._waiting[:count]
        self._waiting = self._waiting[count:]

    def _raw_rest(self) -> str:
        return self._call.arguments.take_raw() if self._call and self._call.arguments else ""

    def _arguments(self, text: str) -> list[Part]:
        assert self._begun
        return [ArgumentsDelta(self._begun.index, text)] if text else []
