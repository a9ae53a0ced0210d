"""Registrations agree to the privacy notice that the operator names; version and time are kept."""

from collections.abc import Iterator

import httpx2
import pytest
from sqlalchemy import select

from tests.marketplace.accounts import bearer, made, register_supplier, register_user, registration_body
from tests.marketplace.conftest import SECRET
from tests.serving import Served, served, settings_with
from tis.marketplace.market import Market
from tis.marketplace.tables import Consent, User

NOTICE = "https://example.com/privacy"


@pytest.fixture(scope="module")
def asking() -> Iterator[tuple[httpx2.Client, Served]]:
    settings = settings_with(jwt_secret_key=SECRET, consent_version="2026-11", consent_url=NOTICE)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client, running


@pytest.mark.parametrize("path", ["/api/auth/register", "/api/users/register", "/api/suppliers/register"])
def test_a_registration_without_consent_is_refused_and_says_where_to_read(
    asking: tuple[httpx2.Client, Served], path: str
) -> None:
    client, _ = asking
    body = registration_body(path)
    for version in ({}, {"consent_version": "2025-01"}):
        refused = client.post(path, json={**body, **version})
        assert refused.status_code == 400
        assert NOTICE in refused.json()["detail"] and "2026-11" in refused.json()["detail"]
    assert client.post(path, json={**body, "consent_version": "2026-11"}).status_code == 200


@pytest.mark.parametrize("register", [register_user, register_supplier])
def test_version_and_time_are_kept_and_exported(asking: tuple[httpx2.Client, Served], register: object) -> None:
    client, _ = asking
    is_user = register is register_user
    account = (register_user if is_user else register_supplier)(client, consent_version="2026-11")
    assert client.get("/api/auth/consent").json() == {
        "version": "2026-11",
        "url": NOTICE,
        "agreed_version": None,
        "agreed_at": None,
    }
    seen = made(client.get("/api/auth/consent", headers=bearer(account)))
    assert seen["agreed_version"] == "2026-11" and seen["agreed_at"].endswith("Z")
    path = "/api/users/me/export" if is_user else f"/api/suppliers/{account['id']}/export"
    [row] = made(client.get(path, headers=bearer(account)))["consents"]
    assert (row["version"], row["at"]) == ("2026-11", seen["agreed_at"])


def test_an_account_of_before_agrees_later_and_the_proof_outlives_it(asking: tuple[httpx2.Client, Served]) -> None:
    client, running = asking
    user = register_user(client, consent_version="2026-11")
    market: Market = running.app.state.marketplace.market
    with market.writing() as session:
        session.query(Consent).filter_by(account=f"user:{user['id']}").update({"version": "2025-01"})
    assert client.get("/api/auth/consent", headers=bearer(user)).json()["agreed_version"] == "2025-01"
    refused = client.post("/api/auth/consent", json={"consent_version": "2024"}, headers=bearer(user))
    assert refused.status_code == 400
    for _ in range(2):
        agreed = client.post("/api/auth/consent", json={"consent_version": "2026-11"}, headers=bearer(user))
        assert made(agreed)["agreed_version"] == "2026-11"
    client.delete("/api/users/me", headers=bearer(user))
    with market.reading() as session:
        kept = select(Consent.version).where(Consent.account == f"user:{user['id']}").order_by(Consent.id)
        assert list(session.scalars(kept)) == ["2025-01", "2026-11"]
        assert session.get_one(User, user["id"]).email is None


def test_without_a_version_no_consent_is_asked_for(internet: httpx2.Client) -> None:
    assert register_user(internet, consent_version="whatever")
    assert internet.get("/api/auth/consent").json()["version"] is None
