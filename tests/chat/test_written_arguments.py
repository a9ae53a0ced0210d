"""What a model writes as the arguments of a call can be written as JSON again."""

import json
from typing import Any

import pytest

from tis.chat.written_arguments import arguments_object
from tis.json_bytes import json_bytes

LONG = "1" * 5000


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("", {}),
        ('{"a": [1, 2.5, true, null]}', {"a": [1, 2.5, True, None]}),
        ('{"a": 1e999, "b": -1e999}', {"a": "1e999", "b": "-1e999"}),
        ('{"a": NaN, "b": -Infinity}', {"a": "NaN", "b": "-Infinity"}),
        (f'{{"a": {LONG}}}', {"a": LONG}),
        (r'{"a": "x\ud83d"}', {"a": "x\ud83d"}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_object_is_one_that_json_can_hold(text: str, given: Any) -> None:
    assert arguments_object(text) == given
    assert json.loads(json_bytes(given)) == given


def test_levels_that_python_can_read_are_read() -> None:
    assert json_bytes(arguments_object(nested(300))) == nested(300).encode()
    for levels in (700, 900, 5000, 200_000):
        assert arguments_object(nested(levels)) == nested(levels)
    assert len(arguments_object(json.dumps({"a": [[]] * 1000}))["a"]) == 1000


@pytest.mark.parametrize("text", ["[1]", "x", '{"a": ', '"x"', "null"])
def test_what_is_no_object_stays_text(text: str) -> None:
    assert arguments_object(text) == text


def nested(levels: int) -> str:
    return '{"a":' + "[" * levels + "]" * levels + "}"
