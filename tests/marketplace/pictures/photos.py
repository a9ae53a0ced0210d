"""Photos for tests, and what a client does with them."""

import io
from typing import Any

import httpx2
import numpy as np
from PIL import Image

from tests.media.images import encoded

ORIENTATION = 0x0112


def photo(seed: int = 0, size: tuple[int, int] = (60, 40), form: str = "JPEG", **options: Any) -> bytes:
    return encoded(picture(seed, size), form, **options)


def picture(seed: int = 0, size: tuple[int, int] = (60, 40)) -> Image.Image:
    """Another one for each seed."""
    coarse = np.random.default_rng(seed).integers(0, 255, (4, 6, 3), np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BILINEAR)


def upload(
    client: httpx2.Client, product_id: int, data: bytes, name: str = "a.jpg", kind: str = "image/jpeg", **fields: str
) -> httpx2.Response:
    return client.post(f"/api/products/{product_id}/pictures", files={"file": (name, data, kind)}, data=fields)


def uploaded(client: httpx2.Client, product_id: int, data: bytes, **fields: str) -> dict[str, Any]:
    answer = upload(client, product_id, data, **fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def opened(answer: httpx2.Response) -> Image.Image:
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/webp"
    image = Image.open(io.BytesIO(answer.content), formats=["WEBP"])
    image.load()
    return image


def ids(pictures: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in pictures]
