"""Forms with pictures, read in memory: whatever the chunks, and whatever a client sends."""

from collections.abc import Sequence
from random import Random

import pytest
from starlette.requests import Request
from starlette.types import Message

from tis.errors import ServiceError
from tis.http.multipart import FormPart
from tis.ktp.uploads import read_pictures

pytestmark = pytest.mark.anyio
BOUNDARY = b"line"
PICTURE = bytes(range(256)) + b"\r\n--lin\r\n--line-x" + b"\0" * 100


def part(name: str, content: bytes, disposition: str = 'form-data; name="{}"; filename="a.png"') -> bytes:
    head = f"Content-Disposition: {disposition.format(name)}\r\nContent-Type: image/png\r\n\r\n"
    return b"--" + BOUNDARY + b"\r\n" + head.encode() + content + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--" + BOUNDARY + b"--\r\n"


async def read(
    body: bytes, chunk: int = 1 << 20, names: Sequence[str] = ("image",), max_pictures: int = 2, max_bytes: int = 1000
) -> list[FormPart]:
    chunks = [body[start : start + chunk] for start in range(0, len(body), chunk)] or [b""]

    async def receive() -> Message:
        data = chunks.pop(0)
        return {"type": "http.request", "body": data, "more_body": bool(chunks)}

    headers = [(b"content-type", b"multipart/form-data; boundary=" + BOUNDARY)]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    return await read_pictures(request, names, max_pictures=max_pictures, max_bytes=max_bytes)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 20])
async def test_a_picture_comes_whole_however_it_is_cut(chunk: int) -> None:
    body = form(part("note", b"x" * 50), part("image", PICTURE), part("other", PICTURE), part("image", b"second"))
    assert [one.take() for one in await read(body, chunk)] == [PICTURE, b"second"]


async def test_a_picture_without_a_file_name_is_a_picture() -> None:
    [picture] = await read(form(part("image", PICTURE, 'form-data; name="{}"')))
    assert picture.take() == PICTURE


async def test_a_picture_over_the_limit_is_noted_and_not_kept() -> None:
    large, small = await read(form(part("image", b"x" * 1001), part("image", b"y" * 1000)), 100)
    assert (large.is_too_large, large.take(), small.is_too_large, len(small.take())) == (True, b"", False, 1000)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (form(part("image", b"1"), part("image", b"2"), part("image", b"3")), "too_many_images"),
        (form(part("picture", b"1")), "missing_field"),
        (form(*[part("note", b"")] * 101), "bad_form"),
        (form(part("image", b"1", "form-data; name={}" + "x" * 5000)), "bad_form"),
        (part("image", b"1"), "bad_form"),
        (b"", "bad_form"),
        (b"nothing of a form", "bad_form"),
    ],
    ids=["three", "other name", "many parts", "long header", "no end", "empty", "no form"],
)
async def test_a_wrong_form_has_a_code(body: bytes, code: str) -> None:
    with pytest.raises(ServiceError) as refused:
        await read(body)
    assert refused.value.code == code and refused.value.status in (400, 422)


async def test_whatever_comes_is_a_picture_or_a_refusal() -> None:
    whole = form(part("image", PICTURE), part("note", b"x"))
    for seed in range(300):
        random, body = Random(seed), bytearray(whole)
        for _ in range(random.randrange(1, 6)):
            place = random.randrange(len(body))
            body[place : place + random.randrange(3)] = random.randbytes(random.randrange(4))
        try:
            await read(bytes(body), random.choice([5, 100, 1 << 20]))
        except ServiceError as refused:
            assert refused.status in (400, 422)
