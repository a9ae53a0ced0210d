"""Parses the answers of gpt-oss, which are messages in OpenAI's harmony format: a header, <|message|> and a body.

The prompt ends with the role of the first message. The channel in the header says what the body is: analysis is
reasoning, commentary and final are content, and a message to functions.NAME is a tool call.
"""

import re

from tis.chat.parse.config import ParserConfig, find_first, first_of, longest_beginning, may_become, visible
from tis.chat.parse.json_call import NamedCallParser
from tis.chat.parse.parser import ChoiceParser
from tis.chat.parts import ArgumentsDelta, Part, ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from tis.engine.text.markers import CALL_MARKERS

_BLANKS = " \t\r\n"
_MAX_HEADER_CHARS = 300
_FUNCTIONS = "functions."
_RECIPIENT = re.compile("to=([A-Za-z0-9_.-]+)")


class HarmonyParser(ChoiceParser):
    """The joined parts do not depend on how the text was cut, as those of AnswerParser."""

    def __init__(self, config: ParserConfig, choice: int) -> None:
        super().__init__(config, choice)
        spelled = {marker: config.spelled(marker) for marker in CALL_MARKERS["harmony"]}
        self._channel, self._message, self._start = (
            spelled[one] for one in ("<|channel|>", "<|message|>", "<|start|>")
        )
        self._ends = tuple(spelled[one] for one in ("<|end|>", "<|call|>", "<|return|>"))
        # A message may begin without an end of the one before.
        self._after_body = (*self._ends, self._start, self._channel)
        self._channel_name = re.compile(rf"{re.escape(self._channel)}\s*([a-z]+)")
        self._state = self._parse_start
        self._delta: type[TextDelta | ReasoningDelta] = TextDelta  # of the current message
        self._begun: set[type[TextDelta | ReasoningDelta]] = set()
        self._separator = ""  # to add before the text of the current message
        self._call: HarmonyCall | None = None

    @property
    def is_reasoning(self) -> bool:
        return self._state == self._parse_body and self._delta is ReasoningDelta

    @property
    def is_calling(self) -> bool:
        return self._state == self._parse_call

    def _flush(self) -> list[Part]:
        """An unfinished header has no text."""
        parts: list[Part] = []
        text, self._waiting = self._waiting, ""
        if self._call:
            self._call.feed(text, parts)
            self._end_call(parts, is_cut=True)
        elif self._state == self._parse_body or (self._state == self._parse_start and self._channel not in text):
            self._add_text(text, parts)
        return parts

    def _parse_start(self, parts: list[Part]) -> bool:
        """Where the prompt ends within a message, the answer has no header."""
        text = self._waiting.lstrip(_BLANKS)
        headers = (self._channel, self._message, self._start, f"to={_FUNCTIONS}")
        if not text or (may_become(text, headers) and not first_of(text, headers)):
            return False
        self._state = self._parse_header if first_of(text, headers) else self._parse_body
        return True

    def _parse_header(self, parts: list[Part]) -> bool:
        header, marker, rest = self._waiting.partition(self._message)
        if not marker or len(header) > _MAX_HEADER_CHARS:
            if len(header) > _MAX_HEADER_CHARS:
                self._begin_text(TextDelta)
            return len(header) > _MAX_HEADER_CHARS
        self._waiting = rest
        recipient, channel = _RECIPIENT.search(header), self._channel_name.search(header)
        name = recipient[1].removeprefix(_FUNCTIONS) if recipient else ""
        if name in self._config.tools:
            self._call, self._state = HarmonyCall(name, self._config, self._choice, self.num_calls), self._parse_call
            return True
        # Tools of the model itself, such as python, are called in its reasoning.
        is_own_tool = recipient is not None and not recipient[1].startswith(_FUNCTIONS)
        is_reasoning = is_own_tool or (channel is not None and channel[1] == "analysis")
        self._begin_text(ReasoningDelta if is_reasoning else TextDelta)
        return True

    def _begin_text(self, delta: type[TextDelta | ReasoningDelta]) -> None:
        self._delta, self._state = delta, self._parse_body
        self._separator = "\n" if delta in self._begun else ""

    def _parse_body(self, parts: list[Part]) -> bool:
        text, is_whole = self._split_body()
        self._add_text(text, parts)
        if is_whole:
            self._end_message()
        return is_whole

    def _parse_call(self, parts: list[Part]) -> bool:
        assert self._call
        text, is_whole = self._split_body()
        self._call.feed(text, parts)
        if is_whole:
            self._end_call(parts, is_cut=False)
            self._end_message()
        return is_whole

    def _split_body(self) -> tuple[str, bool]:
        """The text of the body that has arrived, and whether the body is complete."""
        at, _ = find_first(self._waiting, self._after_body)
        end = len(self._waiting) - longest_beginning(self._waiting, self._after_body) if at is None else at
        text, self._waiting = self._waiting[:end], self._waiting[end:]
        return text, at is not None

    def _end_message(self) -> None:
        self._waiting = self._waiting.removeprefix(first_of(self._waiting, self._ends) or "")
        self._state = self._parse_between

    def _parse_between(self, parts: list[Part]) -> bool:
        text = self._waiting.lstrip(_BLANKS)
        begins = (self._start, self._channel)
        if not text or (may_become(text, begins) and not first_of(text, begins)):
            return False
        if first_of(text, begins):
            self._state = self._parse_header
        else:
            self._begin_text(TextDelta)
        return True

    def _add_text(self, text: str, parts: list[Part]) -> None:
        if text := visible(text):
            parts.append(self._delta(self._separator + text))
            self._begun.add(self._delta)
            self._separator = ""

    def _end_call(self, parts: list[Part], *, is_cut: bool) -> None:
        assert self._call
        text = self._call.end(parts, is_cut=is_cut)
        self.num_calls += self._call.has_begun
        self._call = None
        if text:
            self._begin_text(TextDelta)
            self._add_text(text, parts)

    def _is_wanted(self, part: Part) -> bool:
        return isinstance(part, TextDelta | ReasoningDelta) or not (self._config.one_call and part.index)


