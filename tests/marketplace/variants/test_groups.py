"""A shop makes one product of several SKUs: sizes and colours, each with stock and price of its own."""

from typing import Any

import httpx2
import pytest

from tests.marketplace.shop import Shop
from tis.marketplace.kit.fields import MAX_ATTRIBUTES
from tis.marketplace.market import Market
from tis.marketplace.tables import Product, ProductGroup

AXES = ["ukuran", "warna"]
CHOICES = [("41", "merah"), ("42", "merah"), ("42", "hitam")]


@pytest.fixture
def shoes(shop: Shop) -> list[int]:
    """Three products of one shop, which are found by their words."""
    ids = [
        shop.product(5, name="Sepatu Rinjani", price=price, category="shoes", category_key="shoes", sku=f"RJ-{price}")
        for price in (399_000, 410_000, 429_000)
    ]
    with shop.market.writing() as session:
        shop.market.search.refresh(session, ids)
    return ids


def group_form(ids: list[int], **more: Any) -> dict[str, Any]:
    variants = [
        {"product_id": one, "values": dict(zip(AXES, values, strict=True))}
        for one, values in zip(ids, CHOICES, strict=False)
    ]
    return {"name": "Sepatu Rinjani", "axes": AXES, "variants": variants, **more}


def made_group(client: httpx2.Client, shop: Shop, ids: list[int], **more: Any) -> dict[str, Any]:
    answer = client.post(f"/api/suppliers/{shop.id}/product-groups", json=group_form(ids, **more))
    assert answer.status_code == 200, answer.text
    group: dict[str, Any] = answer.json()
    return group


def test_a_group_is_made_of_products_of_a_shop_and_each_shows_what_else_there_is(
    laptop: httpx2.Client, shop: Shop, shoes: list[int]
) -> None:
    group = made_group(laptop, shop, shoes)
    assert (group["axes"], group["version"], group["rating"]) == (AXES, 1, None)
    assert group["options"] == {"ukuran": ["41", "42"], "warna": ["merah", "hitam"]}
    assert [(one["id"], one["values"], one["price"], one["available_quantity"]) for one in group["variants"]] == [
        (shoes[0], {"ukuran": "41", "warna": "merah"}, 399_000, 5),
        (shoes[1], {"ukuran": "42", "warna": "merah"}, 410_000, 5),
        (shoes[2], {"ukuran": "42", "warna": "hitam"}, 429_000, 5),
    ]
    detail = laptop.get(f"/api/products/{shoes[1]}").json()
    assert detail["group"] == group == laptop.get(f"/api/product-groups/{group['id']}").json()
    assert (detail["group_id"], detail["attributes"], detail["version"]) == (
        group["id"],
        {"ukuran": "42", "warna": "merah"},
        2,
    )
    assert laptop.get(f"/api/suppliers/{shop.id}/product-groups").json() == [group]


def test_a_list_shows_one_product_of_a_group_and_says_from_what_price(
    laptop: httpx2.Client, shop: Shop, shoes: list[int]
) -> None:
    alone = shop.product(name="Sepatu Merapi", category="shoes", category_key="shoes")
    with shop.market.writing() as session:
        shop.market.search.refresh(session, [alone])
    group = made_group(laptop, shop, shoes)
    for path in ("/api/products?", "/api/products/search?q=sepatu&"):
        answer = laptop.get(f"{path}supplier_id={shop.id}")
        assert answer.headers["x-total-count"] == "2"
        of_group = next(one for one in answer.json() if one["group_id"] == group["id"])
        assert of_group["variants"] == {
            "group_id": group["id"],
            "name": "Sepatu Rinjani",
            "count": 3,
            "price_from": 399_000,
            "price_to": 429_000,
            "options": {"ukuran": ["41", "42"], "warna": ["merah", "hitam"]},
        }
        everything = laptop.get(f"{path}supplier_id={shop.id}&variants=all")
        assert {one["id"] for one in everything.json()} == {*shoes, alone}
        assert everything.headers["x-total-count"] == "4"
    first = laptop.get(f"/api/products/search?q=sepatu+42+hitam&supplier_id={shop.id}").json()[0]
    assert first["id"] == shoes[2]
    assert laptop.get("/api/products?variants=some").status_code == 422


