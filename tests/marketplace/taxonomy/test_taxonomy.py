"""Categories and synonyms: the initial set, and changes by admins."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.accounts import all_at_once
from tests.marketplace.market_server import MarketServer, new_product


def categories(client: httpx2.Client) -> dict[str, dict[str, Any]]:
    return {one["slug"]: one for one in client.get("/api/categories").json()}


def test_the_first_categories_have_names_in_two_languages(stranger: httpx2.Client) -> None:
    found = categories(stranger)
    assert len(found) >= 29
    assert found["refrigerator"].items() >= {"name_id": "Kulkas", "name_en": "Refrigerator", "parent": None}.items()


def test_the_first_synonyms_lead_to_words_of_the_catalogue(admin: httpx2.Client) -> None:
    found = {one["term"]: one for one in admin.get("/api/synonyms").json()}
    for term, category in [("hp", "smartphone"), ("notebook", "laptop"), ("kulkas", "refrigerator"), ("tas", "bag")]:
        assert found[term]["category"] == category
    assert found["mesin cuci"] == {
        "term": "mesin cuci",
        "means": "washing machine",
        "category": "washing-machine",
        "is_broader": False,
    }


def test_categories_count_what_buyers_can_find(server: MarketServer, anybody: httpx2.Client) -> None:
    before = categories(anybody)["cement"]["product_count"]
    open_shop, closed = server.supplier(), server.supplier(status="suspended")
    new_product(anybody, open_shop, category="Cement")
    gone = new_product(anybody, open_shop, category="cement")
    new_product(anybody, closed, category="cement")
    new_product(anybody, open_shop, category="cement", stock_quantity=0)
    anybody.delete(f"/api/products/{gone['id']}")
    assert categories(anybody)["cement"]["product_count"] == before + 1


def found_with_filter(client: httpx2.Client, slug: str) -> int:
    return int(client.get("/api/products", params={"category": slug, "limit": 1}).headers["X-Total-Count"])


def test_counts_are_those_of_the_filter_with_subcategories_and_other_names(
    server: MarketServer, anybody: httpx2.Client, admin: httpx2.Client
) -> None:
    for slug, name, parent in (("boats", "Perahu", None), ("canoes", "Kano", "boats"), ("kayaks", "Kayak", "canoes")):
        form = {"slug": slug, "name_id": name, "name_en": slug.title(), "parent": parent}
        assert admin.post("/api/categories", json=form).is_success
    shop = server.supplier()
    for category in ("boats", "Perahu", "KANO", "kayaks", "Kayak", "kayaks"):
        new_product(anybody, shop, category=category)
    found = categories(anybody)
    assert [found[slug]["product_count"] for slug in ("boats", "canoes", "kayaks")] == [6, 4, 3]
    assert {slug: one["product_count"] for slug, one in found.items()} == {
        slug: found_with_filter(anybody, slug) for slug in found
    }
    rafts = {"slug": "rafts", "name_id": "Kayak", "name_en": "Rafts"}  # a name of two categories
    assert admin.post("/api/categories", json=rafts).json()["product_count"] == 1 == found_with_filter(anybody, "rafts")


def test_an_admin_adds_and_deletes_categories(admin: httpx2.Client, stranger: httpx2.Client) -> None:
    fishing = {"slug": "fishing", "name_id": "Memancing", "name_en": "Fishing"}
    rods = {"slug": "fishing-rods", "name_id": "Joran", "name_en": "Rods", "parent": "fishing"}
    assert admin.post("/api/categories", json=fishing).json() == {**fishing, "parent": None, "product_count": 0}
    assert admin.post("/api/categories", json=rods).status_code == 200
    assert admin.post("/api/synonyms", json={"term": "joran", "means": "rod", "category": "fishing-rods"}).is_success
    again = admin.post("/api/categories", json=fishing)
    assert (again.status_code, again.json()) == (409, {"detail": "Category already registered"})

    refused = admin.delete("/api/categories/fishing")
    assert (refused.status_code, refused.json()) == (
        409,
        {"detail": "This category has subcategories: delete them first."},
    )
    assert admin.delete("/api/categories/fishing-rods").json() == rods
    assert admin.delete("/api/categories/fishing").status_code == 200
    assert admin.delete("/api/categories/fishing").status_code == 404
    assert "fishing" not in categories(stranger)
    assert "joran" not in {one["term"] for one in admin.get("/api/synonyms").json()}


def test_an_admin_renames_and_moves_a_category_and_its_products_stay_in_it(
    server: MarketServer, anybody: httpx2.Client, admin: httpx2.Client
) -> None:
    garden = {"slug": "garden", "name_id": "Kebun", "name_en": "Garden"}
    hoses = {"slug": "hoses", "name_id": "Slang", "name_en": "Hoses"}
    for form in (garden, hoses):
        assert admin.post("/api/categories", json=form).is_success
    new_product(anybody, server.supplier(), category="slang")
    path = "/api/categories/hoses"
    changed = {"slug": "hoses", "name_id": "Selang", "name_en": "Hoses", "parent": "garden", "product_count": 1}
    assert admin.put(path, json={"name_id": "Selang", "parent": "garden"}).json() == changed
    assert categories(anybody)["hoses"] == changed and categories(anybody)["garden"]["product_count"] == 1
    assert found_with_filter(anybody, "selang") == found_with_filter(anybody, "garden") == 1
    assert admin.put(path, json={}).json() == changed
    [noted] = admin.get("/api/audit", params={"entity": "category", "entity_id": "hoses"}).json()[:1]
    assert noted["changes"] == {"name_id": ["Slang", "Selang"], "parent": [None, "garden"]}
    assert admin.put(path, json={"parent": None}).json()["parent"] is None
    assert categories(anybody)["garden"]["product_count"] == 0


def test_a_category_is_never_below_itself(admin: httpx2.Client) -> None:
    for slug, parent in (("ring-a", None), ("ring-b", "ring-a"), ("ring-c", "ring-b")):
        form = {"slug": slug, "name_id": slug, "name_en": slug, "parent": parent}
        assert admin.post("/api/categories", json=form).is_success
    for parent in ("ring-a", "ring-b", "ring-c"):
        refused = admin.put("/api/categories/ring-a", json={"parent": parent})
        assert (refused.status_code, refused.json()) == (
            409,
            {"detail": "A category cannot be a subcategory of itself."},
        )


def test_two_moves_at_once_make_no_ring(admin: httpx2.Client) -> None:
    for slug in ("left", "right"):
        assert admin.post("/api/categories", json={"slug": slug, "name_id": slug, "name_en": slug}).is_success
    headers = {"authorization": admin.headers["authorization"]}
    answers = all_at_once(
        admin,
        lambda client: client.put("/api/categories/left", json={"parent": "right"}, headers=headers),
        lambda client: client.put("/api/categories/right", json={"parent": "left"}, headers=headers),
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]


@pytest.mark.parametrize(
    ("slug", "body", "status"),
    [
        ("nowhere", {"name_en": "x"}, 404),
        ("bag", {"parent": "nowhere"}, 404),
        ("bag", {"name_en": None}, 422),
        ("bag", {"name_en": ""}, 422),
        ("bag", {"slug": "bags"}, 422),
        ("bag", [], 422),
        ("Bag", {"name_en": "x"}, 422),
    ],
)
def test_invalid_changes_of_categories_are_refused(admin: httpx2.Client, slug: str, body: Any, status: int) -> None:
    assert admin.put(f"/api/categories/{slug}", json=body).status_code == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"slug": "Fishing"}, 422),
        ({"slug": "-fish"}, 422),
        ({"slug": "fish\n"}, 422),
        ({"slug": "x" * 101}, 422),
        ({"name_id": ""}, 422),
        ({"name_en": None}, 422),
        ({"parent": "nowhere"}, 404),
    ],
)
def test_invalid_categories_are_refused(admin: httpx2.Client, body: dict[str, Any], status: int) -> None:
    form = {"slug": "fish", "name_id": "Ikan", "name_en": "Fish", **body}
    assert admin.post("/api/categories", json=form).status_code == status
    assert "fish" not in categories(admin)


def test_synonyms_ignore_case_and_spacing(admin: httpx2.Client) -> None:
    added = admin.post("/api/synonyms", json={"term": "  Hand\u00a0PHONES ", "means": "smartphone"})
    assert added.json() == {"term": "hand phones", "means": "smartphone", "category": None, "is_broader": False}
    changed = admin.post("/api/synonyms", json={"term": "hand phones", "means": "phone", "category": "smartphone"})
    assert changed.json() in admin.get("/api/synonyms").json()
    assert admin.delete("/api/synonyms/Hand%20Phones").json() == changed.json()
    assert admin.delete("/api/synonyms/hand%20phones").status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [({"term": ""}, 422), ({"means": ""}, 422), ({"term": "x" * 101}, 422), ({"category": "nowhere"}, 404)],
)
def test_invalid_synonyms_are_refused(admin: httpx2.Client, body: dict[str, Any], status: int) -> None:
    answer = admin.post("/api/synonyms", json={"term": "ikan", "means": "fish", **body})
    assert answer.status_code == status


def test_the_longest_names_are_accepted_and_logged(admin: httpx2.Client) -> None:
    name = "x" * 100
    assert admin.post("/api/categories", json={"slug": name, "name_id": "Ikan", "name_en": "Fish"}).status_code == 200
    assert admin.post("/api/synonyms", json={"term": name, "means": "fish"}).status_code == 200
    noted = admin.get("/api/audit", params={"entity_id": name}).json()
    assert {entry["entity"] for entry in noted} == {"category", "synonym"}


def test_only_admins_change_categories_and_synonyms(
    server: MarketServer, anybody: httpx2.Client, stranger: httpx2.Client
) -> None:
    with server.as_(f"user:{server.user()}") as user:
        for client, status in [(stranger, 401), (anybody, 401), (user, 403)]:
            for method, path in [
                ("POST", "/api/categories"),
                ("PUT", "/api/categories/bag"),
                ("DELETE", "/api/categories/bag"),
                ("GET", "/api/synonyms"),
                ("POST", "/api/synonyms"),
                ("DELETE", "/api/synonyms/tas"),
                ("GET", "/api/audit"),
            ]:
                synonym, category = {"term": "x", "means": "x"}, {"slug": "x", "name_id": "x", "name_en": "x"}
                bodies = {"POST": synonym if path == "/api/synonyms" else category, "PUT": {"name_en": "x"}}
                assert client.request(method, path, json=bodies.get(method)).status_code == status, (method, path)


def test_there_is_a_bound_for_both(admin: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tis.marketplace.taxonomy.service._MAX_CATEGORIES", 1)
    monkeypatch.setattr("tis.marketplace.taxonomy.service._MAX_SYNONYMS", 1)
    category = {"slug": "one-more", "name_id": "Satu", "name_en": "One"}
    refused = admin.post("/api/categories", json=category)
    assert (refused.status_code, refused.json()) == (409, {"detail": "There may be at most 1 categories."})
    assert admin.post("/api/synonyms", json={"term": "one more", "means": "one"}).status_code == 409
    known = admin.get("/api/synonyms").json()[0]
    assert admin.post("/api/synonyms", json=known).is_success  # it is replaced
