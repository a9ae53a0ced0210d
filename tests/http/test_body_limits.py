"""JsonScanner counts values and depth, and sets media aside, however the body is split into chunks."""

import json
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving import served, settings_with
from tis.errors import TooLarge
from tis.http.json_scan import MAX_DEPTH, MAX_VALUES, MIB, JsonScanner, ScannedBody

TEXTS = st.text(st.sampled_from(',[]{}:"\\\\/ aé\U0001f600'), max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.integers(1, 9))
def test_commas_and_brackets_in_strings_are_not_counted(value: Any, ascii_only: bool, chunk_size: int) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    remaining, scanned = _scanned(body, chunk_size)
    assert remaining == body
    assert (scanned.num_values, scanned.depth) == (1 + _num_separators(value), _depth(value))


def _scanned(body: bytes, chunk_size: int, max_text_bytes: int = MIB) -> tuple[bytes, ScannedBody]:
    scanner = JsonScanner(max_text_bytes)
    chunks = [scanner.add(body[start : start + chunk_size]) for start in range(0, len(body), chunk_size)]
    return b"".join([*chunks, scanner.add(b"", is_last=True)]), scanner.body


@pytest.mark.parametrize("chunk_size", [7, 1000, 4100, 10**6])
@pytest.mark.parametrize(
    "text", ["A+/=" * 5000, "data:,\u00e9" * 900, "/" * 5000, '\\"' * 3000, "\\/" * 3000, "é\n" * 3000]
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_media_are_set_aside_and_put_back(text: str, chunk_size: int, ascii_only: bool) -> None:
    parts = [{"image_url": {"url": text}}, {"data": text, "detail": "low"}, {"url": "short"}]
    body = {"messages": [{"content": parts}], "input": [{"output": parts[:1]}], "tools": {"deep": [{"url": text}]}}
    plain = json.dumps(body, ensure_ascii=ascii_only).encode()
    remaining, scanned = _scanned(plain, chunk_size)
    assert len(scanned.media) == 4 and len(remaining) < 1000
    found = json.loads(remaining)
    scanned.restore(found)
    assert found == body


@pytest.mark.parametrize("chunk_size", [7, 1000, 4100, 10**6])
@pytest.mark.parametrize("separators", [(",", ":"), (" ,\n  ", " : ")])
def test_lists_of_images_are_set_aside_and_put_back(chunk_size: int, separators: tuple[str, str]) -> None:
    """As Ollama's clients send them. A long key behind a picture is no picture."""
    pictures = [letter * 5000 for letter in "ABCD"]
    body = {"images": pictures[:3], "messages": [{"images": [*pictures, "short"], "content": "x"}], "y" * 5000: 1}
    remaining, scanned = _scanned(json.dumps(body, separators=separators).encode(), chunk_size)
    assert len(scanned.media) == 7 and len(remaining) < 6000
    found = json.loads(remaining)
    scanned.restore(found)
    assert found == body


@pytest.mark.parametrize("chunk_size", [1, 7, 1000, 4100, 10**6])
@pytest.mark.parametrize("separators", [(",", ":"), (" ,\n  ", " : ")])
def test_small_images_may_stand_between_large_ones(chunk_size: int, separators: tuple[str, str]) -> None:
    """The list ends where it ends: what stands behind it is text."""
    large, small = "A" * 5000, "b" * 50
    lists = [[small, large], [large, small, large], ["images", small, small, large], [large, "\\", large]]
    body = {"messages": [{"images": images, "content": "x"} for images in lists]}
    remaining, scanned = _scanned(json.dumps(body, separators=separators).encode(), chunk_size)
    assert len(scanned.media) == 6 and len(remaining) < 1000
    found = json.loads(remaining)
    scanned.restore(found)
    assert found == body
    for behind in ({"images": [small], "z": large}, {"images": [large, small], large: 1}, {"images": [[small], large]}):
        remaining, scanned = _scanned(json.dumps(behind, separators=separators).encode(), chunk_size)
        assert large.encode() in remaining


def test_images_in_documents_and_results_are_no_text() -> None:
    """As the Messages API has them, inside of each other too."""
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 60_000}}
    document = {"type": "document", "source": {"type": "content", "content": [image]}}
    body = {"messages": [{"content": [document, {"type": "tool_result", "content": [document, image]}]}]}
    remaining, scanned = _scanned(json.dumps(body).encode(), 4096, 50_000)
    found = json.loads(remaining)
    scanned.restore(found)
    assert found == body


def test_escapes_of_other_clients_are_understood_in_media() -> None:
    """PHP escapes slashes, .NET plus signs."""
    remaining, scanned = _scanned(b'{"input": [{"content": [{"url": "%b"}]}]}' % (rb"\/\u002B\u002bA" * 1000), 4096)
    found = json.loads(remaining)
    scanned.restore(found)
    assert found["input"][0]["content"][0]["url"] == "/++A" * 1000


