"""Places of a shop: its owners add, change and close them, everybody reads what is public of them."""

import httpx2
import pytest

from tests.marketplace.branches.places import NEW_BRANCH, SpreadShop, add_branch
from tests.marketplace.shop import Shop
from tis.marketplace.context import ServiceRules
from tis.marketplace.tables import Branch


@pytest.fixture
def till(internet: httpx2.Client, strict_shop: Shop) -> SpreadShop:
    return SpreadShop(internet, strict_shop)


def test_an_owner_adds_a_place_and_everybody_reads_it_without_its_exact_address(till: SpreadShop) -> None:
    path = f"/api/suppliers/{till.shop.id}/branches"
    hours = {"monday": [["09:00", "17:00"]]}
    body = {**NEW_BRANCH, "address": "Jl. Contoh 8", "latitude": -6.91234, "opening_hours": hours}
    made = till.client.post(path, json=body, headers=till.seller)
    assert made.status_code == 200 and made.headers["ETag"] == '"1"'
    assert (made.json()["address"], made.json()["latitude"], made.json()["time_zone"]) == (
        "Jl. Contoh 8",
        -6.91234,
        "WIB",
    )
    [seen] = till.client.get(path).json()
    assert (seen["name"], seen["address"], seen["latitude"], seen["opening_hours"]) == (
        "Toko Kemang",
        None,
        -6.912,
        hours,
    )
    till.change(seen["id"], shows_place=False)
    assert till.client.get(path).json()[0]["latitude"] is None


def test_a_retry_with_the_same_key_adds_one_place(till: SpreadShop) -> None:
    path, headers = f"/api/suppliers/{till.shop.id}/branches", {**till.seller, "Idempotency-Key": "branch-1"}
    first, again = (till.client.post(path, json=NEW_BRANCH, headers=headers).json()["id"] for _ in range(2))
    assert first == again and len(till.client.get(path).json()) == 1


def test_places_of_a_shop_have_a_bound(till: SpreadShop) -> None:
    for _ in range(ServiceRules().max_branches_per_supplier):
        add_branch(till.shop)
    path = f"/api/suppliers/{till.shop.id}/branches"
    refused = till.client.post(path, json=NEW_BRANCH, headers=till.seller)
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "A supplier has at most 20 places: change a closed one.",
    )


def test_a_place_with_units_is_not_closed_and_an_empty_one_is(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), till.shop.product(on_hand=0)
    till.correct(product, 2, branch)
    hold = till.hold(product).json()
    refused = till.change(branch, is_active=False)
    assert (refused.status_code, refused.json()) == (
        409,
        {
            "detail": "2 units of 1 products lie here, 1 of them reserved: move or sell them first.",
            "code": "branch_has_stock",
            "units": 2,
            "products": 1,
            "reserved": 1,
        },
    )
    till.end("release", hold)
    till.transfer(product, 2, branch, 0)
    assert till.change(branch, is_active=False).json()["is_active"] is False
    path = f"/api/suppliers/{till.shop.id}/branches"
    assert till.client.get(path).json() == [] and len(till.client.get(path, headers=till.seller).json()) == 1
    closed = till.transfer(product, 1, 0, branch).json()
    assert closed == {"detail": "Toko Kemang is closed.", "code": "branch_closed", "name": "Toko Kemang"}
    assert till.correct(product, 1, branch).status_code == 409


def test_a_place_is_emptied_of_deleted_goods_too_and_closed(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), till.shop.product(on_hand=0)
    till.correct(product, 2, branch)
    assert till.client.delete(f"/api/products/{product}", headers=till.seller).status_code == 200
    assert till.change(branch, is_active=False).status_code == 409
    assert till.transfer(product, 2, branch, 0).status_code == 200
    assert till.change(branch, is_active=False).status_code == 200


def test_what_was_changed_meanwhile_is_not_changed_again(till: SpreadShop) -> None:
    branch = add_branch(till.shop)
    assert till.change(branch, name="Toko Dua", version=1).json()["version"] == 2
    assert till.change(branch, name="Toko Tiga", version=1).status_code == 412


def test_a_place_of_another_shop_does_not_exist(till: SpreadShop) -> None:
    foreign = add_branch(till.shop, supplier_id=till.shop.supplier())
    product = till.shop.product()
    assert till.change(foreign, name="Mine").status_code == 404
    assert till.transfer(product, 1, 0, foreign).status_code == 404
    assert till.correct(product, 1, foreign).status_code == 404


def test_places_are_in_the_copy_of_a_shop_and_their_addresses_go_with_it(till: SpreadShop) -> None:
    branch = add_branch(till.shop, address="Jl. Contoh 8", latitude=-6.91234)
    path = f"/api/suppliers/{till.shop.id}"
    [copied] = till.client.get(f"{path}/export", headers=till.seller).json()["branches"]
    assert (copied["id"], copied["address"]) == (branch, "Jl. Contoh 8")
    assert till.client.delete(f"{path}?confirm=1", headers=till.seller).status_code == 200
    with till.shop.market.reading() as session:
        left = session.get_one(Branch, branch)
        assert (left.name, left.address, left.latitude) == ("Deleted place", None, -6.9)


def test_half_a_place_and_a_transfer_to_itself_are_refused(till: SpreadShop) -> None:
    branch, product = add_branch(till.shop), till.shop.product()
    assert till.change(branch, latitude=1.0).status_code == 422
    assert till.transfer(product, 1, branch, branch).status_code == 422
    assert till.hold(product, latitude=1.0).status_code == 422
