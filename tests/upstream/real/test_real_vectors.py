"""Vectors and scores of real engines of other people, through this server: the numbers that they gave."""

import base64
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import numpy
import pytest

from tests.serving import REPOSITORY
from tests.upstream.gateway import client_of, gateway
from tests.upstream.real.engines import LLAMA_CPP, MODEL, VLLM, EngineProcess, EngineProgram
from tests.upstream.real.text_model import write_text_model

pytestmark = pytest.mark.slow
TEXTS = ["Beras pandan wangi 5 kg", "Kopi Gayo", "Halo"]


class Behind:
    def __init__(self, client: httpx2.Client, engine: EngineProcess) -> None:
        self.client, self.engine = client, engine


def running(of: EngineProgram, folder: Path, task: str, more: Sequence[str], tmp: Path) -> Iterator[Behind]:
    engine = EngineProcess(of, folder, log=tmp / "engine.log", more=more)
    try:
        engine.wait_until_ready()
        fields: dict[str, Any] = {"upstream_kind": of.kind, "upstream_model": MODEL, "task": task}
        with gateway(tmp, f"{engine.url}/v1", **fields) as server, client_of(server) as client:
            yield Behind(client, engine)
    finally:
        engine.kill()


@pytest.fixture(scope="module", params=[LLAMA_CPP, VLLM], ids=lambda one: one.name)
def vectors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    of: EngineProgram = request.param
    of.require()
    tmp = tmp_path_factory.mktemp("vectors")
    if of is LLAMA_CPP:
        yield from running(of, write_text_model(tmp), "embedding", ["--embeddings", "--pooling", "mean"], tmp)
    else:
        folder = REPOSITORY / "models" / "demo-embedding"
        yield from running(of, folder, "embedding", ["--runner", "pooling", "--max-model-len", "128"], tmp)


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    VLLM.require()
    folder, more = REPOSITORY / "models" / "demo-reranker", ["--runner", "pooling", "--max-model-len", "128"]
    yield from running(VLLM, folder, "rerank", more, tmp_path_factory.mktemp("scores"))


def post(behind: Behind, path: str, body: dict[str, Any]) -> Any:
    answer = behind.client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_vectors_are_those_of_the_engine(vectors: Behind) -> None:
    here = post(vectors, "/v1/embeddings", {"input": TEXTS})
    there = vectors.engine.ask("/v1/embeddings", {"input": TEXTS})
    ours, theirs = ([one["embedding"] for one in made["data"]] for made in (here, there))
    assert numpy.allclose(ours, theirs, atol=1e-6)
    assert here["usage"]["prompt_tokens"] == there["usage"]["prompt_tokens"] > 10
    [packed] = post(vectors, "/v1/embeddings", {"input": TEXTS[0], "encoding_format": "base64"})["data"]
    [alone] = vectors.engine.ask("/v1/embeddings", {"input": TEXTS[0]})["data"]
    unpacked = numpy.frombuffer(base64.b64decode(packed["embedding"]), "<f4")
    assert numpy.allclose(unpacked, alone["embedding"], atol=1e-5)


def test_ollama_clients_get_vectors_of_length_one(vectors: Behind) -> None:
    made = post(vectors, "/ollama/api/embed", {"model": "far", "input": TEXTS})["embeddings"]
    assert len(made) == 3 and all(math.isclose(numpy.linalg.norm(one), 1, abs_tol=1e-5) for one in made)


def test_a_text_that_is_too_long_is_cut_or_refused(vectors: Behind) -> None:
    body = {"input": "beras " * 20_000, "truncate": True}
    answer = vectors.client.post("/v1/embeddings", json=body)
    assert answer.status_code == (200 if vectors.engine.of is VLLM else 400), answer.text
    assert vectors.client.post("/v1/embeddings", json={**body, "truncate": False}).status_code == 400


def test_scores_are_those_of_the_engine(scores: Behind) -> None:
    asked = {"query": "beras", "documents": TEXTS}
    here, there = post(scores, "/v1/rerank", asked), scores.engine.ask("/v1/rerank", asked)
    ours, theirs = ({one["index"]: one["relevance_score"] for one in made["results"]} for made in (here, there))
    assert ours == pytest.approx(theirs, abs=1e-6) and len(ours) == 3
    long = {**asked, "documents": ["beras " * 2000]}
    assert len(post(scores, "/v1/rerank", long)["results"]) == 1
    assert scores.client.post("/v1/rerank", json={**long, "truncate": False}).status_code == 400
