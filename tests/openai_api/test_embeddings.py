"""POST /v1/embeddings, /v1/rerank and their like, with the client of OpenAI and without."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy
import pytest
import yaml
from openai import BadRequestError, OpenAI

from tests.engine.pooling.models import TEXTS, add_sentence_files, save
from tests.serving import Served, served, settings_with

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("models")
    add_sentence_files(save(folder / "bge", "BertModel"), {"pooling_mode_cls_token": True}, prompts={"query": "Cari: "})
    save(folder / "reranker", "BertForSequenceClassification", num_labels=1)
    models = {
        "echo": {"repo": "echo"},
        "bge": {"repo": str(folder / "bge"), "task": "embedding"},
        "judge": {"repo": str(folder / "reranker"), "task": "rerank"},
    }
    (folder / "models.yaml").write_text(yaml.safe_dump({"models": models}))
    settings = settings_with(model_repo_id="echo", models="bge,judge", model_config_path=str(folder / "models.yaml"))
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def http(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        yield client


def embed(http: httpx2.Client, **body: Any) -> httpx2.Response:
    return http.post("/v1/embeddings", json={"model": "bge", **body})


def vectors(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return numpy.array([one["embedding"] for one in answer.json()["data"]])


def test_the_client_of_openai_gets_vectors_in_order(client: OpenAI) -> None:
    made = client.embeddings.create(model="bge", input=TEXTS)
    assert [one.index for one in made.data] == [*range(len(TEXTS))]
    assert made.object == "list" and made.model == "bge" and made.usage.total_tokens == made.usage.prompt_tokens > 40
    for text, one in zip(TEXTS, made.data, strict=True):
        [alone] = client.embeddings.create(model="bge", input=text, encoding_format="float").data
        numpy.testing.assert_allclose(one.embedding, alone.embedding, atol=2e-5)
        assert abs(numpy.linalg.norm(one.embedding) - 1) < 1e-5


def test_base64_is_little_endian_float32(http: httpx2.Client) -> None:
    [one] = embed(http, input="kopi", encoding_format="base64").json()["data"]
    decoded = numpy.frombuffer(base64.b64decode(one["embedding"]), "<f4")
    assert (decoded == vectors(embed(http, input="kopi"))[0].astype("float32")).all()


def test_a_text_that_comes_again_costs_nothing_and_stays_equal(http: httpx2.Client) -> None:
    def hits() -> float:
        line = next(
            line for line in http.get("/metrics").text.splitlines() if 'tis_embedding_cache_total{result="hit"}' in line
        )
        return float(line.split()[-1])

    first = vectors(embed(http, input=["teh dari Jawa", "teh dari Jawa", "gula"]))
    before = hits()
    assert (vectors(embed(http, input=["gula", "teh dari Jawa"])) == first[[2, 0]]).all()
    assert hits() == before + 2


def test_prompts_dimensions_and_cuts(http: httpx2.Client) -> None:
    assert (vectors(embed(http, input="kopi", prompt_name="query")) == vectors(embed(http, input="Cari: kopi"))).all()
    short = vectors(embed(http, input="kopi", dimensions=8))
    assert short.shape == (1, 8) and abs(numpy.linalg.norm(short) - 1) < 1e-5
    assert vectors(embed(http, input="kopi " * 500, truncate=True)).shape == (1, 64)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": ["kopi", ""]}, "input"),
        ({"input": [[]]}, "input"),
        ({"input": [[5], "kopi", {"x": 1}]}, "input.2"),
        ({"input": [10**9]}, "input"),
        ({"input": [-1]}, "input"),
        ({"input": ["x"] * 2049}, "input"),
        ({"input": "kopi " * 500}, "input"),
        ({"input": "x" * 1_000_000}, "input"),
        ({"input": "kopi", "dimensions": 65}, "dimensions"),
        ({"input": "kopi", "dimensions": 0}, "dimensions"),
        ({"input": "kopi", "encoding_format": "int8"}, "encoding_format"),
        ({"input": "kopi", "prompt_name": "nobody"}, "prompt_name"),
        ({}, "input"),
    ],
)
def test_what_cannot_be_embedded_is_refused(http: httpx2.Client, body: dict[str, Any], param: str) -> None:
    answer = embed(http, **body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].startswith(param)


def test_a_text_writes_no_control_tokens(http: httpx2.Client) -> None:
    assert embed(http, input="[SEP]").json()["usage"]["prompt_tokens"] > 3


def test_models_are_used_for_what_they_are_served_for(client: OpenAI, http: httpx2.Client) -> None:
    with pytest.raises(BadRequestError, match="served for chat"):
        client.embeddings.create(model="echo", input="kopi")
    with pytest.raises(BadRequestError, match="served for embedding"):
        client.chat.completions.create(model="bge", messages=[{"role": "user", "content": "Halo"}])
    assert http.post("/v1/rerank", json={"model": "bge", "query": "a", "documents": ["b"]}).status_code == 400
    assert embed(http, model="text-embedding-3-small", input="kopi").status_code == 200  # there is one
    listed = {one["id"]: one for one in http.get("/v1/models").json()["data"]}
    assert listed["bge"]["capabilities"][0] == "embedding" and listed["bge"]["modalities"]["output"] == ["embedding"]
    assert listed["judge"]["capabilities"][0] == "rerank"


def test_documents_are_ranked(http: httpx2.Client) -> None:
    body = {"model": "judge", "query": "kopi dari Aceh", "documents": [TEXTS[0], {"text": TEXTS[1]}, TEXTS[2]]}
    answer = http.post("/v1/rerank", json={**body, "return_documents": True}).json()
    scores = [one["relevance_score"] for one in answer["results"]]
    assert scores == sorted(scores, reverse=True) and {one["index"] for one in answer["results"]} == {0, 1, 2}
    assert all(one["document"]["text"] == TEXTS[one["index"]] for one in answer["results"])
    assert answer["usage"]["total_tokens"] > 10
    for path in ("/rerank", "/reranking"):
        best = http.post(path, json={**body, "top_n": 1}).json()["results"]
        assert [one["index"] for one in best] == [answer["results"][0]["index"]] and "document" not in best[0]
    pairs = http.post("/v1/score", json={"model": "judge", "text_1": body["query"], "text_2": TEXTS[:3]}).json()["data"]
    by_index = {one["index"]: one["relevance_score"] for one in answer["results"]}
    assert [one["score"] for one in pairs] == pytest.approx([by_index[number] for number in range(3)], abs=2e-5)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/rerank", {"query": "a", "documents": []}),
        ("/v1/rerank", {"query": "a"}),
        ("/v1/rerank", {"query": "a", "documents": [5]}),
        ("/v1/rerank", {"query": "a", "documents": ["b"], "top_n": 0}),
        ("/v1/rerank", {"query": "kopi " * 500, "documents": ["b"], "truncate": False}),
        ("/v1/score", {"text_1": ["a", "b"], "text_2": ["c", "d", "e"]}),
        ("/v1/score", {"text_1": "a"}),
        ("/embedding", {}),
    ],
)
def test_bad_bodies_are_refused_in_the_shape_of_openai(http: httpx2.Client, path: str, body: dict[str, Any]) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == 400 and answer.json()["error"]["message"], answer.text


def test_llama_cpp_has_its_own_shape(http: httpx2.Client) -> None:
    expected = vectors(embed(http, input=["kopi", "teh"]))
    for path, field in (("/embedding", "content"), ("/embeddings", "input")):
        made = http.post(path, json={field: ["kopi", "teh"]}).json()
        assert [one["index"] for one in made] == [0, 1]
        assert numpy.array([one["embedding"][0] for one in made]) == pytest.approx(expected)


def test_all_paths_ask_for_a_key(tmp_path: Path) -> None:
    with served(settings_with(api_keys="secret")) as running, httpx2.Client(base_url=running.url) as http:
        for path in ("/v1/embeddings", "/embedding", "/embeddings", "/v1/rerank", "/rerank", "/reranking", "/score"):
            answer = http.post(path, json={"input": "kopi"})
            assert answer.status_code == 401 and answer.json()["error"]["type"], path
