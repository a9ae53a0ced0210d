"""In turns, requests with pictures and videos get the tokens of generate(), and resume."""

from typing import Any

import pytest

from tests.engine.batching.tiny import new_turn_runner, run, tokens
from tests.engine.batching.tiny_vision import VISION_MODELS, VisionPrompt, mixed, new_vision_model
from tests.engine.resuming import resumed

pytestmark = pytest.mark.slow

LENGTH = 14


@pytest.fixture(params=VISION_MODELS)
def vision_model(request: pytest.FixtureRequest) -> Any:
    return new_vision_model(request.param)


def test_side_by_side_they_get_the_tokens_of_generate(vision_model: Any) -> None:
    prompts = mixed(vision_model)
    expected = [one.greedy(LENGTH) for one in prompts]
    requests = [one.request(max_tokens=LENGTH) for one in prompts]
    readers = run(new_turn_runner(vision_model), requests)
    assert not readers.errors
    assert [tokens(request) for request in requests] == expected


def test_an_answer_about_a_picture_goes_on_where_it_was_cut(vision_model: Any) -> None:
    one = VisionPrompt(vision_model).text(5, 1).picture(8, 4, 1).video(2, 4, 4, 2).text(6, 2)
    request = one.request(max_tokens=LENGTH)
    whole = run(new_turn_runner(vision_model), [request]).of(request)
    for cut in (1, 7, LENGTH - 1):
        again = resumed(request.prepared, whole[:cut])
        rest = run(new_turn_runner(vision_model), [again]).of(again)
        assert [*whole[:cut], *rest] == whole