def test_two_variants_never_have_the_same_values(laptop: httpx2.Client, shop: Shop, shoes: list[int]) -> None:
    form = group_form(shoes)
    form["variants"][1]["values"] = {"ukuran": 41, "warna": "MERAH"}
    answer = laptop.post(f"/api/suppliers/{shop.id}/product-groups", json=form)
    assert (answer.status_code, answer.json()["detail"]) == (409, "Another variant of the group has these values.")
    made_group(laptop, shop, shoes)
    same = {"attributes": {"ukuran": "41", "warna": "merah"}}
    assert laptop.put(f"/api/products/{shoes[1]}", json=same).status_code == 409
    lacking = laptop.put(f"/api/products/{shoes[1]}", json={"attributes": {"ukuran": "43"}})
    assert (lacking.status_code, lacking.json()["detail"]) == (409, "A variant of this group needs a value of `warna`.")
    assert laptop.put(f"/api/products/{shoes[1]}", json={"price": 1_000}).status_code == 200
    other = {"attributes": {"Ukuran": 43, "warna": "merah", "bahan": "kulit"}}
    assert laptop.put(f"/api/products/{shoes[1]}", json=other).status_code == 200
    assert laptop.get(f"/api/products/{shoes[0]}").json()["group"]["options"]["ukuran"] == ["41", "42", "43"]


@pytest.mark.parametrize(
    "change,status,detail",
    [
        ({"axes": []}, 422, None),
        ({"axes": ["a", "b", "c", "d"]}, 422, None),
        ({"axes": ["ukuran", "Ukuran"]}, 422, "two axes have the same name"),
        ({"axes": ["!!", "warna"]}, 422, "letters or digits"),
        ({"variants": []}, 422, None),
        ({"axes": ["ukuran"]}, 409, "`warna` is no axis of the group."),
        ({"axes": ["ukuran", "warna", "bahan"]}, 409, "A variant of this group needs a value of `bahan`."),
    ],
)
def test_a_group_has_one_to_three_axes_of_which_each_variant_has_a_value(
    laptop: httpx2.Client, shop: Shop, shoes: list[int], change: dict[str, Any], status: int, detail: str | None
) -> None:
    answer = laptop.post(f"/api/suppliers/{shop.id}/product-groups", json=group_form(shoes, **change))
    assert answer.status_code == status and (detail is None or detail in answer.text), answer.text
    assert laptop.get(f"/api/products/{shoes[0]}").json()["group_id"] is None


def test_a_product_is_in_one_group_and_of_one_shop(laptop: httpx2.Client, shop: Shop, shoes: list[int]) -> None:
    made_group(laptop, shop, shoes[:2])
    taken = laptop.post(f"/api/suppliers/{shop.id}/product-groups", json=group_form(shoes, name="Other"))
    assert taken.status_code == 409 and "remove it there first" in taken.text
    same_name = laptop.post(
        f"/api/suppliers/{shop.id}/product-groups", json=group_form(shoes[2:], name="sepatu RINJANI")
    )
    assert (same_name.status_code, same_name.json()["detail"]) == (409, "The shop has another group of this name.")
    foreign = shop.product(supplier_id=shop.supplier())
    answer = laptop.post(f"/api/suppliers/{shop.id}/product-groups", json=group_form([foreign], name="Other"))
    assert (answer.status_code, answer.json()["detail"]) == (404, f"Product {foreign} not found")


def test_variants_are_added_and_removed(laptop: httpx2.Client, shop: Shop, shoes: list[int]) -> None:
    group = made_group(laptop, shop, shoes[:2])
    path = f"/api/product-groups/{group['id']}/variants"
    new = {"product_id": shoes[2], "values": {"ukuran": 42, "warna": "hitam"}}
    for _ in range(2):  # the second is the first one again
        answer = laptop.post(path, json=new, headers={"Idempotency-Key": f"add {shoes[2]}"})
        assert answer.status_code == 200 and len(answer.json()["variants"]) == 3 and answer.headers["etag"] == '"2"'
    assert laptop.delete(f"{path}/{shoes[0]}").json() == {"detail": "Removed."}
    assert laptop.delete(f"{path}/{shoes[0]}").status_code == 404
    alone = laptop.get(f"/api/products/{shoes[0]}").json()
    assert (alone["group"], alone["group_id"], alone["attributes"]) == (None, None, {"ukuran": "41", "warna": "merah"})
    assert [one["id"] for one in laptop.get(f"/api/product-groups/{group['id']}").json()["variants"]] == shoes[1:]


