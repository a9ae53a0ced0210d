"""Compiles grammars for a model: checks them, tries them in a sandbox, and caches the result.

Compiling takes milliseconds to seconds and runs in one thread. Any thread may look into the caches.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from tis.engine.grammar.compile_sandbox import CompileSandbox, TooExpensive
from tis.engine.grammar.grammar import CallableTool, Grammar
from tis.engine.grammar.harmony_rules import HARMONY_MARKERS
from tis.engine.grammar.input_matcher import InputMatcher, allowed_texts
from tis.engine.grammar.json_string_tokens import JsonStringTokens
from tis.engine.grammar.lark import TokenIds
from tis.engine.grammar.limits import COMPILE_SECONDS, parser_limits
from tis.engine.grammar.llguidance_text import compile_error, input_error, to_llguidance
from tis.engine.grammar.matcher import Matcher
from tis.engine.grammar.tagged_rules import can_be_between_tags
from tis.engine.grammar.tool_input import InputFormat, input_format_of, input_place, refuse_tokens
from tis.engine.grammar.validate import ValidateAnswer, answer_validator
from tis.engine.text.markers import CALL_MARKERS, ToolFormat
from tis.errors import BadRequest, GenerationFailed

_MAX_CACHED = 128
# A grammar that takes long to compile is large: this bounds the memory of the cache.
_MAX_CACHED_SECONDS = 4.0
_MAX_REJECTED = 256
_REJECTED_SECONDS = 600.0
# What was too slow on a busy machine may soon be fast enough.
_REJECTED_IF_SLOW_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class CompiledGrammar:
    grammar: Grammar
    validate_answer: ValidateAnswer
    matcher: Matcher  # in its first state; only copies of it are fed
    opening_id: int | None = None  # the token behind which the grammar applies; None: it applies to the whole answer


class RejectedGrammars:
    """Remembers rejected grammars for some time, so that a repeated one is rejected at once."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._rejected: OrderedDict[str, tuple[float, str, str | None, str | None]] = OrderedDict()

    def add(self, key: str, error: BadRequest, seconds: float = _REJECTED_SECONDS) -> None:
        self._rejected[key] = self._now() + seconds, error.message, error.param, error.code
        self._rejected.move_to_end(key)
        if len(self._rejected) > _MAX_REJECTED:
            self._rejected.popitem(last=False)

    def find(self, key: str) -> BadRequest | None:
        """Makes a new error each time, because the routes change it."""
        if key not in self._rejected:
            return None
        rejected_until, message, param, code = self._rejected[key]
        if self._now() > rejected_until:
            del self._rejected[key]
            return None
        return BadRequest(message, param=param, code=code)


