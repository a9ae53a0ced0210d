"""Bodies of Ollama's paths: floods, numbers, pictures that are none, names, and paths beside its own."""

from collections.abc import Iterator
from typing import Any

from tests.faults.hostile.row import HELLO, Row, codes, get, post

_CHAT, _GENERATE = "/api/chat", "/ollama/api/generate"


def ollama_chat(name: str, statuses: int | tuple[int, ...], **fields: Any) -> Row:
    body = {"model": "demo", "messages": [HELLO], "stream": False, "options": {"num_predict": 2}, **fields}
    return Row(f"ollama: {name}", codes(statuses), "POST", _CHAT, body)


def context_of_bytes(data: bytes) -> list[int]:
    """As the server writes one."""
    data = b"tis" + data
    return [int.from_bytes(data[at : at + 3].ljust(3), "big") for at in range(0, len(data), 3)]


def rows() -> Iterator[Row]:
    yield from _floods()
    yield from _values()
    yield from _pictures()
    yield from _paths()


def _floods() -> Iterator[Row]:
    yield ollama_chat("100,000 keys", 400, **{f"key_{number}": 0 for number in range(100_000)})
    yield ollama_chat(
        "20,000 options nobody knows", 200, options={f"o{n}": 0 for n in range(20_000)} | {"num_predict": 1}
    )
    yield ollama_chat("4,000 stop strings", 400, options={"stop": ["a"] * 4000})
    yield ollama_chat("20,000 messages", 400, messages=[HELLO] * 20_000)
    yield ollama_chat("3,000 messages", (200, 400), messages=[HELLO] * 3_000)
    yield ollama_chat("5,000 tools", 400, tools=[{"type": "function", "function": {"name": "f"}}] * 5000)
    yield ollama_chat("a schema of 90,000 values", 400, format={"enum": [*range(90_000)]})
    yield ollama_chat("a schema that refers to itself", (200, 400), format={"$ref": "#"})
    yield post("a prompt of 20 MB", 413, _GENERATE, {"model": "demo", "prompt": "x" * 20_000_000})
    yield post(
        "a context of 200,000 tokens", 400, _GENERATE, {"model": "demo", "prompt": "x", "context": [1] * 200_000}
    )
    for name, context in {
        "32,768 numbers": [1] * 32_768,
        "brackets": context_of_bytes(b"[" * 90_000),
        "two roles nobody knows": context_of_bytes(b'[{"role":"robot","content":"x"},{"role":["a"],"content":"x"}]'),
        "half a surrogate": context_of_bytes(b'[{"role":"user","content":"\\ud800"}]'),
    }.items():
        yield post(f"a context of {name}", 400, _GENERATE, {"model": "demo", "prompt": "x", "context": context})
    messages = b"[" + b",".join([b'{"role":"user","content":""}'] * 3000) + b"]"
    body = {"model": "demo", "prompt": "x", "context": context_of_bytes(messages), "options": {"num_predict": 1}}
    yield post("a context of 3,000 messages", (200, 400), _GENERATE, body)
    yield post("5,000 texts", 400, "/api/embed", {"model": "demo", "input": ["x"] * 5000})


def _values() -> Iterator[Row]:
    evil = [-(10**400), 10**30, 1e308, float("nan"), float("inf"), "1", True, [], {}, [[1]]]
    for name in ("num_predict", "top_k", "seed"):
        for value in evil:
            yield ollama_chat(f"{name} is {str(value)[:12]!r}", 400, options={name: value})
    for value in evil:
        yield ollama_chat(f"temperature is {str(value)[:12]!r}", 400, options={"temperature": value})
        yield ollama_chat(f"keep_alive is {str(value)[:12]!r}", (200, 400), keep_alive=value)
        yield ollama_chat(f"model is {str(value)[:12]!r}", 400 if value != "1" else 404, model=value)
    yield ollama_chat("a model of another server", 404, model="../../etc/passwd")
    yield ollama_chat("a model with half a surrogate", (400, 404), model="\ud800")
    yield ollama_chat("a long model", 400, model="x" * 5000)
    yield ollama_chat("think is a novel", 400, think="x" * 400)
    yield ollama_chat("half a surrogate", 400, messages=[{"role": "user", "content": "\ud800"}])
    yield ollama_chat("unloads without being the admin", (200, 403, 409), messages=[], keep_alive=0)
    yield ollama_chat("a session id with a line break", 400, messages=[HELLO], think="\n")


def _pictures() -> Iterator[Row]:
    for name, image in {
        "empty": "",
        "no base64": "%%%",
        "a URL": "http://127.0.0.1:1/x.png",
        "a file": "file:///etc/passwd",
        "a path": "/etc/passwd",
        "text": "aGFsbyBoYWxvIGhhbG8gaGFsbyBoYWxvIGhhbG8gaGFsbyBoYWxvIGhhbG8=",
        "a megabyte of As": "A" * 1_000_000,
    }.items():
        message = {"role": "user", "content": "What is this?", "images": [image]}
        yield ollama_chat(f"a picture that is {name}", 400, messages=[message])
    many = {"role": "user", "content": "x", "images": ["QUFB"] * 5000}
    yield ollama_chat("5,000 pictures", 400, messages=[many])
    yield ollama_chat("pictures that are numbers", 400, messages=[{"role": "user", "content": "x", "images": [1, 2]}])


def _paths() -> Iterator[Row]:
    for path in ("/ollama/api", "/ollama/api/", "/ollama/api/nobody", "/ollama/api/%00", "/ollama/api/../v1/models"):
        yield get("beside it", (401, 404), path)
    yield post("no such digest", 403, "/api/blobs/sha256:0", b"x" * 100_000)
    yield Row("ollama: a session id that is none", (400,), "POST", _CHAT, {"model": "demo"}, {"X-Session-Id": "a b"})
    yield Row("ollama: without a key", (401,), "POST", _CHAT, {"model": "demo"}, {"Authorization": "-"})
    yield Row(
        "ollama: a page", (400,), "POST", _CHAT, b"{}", {"Origin": "https://e.example", "Content-Type": "text/plain"}
    )
