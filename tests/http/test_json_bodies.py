"""Large answers are encoded in a thread, by calls that are too short to hold up the event loop."""

import asyncio
import json
import threading
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from tis.http import json_bodies
from tis.http.json_bodies import encode_sliced, json_response
from tis.json_bytes import json_bytes


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": {}, "b": [], "c": None, "d": "", "e": 0},
        {"choices": [{"logprobs": {"content": [{"token": "é\n", "top": [1.5, True]}] * 3}}, {"x": [[[[[[[1]]]]]]]}]},
        [{"1": [1, [2, [3, [4, [5, [6, [7, {"8": "😀"}]]]]]]]}],
    ],
)
def test_the_bytes_are_those_of_one_call(value: Any) -> None:
    assert encode_sliced(value) == JSONResponse(value).body


def test_half_a_surrogate_pair_is_escaped() -> None:
    value = {"a": ["é", "\ud83d"]}
    encoded = encode_sliced(value)
    assert json.loads(encoded) == json.loads(json_bytes(value)) == value
    assert json_bytes(value).isascii() and "é".encode() in encoded


def _answer(num_tokens: int) -> dict[str, Any]:
    top = [{"token": "x", "logprob": -1.5, "bytes": [120]}] * 20
    return {"choices": [{"logprobs": {"content": [{"token": "x", "top_logprobs": top}] * num_tokens}}]}


def test_no_call_encodes_more_than_a_token_with_its_logprobs(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    threads: set[threading.Thread] = set()

    def measured(value: Any) -> bytes:
        encoded = json.dumps(value, separators=(",", ":")).encode()
        lengths.append(len(encoded))
        threads.add(threading.current_thread())
        return encoded

    monkeypatch.setattr(json_bodies, "json_bytes", measured)
    response = asyncio.run(json_response(lambda: _answer(3000), {"X-A": "b"}, is_large=True))
    assert len(response.body) > 2_000_000 and max(lengths) < 2000
    assert threading.main_thread() not in threads
    assert response.headers["x-a"] == "b" and response.headers["content-type"] == "application/json"
