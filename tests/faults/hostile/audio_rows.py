"""Forms of the audio API that are broken, huge or lie, and files that are no sound. No model of the server hears."""

from collections.abc import Iterator
from typing import Any

from tests.faults.hostile.row import Row, codes, post

_PATHS = ("/v1/audio/transcriptions", "/v1/audio/translations")
_FORM = {"Content-Type": "multipart/form-data; boundary=b"}
_PLAYLIST = b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"


def rows() -> Iterator[Row]:
    for path in _PATHS:
        yield from _forms(path)
        yield from _fields(path)
    yield from _speech()


def part(name: str, value: bytes, *, file: bool = False) -> bytes:
    filename = b'; filename="a.mp3"' if file else b""
    return b'--b\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n' % (name.encode(), filename, value)


def form(file: bytes = b"x" * 99, **fields: bytes) -> bytes:
    return b"".join(part(name, value) for name, value in fields.items()) + part("file", file, file=True) + b"--b--\r\n"


def _row(path: str, name: str, statuses: int | tuple[int, ...], body: bytes, **headers: str) -> Row:
    return Row(f"POST {path}: {name}", codes(statuses), "POST", path, body, {**_FORM, **headers})


def _forms(path: str) -> Iterator[Row]:
    for name, body in {
        "nothing": b"",
        "no form": b"dear diary",
        "half a head": b'--b\r\nContent-Disposition: form-data; name="fi',
        "no end": form()[:-7],
        "no name": b"--b\r\n\r\nx\r\n--b--\r\n",
        "zeros": bytes(100_000),
        "boundaries": b"--b\r\n" * 20_000,
        "nearly boundaries": b"\r\n--" * 200_000,
        "a head without end": b"--b\r\n" + b"A" * 500_000,
        "many parts": part("x", b"") * 5000 + b"--b--\r\n",
        "many files": part("file", b"x", file=True) * 50 + b"--b--\r\n",
        "a long name": part("x" * 50_000, b"") + b"--b--\r\n",
        "a long field": form(prompt=b"x" * 200_000),
        "no UTF-8": form(prompt=b"\xff\xfe"),
        "no file": part("model", b"demo") + b"--b--\r\n",
        "an empty file": form(b""),
        "JSON": b'{"model": "demo"}',
    }.items():
        yield _row(path, name, 400, body)
    yield _row(path, "no boundary", 400, form(), **{"Content-Type": "multipart/form-data"})
    yield _row(path, "as JSON", 400, form(), **{"Content-Type": "application/json"})
    yield _row(path, "larger than a file may be", (0, 413), form(bytes(30_000_000)))
    for name, file in {"a text": b"x" * 9999, "a playlist": _PLAYLIST, "zeros": bytes(9999)}.items():
        yield _row(path, f"of a model that chats: {name}", 400, form(file, model=b"demo"))
        yield _row(path, f"of no model: {name}", 404, form(file))
    foreign: dict[str, bytes] = {"session_id": b"of-ada", "stream": b"true"}
    yield _row(path, "another's session", 404, b"".join(part(*one) for one in foreign.items()) + b"--b--\r\n")
    yield _row(path, "a cursor that is none", 400, form(), **{"Last-Event-ID": "x" * 400})


def _fields(path: str) -> Iterator[Row]:
    for name, value in {
        "response_format": b"diarized_json",
        "language": b"x" * 900,
        "temperature": b"nan",
        "stream": b"perhaps",
        "session_id": b"../../etc",
        "timestamp_granularities[]": b"[" * 30_000,
        "include": b'{"a": 1}',
        "languages": b"[[[[1]]]]",
        "keywords": b"[" + b'"x",' * 2000 + b'"x"]',
        "chunking_strategy": b'{"type": "server_vad", "threshold": 1e999}',
        "chunking_strategy[type]": b"x",
    }.items():
        yield _row(path, f"{name} of {value[:20]!r}", 400, form(**{name: value}))


def _speech() -> Iterator[Row]:
    good: dict[str, Any] = {"model": "demo", "input": "Halo", "voice": "alloy"}
    yield post("good", 501, "/v1/audio/speech", good)
    for name, value in {
        "input": "x" * 5000,
        "voice": {"id": ["x"]},
        "model": None,
        "speed": 1e308,
        "response_format": "exe",
        "stream_format": 7,
        "instructions": "x" * 9000,
        "seed": 1e40,
        "session_id": "../../etc",
    }.items():
        yield post(f"{name} of {str(value)[:20]}", 400, "/v1/audio/speech", {**good, name: value})