class GrammarCompiler:
    """Compiles grammars for one model, and caches them."""

    def __init__(
        self,
        new_tokenizer: Callable[[], Any],  # llguidance's: takes a second for a large vocabulary
        vocabulary_size: int,
        call_format: ToolFormat,
        token_ids: TokenIds,
        sandbox: CompileSandbox | None = None,
        rejected: RejectedGrammars | None = None,
        *,
        writes_xml: bool = False,  # calls in the hermes format, with arguments between tags
    ) -> None:
        self._new_tokenizer = new_tokenizer
        self._vocabulary_size = vocabulary_size
        self._call_format = call_format
        self._token_ids = token_ids
        self._writes_xml = writes_xml
        self._tokenizer: Any = None
        self._strings: JsonStringTokens | None = None  # takes another second
        self._sandbox = sandbox or CompileSandbox()
        self._lock = Lock()  # guards `_cache` and `_rejected`
        self._cache: OrderedDict[str, tuple[CompiledGrammar, float]] = OrderedDict()  # with the seconds it took
        self._rejected = rejected or RejectedGrammars()

    def _opening_id(self, grammar: Grammar) -> int | None:
        """The token that opens a call. None where calls are constrained without one, or not at all."""
        if grammar.covers_answer or grammar.call_format in ("json", "harmony"):
            return None
        return self._token_ids.get(CALL_MARKERS[grammar.call_format][0])

    def holds_marked_calls(self, grammar: Grammar, call_format: ToolFormat | None = None) -> bool:
        """Whether calls that the model chooses to make can be held to this grammar of them."""
        grammar = self._in_format(grammar, call_format)
        if grammar.call_format == "harmony":
            return self._token_ids.keys() >= set(HARMONY_MARKERS)
        if self._opening_id(grammar) is None:
            return False
        has_tags = grammar.writes_xml or grammar.call_format == "glm"
        return not has_tags or all(map(can_be_between_tags, grammar.tools))

    def holds_all_calls(self, grammar: Grammar, call_format: ToolFormat | None = None) -> bool:
        """Llama's models have a marker, and may call without."""
        return self.holds_marked_calls(grammar, call_format) and (call_format or self._call_format) != "llama"

    def find(self, grammar: Grammar, call_format: ToolFormat | None = None) -> CompiledGrammar | None:
        """Looks into the caches, without compiling. Raises the error of a grammar that was rejected lately."""
        grammar = self._in_format(grammar, call_format)
        key, rejected_key = _keys_of(grammar)
        with self._lock:
            if error := self._rejected.find(rejected_key):
                raise error
            if key not in self._cache:
                return None
            self._cache.move_to_end(key)
            return replace(self._cache[key][0], grammar=grammar)  # errors name the field of this request

    def compile(self, grammar: Grammar, call_format: ToolFormat | None = None) -> CompiledGrammar:
        """One thread at a time. Without `call_format`, calls have the format of the model."""
        grammar = self._in_format(grammar, call_format)
        if cached := self.find(grammar, grammar.call_format):
            return cached
        key, rejected_key = _keys_of(grammar)
        began = time.monotonic()
        try:
            places = {input_place(at): self._vocabulary_size + at for at in range(len(grammar.tools))}
            text = to_llguidance(grammar, {**self._token_ids, **places})
            self._try_in_sandbox(grammar)
            compiled = CompiledGrammar(
                grammar,
                answer_validator(grammar),
                self._new_matcher(grammar, text),
                self._opening_id(grammar),
            )
        except TooExpensive:
            error = _too_expensive(grammar)
            with self._lock:
                self._rejected.add(rejected_key, error, _REJECTED_IF_SLOW_SECONDS)
            raise error from None
        except BadRequest as error:
            with self._lock:
                self._rejected.add(rejected_key, error)
            raise
        with self._lock:
            self._add(key, compiled, time.monotonic() - began)
        return compiled

    def _in_format(self, grammar: Grammar, call_format: ToolFormat | None) -> Grammar:
        return grammar.in_format(call_format or self._call_format, writes_xml=self._writes_xml)

    def _try_in_sandbox(self, grammar: Grammar) -> None:
        """All grammars of the inputs together have the time of one."""
        end = time.monotonic() + COMPILE_SECONDS
        for form, tool in _inputs_of(grammar).items():
            if message := refuse_tokens(form):
                raise input_error(tool, message)
            if (seconds := end - time.monotonic()) <= 0:
                raise TooExpensive
            if message := self._sandbox.compile(form.to_llguidance(), seconds):
                raise input_error(tool, message)
        # With markers as text, because the sandbox does not have the tokens of this model.
        if message := self._sandbox.compile(to_llguidance(grammar, {})):
            raise compile_error(grammar, message)

    def _new_matcher(self, grammar: Grammar, text: str) -> Matcher:
        from llguidance import LLMatcher

        self._tokenizer = self._tokenizer or self._new_tokenizer()
        inner = LLMatcher(self._tokenizer, text, log_level=0, limits=parser_limits())
        if inner.is_error():
            raise compile_error(grammar, inner.get_error())
        inputs = self._new_inputs(grammar)
        matcher = Matcher(inner, self._vocabulary_size)
        if inputs and self._strings:
            matcher = InputMatcher(inner, self._vocabulary_size, inputs, self._strings)
        try:
            matcher.start()  # some grammars fail only with the model's own tokens
        except GenerationFailed:
            raise compile_error(grammar, inner.get_error() or "it takes too long.") from None
        return matcher

    def _new_inputs(self, grammar: Grammar) -> dict[int, Any]:
        """The matchers of inputs, by the token that has their place in the grammar of the calls."""
        from llguidance import LLMatcher

        found = _inputs_of(grammar)
        if found and self._strings is None:
            self._strings = JsonStringTokens(self._tokenizer, self._vocabulary_size)
        matchers: dict[InputFormat, Any] = {}
        end = time.monotonic() + COMPILE_SECONDS
        for form, tool in found.items():
            assert self._strings
            if time.monotonic() > end:
                raise TooExpensive
            one = LLMatcher(self._strings.texts, form.to_llguidance(), log_level=0, limits=parser_limits())
            can_begin = allowed_texts(one, self._strings, is_escaped=False).any()  # copies begin with what it takes
            if one.is_error():
                raise input_error(tool, one.get_error())
            if not (can_begin or one.is_accepting()):
                raise input_error(tool, "the model can write no text that it matches.")
            matchers[form] = one
        forms = ((at, input_format_of(tool.parameters)) for at, tool in enumerate(grammar.tools))
        return {self._vocabulary_size + at: matchers[form] for at, form in forms if form}

    def _add(self, key: str, compiled: CompiledGrammar, seconds: float) -> None:
        self._cache[key] = compiled, seconds
        while len(self._cache) > _MAX_CACHED or sum(cost for _, cost in self._cache.values()) > _MAX_CACHED_SECONDS:
            self._cache.popitem(last=False)


def _inputs_of(grammar: Grammar) -> dict[InputFormat, CallableTool]:
    """The formats of inputs, each once, with a tool that has it."""
    inputs: dict[InputFormat, CallableTool] = {}
    for tool in grammar.tools:
        if form := input_format_of(tool.parameters):
            inputs.setdefault(form, tool)
    return inputs


def _too_expensive(grammar: Grammar) -> BadRequest:
    return BadRequest(
        f"{grammar.param}: compiling it takes more time or memory than a grammar may. Simplify it.",
        param=grammar.param,
        code="schema_too_large",
    )


def _keys_of(grammar: Grammar) -> tuple[str, str]:
    """Keys of the two caches. Errors name the place in the request, so that is part of the second key."""
    try:
        key = hashlib.sha256(grammar.key.encode()).hexdigest()
    except RecursionError:
        raise compile_error(grammar, "nested too deep.") from None
    return key, f"{key} {grammar.param}"
