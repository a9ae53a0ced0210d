"""Tools whose only argument is a text, `input`, that may follow a grammar of its own.

The grammar holds for the text itself, not for the JSON around it, so `to_llguidance` leaves a place for the text in the
grammar of the call: a token that no model has. `InputMatcher` fills it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from tis.engine.grammar.lark import quoted
from tis.engine.grammar.limits import parser_limits

Syntax = Literal["lark", "regex"]
MAX_INPUTS = 128  # of one grammar: each tool has a place
_INPUT = "input"
_NO_FORCING = '%llguidance {"no_forcing": true}\n'  # at the end, so that it wins


@dataclass(frozen=True, slots=True)
class InputFormat:
    syntax: Syntax
    definition: str

    def to_llguidance(self) -> str:
        """Without forced tokens: llguidance would allow one way to write a forced text, of which there are several."""
        from llguidance import LLMatcher

        rules = self.definition
        if self.syntax == "regex":
            rules = json.loads(LLMatcher.grammar_from_regex(rules))["grammars"][0]["lark_grammar"]
        return f"{rules}\n{_NO_FORCING}"


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


def follows(form: InputFormat, text: str) -> bool:
    matcher = _matcher_of(form).deep_copy()
    return bool(matcher.consume_tokens(list(text.encode("utf-8", "surrogatepass"))) and matcher.is_accepting())


@lru_cache(64)
def _matcher_of(form: InputFormat) -> Any:
    from llguidance import LLMatcher, LLTokenizer

    return LLMatcher(LLTokenizer("byte"), form.to_llguidance(), log_level=0, limits=parser_limits())
