"""Images and videos that are none, bombs, addresses inside the network, and files of the machine."""

import base64
import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from PIL import Image

from tests.faults.hostile.row import CHAT, RESPONSES, Row, chat, json_bytes, response, saying
from tests.media.images import data_uri, encoded, png_that_claims
from tests.openai_api.media_requests import picture_file


def rows() -> Iterator[Row]:
    yield from _files()
    yield from _addresses()
    yield from _uris()
    yield from _shapes()


def _image(name: str, statuses: tuple[int, ...], data: bytes, kind: str = "image/png") -> Row:
    def body() -> bytes:
        parts = saying({"type": "image_url", "image_url": {"url": data_uri(data, kind)}})
        return json_bytes({"model": "demo", "max_tokens": 1, "messages": parts})

    return Row(f"image: {name}", (*statuses, 429), "POST", CHAT, body)


def _files() -> Iterator[Row]:
    good = picture_file()
    for name, data in {
        "nothing": b"",
        "a text": b"dear diary " * 5000,
        "zeros": bytes(2_000_000),
        "half a PNG": good[: len(good) // 2],
        "a PNG without data": good[:33],
        "a PNG that claims 30,000 by 30,000": png_that_claims(30_000, 30_000),
        "a PNG that claims 2**31": png_that_claims(2**31 - 1, 2**31 - 1),
        "a PNG of no width": png_that_claims(0, 10),
        "a PNG with wrong sums": good[:40] + b"\0\0\0\0" + good[44:],
        "a PNG with a text of 200 MB": _png_with_text(200_000_000),
        "a PNG with 50,000 chunks": _png_with_chunks(50_000),
        "a PNG with a huge profile": _png_with_chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(100_000_000))),
        "a PNG with evil EXIF": _png_with_chunk(b"eXIf", b"MM\0*\0\0\0\x08\xff\xff" + b"\xff" * 9000),
        "SVG": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
        "SVG with entities": b'<!DOCTYPE x [<!ENTITY a "aaaa">]><svg>' + b"&a;" * 9000 + b"</svg>",
        "FITS": b"SIMPLE  =                    T" + b" " * 5000,
        "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9999 9999\n(%pipe%id) (r) file\n",
        "PDF": b"%PDF-1.7\n" + b"x" * 5000,
        "MVG": b"push graphic-context\nfill 'url(https://127.0.0.1/|id)'\npop graphic-context",
        "XPM": b"/* XPM */ static char *x[] = {" + b'"30000 30000 2 1",' * 500,
        "ICO": b"\0\0\1\0\1\0" + bytes(500),
        "PCX": b"\x0a\x05\x01\x08" + b"\xff" * 2000,
        "PSD": b"8BPS\0\1" + b"\xff" * 2000,
        "TGA": bytes([0, 0, 10]) + b"\xff" * 3000,
        "WMF": b"\xd7\xcd\xc6\x9a" + b"\xff" * 2000,
        "JPEG 2000": b"\0\0\0\x0cjP  \r\n\x87\n" + b"\xff" * 2000,
        "AVIF": b"\0\0\0\x20ftypavif" + b"\xff" * 2000,
        "half a JPEG": encoded(Image.new("RGB", (300, 300)), "JPEG")[:400],
        "a JPEG that claims much": b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03"
        + b"\1\x11\0" * 3
        + b"\xff\xda" * 900,
        "half a GIF": b"GIF89a\xff\xff\xff\xff\xff" + b"\0" * 900,
        "half a WebP": b"RIFF\xff\xff\xff\xffWEBPVP8L" + b"\xff" * 900,
        "a BMP that claims much": b"BM" + struct.pack("<IIIIiiHHI", 99, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, 0),
        "a TIFF that goes in circles": b"II*\0\x08\0\0\0\0\0\x08\0\0\0" * 20,
        "a TIFF of many tags": b"II*\0\x08\0\0\0\xff\xff" + b"\x01\x01\x04\0\xff\xff\xff\xff\xff\xff\xff\xff" * 5000,
        "zip": b"PK\3\4" + b"\xff" * 900,
        "a program": b"\x7fELF" + b"\xff" * 900,
    }.items():
        yield _image(name, (200, 400) if name in _MAYBE else (400,), data)
    yield _image("24 megapixels of one colour", (200, 400), picture_file(size=(6000, 4000)))
    yield _image("26 megapixels of one colour", (400,), picture_file(size=(6500, 4001)))
    yield _image("one pixel high", (200, 400), picture_file(size=(20_000, 1)))
    yield _image("one pixel", (200, 400), picture_file(size=(1, 1)))
    yield _image("a GIF of 3,000 frames", (200, 400), _gif(3000), "image/gif")
    yield _image("of another kind than it says", (200, 400), good, "text/html")
    thirty = [{"type": "image_url", "image_url": {"url": data_uri(picture_file(size=(2000, 2000)))}}] * 30
    yield chat("image: 30 of four megapixels", (200, 400, 429), messages=saying(*thirty))
    yield chat("image: 33", 400, messages=saying(*[{"type": "image_url", "image_url": {"url": data_uri(good)}}] * 33))
    for name, data in {"a text": b"x" * 9000, "half an MP4": b"\0\0\0\x20ftypisom" + b"\xff" * 9000}.items():
        video = {"type": "video_url", "video_url": {"url": data_uri(data, "video/mp4")}}
        yield chat(f"video: {name}", 400, messages=saying(video))
    playlist = b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
    video = {"type": "video_url", "video_url": {"url": data_uri(playlist, "application/x-mpegURL")}}
    yield chat("video: a playlist", 400, messages=saying(video))
    concat = b"ffconcat version 1.0\nfile /etc/passwd\n"
    video = {"type": "video_url", "video_url": {"url": data_uri(concat, "video/mp4")}}
    yield chat("video: a list of files", 400, messages=saying(video))


