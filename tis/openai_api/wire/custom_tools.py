"""Custom tools: their argument is a text instead of JSON, free or held to a grammar.

Models know functions only, so a custom tool is a function with one string to them, and its call is translated back.
"""

import re
from typing import Any, Literal

from tis.engine.grammar.tool_input import InputFormat, Syntax, input_parameters
from tis.errors import BadRequest
from tis.openai_api.wire.fields import Name, RequestModel, Text, ToolName

_OPENING = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_MAY_OPEN = '{"input":"'
_PART = re.compile(r'[^\\"]+|\\u(?P<code>[0-9a-fA-F]{4})|\\(?P<letter>[^u])', re.DOTALL)
_OF_LETTER = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_CODE_CHARS = len("\\u0000")


class GivenGrammar(RequestModel):
    definition: Text
    syntax: Syntax


class CustomFormat(RequestModel):
    type: Literal["text", "grammar"] = "text"
    grammar: GivenGrammar | None = None


class CustomToolFields(RequestModel):
    name: ToolName
    description: Text | None = None
    format: CustomFormat | None = None


class CustomTool(RequestModel):
    type: Literal["custom"]
    custom: CustomToolFields

    @property
    def name(self) -> str:
        return self.custom.name

    @property
    def parameters(self) -> dict[str, Any]:
        given = self.custom.format and self.custom.format.grammar
        return input_parameters(InputFormat(given.syntax, given.definition) if given else None)

    def for_template(self) -> dict[str, Any]:
        description = {"description": self.custom.description} if self.custom.description else {}
        function = {"name": self.name, **description, "parameters": self.parameters, "strict": True}
        return {"type": "function", "function": function}

    def require_grammar(self, position: int) -> None:
        given = self.custom.format
        if given and given.type == "grammar" and given.grammar is None:
            param = f"tools.{position}.custom.format.grammar"
            raise BadRequest(f"{param}: Field required", param=param, code="missing_required_parameter")


class CalledCustom(RequestModel):
    name: Name
    input: Text = ""


class CustomToolCall(RequestModel):
    id: Name | None = None
    type: Literal["custom"]
    custom: CalledCustom

    def for_template(self) -> dict[str, Any]:
        function = {"name": self.custom.name, "arguments": {"input": self.custom.input}}
        return {**({"id": self.id} if self.id else {}), "type": "function", "function": function}


class CustomInput:
    """The text of a custom call, decoded from the JSON of its arguments while that grows.

    Arguments that are no such JSON, which a model may write where no grammar holds it, are the text themselves.
    """

    def __init__(self) -> None:
        self._waiting = ""
        self._add = self._add_opening

    def add(self, arguments: str) -> str:
        self._waiting += arguments
        return self._add()

    def end(self) -> str:
        """What is left of arguments that are over. An escape that was cut is no text, and nor is the JSON before it."""
        text, self._waiting = self._waiting, ""
        return "" if self._add != self._add_opening or _may_open(text) or text.strip() == "{}" else text

    def _add_opening(self) -> str:
        if found := _OPENING.match(self._waiting):
            self._waiting = self._waiting[found.end() :]
            self._add = self._add_text
        elif not _may_open(self._waiting) and self._waiting.strip() != "{}":
            self._add = self._add_raw
        else:
            return ""
        return self._add()

    def _add_raw(self) -> str:
        text, self._waiting = self._waiting, ""
        return text

    def _add_text(self) -> str:
        """An escape that is not complete waits, and so does half of a surrogate pair."""
        text, end, num_certain, certain_end = "", 0, 0, 0
        while part := _PART.match(self._waiting, end):
            text, end = text + _text_of(part), part.end()
            if not "\ud800" <= text[-1] <= "\udbff":
                num_certain, certain_end = len(text), end
        rest = self._waiting[end:]
        if rest.startswith('"'):
            self._add, self._waiting = self._add_nothing, ""
            return _with_pairs(text)
        if len(rest) >= _CODE_CHARS:  # no escape has so many characters: it is none
            self._waiting = rest[1:]
            return _with_pairs(text + rest[0]) + self._add_text()
        self._waiting = self._waiting[certain_end:]
        return _with_pairs(text[:num_certain])

    def _add_nothing(self) -> str:
        self._waiting = ""
        return ""


def _may_open(arguments: str) -> bool:
    return _MAY_OPEN.startswith("".join(arguments.split()))


def _text_of(part: re.Match[str]) -> str:
    if code := part["code"]:
        return chr(int(code, 16))
    letter = part["letter"]
    return _OF_LETTER.get(letter, letter) if letter else part[0]


def _with_pairs(text: str) -> str:
    """Two halves of a surrogate pair are one character; one alone, which no encoding has, is replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
