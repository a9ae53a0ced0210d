"""Grammars made ready for a model: looked at, tried in a process that can be killed, compiled, and kept.

Everything here takes milliseconds to seconds, and runs in a thread of its own.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.engine.grammar.grammar import CallFormat, Grammar
from server.engine.grammar.limits import parser_limits
from server.engine.grammar.matcher import Matcher
from server.engine.grammar.source import TokenIds, source_of, why_refused
from server.engine.grammar.trial import TooExpensive, Trial
from server.engine.grammar.verdict import Judge, judge_of
from server.errors import BadRequest, GenerationFailed

_MOST_KEPT = 128
# What took long to compile is large: this bounds the memory of what is kept.
_MOST_SECONDS_KEPT = 4.0


@dataclass(frozen=True, slots=True)
class CompiledGrammar:
    grammar: Grammar
    judge: Judge
    matcher: Matcher  # at the beginning; never fed, only copied


class Grammars:
    """Of one model. Not for two threads at once."""

    def __init__(
        self,
        new_tokenizer: Callable[[], Any],  # llguidance's: takes a second for a large vocabulary
        vocabulary_size: int,
        call_format: CallFormat,
        token_ids: TokenIds,
    ) -> None:
        self._new_tokenizer = new_tokenizer
        self._vocabulary_size = vocabulary_size
        self._call_format = call_format
        self._token_ids = token_ids
        self._tokenizer: Any = None
        self._trial = Trial()
        self._kept: OrderedDict[str, tuple[CompiledGrammar, float]] = OrderedDict()

    def compiled(self, grammar: Grammar, call_format: CallFormat | None = None) -> CompiledGrammar:
        """Calls are written as the model writes them, unless it is said otherwise."""
        grammar = grammar.in_format(call_format or self._call_format)
        try:
            key = grammar.key
        except RecursionError:
            raise why_refused(grammar, "nested too deep.") from None
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        source = source_of(grammar, self._token_ids)
        began = time.monotonic()
        self._try(grammar)
        made = CompiledGrammar(grammar, judge_of(grammar), self._new_matcher(grammar, source))
        self._keep(key, made, time.monotonic() - began)
        return made

    def _try(self, grammar: Grammar) -> None:
        try:
            # With markers as text: the other process knows no token of this model.
            fault = self._trial.fault_of(source_of(grammar, {}))
        except TooExpensive:
            raise BadRequest(
                f"{grammar.param}: this takes more time or memory to compile than a grammar may.",
                param=grammar.param,
                code="schema_too_large",
            ) from None
        if fault:
            raise why_refused(grammar, fault)

    def _new_matcher(self, grammar: Grammar, source: str) -> Matcher:
        from llguidance import LLMatcher

        self._tokenizer = self._tokenizer or self._new_tokenizer()
        inner = LLMatcher(self._tokenizer, source, log_level=0, limits=parser_limits())
        if inner.is_error():
            raise why_refused(grammar, inner.get_error())
        matcher = Matcher(inner, self._vocabulary_size)
        try:
            matcher.begin()  # some grammars fail only with the model's own tokens
        except GenerationFailed:
            raise why_refused(grammar, inner.get_error() or "it takes too long.") from None
        return matcher

    def _keep(self, key: str, made: CompiledGrammar, seconds: float) -> None:
        self._kept[key] = made, seconds
        while len(self._kept) > _MOST_KEPT or sum(cost for _, cost in self._kept.values()) > _MOST_SECONDS_KEPT:
            self._kept.popitem(last=False)
