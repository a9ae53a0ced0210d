"""In turns, requests with pictures and videos get the tokens of generate(), and resume."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.engine.batching.tiny import new_request, new_turn_runner, run, tokens
from tests.engine.batching.tiny_vision import VISION_MODELS, VisionPrompt, mixed, new_vision_model
from tests.engine.resuming import resumed
from tests.engine.vision.cases import picture, prompt
from tests.engine.vision.tiny_models import TINY, make_tiny
from tis.engine.batching.stepped_model import SteppedModel
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.prompt import ChatPrompt, media_of
from tis.engine.request import Request
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.choose_vision import choose_vision

pytestmark = [pytest.mark.slow, pytest.mark.long]

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


PROMPTS = [
    prompt("Apa ini? ", picture(60, 90)),
    prompt("Halo, siapa kamu?"),
    prompt(picture(60, 90), " dan ", picture(64, 40), "?"),
    prompt("Lihat: ", picture(64, 40)),
]


class Official:
    """A model whose pictures only its official processor prepares."""

    def __init__(self, folder: Path) -> None:
        self.model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval().float()
        self._plain = deepcopy(self.model)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.tokenizer = HfTokenizer(tokenizer, [], len(tokenizer))
        self._vision = choose_vision(folder, self.model.config, self.tokenizer)

    def request(self, asked: ChatPrompt) -> Request:
        assert self._vision
        ids, media = self._vision.encode(asked), media_of(asked.messages)
        vision = self._vision.preprocess(ids, media) if media else None
        prepared = new_request(ids, max_tokens=LENGTH).prepared
        return Request(replace(prepared, tokenizer=self.tokenizer, vision=vision))

    def greedy(self, request: Request) -> list[int]:
        row, vision = torch.tensor([request.prompt_ids]), request.prepared.vision
        out = self._plain.generate(
            row,
            attention_mask=torch.ones_like(row),
            do_sample=False,
            min_new_tokens=LENGTH,
            max_new_tokens=LENGTH,
            eos_token_id=None,  # else the token of the end is suppressed
            **(vision.generate_kwargs() if vision else {}),
        )
        return [int(token) for token in out[0, row.shape[1] :]]


@pytest.mark.parametrize("family", TINY)
def test_pictures_of_official_processors(family: str, tmp_path: Path) -> None:
    """Side by side, with too little memory for all at once, and resumed."""
    official = Official(make_tiny(tmp_path / family, family))
    requests = [official.request(asked) for asked in PROMPTS]
    expected = [official.greedy(request) for request in requests]
    stepped = SteppedModel(official.model)
    most = max(len(request.prompt_ids) for request in requests) + LENGTH
    for cache_bytes in (2**28, int(1.5 * stepped.costs.of(most))):
        runner = TurnRunner(stepped, official.tokenizer, cache_bytes, tokens_per_step=24)
        again = [Request(request.prepared) for request in requests]
        assert not run(runner, again).errors
        assert [tokens(request) for request in again] == expected
    whole = run(new_turn_runner(official.model, official.tokenizer), requests[:1]).of(requests[0])
    for cut in (1, LENGTH - 2):
        cut_off = resumed(requests[0].prepared, whole[:cut])
        rest = run(new_turn_runner(official.model, official.tokenizer), [cut_off]).of(cut_off)
        assert [piece.token_ids for piece in [*whole[:cut], *rest]] == [piece.token_ids for piece in whole]