_MAYBE: tuple[str, ...] = (
    "a PNG with wrong sums",
    "a PNG with evil EXIF",
    "a PNG with a huge profile",
    "a PNG with 50,000 chunks",
)
_MAYBE += ("a PNG with a text of 200 MB",)


def _addresses() -> Iterator[Row]:
    for number, url in enumerate((
        "http://127.0.0.1:$port/v1/models",
        "http://localhost:$port/metrics",
        "http://0.0.0.0:$port/",
        "http://0:$port/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://[::1]:$port/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[fe80::1%25eth0]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://100.64.0.1/",
        "http://10.0.0.1/",
        "http://192.168.0.1:22/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://user:secret@127.0.0.1/",
        "http://example.com@127.0.0.1/",
        "http://127.0.0.1\\@example.com/",
        "http://①②⑦.⓪.⓪.①/",
        "http://localhost。/",
        "http://a" + ".a" * 4000,
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:-1/",
        "http://[::1/",
        "http://",
        "http:///etc/passwd",
        "HTTP://127.0.0.1/",
        "http://127.0.0.1/\r\nHost: x",
        "http://\ud800/",
        "ftp://127.0.0.1/",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "javascript:alert(1)",
        "blob:http://localhost/x",
        "file:///etc/passwd",
        "file://localhost/etc/passwd",
        "/etc/passwd",
        "../../../../etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        "/dev/stdin",
        "~/.ssh/id_rsa",
        "C:\\Windows\\win.ini",
        "\\\\127.0.0.1\\share\\x.png",
        "",
        " ",
        "x",
        "%00",
    )):  # fmt: skip
        yield chat(
            f"address {number}: {url[:30]!r}", 400, messages=saying({"type": "image_url", "image_url": {"url": url}})
        )
        if number % 4 == 0:
            item = {"role": "user", "content": [{"type": "input_image", "image_url": url}]}
            yield response(f"address {number}: {url[:30]!r}", 400, input=[item])
        if number % 5 == 0:
            yield chat(f"video at {url[:30]!r}", 400, messages=saying({"type": "video", "video": url}))


def _uris() -> Iterator[Row]:
    good = base64.b64encode(picture_file()).decode()
    for name, uri in {
        "nothing": "data:",
        "no comma": "data:image/png;base64",
        "no data": "data:image/png;base64,",
        "no base64": "data:image/png;base64,@@@@",
        "three characters": "data:image/png;base64,AAA",
        "spaces": "data:image/png;base64," + " " * 500_000,
        "padding": "data:image/png;base64," + "=" * 500_000,
        "surrogates": "data:image/png;base64,\ud800\ud800",
        "a long type": "data:" + "x" * 500_000 + ";base64,AAAA",
        "parameters": "data:image/png" + ";a=b" * 100_000 + ";base64,AAAA",
        "percents": "data:image/png," + "%41" * 300_000,
        "in itself": "data:image/png;base64," + base64.b64encode(b"data:image/png;base64,AAAA").decode(),
        "a page": "data:text/html;base64,PHNjcmlwdD4=",
        "other letters": "data:image/png;base64," + good.replace("A", "А"),
        "30 MB of A": "data:image/png;base64," + "A" * 30_000_000,
        "45 MB of A": "data:image/png;base64," + "A" * 45_000_000,
    }.items():
        yield chat(
            f"data URI: {name}", (400, 413, 429), messages=saying({"type": "image_url", "image_url": {"url": uri}})
        )
    yield response("data URI in an item", 400, input=[{"role": "user", "content": [{"type": "input_image"}]}])
    more = {
        "items": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}]
    }
    yield Row("data URI in a conversation", (200, 400), "POST", "/v1/conversations", more)
    yield Row("70 MB", (413,), "POST", RESPONSES, lambda: b'{"input": "' + b"A" * 70_000_000 + b'"}')


def _shapes() -> Iterator[Row]:
    for name, part in {
        "an object of nothing": {"type": "image_url", "image_url": {}},
        "a number": {"type": "image_url", "image_url": 5},
        "a list": {"type": "image_url", "image_url": ["x"]},
        "no address": {"type": "image_url"},
        "two": {"type": "image_url", "image_url": {"url": "x", "b64_json": "y"}},
        "detail": {"type": "image_url", "image_url": {"url": data_uri(picture_file()), "detail": "x" * 5000}},
        "of a type nobody has": {"type": "hologram", "hologram": "x"},
        "of a long type": {"type": "x" * 500_000},
        "audio": {"type": "input_audio", "input_audio": {"data": "x"}},
        "a file": {"type": "file", "file": {"file_id": "../../x"}},
        "base64 of bytes": {"type": "image", "b64_json": "\\x00"},
    }.items():
        yield chat(f"part: {name}", 400, messages=saying(part))


def _png_with_chunk(name: bytes, body: bytes) -> bytes:
    good = picture_file()
    chunk = struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return good[:33] + chunk + good[33:]


def _png_with_text(size: int) -> bytes:
    return _png_with_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(size)))


def _png_with_chunks(count: int) -> bytes:
    good = picture_file()
    chunk = struct.pack(">I", 1) + b"tEXt" + b"x" + struct.pack(">I", zlib.crc32(b"tEXtx"))
    return good[:33] + chunk * count + good[33:]


def _gif(count: int) -> bytes:
    file = io.BytesIO()
    frames: list[Any] = [Image.new("P", (8, 8), number % 250) for number in range(count)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()
