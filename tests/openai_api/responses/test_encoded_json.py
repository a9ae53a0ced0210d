"""What is encoded already is put into JSON as it is."""

import json
from typing import Any

import pytest

from tis.openai_api.wire.encoded_json import EncodedList, encode_json


def test_encoded_lists_are_put_in_their_places() -> None:
    entries: list[dict[str, Any]] = [{"token": "é", "top": []}, {"token": '"],"'}, {"token": "\ue000"}]
    grown = EncodedList(entries[:1])
    grown.extend(())
    grown.extend(entries[1:])
    value = {"a": [grown, "x"], "b": {"c": EncodedList(), "d": grown}, "e": None}
    assert (
        encode_json(value)
        == json.dumps(
            {"a": [entries, "x"], "b": {"c": [], "d": entries}, "e": None}, ensure_ascii=False, separators=(",", ":")
        ).encode()
    )


def test_other_objects_are_no_json() -> None:
    with pytest.raises(TypeError, match="object is not JSON"):
        encode_json({"a": object()})


def test_logprobs_of_a_growing_list_are_encoded_once() -> None:
    class Counted(dict[str, int]):
        num_encoded = 0

        def items(self) -> Any:
            Counted.num_encoded += 1
            return super().items()

    grown = EncodedList([Counted(a=1)])
    once = Counted.num_encoded
    for _ in range(4):
        assert encode_json({"logprobs": grown}) == b'{"logprobs":[{"a":1}]}'
    assert Counted.num_encoded == once
