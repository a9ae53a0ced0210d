"""Bodies that are no JSON, or JSON that nobody can read, of wrong types and codings."""

import gzip
from collections.abc import Iterator

from tests.faults.hostile.row import CHAT, Row


def rows() -> Iterator[Row]:
    for name, body in {
        "empty": b"",
        "a space": b" ",
        "half": b'{"messages": [',
        "a quote": b'"',
        "a list": b"[]",
        "a number": b"7",
        "a huge number": b"7" * 1_000_000,
        "an exponent": b'{"messages": [], "seed": 1e999999999}',
        "null": b"null",
        "NaN": b"NaN",
        "garbage": bytes(range(256)) * 40,
        "zeros": bytes(100_000),
        "UTF-16": '{"messages": []}'.encode("utf-16"),
        "UTF-32": '{"messages": []}'.encode("utf-32"),
        "no UTF-8": b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
        "a control character": b'{"messages": [{"role": "user", "content": "\x01"}]}',
        "two objects": b"{}{}",
        "a comment": b'{"messages": [] /* */}',
        "a trailing comma": b'{"messages": [],}',
        "single quotes": b"{'messages': []}",
        "open brackets": b"[" * 100_000,
        "open braces": b'{"a":' * 50_000,
        "brackets, deep": b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}",
        "deep in a free field": b'{"chat_template_kwargs":' + b'{"a":' * 300 + b"1" + b"}" * 301,
        "levels, just too many": b'{"tools":' + b"[" * 201 + b"]" * 201 + b"}",
        "commas": b"[" + b"," * 500_000 + b"]",
        "escapes": b'{"messages": "' + b"\\u" * 200_000 + b'"}',
        "no end of a text": b'{"messages": "' + b"x" * 3_000_000,
        "form data": b"messages=1&model=demo",
        "a key twice": b'{"messages": 1, "messages": [], "messages": {}}',
    }.items():
        yield Row(f"body: {name}", (400,), "POST", CHAT, body)
    twice = b'{"messages": [{"role": "user", "content": "a"}], "n": 1000, "n": 1, "max_tokens": 1, "model": "demo"}'
    yield Row("body: a key twice, the last is good", (200, 400), "POST", CHAT, twice)
    good = b'{"messages": [{"role": "user", "content": "Halo"}], "model": "demo", "max_tokens": 1}'
    yield Row("body: with a byte order mark", (200, 400), "POST", CHAT, b"\xef\xbb\xbf" + good)
    for name, kind in {
        "text": "text/plain",
        "XML": "application/xml",
        "forms": "application/x-www-form-urlencoded",
        "multipart without boundary": "multipart/form-data",
        "a list of types": "application/json, text/plain",
        "nonsense": "///;;==",
        "long": "application/" + "x" * 9000,
        "JSON in UTF-7": "application/json; charset=utf-7",
    }.items():
        yield Row(f"content type: {name}", (200, 400), "POST", CHAT, good, {"Content-Type": kind})
    yield Row("content type: none", (200, 400), "POST", CHAT, good, {"Content-Type": "-"})
    for name, data in {"good": gzip.compress(good), "broken": gzip.compress(good)[:-9], "none": good}.items():
        yield Row(f"gzip: {name}", (200, 400, 415), "POST", CHAT, data, {"Content-Encoding": "gzip"})
    yield Row("gzip: a bomb", (400, 415), "POST", CHAT, _bomb, {"Content-Encoding": "gzip"})
    for coding in ("deflate", "br", "zstd", "x" * 5000, "gzip, gzip, gzip"):
        yield Row(f"coding: {coding[:20]}", (200, 400, 415), "POST", CHAT, _bomb, {"Content-Encoding": coding})
    yield Row(
        "multipart: huge", (400, 413), "POST", CHAT, _multipart, {"Content-Type": "multipart/form-data; boundary=b"}
    )


def _bomb() -> bytes:
    return gzip.compress(bytes(50_000_000))


def _multipart() -> bytes:
    part = b'--b\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n' + b"x" * 1000 + b"\r\n"
    return part * 9000 + b"--b--\r\n"