@pytest.mark.parametrize("name", ["text", "content", "urls", "x_url", "data\\"])
def test_other_long_texts_stay_and_count(name: str) -> None:
    body = json.dumps({"messages": [{name: "x" * 10_000}]}).encode()
    remaining, scanned = _scanned(body, 3000)
    assert remaining == body and scanned.num_text_bytes == len(body)


def test_text_over_the_limit_is_refused_while_it_arrives() -> None:
    scanner = JsonScanner(50_000)
    with pytest.raises(TooLarge, match="MAX_TEXT_MB"):
        scanner.add(b'{"content": "' + b"x" * 50_000)
    scanner = JsonScanner(50_000)
    scanner.add(b'{"url": "' + b"x" * 1_000_000)  # media do not count


def test_media_where_no_message_has_any_count_as_text() -> None:
    """They would reach templates and grammars, which are made for text."""
    remaining, scanned = _scanned(json.dumps({"tools": [{"data": "x" * 60_000}]}).encode(), 4096, 50_000)
    with pytest.raises(TooLarge, match="MAX_TEXT_MB"):
        scanned.restore(json.loads(remaining))


@pytest.mark.parametrize("name", ["data", "url", "image", "video", "b64_json"])
@pytest.mark.parametrize("kind", ["tool_use", "mcp_tool_use", "server_tool_use", "text"])
def test_arguments_of_calls_are_text_whatever_their_names(kind: str, name: str) -> None:
    body = {"messages": [{"content": [{"type": kind, "input": {name: "x" * 60_000}}]}]}
    remaining, scanned = _scanned(json.dumps(body).encode(), 4096, 50_000)
    with pytest.raises(TooLarge, match="MAX_TEXT_MB"):
        scanned.restore(json.loads(remaining))


def test_redacted_thinking_is_text() -> None:
    block = {"type": "redacted_thinking", "data": "x" * 60_000}
    remaining, scanned = _scanned(json.dumps({"messages": [{"content": [block]}]}).encode(), 4096, 50_000)
    with pytest.raises(TooLarge, match="MAX_TEXT_MB"):
        scanned.restore(json.loads(remaining))
    remaining, scanned = _scanned(json.dumps({"messages": [{"content": [block]}]}).encode(), 4096)
    found = json.loads(remaining)
    scanned.restore(found)
    assert found == {"messages": [{"content": [block]}]}


def _num_separators(value: Any) -> int:
    """Opening brackets and commas between entries; one more than their number is at least the number of values."""
    if not isinstance(value, list | dict):
        return 0
    inner = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(len(inner) - 1, 0) + sum(map(_num_separators, inner))


def _depth(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(_depth, value.values() if isinstance(value, dict) else value), default=0)


def test_a_text_may_contain_any_number_of_commas_and_brackets(http: httpx2.Client) -> None:
    content = 'a, "b" [{\\' * (MAX_VALUES // 8)
    messages = [{"role": "user", "content": content}]
    answer = http.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 1})
    assert answer.json()["error"]["code"] == "context_length_exceeded"  # so it reached the model


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-32"])
def test_json_in_another_encoding_is_refused(http: httpx2.Client, encoding: str) -> None:
    """In another encoding, the counter could mistake values for text."""
    body = json.dumps({"messages": [{"role": "user", "content": '"'}]}).encode(encoding)
    answer = http.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")
    assert "UTF-8" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["chat/completions", "responses", "conversations", "conversations/conv_1/items"])
@pytest.mark.parametrize(
    ("inside", "code"),
    [
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "nested_too_deep"),
        (b'{"a":' * MAX_DEPTH + b"0" + b"}" * MAX_DEPTH, "nested_too_deep"),
        (b"[" + b"0," * MAX_VALUES + b"0]", "too_many_values"),
        (b'{"a":0' + b',"a":0' * MAX_VALUES + b"}", "too_many_values"),
    ],
    ids=["lists in lists", "objects in objects", "many values", "many keys"],
)
def test_too_many_values_or_levels_are_refused(http: httpx2.Client, path: str, inside: bytes, code: str) -> None:
    body = b'{"any": ' + inside + b"}"
    answer = http.post(f"/v1/{path}", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_over_the_limit_is_a_413_in_the_shape_of_its_api(
    announced: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 20_000}]}).encode()
    with served(settings_with(max_body_mb=0.01)) as small:
        for path, shape in (("/v1/chat/completions", "error"), ("/api/auth/login", "detail")):
            content = body if announced else iter([body])
            headers = {"Content-Type": "application/json"}
            reply = httpx2.post(small.url + path, content=content, headers=headers)
            assert (reply.status_code, [*reply.json()]) == (413, [shape])
    assert "Traceback" not in capfd.readouterr().err
