"""With an embedding model, searches that few products match also find goods that are near in meaning: over HTTP, with
the models of this repository.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.databases import new_sqlite
from tests.marketplace.market_server import MarketServer, market_server, new_product
from tests.serving import REPOSITORY, settings_with
from tis.marketplace.search.meaning.text_models import product_text
from tis.marketplace.search.product_rows import load_products
from tis.marketplace.search.sql import run

pytestmark = pytest.mark.model

SECRET = "a secret of the tests, long enough to be taken"
WISH = "sesuatu untuk menghangatkan kopi"
OTHER_WISH = "sesuatu untuk merapikan kemeja kusut"
WARMER = {
    "name": "Mug Warmer Merapi",
    "description": "Alas listrik 15 watt untuk gelas di meja",
    "category": "accessories",
    "price": 120_000,
    "tags": "",
}
GOODS: list[dict[str, Any]] = [
    {"name": "Kopi Gayo 250 gram", "description": "Biji sangrai", "category": "coffee", "price": 70_000, "tags": ""},
    {"name": "Kopi Toraja 250 gram", "description": "Bubuk halus", "category": "coffee", "price": 75_000, "tags": ""},
    {"name": "Selimut Bulu Tebal", "description": "Ukuran 180 x 200", "category": "home", "price": 90_000, "tags": ""},
    {"name": "Senter LED", "description": "Baterai isi ulang", "category": "tools", "price": 50_000, "tags": ""},
    {"name": "Obeng Set 32", "description": "Baja krom", "category": "tools", "price": 60_000, "tags": ""},
    {"name": "Payung Lipat", "description": "Rangka baja", "category": "home", "price": 45_000, "tags": ""},
]


def settings(folder: Path, **values: Any) -> Any:
    return settings_with(
        database_url=new_sqlite(folder),
        jwt_secret_key=SECRET,
        marketplace_auth="open",
        models="demo-embedding,demo-reranker",
        **values,
    )


@contextmanager
def shop_on(folder: Path, **values: Any) -> Iterator["Shopping"]:
    with market_server(settings(folder, **values)) as server, server.as_("open") as client:
        yield Shopping(server, client)


class Shopping:
    def __init__(self, server: MarketServer, client: httpx2.Client) -> None:
        self.server, self.client = server, client
        self.shop = server.supplier()
        self.ids = [self.add(**one) for one in GOODS]

    def add(self, **values: Any) -> int:
        return int(new_product(self.client, self.shop, **values)["id"])

    def search(self, text: str = WISH, **parameters: Any) -> dict[str, Any]:
        answer = self.client.get("/api/products/search", params={"q": text, "envelope": 1, **parameters})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def names(self, text: str = WISH, **parameters: Any) -> list[str]:
        return [one["name"] for one in self.search(text, **parameters)["items"]]

    def ids_of(self, text: str = WISH) -> list[int]:
        return [one["id"] for one in self.search(text)["items"]]

    def until(self, fact: Callable[[], object]) -> None:
        ends = time.monotonic() + 60
        while not fact():
            assert time.monotonic() < ends, "products got no vectors in time"
            time.sleep(0.05)

    def has_vectors(self) -> bool:
        """Of all products, of the words that they have now, in memory."""
        sql = (
            "SELECT count(*) FROM product_search p LEFT JOIN product_vectors v"
            " ON v.product_id = p.product_id AND v.words_digest = p.words_digest WHERE v.product_id IS NULL"
        )
        with self.server.market.reading() as session:
            [(missing,)] = run(session, sql)
            [(number,)] = run(session, "SELECT count(*) FROM product_vectors")
        meaning = self.server.market.meaning
        return bool(not missing and meaning and meaning.matrix.num_vectors >= number)


@pytest.fixture(scope="module")
def shopping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shopping]:
    with shop_on(tmp_path_factory.mktemp("meaning"), marketplace_embedding_model="demo-embedding") as shopping:
        shopping.add(**WARMER)
        shopping.until(shopping.has_vectors)
        yield shopping


def test_a_wish_finds_goods_that_do_not_say_its_words(shopping: Shopping) -> None:
    found = shopping.search()
    names = [one["name"] for one in found["items"]]
    assert WARMER["name"] in names[:3]
    [warmer] = [one["id"] for one in found["items"] if one["name"] == WARMER["name"]]
    assert warmer in found["by_meaning"] and found["total"] == len(names)
    coffee = {one["id"] for one in found["items"] if "Kopi" in one["name"]}
    assert coffee and coffee.isdisjoint(found["by_meaning"])  # these say a word
    plain = shopping.client.get("/api/products/search", params={"q": WISH})
    assert plain.headers["x-by-meaning"] == ",".join(map(str, found["by_meaning"]))


def test_without_the_setting_nothing_is_found_by_meaning(tmp_path: Path) -> None:
    with shop_on(tmp_path) as shopping:
        shopping.add(**WARMER)
        found = shopping.search()
        assert WARMER["name"] not in [one["name"] for one in found["items"]] and found["by_meaning"] is None
        assert shopping.server.market.meaning is None
        with shopping.server.market.reading() as session:
            assert run(session, "SELECT count(*) FROM product_vectors")[0][0] == 0


def test_what_matches_all_words_comes_first(shopping: Shopping) -> None:
    assert shopping.names("kopi gayo")[0] == "Kopi Gayo 250 gram"
    assert shopping.search("kopi gayo 250 gram")["items"][0]["name"] == "Kopi Gayo 250 gram"


def test_what_means_nothing_finds_nothing(shopping: Shopping) -> None:
    assert shopping.names("qwxzv") == [] and shopping.search("!!!")["items"] == []


@pytest.mark.parametrize(
    "filters",
    [
        {"max_price": 100_000},
        {"category": "coffee"},
        {"city": "Bandung"},
        {"exclude": "warmer"},
        {"condition": "used"},
    ],
)
def test_filters_hold_for_what_is_near_in_meaning(shopping: Shopping, filters: dict[str, Any]) -> None:
    assert WARMER["name"] in shopping.names(min_price=1000)
    assert WARMER["name"] not in shopping.names(**filters)


def test_a_price_in_the_sentence_is_a_filter(shopping: Shopping) -> None:
    assert WARMER["name"] in shopping.names(f"{WISH} di bawah 150 ribu")
    assert WARMER["name"] not in shopping.names(f"{WISH} di bawah 100 ribu")


def test_pages_hold_together(shopping: Shopping) -> None:
    whole = shopping.names()
    paged, cursor = list[str](), None
    while True:
        page = shopping.search(limit=1, **({"cursor": cursor} if cursor else {}))
        paged += [one["name"] for one in page["items"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert paged == whole and len(set(whole)) == len(whole)
    assert [name for skip in range(len(whole)) for name in shopping.names(limit=1, skip=skip)] == whole


def test_an_edited_product_gets_a_new_vector_and_a_deleted_one_is_gone(tmp_path: Path) -> None:
    with shop_on(tmp_path, marketplace_embedding_model="demo-embedding") as shopping:
        warmer = shopping.add(**WARMER)
        shopping.until(shopping.has_vectors)
        change = {"name": "Setrika Uap Merapi", "description": "1200 watt"}
        assert shopping.client.put(f"/api/products/{warmer}", json=change).status_code == 200
        assert warmer not in shopping.ids_of()  # at once: its old vector counts no more
        shopping.until(lambda: warmer in shopping.ids_of(OTHER_WISH))
        assert shopping.client.delete(f"/api/products/{warmer}").status_code in (200, 204)
        assert warmer not in shopping.ids_of(OTHER_WISH)
        with shopping.server.market.reading() as session:
            assert run(session, f"SELECT count(*) FROM product_vectors WHERE product_id = {warmer}")[0][0] == 0


def test_a_model_that_fails_leaves_the_search_by_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "modules.json").write_text("[]")
    catalogue = {"echo": {"repo": "echo"}, "broken": {"repo": str(broken), "task": "embedding"}}
    (tmp_path / "models.yaml").write_text(yaml.safe_dump({"models": catalogue}))
    values = settings_with(
        database_url=new_sqlite(tmp_path),
        jwt_secret_key=SECRET,
        models="broken",
        model_config_path=str(tmp_path / "models.yaml"),
        marketplace_embedding_model="broken",
    )
    with market_server(values) as server, server.as_("open") as client:
        shopping = Shopping(server, client)
        assert shopping.names("kopi gayo")[0] == "Kopi Gayo 250 gram"
        shopping.until(lambda: "products get no vectors for now" in caplog.text)
        assert caplog.text.count("products get no vectors for now") == 1


def test_a_reranker_sorts_what_is_fused(tmp_path: Path) -> None:
    models = {"marketplace_embedding_model": "demo-embedding", "marketplace_rerank_model": "demo-reranker"}
    with shop_on(tmp_path, **models) as shopping:
        shopping.add(**WARMER)
        shopping.until(shopping.has_vectors)
        shopping.until(lambda: WARMER["name"] in shopping.names())  # the reranker loads at the first search
        with shopping.server.market.reading() as session:
            texts = {one.id: product_text(one) for one in load_products(session, shopping.ids_of())}
        body = {"model": "demo-reranker", "query": WISH, "documents": list(texts.values())}
        scored = shopping.client.post("/v1/rerank", json=body).json()["results"]
        assert shopping.ids_of() == [list(texts)[one["index"]] for one in scored]


def test_a_model_that_is_not_served_ends_the_start(tmp_path: Path) -> None:
    from tis.app import create_app
    from tis.engine.models.catalogue import CatalogueError

    assert (REPOSITORY / "models" / "demo-embedding").is_dir()
    with pytest.raises(CatalogueError, match="MARKETPLACE_EMBEDDING_MODEL names 'other'"):
        create_app(settings(tmp_path, marketplace_embedding_model="other"))


def test_a_preview_of_a_synonym_finds_by_meaning_as_the_search_does(shopping: Shopping) -> None:
    synonym = {"term": "menghangatkan", "means": "selimut"}
    with shopping.server.as_(f"admin:{shopping.server.user('Ada Admin', role='admin')}") as admin:
        change = {"action": "put_synonym", **synonym}
        preview = admin.post("/api/admin/search-preview", json={"change": change, "queries": [WISH]})
        [shown] = preview.json()["queries"]
        before = shopping.search(limit=10)
        assert before["by_meaning"] and shown["before"]["product_ids"] == [one["id"] for one in before["items"]]
        assert admin.post("/api/synonyms", json=synonym).is_success
        after = shopping.search(limit=10)
        assert admin.delete("/api/synonyms/menghangatkan").is_success
    assert after["by_meaning"] and shown["after"]["product_ids"] == [one["id"] for one in after["items"]]
    assert shown["before"] != shown["after"]
