"""Answers about pictures of every family, in a batch or in turns: under a grammar, with drafts, killed and resumed."""

import pytest

from tests.engine.batching.tiny import Readers, run
from tests.engine.batching.vision_case import ALONE, LENGTH, TRIED, VisionCase, vision_case
from tests.engine.resuming import emitted_tokens
from tis.engine.request import Request
from tis.engine.resume import replay_completions
from tis.observability.metrics import ACCEPTED_DRAFT_TOKENS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=TRIED)
def case(request: pytest.FixtureRequest) -> VisionCase:
    return vision_case(str(request.param))


def test_with_grammars_and_drafts_they_have_the_tokens_of_generate(case: VisionCase) -> None:
    requests, before = case.requests(), ACCEPTED_DRAFT_TOKENS.labels("prompt_lookup")._value.get()
    assert not run(case.new_fitting_runner(), requests, every=2).errors
    case.check(requests)
    assert (ACCEPTED_DRAFT_TOKENS.labels("prompt_lookup")._value.get() > before) == (case.name not in ALONE)


def test_killed_in_mid_answer_they_go_on_with_another_copy_of_the_model(case: VisionCase) -> None:
    requests, runner, readers = case.requests(), case.new_fitting_runner(), Readers()
    waiting, num_all = list(requests), sum(map(len, [*case.expected, *case.constrained]))
    while sum(len(piece.token_ids) for pieces in readers.pieces.values() for piece in pieces) < num_all // 2:
        if waiting:
            runner.admit(waiting.pop(0))
        runner.step(readers.hand_out)
    emitted = [emitted_tokens(readers.of(request)) for request in requests]
    assert any(0 < len(one.token_ids) < LENGTH for [one] in emitted)
    again = [
        Request(request.prepared, completions=replay_completions(request.prepared, shown))
        for request, shown in zip(requests, emitted, strict=True)
    ]
    other = VisionCase(case.name)
    assert not run(other.new_fitting_runner(), [request for request in again if request.unfinished]).errors
    case.check(again)