def test_a_group_of_one_stays_and_one_of_none_is_gone(laptop: httpx2.Client, shop: Shop, shoes: list[int]) -> None:
    group = made_group(laptop, shop, shoes[:2])
    assert laptop.delete(f"/api/products/{shoes[0]}").status_code == 200
    assert [one["id"] for one in laptop.get(f"/api/product-groups/{group['id']}").json()["variants"]] == [shoes[1]]
    restored = laptop.post(f"/api/products/{shoes[0]}/restore").json()
    assert restored["group_id"] is None  # alone; its values may have been given to another one
    assert laptop.delete(f"/api/products/{shoes[1]}").status_code == 200
    assert laptop.get(f"/api/product-groups/{group['id']}").status_code == 404
    made_group(laptop, shop, [shoes[0], shoes[2]])  # the name is free again


def test_axes_are_put_in_another_order_renamed_and_left_out(
    laptop: httpx2.Client, shop: Shop, shoes: list[int]
) -> None:
    group = made_group(laptop, shop, shoes)
    path = f"/api/product-groups/{group['id']}"
    change = {"axes": [{"name": "warna"}, {"name": "nomor", "was": "ukuran"}], "name": "Rinjani"}
    changed = laptop.put(path, json=change, headers={"If-Match": '"1"'}).json()
    assert (changed["axes"], changed["name"], changed["version"]) == (["warna", "nomor"], "Rinjani", 2)
    assert laptop.get(f"/api/products/{shoes[2]}").json()["attributes"] == {"nomor": "42", "warna": "hitam"}
    assert laptop.put(path, json=change, headers={"If-Match": '"1"'}).status_code == 412
    same = laptop.put(path, json={"axes": [{"name": "warna"}]})
    assert (same.status_code, same.json()["detail"]) == (409, "Another variant of the group has these values.")
    unknown = laptop.put(path, json={"axes": [{"name": "warna"}, {"name": "nomor"}, {"name": "bahan"}]})
    assert (unknown.status_code, unknown.json()["detail"]) == (409, "A variant of this group needs a value of `bahan`.")
    assert laptop.put(path, json={"axes": [{"name": "a", "was": "b"}]}).status_code == 409
    assert laptop.get(path).json() == changed
    words = laptop.get(f"/api/products?supplier_id={shop.id}&attr.nomor=42&variants=all").json()
    assert {one["id"] for one in words} == set(shoes[1:])


def test_a_dissolved_group_leaves_its_products_on_sale(laptop: httpx2.Client, shop: Shop, shoes: list[int]) -> None:
    group = made_group(laptop, shop, shoes)
    assert laptop.delete(f"/api/product-groups/{group['id']}").json() == {"detail": "Dissolved."}
    assert laptop.get(f"/api/product-groups/{group['id']}").status_code == 404
    assert laptop.delete(f"/api/product-groups/{group['id']}").status_code == 404
    answer = laptop.get(f"/api/products?supplier_id={shop.id}")
    assert {one["id"]: one["group_id"] for one in answer.json()} == dict.fromkeys(shoes)
    assert laptop.get(f"/api/suppliers/{shop.id}/product-groups").json() == []


