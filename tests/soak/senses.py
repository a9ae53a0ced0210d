"""Vectors, reranking, sound and identity cards: each as it was when nobody else was there."""

import hashlib
from random import Random

from tests.serving import REPOSITORY
from tests.soak.floor import Floor
from tests.soak.streams import followed, text_of

_TEXTS = ("kopi Gayo 250 gram", "a mug warmer for the desk", "kipas angin meja", "kulkas dua pintu")
_SPEECH = REPOSITORY / "scripts" / "demo_whisper" / "speech"
_CARD = (REPOSITORY / "docs" / "samples" / "ktp-specimen.jpg").read_bytes()
_NIK = "3603125002977921"
_MAX_DIFFERENCE = 1e-4  # a batch of another size adds its floats in another order


async def embeddings(floor: Floor, chance: Random, variant: int) -> None:
    body = {"model": "demo-embedding", "input": [_TEXTS[variant], f"{_TEXTS[variant]} {chance.random()}"]}
    answer = await floor.send("embeddings", "/v1/embeddings", key="ada", json=body)
    if answer.status_code == 200:
        vector = answer.json()["data"][0]["embedding"]
        known = floor.references.setdefault(f"embeddings-{variant}", " ".join(map(str, vector)))
        apart = max(abs(one - float(other)) for one, other in zip(vector, known.split(), strict=True))
        floor.ledger.expect(apart <= _MAX_DIFFERENCE, "different", "embeddings", f"a vector differs by {apart}")


async def rerank(floor: Floor, chance: Random, variant: int) -> None:
    body = {"model": "demo-reranker", "query": "hot coffee at work", "documents": list(_TEXTS)}
    answer = await floor.send("rerank", "/v1/rerank", key="budi", json=body)
    if answer.status_code == 200:
        floor.same("rerank", 0, [result["index"] for result in answer.json()["results"]])


async def transcription(floor: Floor, chance: Random, variant: int) -> None:
    name = f"{('id', 'en')[variant % 2]}-0{variant + 1}.ogg"
    files = {"file": (name, (_SPEECH / name).read_bytes())}
    data = {"model": "demo-whisper"}
    if variant < 2:
        answer = await floor.send("transcription", "/v1/audio/transcriptions", data=data, files=files)
        if answer.status_code == 200:
            floor.same("transcription", variant, answer.json()["text"])
        return
    session = floor.name("heard")
    data |= {"stream": "true", "session_id": session}
    await floor.send("transcription stream", "/v1/audio/transcriptions", data=data, files=files)
    reader = await followed(floor, chance, "transcription stream", "", None, "ada", session)
    floor.same("transcription stream", variant, text_of(reader.blocks))


async def speech(floor: Floor, chance: Random, variant: int) -> None:
    text = ("Selamat pagi.", "Barang ini masih ada.", "Good morning to you.", "Terima kasih banyak.")[variant]
    body = {"model": "demo-voice", "input": text, "voice": "en" if variant == 2 else "id", "seed": 3}
    if variant < 2:
        answer = await floor.send("speech", "/v1/audio/speech", json={**body, "response_format": "wav"})
        if answer.status_code == 200:
            floor.same("speech", variant, hashlib.sha256(answer.content).hexdigest())
        return
    body |= {"stream_format": "sse", "response_format": "wav", "session_id": floor.name("speech")}
    reader = await followed(floor, chance, "speech stream", "/v1/audio/speech", body, "citra")
    floor.same("speech stream", variant, text_of(reader.blocks))


async def card(floor: Floor, chance: Random, variant: int) -> None:
    files = {"image": ("ktp.jpg", _CARD)}
    answer = await floor.send("identity card", "/ktp-ocr/", key="citra", files=files)
    if answer.status_code == 200:
        nik = answer.json()["nik"]
        floor.ledger.expect(nik == _NIK, "different", "identity card", f"the NIK is read as {nik}")
