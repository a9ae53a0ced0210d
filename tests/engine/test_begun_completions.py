"""The tokens that a grammar forces at the beginning are made before a request is submitted, in a thread."""

from dataclasses import replace

import pytest

from tests.engine.batching.grammars import prepared
from tis.engine.completion import begin_completions
from tis.engine.grammar.grammar import Grammar
from tis.engine.grammar.matcher import Matcher
from tis.engine.request import Request
from tis.errors import BadRequest, GenerationFailed


class TooComplexMatcher(Matcher):
    def __init__(self) -> None:
        pass

    def copy(self) -> Matcher:
        return self

    def forced(self) -> list[int]:
        raise GenerationFailed("The grammar became too complex for this answer, or does not allow its tokens.")


def test_forced_tokens_are_there_before_the_request_is_submitted() -> None:
    request = replace(prepared(Grammar("choice", ["the only answer " * 50]), n=3), reasoning_limit=None)
    begin_completions(request)
    [begun] = request.begun
    assert [len(completion.token_ids) > 100 for completion in begun] == [True] * 3
    submitted = Request(request, begun=begun)
    assert submitted.completions is begun and not submitted.is_resumed


def test_a_grammar_that_is_too_complex_for_its_first_tokens_is_a_400_that_names_it() -> None:
    request = prepared(Grammar("regex", "a+", param="guided_regex"))
    assert request.grammar
    too_complex = replace(request, reasoning_limit=None, grammar=replace(request.grammar, matcher=TooComplexMatcher()))
    with pytest.raises(BadRequest, match="guided_regex: The grammar became too complex") as refused:
        begin_completions(too_complex)
    assert (refused.value.param, refused.value.code) == ("guided_regex", "schema_too_large")
