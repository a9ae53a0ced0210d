"""Tools whose only argument is a text, `input`, that may follow a grammar of its own.

The grammar holds for the text itself, not for the JSON around it, so `to_llguidance` leaves a place for the text in the
grammar of the call: a token that no model has. `InputMatcher` fills it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tis.engine.grammar.lark import quoted
from tis.engine.grammar.limits import parser_limits

Syntax = Literal["lark", "regex"]
MAX_INPUTS = 128  # of one grammar: each tool has a place
_INPUT = "input"
_NO_FORCING = '%llguidance {"no_forcing": true}\n'  # at the end, so that it wins
_MAX_TOKENS = re.compile(r"\bmax_tokens\s*=")
# Strings, comments and regular expressions of Lark.
_LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|#[^\n]*|/(?:\\.|[^/\\\n])+/')


@dataclass(frozen=True, slots=True)
class InputFormat:
    syntax: Syntax
    definition: str

    def rules(self) -> str:
        """As rules of Lark."""
        from llguidance import LLMatcher

        if self.syntax == "lark":
            return self.definition
        return str(json.loads(LLMatcher.grammar_from_regex(self.definition))["grammars"][0]["lark_grammar"])

    def to_llguidance(self) -> str:
        """Without forced tokens: llguidance would allow one way to write a forced text, of which there are several."""
        return f"{self.rules()}\n{_NO_FORCING}"


def input_parameters(form: InputFormat | None) -> dict[str, Any]:
    """The schema of the arguments, which chat templates print: the model reads the grammar there."""
    schema: dict[str, Any] = {"type": "string"}
    if form:
        schema["grammar"] = {"syntax": form.syntax, "definition": form.definition}
    return {"type": "object", "properties": {_INPUT: schema}, "required": [_INPUT], "additionalProperties": False}


def input_format_of(parameters: Mapping[str, Any]) -> InputFormat | None:
    """None if these are no parameters that `input_parameters` makes of a grammar."""
    properties = parameters.get("properties")
    schema = properties.get(_INPUT) if isinstance(properties, dict) else None
    given = schema.get("grammar") if isinstance(schema, dict) else None
    match given:
        case {"syntax": syntax, "definition": str(definition)} if syntax in get_args(Syntax):
            form = InputFormat(syntax, definition)
            return form if parameters == input_parameters(form) else None
    return None


def input_place(at: int) -> str:
    """The marker for the input of a tool in the grammar of the calls."""
    return f"\0input {at}"


def around_input() -> tuple[str, str]:
    return quoted('{"input": "'), quoted('"}')


def refuse_tokens(form: InputFormat) -> str:
    """Why the definition cannot hold for a text: it names or counts tokens. Empty if it does not."""
    if form.syntax == "regex":
        return ""
    rules = _LITERALS.sub(" ", form.definition)
    if "<" in rules:
        return "a grammar of a text cannot name tokens: write the text itself, in quotes."
    return "max_tokens: a grammar of a text cannot count tokens." if _MAX_TOKENS.search(rules) else ""


class InputReader:
    """Reads whole inputs by their grammar. Compiles it when it is made."""

    def __init__(self, form: InputFormat) -> None:
        from llguidance import LLMatcher, LLTokenizer

        self._matcher = LLMatcher(LLTokenizer("byte"), form.to_llguidance(), log_level=0, limits=parser_limits())

    def takes(self, text: str) -> bool:
        matcher = self._matcher.deep_copy()
        return bool(matcher.consume_tokens(list(text.encode("utf-8", "surrogatepass"))) and matcher.is_accepting())
