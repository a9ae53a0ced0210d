"""JSON of an upstream that would stop the event loop is not parsed; long texts are no reason."""

import json
from typing import Any

import pytest

from tis.upstream.bounded_json import parse_json
from tis.upstream.chunks import ChunkReader
from tis.upstream.errors import UpstreamFault

MIB = 2**20
MANY = {
    "lists": b"[" + b"[]," * (MIB // 3) + b"[]]",
    "objects": b"[" + b"{}," * (MIB // 3) + b"{}]",
    "lists behind escaped quotes": b'["\\"\\\\",' + b"[]," * (MIB // 3) + b"[]]",
    "lists among strings": b"[" + b'[""],' * (MIB // 5) + b"[]]",
}


@pytest.mark.parametrize("name", MANY)
def test_too_many_lists_are_not_parsed(name: str) -> None:
    with pytest.raises(UpstreamFault, match="too many lists"):
        parse_json(MANY[name])
    with pytest.raises(UpstreamFault, match="too many lists"):
        ChunkReader(1, 100).read(MANY[name])


@pytest.mark.parametrize(
    "value",
    [
        "[{" * (MIB // 4),
        '["\\' * (MIB // 8),
        [[number] for number in range(10_000)],
        [0.5] * (MIB // 5),
        ["a"] * (MIB // 5),
    ],
    ids=["brackets", "quotes and backslashes", "lists", "numbers", "strings"],
)
def test_what_engines_send_is_parsed_whatever_its_length(value: Any) -> None:
    assert parse_json(json.dumps({"value": value}).encode()) == {"value": value}


@pytest.mark.parametrize("data", [b"{no", b"[" * 50_000, b"", b'"\xff"', b"1" * 5000], ids=repr)
def test_what_is_no_json_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(UpstreamFault, match="no JSON"):
        parse_json(data)
