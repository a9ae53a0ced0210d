"""Parses the text of one choice into the parts of its answer, while it arrives.

Markers that are single tokens are one character each in this text (`join_markers`). The joined parts do not depend on
how the text was cut: the parser holds back text that may still become a marker.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, NamedTuple

from tis.chat.parse.config import ParserConfig, find_first, first_of, longest_beginning, may_become, visible
from tis.chat.parse.tool_calls import ToolCallsParser
from tis.chat.parts import Part, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart

_BLANKS = " \t\r\n"
_LINE_BREAKS = "\r\n"


PartKind = Literal["text", "reasoning", "call"]


class ParseStep(NamedTuple):
    """What a parser made of the text up to `end`, counted in characters from the beginning of the answer."""

    parts: list[Part]
    end: int
    kind: PartKind


class ChoiceParser(ABC):
    """Feeds text to the current state until the state needs more."""

    def __init__(self, config: ParserConfig, choice: int) -> None:
        self.num_calls = 0
        self._config = config
        self._choice = choice
        self._waiting = ""
        self._num_chars = 0  # of all text so far
        self._state: Callable[[list[Part]], bool]  # returns whether the waiting text may contain more

    @property
    @abstractmethod
    def is_reasoning(self) -> bool: ...

    @property
    @abstractmethod
    def is_calling(self) -> bool: ...

    @abstractmethod
    def _flush(self) -> list[Part]: ...

    @abstractmethod
    def _is_wanted(self, part: Part) -> bool: ...

    def steps(self, text: str) -> list[ParseStep]:
        self._num_chars += len(text)
        self._waiting += text
        steps: list[ParseStep] = []
        goes_on = True
        while goes_on:
            before = self._kind
            parts: list[Part] = []
            goes_on = self._state(parts)
            steps.append(self._step(parts, before))
        return steps

    def last_steps(self) -> list[ParseStep]:
        """Call it at the end of the answer: the text that was held back."""
        before = self._kind
        return [self._step(self._flush(), before)]

    @property
    def _kind(self) -> PartKind:
        return "reasoning" if self.is_reasoning else "call" if self.is_calling else "text"

    def _step(self, parts: list[Part], before: PartKind) -> ParseStep:
        """The markers around reasoning and calls are parts of them."""
        wanted = [part for part in parts if self._is_wanted(part)]
        kind = self._kind if before == "text" else before
        return ParseStep(wanted, self._num_chars - len(self._waiting), kind)


class AnswerParser(ChoiceParser):
    def __init__(self, config: ParserConfig, choice: int) -> None:
        super().__init__(config, choice)
        self._opening, self._closing = map(config.spelled, config.reasoning) if config.reasoning else ("", "")
        # Where markers are tokens, the same letters in ordinary tokens are content: the answer is about the marker.
        self._is_marked = bool(config.reasoning and set(config.reasoning) <= set(config.marked))
        self._calls: ToolCallsParser | None = None
        self._follows_reasoning = self._follows_calls = self._reasoning_has_begun = False
        self._state = self._parse_reasoning if config.starts_in_reasoning else self._parse_start
        marks = (self._opening, self._closing) if self._is_marked else ()
        self._markers_in_text = (*config.call_begins, *marks)
        first_letters = {marker[0] for marker in (*self._markers_in_text, self._opening, self._closing) if marker}
        self._may_be_marker = re.compile(f"[{re.escape(''.join(sorted(first_letters)))}\udc00-\udcff]|[{_BLANKS}]\\Z")
        ends_reasoning = config.call_begins if self._is_marked else ()
        self._markers_in_reasoning = (self._closing, *ends_reasoning)

    @property
    def is_reasoning(self) -> bool:
        return self._state == self._parse_reasoning

    @property
    def is_calling(self) -> bool:
        return self._state == self._parse_calls

    def steps(self, text: str) -> list[ParseStep]:
        if not self._is_plain(text):
            return super().steps(text)
        self._num_chars += len(text)
        if self.is_reasoning:
            return [ParseStep([ReasoningDelta(text)], self._num_chars, "reasoning")]
        return [ParseStep([TextDelta(text)], self._num_chars, "text")]

    def _is_plain(self, text: str) -> bool:
        """A shortcut for nearly every token: the text continues a part and contains nothing of a marker."""
        if self._waiting or not text:
            return False
        if self._state == self._parse_text:
            return not self._may_be_marker.search(text)
        return self.is_reasoning and self._reasoning_has_begun and not self._may_be_marker.search(text)

    def _flush(self) -> list[Part]:
        parts: list[Part] = []
        waiting, self._waiting = self._waiting, ""
        text = visible(waiting)
        if self._calls or self._begins_certain_call(waiting):
            parts = self._calls.flush() if self._calls else []
            parts = parts or self._call_without_name()
        elif self.is_reasoning:
            text = text if self._reasoning_has_begun else text.lstrip(_LINE_BREAKS)
            parts = [ReasoningDelta(text)] if text else []
        elif text and not (self._state == self._parse_start and self._are_dropped_blanks(text)):
            parts = [TextDelta(text)]
        return parts

    def _begins_certain_call(self, text: str) -> bool:
        """Whether the text that was held back is a call's marker, or the beginning of one."""
        if self._config.certain_calls == "all":
            return not self.is_reasoning and bool(text.strip())
        return self._config.certain_calls == "marked" and bool(first_of(text.strip(), self._config.call_begins))

    def _call_without_name(self) -> list[Part]:
        """The first call, if the answer was cut before its name, but there is only one tool that it can call."""
        is_certain = self._calls.is_certain if self._calls else True
        if self.num_calls or not is_certain or len(self._config.tools) != 1:
            return []
        begun = self._start_call(next(iter(self._config.tools)))
        return [begun, ToolCallEnd(begun.index, is_cut=True)]

    def _parse_start(self, parts: list[Part]) -> bool:
        """Decides between reasoning, text and calls. Blanks belong to the part that follows them."""
        text = self._waiting.lstrip(_BLANKS)
        markers = (*filter(None, [self._opening]), *self._config.call_begins)
        if not text or may_become(text, markers):
            return False
        if first_of(text, markers):
            self._waiting = text
        elif self._follows_reasoning or self._follows_calls:
            self._waiting = self._waiting.lstrip(_LINE_BREAKS)
        if self._opening and text.startswith(self._opening):
            self._start_reasoning()
        elif self._config.may_be_bare and text[0] in "{[" and not self._follows_calls:
            self._calls = ToolCallsParser(self._config, self._start_call, "")
            self._state = self._parse_calls
        else:
            self._state = self._parse_text
        return True

    def _parse_text(self, parts: list[Part]) -> bool:
        at, marker = find_first(self._waiting, self._markers_in_text)
        if at is None:
            text, self._waiting = self._split_safe(self._waiting, self._markers_in_text)
            if text:
                parts.append(TextDelta(visible(text)))
            return False
        is_call = marker in self._config.call_begins
        if at:
            text = self._waiting[:at].rstrip(_BLANKS) if is_call else self._waiting[:at]
            self._waiting = self._waiting[at:]
            parts.append(TextDelta(visible(text)))
        elif is_call:
            self._waiting = self._waiting[len(marker) :]
            self._calls = ToolCallsParser(self._config, self._start_call, marker)
            self._state = self._parse_calls
        elif marker == self._opening:
            self._start_reasoning()
        else:
            self._waiting = self._waiting[len(marker) :]  # it closes reasoning that was not open: drop it
        return True

    def _parse_reasoning(self, parts: list[Part]) -> bool:
        if not self._reasoning_has_begun:
            self._waiting = self._waiting.lstrip(_LINE_BREAKS)
            self._reasoning_has_begun = bool(self._waiting)
        at, marker = find_first(self._waiting, self._markers_in_reasoning)
        if at is None:
            text, self._waiting = self._split_safe(self._waiting, self._markers_in_reasoning)
        else:
            text = self._waiting[:at].rstrip(_BLANKS)
            self._waiting = self._waiting[at + (len(marker) if marker == self._closing else 0) :]
            self._follows_reasoning, self._state = True, self._parse_start
        if text:
            parts.append(ReasoningDelta(visible(text)))
        return at is not None

    def _parse_calls(self, parts: list[Part]) -> bool:
        assert self._calls
        parts += self._calls.feed(self._waiting)
        if self._calls.rest is None:
            self._waiting = ""
            return False
        self._waiting = self._calls.rest
        self._follows_calls = self._calls.has_calls
        self._state = self._parse_start if self._calls.has_calls else self._parse_text
        self._calls = None
        return True

    def _start_reasoning(self) -> None:
        self._waiting = self._waiting[len(self._opening) :]
        self._reasoning_has_begun = False
        self._state = self._parse_reasoning

    def _start_call(self, name: str) -> ToolCallStart:
        index, self.num_calls = self.num_calls, self.num_calls + 1
        return ToolCallStart(index, self._config.call_id(self._choice, index), name)

    def _split_safe(self, text: str, markers: tuple[str, ...]) -> tuple[str, str]:
        """Splits off the end that may begin a marker. Blanks before a marker are no part of the answer."""
        end = len(text) - longest_beginning(text, markers)
        if self.is_reasoning or self._config.call_begins:
            end = len(text[:end].rstrip(_BLANKS))
        return text[:end], text[end:]

    def _are_dropped_blanks(self, text: str) -> bool:
        return (self._follows_reasoning or self._follows_calls) and not text.strip(_BLANKS)

    def _is_wanted(self, part: Part) -> bool:
        if isinstance(part, TextDelta | ReasoningDelta):
            return bool(part.text)
        return not (self._config.one_call and part.index)
