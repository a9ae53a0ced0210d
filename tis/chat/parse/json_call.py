"""Parses tool calls whose arguments are JSON.

Hermes, Llama and older Mistral models write {"name": ..., "arguments": {...}}; newer Mistral models and DeepSeek models
write a name, then the arguments.
"""

import re

from tis.chat.parse.arguments import JsonArguments
from tis.chat.parse.config import ParserConfig, ToolSchemas
from tis.chat.parse.json_stream import JsonMember, JsonObjectScanner

_NAMES = ("name", "function")
_ARGUMENTS = ("arguments", "parameters")
_KEYS = frozenset({*_NAMES, *_ARGUMENTS, "type", "id", "index"})
_MAX_HEAD_CHARS = 224
_NAME = "[A-Za-z0-9_.-]{1,128}"  # 64 for OpenAI, 128 for Anthropic, and with dots for Ollama


class JsonCallParser:
    """`parameters` in the place of `arguments` is as good, and so is `function` in the place of `name`."""

    def __init__(self, tools: ToolSchemas, *, is_certain: bool = False) -> None:
        self.name: str | None = None
        self.arguments: JsonArguments | None = None
        self.is_done = self.is_broken = False
        self._tools = tools
        self._is_certain = is_certain
        self._object = JsonObjectScanner(_KEYS)
        self._num_read_members = 0
        self._arguments_end = 0  # index in the object's text, after what the arguments have read

    def feed(self, text: str) -> str:
        rest = self._object.feed(text)
        self._read_name()
        if not self.is_broken:
            self._read_arguments()
        if self.is_broken:
            return self._object.text[self._arguments_end :] + rest
        if self._object.is_done:
            self._complete()
        elif self._object.is_broken:
            # Small models forget the last brace.
            has_all = self.arguments is not None and self.arguments.scanner.is_done
            self.is_done, self.is_broken = has_all, not has_all
        return rest

    def _read_name(self) -> None:
        for member in self._object.members[self._num_read_members :]:
            self._num_read_members += 1
            if member.key in _NAMES and self.name is None:
                if not isinstance(member.value, str) or member.value not in self._tools:
                    self.is_broken, self._arguments_end = True, member.end
                    return
                self.name = member.value

    def _read_arguments(self) -> None:
        if self.name is None:
            return
        if self.arguments is None:
            begin = self._arguments_begin()
            if begin is None:
                return
            self.arguments = JsonArguments(self._tools[self.name], is_certain=self._is_certain)
            self._arguments_end = begin
        scanner = self.arguments.scanner
        if scanner.is_done:
            return
        rest = scanner.feed(self._object.text[self._arguments_end :])
        self._arguments_end = len(self._object.text) - len(rest)
        self.is_broken = scanner.is_broken

    def _arguments_begin(self) -> int | None:
        """The index where the arguments begin, if they are an object."""
        for member in self._object.members:
            if _are_arguments(member) and member.raw.startswith("{"):
                return member.end - len(member.raw)
        begin = self._object.value_begin
        if begin is not None and self._object.key in _ARGUMENTS and self._object.text.startswith("{", begin):
            return begin
        return None

    def _complete(self) -> None:
        """The arguments may be absent, or an object within a string."""
        if self.name is not None and self.arguments is None:
            given = next((member.value for member in self._object.members if _are_arguments(member)), None)
            text = "{}" if given is None or given == "" else given
            self.arguments = JsonArguments(self._tools[self.name])
            behind = self.arguments.scanner.feed(text) if isinstance(text, str) else text
            self.is_broken = not self.arguments.scanner.is_done or bool(behind.strip())
        self.is_broken |= self.name is None
        self.is_done = not self.is_broken


def _are_arguments(member: JsonMember) -> bool:
    return member.key in _ARGUMENTS


class NamedCallParser:
    """Parses the arguments of a call whose name is known."""

    def __init__(self, name: str, tools: ToolSchemas, *, is_certain: bool = False) -> None:
        self.name: str | None = name
        self.arguments = JsonArguments(tools[name], is_certain=is_certain)
        self.is_done = self.is_broken = False

    def feed(self, text: str) -> str:
        scanner = self.arguments.scanner
        rest = scanner.feed(text)
        self.is_done, self.is_broken = scanner.is_done, scanner.is_broken
        return rest


class CallHeadPattern:
    """Matches the text before the arguments.

    Mistral: a name, perhaps an id, perhaps a marker. DeepSeek V3 and R1: `function`, a marker, a name, and the
    beginning of a block of code. DeepSeek V3.1: a name and a marker.
    """

    def __init__(self, config: ParserConfig) -> None:
        if config.tool_format == "mistral":
            call_id, args = (re.escape(config.spelled(marker)) for marker in ("[CALL_ID]", "[ARGS]"))
            before, after = "", rf"\s*(?:{call_id}\s*[A-Za-z0-9_-]*\s*)?(?:{args})?\s*"
            letters = rf"[\sA-Za-z0-9_.\[\]-]|{call_id}|{args}"
            end_of_name = f"{call_id}|{args}"
        else:
            separator = config.spelled("<｜tool▁sep｜>")
            before, after = rf"(?:function{separator})?\s*", rf"\s*(?:{separator})?\s*(?:```(?:json)?\s*)?"
            letters = rf"[\sA-Za-z0-9_.`-]|[{re.escape(separator)}]"
            end_of_name = f"{separator}|```"
        self._head = re.compile(rf"{before}({_NAME}){after}(?={{)")
        self._name = re.compile(rf"\s*{before}({_NAME})\s*(?:{end_of_name})")
        self._letters = re.compile(rf"{_NAME}(?:{letters})*")
        self._tools = config.tools

    def match(self, text: str) -> tuple[str, int] | None:
        """The name of a tool, and the index where its arguments begin."""
        found = self._head.match(text)
        return (found[1], found.end()) if found and found[1] in self._tools else None

    def name_of(self, text: str) -> str | None:
        """The name of a tool, if the marker behind it has arrived."""
        found = self._name.match(text)
        return found[1] if found and found[1] in self._tools else None

    def may_match(self, text: str) -> bool:
        return len(text) <= _MAX_HEAD_CHARS and self._letters.fullmatch(text) is not None
