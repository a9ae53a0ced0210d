"""GET /api/tags, /api/ps, /api/version, POST /api/show, /api/pull, /api/embed and /api/embeddings; keys and shapes."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy
import pytest
import yaml

from tests.engine.conftest import DEMO
from tests.engine.gguf_headers import ARCHITECTURE, U32, entry, file_of, tensor
from tests.engine.models.hub import REPO, hub_with
from tests.engine.pooling.models import TEXTS, add_sentence_files, save
from tests.openai_api.test_chat import said
from tests.serving import Served, served, server_process, settings_with, wait_until_live
from tis.app import create_app
from tis.engine.models.catalogue import CatalogueEntry, entry_of
from tis.engine.models.description import ModelDescription, describe_unloaded
from tis.ollama_api.wire import model_card

KEY, ADMIN = {"Authorization": "Bearer sesame"}, {"Authorization": "Bearer root"}
REFUSED = [
    ("POST", "/api/create"), ("POST", "/api/copy"), ("DELETE", "/api/delete"), ("POST", "/api/push"),
    ("POST", "/api/blobs/sha256:29fd"), ("POST", "/api/me"), ("POST", "/api/signout"), ("POST", "/ollama/api/me"),
    ("DELETE", "/ollama/api/delete"),
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("models")
    add_sentence_files(save(folder / "bge", "BertModel"), {"pooling_mode_cls_token": True}, prompts={})
    models = {
        "demo": {"repo": "models/demo", "defaults": {"temperature": 0.5, "repetition_penalty": 1.1}},
        "echo": {"repo": "echo"},
        "bge:small": {"repo": str(folder / "bge"), "task": "embedding"},
    }
    (folder / "models.yaml").write_text(yaml.safe_dump({"models": models}))
    settings = settings_with(
        model_repo_id="demo",
        models="echo,bge:small",
        model_config_path=str(folder / "models.yaml"),
        model_idle_seconds=600,
        load_wait_seconds=120,
    )
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def http(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def locked() -> Iterator[httpx2.Client]:
    settings = settings_with(api_keys="sesame", admin_key="root")
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


def test_tags_list_the_catalogue(http: httpx2.Client) -> None:
    demo, echo, bge = http.get("/api/tags").json()["models"]
    assert [one["model"] for one in (demo, echo, bge)] == ["demo:latest", "echo:latest", "bge:small"]
    assert demo["name"] == demo["model"] and demo["size"] > 10**6 and len(demo["digest"]) == 64
    details = demo["details"]
    assert details["format"] == "safetensors" and details["families"] == [details["family"]] != [""]
    assert details["parameter_size"].endswith("M") and details["quantization_level"] in ("F32", "BF16", "F16")
    assert echo["size"] == 0 and echo["details"]["family"] == ""
    assert http.get("/ollama/api/tags").json() == http.get("/api/tags").json()


def test_the_files_of_a_model_are_read_once_while_they_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counted(path: Path) -> Any:
        read.append(path)
        return iter([("F32", 7)])

    monkeypatch.setattr(model_card, "_tensors_in", counted)
    entry = CatalogueEntry("one", "models/demo")
    for weights_time, num_reads in ((1.0, 1), (1.0, 1), (2.0, 2), (None, 3), (None, 4)):
        known = ModelDescription(64, weights_time=weights_time, weights_bytes=1)
        assert model_card.read_model_files(entry, known).num_parameters == 7 * num_files(DEMO)
        assert len(read) == num_reads * num_files(DEMO)
    model_card._read_once.cache_clear()


def num_files(folder: Any) -> int:
    return len(list(Path(folder).glob("*.safetensors")))


def test_show_says_what_a_model_can_do(http: httpx2.Client) -> None:
    shown = http.post("/api/show", json={"model": "demo"}).json()
    assert {"completion", "vision", "tools"} <= set(shown["capabilities"])
    family = shown["details"]["family"]
    info = shown["model_info"]
    assert info["general.architecture"] == family and info["general.parameter_count"] > 10**6
    assert info[f"{family}.context_length"] > 0 and info[f"{family}.embedding_length"] > 0
    assert "messages" in shown["template"] and shown["modelfile"] == "FROM demo:latest"
    assert sorted(line.split() for line in shown["parameters"].splitlines()) == [
        ["repeat_penalty", "1.1"],
        ["temperature", "0.5"],
    ]
    assert http.post("/api/show", json={"name": "demo:latest"}).json() == shown
    assert http.post("/api/show", json={"model": "bge:small"}).json()["capabilities"] == ["embedding"]
    missing = http.post("/api/show", json={"model": "nobody"})
    assert (missing.status_code, missing.json()) == (404, {"error": "model 'nobody' not found"})


def test_ps_lists_what_is_loaded(http: httpx2.Client) -> None:
    http.post("/api/generate", json={"model": "demo"})
    [demo] = [one for one in http.get("/api/ps").json()["models"] if one["model"] == "demo:latest"]
    assert demo["size"] > 10**6 and demo["size_vram"] == 0 and demo["context_length"] > 0
    assert demo["expires_at"].endswith("Z") and not demo["expires_at"].startswith("2318")


def test_a_model_that_is_not_there_is_a_404(http: httpx2.Client) -> None:
    for path, body in {
        "/api/chat": said("Halo"),
        "/api/generate": {"prompt": "Halo"},
        "/api/embed": {"input": "Halo"},
        "/api/pull": {},
    }.items():
        answer = http.post(path, json={"model": "llama3.2", **body})
        assert answer.status_code == 404 or path == "/api/embed", answer.text
        assert answer.status_code == 200 or answer.json() == {"error": "model 'llama3.2' not found"}


def test_a_model_of_another_kind_says_so(http: httpx2.Client) -> None:
    answer = http.post("/api/chat", json=said("Halo", model="bge:small"))
    assert answer.status_code == 400 and "served for embedding" in answer.json()["error"]


def test_the_version_is_one_of_ollama(http: httpx2.Client) -> None:
    major, minor, _ = map(int, http.get("/api/version").json()["version"].split("."))
    assert (major, minor) >= (0, 12)


def test_clients_ask_by_head_whether_it_is_there(http: httpx2.Client) -> None:
    for path in ("/api/tags", "/api/version", "/ollama/api/version"):
        answer = http.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-length"] == http.get(path).headers["content-length"]


def test_vectors_are_those_of_the_other_api_with_length_1(http: httpx2.Client) -> None:
    mine = http.post("/api/embed", json={"model": "bge:small", "input": TEXTS}).json()
    other = http.post("/v1/embeddings", json={"model": "bge:small", "input": TEXTS}).json()
    vectors = numpy.array(mine["embeddings"])
    expected = numpy.array([one["embedding"] for one in other["data"]])
    expected /= numpy.linalg.norm(expected, axis=1, keepdims=True)
    assert numpy.abs(vectors - expected).max() < 1e-6
    assert mine["model"] == "bge:small" and mine["prompt_eval_count"] == other["usage"]["prompt_tokens"]
    assert 0 <= mine["load_duration"] <= mine["total_duration"]
    one = http.post("/api/embeddings", json={"model": "bge:small", "prompt": TEXTS[0]}).json()["embedding"]
    assert numpy.abs(numpy.array(one) - numpy.array(other["data"][0]["embedding"])).max() < 1e-6


def test_vectors_are_shortened_and_texts_are_cut(http: httpx2.Client) -> None:
    asked = {"model": "bge:small", "input": "kopi"}
    short = http.post("/api/embed", json={**asked, "dimensions": 4}).json()["embeddings"][0]
    assert len(short) == 4 and abs(numpy.linalg.norm(short) - 1) < 1e-6
    long = {"model": "bge:small", "input": "kopi " * 5000}
    assert http.post("/api/embed", json=long).status_code == 200
    refused = http.post("/api/embed", json={**long, "truncate": False})
    assert refused.status_code == 400 and "maximum context length" in refused.json()["error"]
    answer = http.post("/api/embed", json={**asked, "options": {"num_ctx": 8}, "keep_alive": "5m"})
    assert answer.headers["x-ignored-parameters"] == "keep_alive, options"


@pytest.mark.parametrize("empty", ["", [], None])
def test_without_a_text_an_embedding_model_is_loaded(http: httpx2.Client, empty: Any) -> None:
    answer = http.post("/api/embed", json={"model": "bge:small", "input": empty})
    assert answer.json()["embeddings"] == []
    assert http.post("/api/embeddings", json={"model": "bge:small", "prompt": ""}).json() == {"embedding": []}


def test_a_model_that_is_here_is_pulled_at_once(http: httpx2.Client) -> None:
    answer = http.post("/api/pull", json={"model": "demo"})
    assert [json.loads(line) for line in answer.text.splitlines()] == [
        {"status": "pulling manifest"},
        {"status": "success"},
    ]
    assert http.post("/api/pull", json={"name": "demo", "stream": False}).json() == {"status": "success"}


def pulled(url: str, **more: Any) -> list[dict[str, Any]]:
    answer = httpx2.post(f"{url}/api/pull", json={"model": REPO, **more}, timeout=60)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.slow
@pytest.mark.long
def test_a_download_is_shown_in_bytes_and_a_failure_as_an_error(tmp_path: Path) -> None:
    with (
        hub_with(Path(DEMO), extra={}) as hub,
        server_process(MODEL_REPO_ID=REPO, HF_ENDPOINT=hub, HF_HOME=str(tmp_path)) as server,
    ):
        wait_until_live(server.url)
        first, *between, last = pulled(server.url)
        assert (first, last) == ({"status": "pulling manifest"}, {"status": "success"})
        counted = [line for line in between if "total" in line]
        assert counted and all(0 <= line["completed"] <= line["total"] for line in counted)
        assert all(line["digest"].startswith("sha256:") for line in counted)
        assert pulled(server.url, stream=False) == [{"status": "success"}]
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "empty")}
    with server_process(MODEL_REPO_ID=REPO, **nowhere) as server:
        wait_until_live(server.url)
        assert "could not be loaded" in pulled(server.url)[-1]["error"]
        whole = httpx2.post(f"{server.url}/api/pull", json={"model": REPO, "stream": False}, timeout=60)
        assert whole.status_code == 503 and "could not be loaded" in whole.json()["error"]


@pytest.mark.parametrize(("method", "path"), REFUSED)
def test_what_changes_the_catalogue_is_refused_by_name(http: httpx2.Client, method: str, path: str) -> None:
    answer = http.request(method, path, json={"model": "demo"})
    name = path.split("/api/")[1].split("/")[0]
    assert answer.status_code == 403 and answer.json()["error"].startswith(f"{name} is not supported: ")


def test_the_root_says_that_it_runs(http: httpx2.Client) -> None:
    assert http.get("/ollama").text == http.get("/ollama/").text == "Ollama is running"
    assert http.head("/ollama").status_code == 200
    assert http.head("/", follow_redirects=True).status_code == 200


@pytest.mark.parametrize("prefix", ["", "/ollama"])
def test_keys_are_asked_for_on_every_path(locked: httpx2.Client, prefix: str) -> None:
    for method, path in [
        ("POST", "/api/chat"), ("POST", "/api/generate"), ("GET", "/api/tags"), ("POST", "/api/show"),
        ("GET", "/api/ps"), ("GET", "/api/version"), ("POST", "/api/embed"), ("POST", "/api/embeddings"),
        ("POST", "/api/pull"), ("DELETE", "/api/delete"), ("POST", "/api/create"),
    ]:  # fmt: skip
        answer = locked.request(method, prefix + path, json={"model": "echo"} if method != "GET" else None)
        assert answer.status_code == 401 and "API key" in answer.json()["error"], path
    answer = locked.post(f"{prefix}/api/chat", json=said("Halo", model="echo", stream=False), headers=KEY)
    assert answer.json()["message"]["content"] == "Halo"


def test_memory_is_freed_by_the_admin_alone(locked: httpx2.Client) -> None:
    unload = {"model": "echo", "keep_alive": 0}
    refused = locked.post("/api/generate", json=unload, headers=KEY)
    assert refused.status_code == 403 and "ADMIN_KEY" in refused.json()["error"]
    assert locked.post("/api/pull", json={"model": "echo"}, headers=KEY).status_code == 403
    assert locked.post("/api/generate", json=unload, headers=ADMIN).json()["done_reason"] == "unload"


@pytest.mark.anyio
async def test_the_marketplace_is_not_imported_for_these_paths() -> None:
    app = create_app(settings_with())  # without its start, which imports it, too
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as client:
        assert (await client.get("/api/version")).status_code == 200
        assert (await client.post("/api/create", json={})).status_code == 403
        assert not app.state.marketplace.is_loaded
        assert (await client.get("/api/nothing")).status_code == 404
        assert app.state.marketplace.is_loaded


def test_the_marketplace_keeps_its_paths(http: httpx2.Client) -> None:
    assert http.get("/api/products").status_code == 200
    assert http.post("/api/chat/search", json={}).json()["detail"]


def test_errors_have_the_shape_of_ollama_on_every_path(http: httpx2.Client) -> None:
    for answer, status in (
        (http.get("/ollama/api/nothing"), 404),
        (http.get("/ollama/api/chat"), 405),
        (http.post("/api/chat", content=b"{"), 400),
        (http.post("/api/chat", content=b"[]"), 400),
        (http.post("/api/chat", content=b'{"a":' * 300), 400),
        (http.post("/api/chat", json={"x": [0] * 100_001}), 400),
        (http.post("/api/chat", json=said("x" * (9 * 2**20), model="echo")), 413),
    ):
        assert answer.status_code == status, answer.text
        assert list(answer.json()) == ["error"] and isinstance(answer.json()["error"], str)


def test_a_gguf_file_has_a_card(tmp_path: Path) -> None:
    path = tmp_path / "shop.gguf"
    sizes = {"llama.embedding_length": 64, "llama.context_length": 512}
    entries = [entry(key, U32, struct.pack("<I", size)) for key, size in sizes.items()]
    path.write_bytes(
        file_of(ARCHITECTURE, *entries, tensors=(tensor(shape=(64, 4), kind=8), tensor("b", (8,), 0, 288)), data=320)
    )
    model = entry_of([], str(path))
    known = describe_unloaded(model.repo)
    files = model_card.read_model_files(model, known)
    assert model_card.details(files, model) == {
        "parent_model": "",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "264",
        "quantization_level": "Q8_0",
    }
    info = model_card.model_info(files, known)
    assert (info["llama.embedding_length"], info["llama.context_length"]) == (64, 512)
    path.write_bytes(b"GGUF")
    assert model_card.read_model_files(model, describe_unloaded(model.repo)) == model_card.ModelFiles()
