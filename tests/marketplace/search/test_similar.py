"""Products like a picture, with a random model that sees: the order is that of its own vectors."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy
import pytest
import yaml

from tests.engine.pooling.models import LAST, add_sentence_files, save, save_seeing_model
from tests.marketplace.accounts import register_supplier
from tests.marketplace.conftest import SECRET
from tests.marketplace.database_failures import wait_until_true
from tests.marketplace.market_server import new_product
from tests.marketplace.pictures.photos import ids, photo, uploaded
from tests.serving import served, settings_with
from tis.marketplace.market import Market

pytestmark = pytest.mark.model

NAMES = ("Kursi rotan", "Beras merah", "Kabel panjang", "Teh melati", "Sepatu lari")


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("similar")
    save_seeing_model(folder / "seeing")
    add_sentence_files(save(folder / "blind", "BertModel"), LAST)
    models: dict[str, Any] = {name: {"repo": str(folder / name), "task": "embedding"} for name in ("seeing", "blind")}
    (folder / "models.yaml").write_text(yaml.safe_dump({"models": {"echo": {"repo": "echo"}, **models}}))
    return folder / "models.yaml"


@pytest.fixture(scope="module")
def client(catalogue: Path) -> Iterator[httpx2.Client]:
    with market_with(catalogue, "seeing") as (client, market):
        supplier = register_supplier(client)["id"]
        for name in NAMES:
            new_product(client, supplier, name=name, description=None, tags=None, category="lain")
        new_product(client, supplier, name="Habis terjual", stock_quantity=0)
        assert market.meaning
        matrix = market.meaning.matrix
        wait_until_true(lambda: matrix.num_vectors == len(NAMES) + 1)
        yield client


@contextmanager
def market_with(catalogue: Path, model: str | None) -> Iterator[tuple[httpx2.Client, Market]]:
    settings = settings_with(
        model_repo_id="echo",
        models="seeing,blind",
        model_config_path=str(catalogue),
        marketplace_auth="open",
        jwt_secret_key=SECRET,
        marketplace_embedding_model=model,
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=120) as client:
        yield client, running.app.state.marketplace.market


def vectors(client: httpx2.Client, inputs: list[Any]) -> Any:
    answer = client.post("/v1/embeddings", json={"model": "seeing", "input": inputs})
    assert answer.status_code == 200, answer.text
    return numpy.array([one["embedding"] for one in answer.json()["data"]])


def test_products_are_sorted_by_how_near_their_words_are_to_the_picture(client: httpx2.Client) -> None:
    listed = {one["name"]: one["id"] for one in client.get("/api/products?available_only=false").json()}
    made = uploaded(client, listed[NAMES[0]], photo(1, (96, 64)))
    webp = base64.b64encode(client.get(made["urls"]["medium"]).content).decode()
    [seen] = vectors(client, [{"image": f"data:image/webp;base64,{webp}"}])
    texts = vectors(client, [f"{name}. lain" for name in NAMES])
    order = [NAMES[place] for place in numpy.argsort(-(texts @ seen), kind="stable")]
    path = "/api/products/similar"
    for image in (made["id"], made["urls"]["large"]):
        found = client.get(path, params={"image": image}).json()
        assert [one["name"] for one in found] == order  # and not what is sold out
    assert [one["name"] for one in client.get(path, params={"image": made["id"], "limit": 2}).json()] == order[:2]
    near = client.get(path, params={"image": made["id"], "user_lat": -6.2, "user_lon": 106.8}).json()
    assert near[0]["distance_km"] is not None and ids([one["picture"] for one in near if one["picture"]]) == [
        made["id"]
    ]


@pytest.mark.parametrize(
    ("image", "status"),
    [
        ("0" * 64, 404),
        ("http://127.0.0.1/a.jpg", 400),
        ("file:///etc/passwd", 400),
        ("data:image/png;base64,AAAA", 400),
        ("", 422),
    ],
)
def test_what_is_no_picture_that_may_be_seen_is_refused(client: httpx2.Client, image: str, status: int) -> None:
    assert client.get("/api/products/similar", params={"image": image}).status_code == status


@pytest.mark.parametrize("model", ["blind", None])
def test_without_a_model_that_sees_the_answer_is_a_501_that_names_the_setting(
    catalogue: Path, model: str | None
) -> None:
    with market_with(catalogue, model) as (client, _):
        answer = client.get("/api/products/similar", params={"image": "0" * 64})
        assert answer.status_code == 501 and "MARKETPLACE_EMBEDDING_MODEL" in answer.json()["detail"]
