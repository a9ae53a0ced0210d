"""What a grammar does not allow is told apart from a grammar that is too complex, which is the fault of the request."""

import pytest

from tests.engine.batching.grammars import prepared, tokenizer
from tis.engine.errors import GrammarTooComplex
from tis.engine.grammar.grammar import Grammar
from tis.engine.grammar.matcher import Matcher
from tis.errors import GenerationFailed, error_with_code


def matcher_of(pattern: str) -> Matcher:
    request = prepared(Grammar("regex", pattern, param="guided_regex"))
    assert request.grammar
    return request.grammar.matcher.copy()


def test_a_grammar_that_becomes_too_complex_is_an_error_that_nobody_should_repeat() -> None:
    """It compiles, and has a billion states behind its first token."""
    matcher = matcher_of("((a{1000}){1000}){1000}")
    with pytest.raises(GrammarTooComplex, match="too complex") as refused:
        matcher.feed(tokenizer().encode_text("a")[0])
    error = refused.value
    assert (error.status, error.type, error.code) == (400, "invalid_request_error", "schema_too_large")
    assert error_with_code(error.message, error.type, error.code, None).status == 400  # as a replay has it


def test_a_token_that_a_grammar_does_not_allow_is_a_fault_of_the_server() -> None:
    matcher = matcher_of("[0-9]+")
    with pytest.raises(GenerationFailed, match="does not allow") as failed:
        matcher.feed(tokenizer().encode_text("x")[0])
    assert failed.value.status == 500