class HarmonyCall:
    """The header names the tool, so the call begins with the first character of its arguments."""

    def __init__(self, name: str, config: ParserConfig, choice: int, index: int) -> None:
        self.has_begun = False
        self._start = ToolCallStart(index, config.call_id(choice, index), name)
        self._parser = NamedCallParser(name, config.tools)
        self._before = ""  # what came before the arguments: blanks, or text that is no object
        self._is_invalid = False

    def feed(self, text: str, parts: list[Part]) -> None:
        if not self.has_begun:
            self._before += text
            text = self._before.lstrip(_BLANKS)
            if not text.startswith("{"):
                return
            self._begin(parts)
        if self._parser.is_done:
            return
        if self._is_invalid:
            self._add(visible(text), parts)
            return
        rest = self._parser.feed(text)
        self._add(self._parser.arguments.take_json(), parts)
        if self._parser.is_broken:
            self._is_invalid = True
            self._add(self._parser.arguments.take_raw() + visible(rest), parts)

    def end(self, parts: list[Part], *, is_cut: bool) -> str:
        """Returns the text of a call whose arguments are no object: it is content."""
        if not self.has_begun and self._before.strip(_BLANKS):
            return self._before
        if not self.has_begun:
            self._begin(parts)
            self._add("" if is_cut else "{}", parts)
        elif not (self._parser.is_done or self._is_invalid):
            self._add(self._parser.arguments.take_raw(), parts)
        parts.append(ToolCallEnd(self._start.index, is_cut=is_cut and not self._parser.is_done))
        return ""

    def _begin(self, parts: list[Part]) -> None:
        self.has_begun = True
        parts.append(self._start)

    def _add(self, text: str, parts: list[Part]) -> None:
        if text:
            parts.append(ArgumentsDelta(self._start.index, text))
