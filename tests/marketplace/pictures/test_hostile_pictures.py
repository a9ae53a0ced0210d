"""Files that are no pictures, or pictures made to hurt: each is refused, and the server goes on."""

import io
import zipfile
import zlib
from collections.abc import Iterator

import httpx2
import pytest
from PIL import Image, ImageFile

from tests.marketplace.accounts import register_supplier
from tests.marketplace.conftest import SECRET
from tests.marketplace.market_server import new_product
from tests.marketplace.pictures.photos import opened, photo, upload, uploaded
from tests.media.images import encoded, png_that_claims
from tests.serving import served, settings_with

_SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
_HTML = b"<!doctype html><script>alert(document.cookie)</script>"
_MAX_MB = 1


@pytest.fixture(scope="module")
def client() -> Iterator[httpx2.Client]:
    settings = settings_with(marketplace_auth="open", jwt_secret_key=SECRET, max_media_mb=_MAX_MB)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def product(client: httpx2.Client) -> int:
    return int(new_product(client, register_supplier(client)["id"])["id"])


def _zip_bomb_png() -> bytes:
    """A text chunk that unpacks to 64 MB."""
    data = b"Comment\0\0" + zlib.compress(bytes(64_000_000))
    chunk = len(data).to_bytes(4, "big") + b"zTXt" + data + zlib.crc32(b"zTXt" + data).to_bytes(4, "big")
    whole = encoded(Image.new("RGB", (8, 8)))
    return whole[:33] + chunk + whole[33:]


def _html_in_jpeg() -> bytes:
    return encoded(Image.new("RGB", (30, 30), "navy"), "JPEG", comment=_HTML) + _HTML


def _zip_behind_png() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.html", _HTML)
    return encoded(Image.new("RGB", (30, 30), "navy")) + archive.getvalue()


REFUSED = {
    "nothing": b"",
    "noise": bytes(range(256)) * 40,
    "SVG": _SVG,
    "SVG with a BOM": b"\xef\xbb\xbf" + _SVG,
    "HTML": _HTML,
    "HTML that begins as a GIF": b"GIF89a/*" + _HTML + b"*/",
    "a script": b"#!/bin/sh\nrm -rf /\n",
    "PDF": b"%PDF-1.7\n1 0 obj\n",
    "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "half a JPEG": photo(1, (800, 600))[:4000],
    "half a PNG": photo(1, (800, 600), "PNG")[:3000],
    "a PNG that claims 100,000 x 100,000": png_that_claims(100_000, 100_000),
    "a PNG that claims 2**31 - 1 pixels a side": png_that_claims(2**31 - 1, 2**31 - 1),
    "a PNG without sides": png_that_claims(0, 0),
    "a GIF of 65,535 x 65,535": b"GIF89a" + b"\xff" * 4 + bytes(3) + b"," + bytes(4) + b"\xff" * 4 + b"\0\2\2D\1\0;",
    "a RIFF of nothing": b"RIFF\x10\x00\x00\x00WEBPVP8 \x04\x00\x00\x00",
    "a TIFF of endless strips": b"II*\x00\x08\x00\x00\x00" + b"\xff" * 4000,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_picture_is_refused_whatever_it_is_called(client: httpx2.Client, product: int, name: str) -> None:
    for file_name, kind in (("photo.jpg", "image/jpeg"), ("photo.png", "image/png")):
        answer = upload(client, product, REFUSED[name], file_name, kind)
        assert answer.status_code == 400, answer.text
        assert "Traceback" not in answer.text and len(answer.text) < 300
    assert client.get(f"/api/products/{product}").json()["pictures"] == []


def test_a_file_that_is_too_large_is_refused(client: httpx2.Client, product: int) -> None:
    answer = upload(client, product, photo(2) + bytes(_MAX_MB * 2**20))
    assert (answer.status_code, answer.json()["detail"]) == (413, "The picture is too large: the limit is 1 MiB.")


@pytest.mark.parametrize("make", [_html_in_jpeg, _zip_behind_png, _zip_bomb_png], ids=lambda make: make.__name__)
def test_of_a_file_that_is_two_things_the_pixels_alone_are_kept(
    client: httpx2.Client, product: int, make: object
) -> None:
    assert callable(make)
    answer = upload(client, product, make())
    if answer.status_code == 400:  # Pillow refuses to unpack so long a text
        assert make is _zip_bomb_png
        return
    for url in answer.json()["urls"].values():
        served_file = client.get(url)
        opened(served_file)
        assert served_file.content.startswith(b"RIFF") and b"<script>" not in served_file.content
        assert b"PK\x03\x04" not in served_file.content
    client.delete(f"/api/products/{product}/pictures/{answer.json()['id']}")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../../../../etc/cron.d/x", "image/jpeg"),
        ("a.jpg\x00.html", "text/html"),
        ("x" * 3000 + ".svg", "image/svg+xml"),
        ("C:\\windows\\x.jpg", "application/x-msdownload"),
    ],
)
def test_the_name_and_the_type_of_a_file_say_nothing(client: httpx2.Client, product: int, name: str, kind: str) -> None:
    answer = upload(client, product, photo(3), name, kind)
    assert answer.status_code == 200, answer.text
    assert answer.json()["id"] == uploaded(client, product, photo(3))["id"]
    client.delete(f"/api/products/{product}/pictures/{answer.json()['id']}")


def test_a_very_long_picture_keeps_a_side_of_one_pixel(client: httpx2.Client, product: int) -> None:
    made = uploaded(client, product, encoded(Image.new("L", (20_000, 1), 90)))
    assert {opened(client.get(url)).size for url in made["urls"].values()} == {(1280, 1), (480, 1), (160, 1)}
    client.delete(f"/api/products/{product}/pictures/{made['id']}")


def test_pillow_reads_no_truncated_files_here() -> None:
    """Else half a photo would be a grey one."""
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False
