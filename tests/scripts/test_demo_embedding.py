"""The small embedding model and the small reranker: their size, what they know, and that our numbers are official."""

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
import sentence_transformers

from scripts.demo_embedding.encoder import MAX_FOLDER_BYTES, size_bytes
from scripts.demo_embedding.pairs import Lessons
from tests.serving import REPOSITORY
from tis.engine.local_engine import EngineLimits, LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loading import LoadOptions
from tis.engine.pooling.load_pooling import load_pooling
from tis.engine.pooling.loaded_pooling import EmbeddingOptions

pytestmark = pytest.mark.model

EMBEDDING, RERANKER = (REPOSITORY / "models" / name for name in ("demo-embedding", "demo-reranker"))
TEXTS = [
    "sesuatu untuk menghangatkan kopi",
    "Mug Warmer Merapi. accessories. Alas listrik 15 watt untuk gelas di meja",
    "Kopi Gayo 250 gram",
    "something to keep my coffee hot",
    "qwxzv",
    "Laptop Gaming Rinjani G15. Laptop gaming 15 inch, RTX 4050, layar 144 Hz, pendingin ganda",
]


async def _asked(vectors_of: Sequence[str], pairs: Sequence[tuple[str, str]]) -> tuple[Any, Sequence[float]]:
    entries = [CatalogueEntry("e", str(EMBEDDING), "embedding"), CatalogueEntry("r", str(RERANKER), "rerank")]
    engine = LocalEngine(entries, lambda entry, report: load_pooling(entry, LoadOptions(), report), EngineLimits())
    await engine.open()
    try:
        made = await engine.embed("e", vectors_of, EmbeddingOptions())
        return numpy.stack(made.vectors), (await engine.score("r", pairs)).values
    finally:
        await engine.close()


def test_the_numbers_are_those_of_sentence_transformers() -> None:
    pairs = [(TEXTS[0], text) for text in TEXTS]
    vectors, scores = asyncio.run(_asked(TEXTS, pairs))
    official = sentence_transformers.SentenceTransformer(str(EMBEDDING), device="cpu").encode(TEXTS)
    numpy.testing.assert_allclose(vectors, official, atol=2e-5)
    judged = sentence_transformers.CrossEncoder(str(RERANKER), device="cpu").predict(pairs)
    numpy.testing.assert_allclose(scores, judged, atol=2e-5)


def test_a_wish_in_either_language_is_nearest_to_what_grants_it() -> None:
    model = sentence_transformers.SentenceTransformer(str(EMBEDDING), device="cpu")
    goods = ["Mug Warmer Merapi", "Kopi Gayo 250 gram", "Obeng Set 32", "Senter LED", "Payung Lipat"]
    products = model.encode(goods)
    for wish in ("sesuatu untuk menghangatkan kopi", "something to keep my coffee hot"):
        assert goods[int((products @ model.encode([wish])[0]).argmax())] == "Mug Warmer Merapi"


@pytest.mark.parametrize("folder", [EMBEDDING, RERANKER], ids=lambda folder: folder.name)
def test_a_folder_stays_small(folder: Path) -> None:
    assert size_bytes(folder) <= MAX_FOLDER_BYTES
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float32"


def test_the_same_numbers_draw_the_same_lessons() -> None:
    first, second = ([Lessons().draw(random.Random(3)) for _ in range(5)] for _ in range(2))
    assert first == second and len({Lessons().draw(random.Random(number)).query for number in range(20)}) > 10
