"""A request, saved as JSON and read again."""

import json
from typing import Any

import pytest

from tis.engine.resumable_request import ResumableRequest
from tis.engine.sampling.params import SamplingParams
from tis.errors import BadRequest

PARAMS = SamplingParams(
    temperature=0, logit_bias={17: 6, 3: -1.5}, stop=("a", "é😀"), stop_token_ids=(3, 4), top_logprobs=0, seed=5, n=2
)
SAVED = ResumableRequest("m", "r1", [1, 2, 3], PARAMS, 2**63 - 1, {"dropped": 2})


@pytest.mark.parametrize("saved", [SAVED, ResumableRequest("m", "r1", [1], SamplingParams(), 0)])
def test_json_preserves_a_request(saved: ResumableRequest) -> None:
    written = saved.to_json()
    assert json.loads(json.dumps(written)) == written
    again = ResumableRequest.from_json(json.loads(json.dumps(written)))
    assert again == saved
    assert list(again.params.logit_bias) == list(saved.params.logit_bias) and isinstance(again.params.stop, tuple)


def test_a_parameter_that_an_older_version_did_not_save_has_its_default() -> None:
    written = SAVED.to_json()
    del written["params"]["min_p"]
    assert ResumableRequest.from_json(written) == SAVED


@pytest.mark.parametrize(
    "change",
    [
        {"params": None},
        {"params": {"n": 99}},
        {"params": {"from_the_future": 1}},
        {"params": {"temperature": "warm"}},
        {"prompt_ids": ["x"]},
        {"prompt_ids": None},
        {"seed": None},
        {"model_id": 3},
    ],
)
def test_an_invalid_value_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, BadRequest)):
        ResumableRequest.from_json(SAVED.to_json() | change)


@pytest.mark.parametrize("garbage", [{}, [], None, 3])
def test_a_document_that_is_not_a_request_is_refused(garbage: Any) -> None:
    with pytest.raises((KeyError, TypeError)):
        ResumableRequest.from_json(garbage)
