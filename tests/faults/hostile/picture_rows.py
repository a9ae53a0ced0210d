"""Pictures of products that are none, are two things, or say that they are huge; and addresses of picture files."""

import io
import zlib
from collections.abc import Iterator

from PIL import Image

from tests.faults.hostile.row import Row, get
from tests.media.images import make_image, png_that_claims

_PATH = "/api/products/$product/pictures"
_BOUNDARY = "b0undary"
_FORM = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
_REFUSED = (400, 413, 422)


def rows() -> Iterator[Row]:
    for name, data in {
        "nothing": b"",
        "zeros": bytes(500_000),
        "SVG": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
        "HTML": b"<!doctype html><script>alert(1)</script>",
        "GIF and HTML": b"GIF89a<script>alert(1)</script>",
        "a claim": png_that_claims(60_000, 60_000),
        "a claim of two billion": png_that_claims(2**31 - 1, 1),
        "half a PNG": make_image("PNG")[:1500],
        "a text that unpacks": _png_with_bomb(),
        "a TIFF": b"II*\0" + b"\xff" * 200_000,
        "a WebP": b"RIFF\xff\xff\xff\xffWEBPVP8X" + b"\xff" * 5000,
        "a BMP": b"BM" + b"\xff" * 5000,
    }.items():
        yield _upload(f"picture: {name}", (200, *_REFUSED) if name == "a text that unpacks" else _REFUSED, data)
    for name in ("../../../etc/passwd", "x" * 4000, 'a"; filename="b.jpg', "a.svg\\r\\nX: y"):
        yield _upload(f"picture called {name[:9]}", _REFUSED, b"no picture", name)
    for url in ("file:///etc/passwd", "http://169.254.169.254/", "http://[::1]/", "gopher://x", "x" * 9000, "//x", ""):
        yield Row(f"picture at {url[:12]}", _REFUSED, "POST", _PATH, {"url": url}, account="supplier")
    yield Row("picture: no form", _REFUSED, "POST", _PATH, b"--x", _FORM, account="supplier")
    yield Row("picture: deep JSON", _REFUSED, "POST", _PATH, b"[" * 60_000, account="supplier")
    yield Row("picture of somebody else", (403, 404), "POST", _PATH, {"url": "http://x.example/"}, account="mallory")
    yield Row("picture of nobody, 9 MB", (401, 413), "POST", _PATH, bytes(9_000_000), _FORM)
    for number, order in enumerate((["x"], ["0" * 64] * 9, "x", None)):
        yield Row(f"order of pictures {number}", (422,), "PUT", _PATH, {"order": order}, account="supplier")
    for name in ("..%2f..%2fetc%2fpasswd", "%00", "0" * 64, "A" * 64, "0" * 5000, "*"):
        yield get(f"picture {name[:9]}", (400, 404, 414, 422), f"/api/pictures/{name}/small.webp")
    yield get("picture, size", (404, 422), f"/api/pictures/{'0' * 64}/..%2fx.webp")


def _upload(row: str, statuses: tuple[int, ...], data: bytes, name: str = "a.jpg") -> Row:
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    body = head.encode() + b"Content-Type: image/jpeg\r\n\r\n" + data + f"\r\n--{_BOUNDARY}--\r\n".encode()
    return Row(row, statuses, "POST", _PATH, body, _FORM, account="supplier")


def _png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (9, 9)).save(file, "PNG")
    return file.getvalue()


def _png_with_bomb() -> bytes:
    data = b"Comment\0\0" + zlib.compress(bytes(50_000_000))
    chunk = len(data).to_bytes(4, "big") + b"zTXt" + data + zlib.crc32(b"zTXt" + data).to_bytes(4, "big")
    whole = _png()
    return whole[:33] + chunk + whole[33:]
