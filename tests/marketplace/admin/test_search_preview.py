"""An admin sees what a change of categories or synonyms does to searches, before making it."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.market_server import MarketServer, new_product

pytestmark = pytest.mark.long

PREVIEW = "/api/admin/search-preview"
GOODS = [
    ("Mini bar 46 liter", "refrigerator"),
    ("Kulkas dua pintu", "refrigerator"),
    ("Kulkas satu pintu", "Kulkas"),
    ("Panci presto", "kilbat"),
    ("Wajan presto antik", "kilbat"),
    ("Perahu karet", "perahu"),
    ("Kano plastik", "kano"),
    ("Sampan kayu", "sampan"),
]
CATEGORIES: list[dict[str, Any]] = [
    {"slug": "boats", "name_id": "Perahu", "name_en": "Boats"},
    {"slug": "canoes", "name_id": "Kano", "name_en": "Canoes"},
    {"slug": "punts", "name_id": "Sampan", "name_en": "Punts", "parent": "boats"},
    {"slug": "water-craft", "name_id": "Kendaraan air", "name_en": "Water craft"},
]
QUERIES = ["kedinginan", "mini bar", "kulkas", "perahu", "boats", "kano", "kayaks", "punts", "quilbats", "presto"]


@pytest.fixture(scope="module", autouse=True)
def goods(server: MarketServer, anybody: httpx2.Client, admin: httpx2.Client) -> None:
    shop = server.supplier()
    for name, category in GOODS:
        new_product(anybody, shop, name=name, category=category, description=name, tags=None)
    for form in CATEGORIES:
        assert admin.post("/api/categories", json=form).is_success


def make(admin: httpx2.Client, action: str, **fields: Any) -> None:
    """By the route that the action stands for."""
    sent = {
        "put_synonym": lambda: admin.post("/api/synonyms", json=fields),
        "delete_synonym": lambda: admin.delete(f"/api/synonyms/{fields['term']}"),
        "create_category": lambda: admin.post("/api/categories", json=fields),
        "change_category": lambda: admin.put(f"/api/categories/{fields.pop('slug')}", json=fields),
        "delete_category": lambda: admin.delete(f"/api/categories/{fields['slug']}"),
    }
    assert sent[action]().is_success


def search(client: httpx2.Client, text: str) -> dict[str, Any]:
    found = client.get("/api/products/search", params={"q": text, "limit": 10})
    is_exact = "X-Total-Count-Is" not in found.headers
    total = int(found.headers["X-Total-Count"])
    return {"product_ids": [one["id"] for one in found.json()], "total": total, "total_is_exact": is_exact}


def state(admin: httpx2.Client) -> list[Any]:
    """All that a change of words writes."""
    return [admin.get(path).json() for path in ("/api/synonyms", "/api/categories", "/api/audit?limit=100")]


# In this order, each after the ones before.
CHANGES: list[dict[str, Any]] = [
    {"action": "put_synonym", "term": "kedinginan", "means": "mini bar", "category": "refrigerator"},
    {"action": "put_synonym", "term": "kedinginan", "means": "presto, wajan"},
    {"action": "delete_synonym", "term": "kedinginan"},
    {"action": "create_category", "slug": "quilbats", "name_id": "Kilbat", "name_en": "Quilbats"},
    {"action": "change_category", "slug": "boats", "parent": "water-craft"},
    {"action": "change_category", "slug": "canoes", "name_en": "Kayaks", "parent": "boats"},
    {"action": "delete_category", "slug": "punts"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change['action']}-{len(change)}")
def test_a_preview_says_what_searches_find_before_and_after_the_change_and_changes_nothing(
    admin: httpx2.Client, stranger: httpx2.Client, change: dict[str, Any]
) -> None:
    before, written = {text: search(stranger, text) for text in QUERIES}, state(admin)
    previewed = admin.post(PREVIEW, json={"change": change, "queries": QUERIES})
    assert previewed.status_code == 200, previewed.text
    shown = {one["query"]: one for one in previewed.json()["queries"]}
    assert list(shown) == QUERIES
    assert {text: one["before"] for text, one in shown.items()} == before
    assert state(admin) == written
    assert {text: search(stranger, text) for text in QUERIES} == before
    make(admin, **change)
    assert {text: one["after"] for text, one in shown.items()} == {text: search(stranger, text) for text in QUERIES}
    is_move = change.keys() == {"action", "slug", "parent"}  # filters by category see it, words do not
    assert any(one["before"] != one["after"] for one in shown.values()) != is_move


def test_a_preview_names_what_came_went_and_moved(admin: httpx2.Client) -> None:
    change = {"action": "put_synonym", "term": "antik", "means": "panci presto"}
    [shown] = admin.post(PREVIEW, json={"change": change, "queries": ["antik"]}).json()["queries"]
    assert shown["came"] == [one for one in shown["after"]["product_ids"] if one not in shown["before"]["product_ids"]]
    assert shown["came"] and not shown["went"]
    answer = admin.post(PREVIEW, json={"change": {"action": "delete_synonym", "term": "kulkas"}}).json()
    ids = {one for query in answer["queries"] for side in ("before", "after") for one in query[side]["product_ids"]}
    assert set(map(int, answer["names"])) == ids
    for query in answer["queries"]:
        lists = query["before"]["product_ids"], query["after"]["product_ids"]
        moved = [(one["product_id"], one["before"], one["after"]) for one in query["moved"]]
        both = [one for one in lists[0] if one in lists[1]]
        places = [(one, lists[0].index(one) + 1, lists[1].index(one) + 1) for one in both]
        assert moved == [(one, old, new) for one, old, new in places if old != new]
        assert query["went"] == [one for one in lists[0] if one not in lists[1]]


def test_without_queries_the_words_of_the_change_come_first_and_common_nouns_of_the_catalogue_follow(
    admin: httpx2.Client,
) -> None:
    change = {"action": "put_synonym", "term": "pendingin minuman", "means": "mini bar, kulkas"}
    asked = [one["query"] for one in admin.post(PREVIEW, json={"change": change}).json()["queries"]]
    assert asked[:4] == ["pendingin minuman", "mini bar", "kulkas", "kano"]
    assert len(asked) == len(set(asked)) <= 10 and {"panci", "perahu"} <= set(asked)


def test_what_cannot_be_changed_cannot_be_previewed(admin: httpx2.Client, stranger: httpx2.Client) -> None:
    gone = {"action": "delete_synonym", "term": "no such word"}
    refusals: list[tuple[dict[str, Any], int]] = [
        ({"change": gone}, 404),
        ({"change": {"action": "create_category", "slug": "boats", "name_id": "a", "name_en": "b"}}, 409),
        ({"change": {"action": "change_category", "slug": "boats", "parent": "boats"}}, 409),
        ({"change": {**gone, "means": "laptop"}}, 422),
        ({"change": {"action": "drop_table"}}, 422),
        ({"change": gone, "queries": []}, 422),
        ({"change": gone, "queries": ["laptop"] * 11}, 422),
        ({"change": gone, "queries": [" "]}, 422),
    ]
    assert [admin.post(PREVIEW, json=body).status_code for body, _ in refusals] == [status for _, status in refusals]
    assert stranger.post(PREVIEW, json={"change": gone}).status_code == 401