def test_reviews_of_all_variants_make_the_rating_of_each(
    laptop: httpx2.Client, shop: Shop, shoes: list[int], open_market: Market
) -> None:
    def review(product: int, stars: int) -> int:
        headers = shop.auth_headers(f"user:{shop.user()}")
        answer = laptop.post(f"/api/products/{product}/reviews", json={"rating": stars}, headers=headers)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["id"])

    def ratings(least: float) -> dict[int, tuple[float, int]]:
        found = laptop.get(f"/api/products?supplier_id={shop.id}&variants=all&min_rating={least}&sort=rating").json()
        return {one["id"]: (one["rating"], one["rating_count"]) for one in found}

    review(shoes[0], 5)
    group = made_group(laptop, shop, shoes)
    assert ratings(5) == dict.fromkeys(shoes, (5.0, 1)) and group["rating"] == 5.0
    review(shoes[1], 2)
    assert ratings(3) == dict.fromkeys(shoes, (3.5, 2)) and ratings(3.6) == {}
    [shown] = laptop.get(f"/api/products?supplier_id={shop.id}").json()
    assert (shown["rating"], shown["rating_count"]) == (3.5, 2)
    assert laptop.get(f"/api/products/{shoes[2]}").json()["rating"] == 3.5
    reviews = f"/api/products/{shoes[0]}/reviews"
    assert [one["product_id"] for one in laptop.get(f"{reviews}?variants=all").json()] == [shoes[1], shoes[0]]
    assert [one["product_id"] for one in laptop.get(reviews).json()] == [shoes[0]]
    assert laptop.delete(f"/api/product-groups/{group['id']}/variants/{shoes[1]}").status_code == 200
    assert ratings(0) == {shoes[0]: (5.0, 1), shoes[1]: (2.0, 1), shoes[2]: (5.0, 1)}
    assert laptop.delete(f"/api/products/{shoes[0]}").status_code == 200
    assert ratings(0) == {shoes[1]: (2.0, 1)}
    with open_market.reading() as session:
        kept = session.get_one(ProductGroup, group["id"])
        assert (kept.rating_sum, kept.rating_count) == (0, 0)
        assert session.get_one(Product, shoes[0]).rating_sum == 5


def test_stock_is_that_of_each_variant(laptop: httpx2.Client, shop: Shop, shoes: list[int]) -> None:
    made_group(laptop, shop, shoes)
    held = laptop.post(f"/api/products/{shoes[0]}/reservations", json={"quantity": 5})
    assert held.status_code == 200, held.text
    more = laptop.post(f"/api/products/{shoes[0]}/reservations", json={"quantity": 1})
    assert more.status_code == 409
    [shown] = laptop.get(f"/api/products?supplier_id={shop.id}&sort=price_asc").json()
    assert shown["id"] == shoes[1] and shown["variants"]["count"] == 2  # what is left of it
    group = laptop.get(f"/api/products/{shoes[1]}").json()["group"]
    assert [one["available_quantity"] for one in group["variants"]] == [0, 5, 5]
    assert laptop.post(f"/api/reservations/{held.json()['id']}/commit").status_code == 200
    assert [shop.stock_columns(one) for one in shoes] == [(0, 0), (5, 0), (5, 0)]


def test_a_group_has_at_most_a_hundred_variants(laptop: httpx2.Client, shop: Shop, open_market: Market) -> None:
    first = shop.product()
    group = made_group(laptop, shop, [first], name="Many")
    with open_market.writing() as session:
        session.add_all(
            Product(
                supplier_id=shop.id,
                name="x",
                price=1,
                category="c",
                category_key="c",
                group_id=group["id"],
                variant_key=str(number),
            )  # fmt: skip
            for number in range(99)
        )
    new = {"product_id": shop.product(), "values": {"ukuran": "1", "warna": "putih"}}
    answer = laptop.post(f"/api/product-groups/{group['id']}/variants", json=new)
    assert (answer.status_code, answer.json()["detail"]) == (409, "A group has at most 100 variants.")


def test_groups_are_listed_in_pages_newest_first(laptop: httpx2.Client, shop: Shop) -> None:
    made = [made_group(laptop, shop, [shop.product()], name=f"Group {number}")["id"] for number in range(3)]
    first = laptop.get(f"/api/suppliers/{shop.id}/product-groups?limit=2")
    assert [one["id"] for one in first.json()] == made[:0:-1]
    rest = laptop.get(first.headers["link"].partition("<")[2].partition(">")[0])
    assert [one["id"] for one in rest.json()] == made[:1] and "link" not in rest.headers


def test_the_values_of_axes_are_no_way_around_the_limit_of_attributes(laptop: httpx2.Client, shop: Shop) -> None:
    attributes = {f"size {number}": "1" for number in range(MAX_ATTRIBUTES)}
    full = shop.product(name="Sepatu", attributes=attributes)
    form = group_form([], name="Lain", axes=["nomor"], variants=[{"product_id": full, "values": {"nomor": "41"}}])
    refused = laptop.post(f"/api/suppliers/{shop.id}/product-groups", json=form)
    assert (refused.status_code, refused.json()["detail"]) == (409, "A product has at most 50 attributes.")
    named = {**form, "axes": ["size 7"], "variants": [{"product_id": full, "values": {"size 7": "2"}}]}
    assert laptop.post(f"/api/suppliers/{shop.id}/product-groups", json=named).status_code == 200
