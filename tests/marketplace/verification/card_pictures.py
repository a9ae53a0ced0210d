"""Stands for the reader of cards: a "picture" is the JSON of what would be read of it."""

import json
from typing import Any

import httpx2

from tis.http.multipart import FormPart
from tis.ktp.errors import CardNotFound
from tis.marketplace.kit.card_check import SeenCard

NIK = "3201011708859001"
CERTAIN = {
    "nik": NIK,
    "nik_confidence": 0.99,
    "name": "BUDI SANTOSO",
    "name_confidence": 0.97,
    "contradicts_itself": False,
    "is_photocopy": False,
}


class ReadsJson:
    max_bytes = 10_000

    def __init__(self) -> None:
        self.num_looks = 0

    async def look_at(self, picture: FormPart, owner: str) -> SeenCard:
        self.num_looks += 1
        data = picture.take()
        if data == b"a cat":
            raise CardNotFound(0, None)
        return SeenCard(**json.loads(data))


def show(client: httpx2.Client, supplier_id: int, consent: str | None = "true", **read: Any) -> httpx2.Response:
    return show_bytes(client, supplier_id, json.dumps({**CERTAIN, **read}).encode(), consent)


def show_bytes(
    client: httpx2.Client, supplier_id: int, picture: bytes, consent: str | None = "true"
) -> httpx2.Response:
    return client.put(
        f"/api/suppliers/{supplier_id}/verification",
        files={"image": ("card.jpg", picture, "image/jpeg")},
        data={} if consent is None else {"consent": consent},
    )
