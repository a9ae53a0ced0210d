"""A supplier exports all data about itself; so do its owners, and nobody else."""

from typing import Any

import httpx2

from tests.marketplace.accounts import PASSWORD, bearer, made, register_supplier, register_user
from tests.marketplace.market_server import LAPTOP
from tests.marketplace.shop import Shop
from tis.marketplace.tables import SupplierMember


def test_the_export_of_a_supplier_has_its_data_and_no_secret(internet: httpx2.Client, strict_shop: Shop) -> None:
    given: dict[str, Any] = {"phone": "+6281234567890", "address": "Jl. Sudirman No. 1", "password": PASSWORD}
    shop = register_supplier(internet, name="Sari Specimen", **given)
    path = f"/api/suppliers/{shop['id']}"
    made(internet.post(f"{path}/products", json=LAPTOP, headers=bearer(shop)))
    bought = f"/api/products/{strict_shop.product()}/reservations"
    made(internet.post(bought, json={"quantity": 1}, headers=bearer(shop)))
    helper = register_user(internet, name="Dewi Anggraini")
    with strict_shop.market.writing() as session:
        session.add(SupplierMember(supplier_id=shop["id"], user_id=helper["id"], role="editor"))
    export = internet.get(f"{path}/export", headers=bearer(shop))
    everything: dict[str, Any] = export.json()
    profile = everything["profile"]
    assert (profile["name"], profile["email"], profile["phone"]) == ("Sari Specimen", shop["email"], given["phone"])
    assert profile["address"] == given["address"] and profile["has_password"] and everything["product_count"] == 1
    assert [one["quantity"] for one in everything["reservations"]] == [1]
    assert {one["kind"] for one in everything["stock_movements"]} == {"initial"}
    assert len(everything["price_changes"]) == len(everything["sessions"]) == 1
    assert {"supplier.register"} <= {one["action"] for one in everything["audit_log"]}
    for secret in ("argon2", "password_hash", "digest", "Anggraini", helper["email"]):
        assert secret not in export.text


def test_owners_export_too_and_editors_and_strangers_do_not(internet: httpx2.Client, laptop: httpx2.Client) -> None:
    for client in (internet, laptop):
        owner, stranger = register_user(client), register_user(client)
        path = f"/api/suppliers/{register_supplier(client, bearer(owner))['id']}/export"
        assert client.get(path, headers=bearer(owner)).status_code == 200
        assert client.get(path, headers=bearer(stranger)).status_code == 403
        assert client.get(path).status_code == 401
