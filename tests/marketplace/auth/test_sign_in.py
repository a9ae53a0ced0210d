"""Passwords, tokens, sessions."""

import json
from contextlib import closing
from datetime import timedelta
from typing import Any

import httpx2
import jwt
import pytest
from argon2 import PasswordHasher, Type
from pydantic import SecretStr
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from tests.marketplace.accounts import (
    PASSWORD,
    all_at_once,
    bearer,
    made,
    new_email,
    register_supplier,
    register_user,
)
from tests.marketplace.conftest import SECRET
from tests.serving import served, settings_with
from tis.database.database import Database
from tis.errors import Unauthenticated
from tis.marketplace.auth.passwords import is_outdated
from tis.marketplace.auth.schemas import UserRegistration
from tis.marketplace.auth.service import authenticate, sign_in
from tis.marketplace.auth.service import register_user as register_user_in
from tis.marketplace.auth.tokens import begin_chain, rotate
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.seed import commands as seed_commands
from tis.marketplace.tables import RefreshToken, User

pytestmark = pytest.mark.one_database


def register(client: httpx2.Client, **given: Any) -> dict[str, Any]:
    body = {"name": "Jane Smith", "email": new_email(), "password": PASSWORD, **given}
    return {**body, **made(client.post("/api/auth/register", json=body))}


def login(client: httpx2.Client, email: str, password: str = PASSWORD, **more: str) -> httpx2.Response:
    return client.post("/api/auth/login", json={"email": email, "password": password, **more})


def refresh(client: httpx2.Client, tokens: dict[str, Any]) -> httpx2.Response:
    return client.post("/api/auth/refresh", json={"refresh_token": tokens["refresh_token"]})


def is_signed_in(client: httpx2.Client, tokens: dict[str, Any]) -> bool:
    return client.get("/api/auth/me", headers=bearer(tokens)).status_code == 200


def test_a_registered_user_signs_in_and_reads_the_account(internet: httpx2.Client) -> None:
    answer = internet.post(
        "/api/auth/register", json={"name": "Jane", "email": new_email(), "password": PASSWORD, "city": "Jakarta"}
    )
    assert set(answer.json()) == {"access_token", "refresh_token", "token_type"}
    assert answer.json()["token_type"] == "bearer"
    me = internet.get("/api/auth/me", headers=bearer(answer.json())).json()
    assert (me["name"], me["city"], me["role"], me["ai_access_enabled"]) == ("Jane", "Jakarta", "user", False)
    assert {"id", "email", "created_at"} <= me.keys()
    again = login(internet, me["email"].upper())
    assert again.status_code == 200 and is_signed_in(internet, again.json())


def test_passwords_are_hashed_as_owasp_recommends(strong_hasher: PasswordHasher) -> None:
    assert (strong_hasher.type, strong_hasher.parallelism) == (Type.ID, 1)
    assert (strong_hasher.time_cost, strong_hasher.memory_cost) == (2, 19 * 1024)


def test_a_supplier_signs_in_with_its_own_password(internet: httpx2.Client) -> None:
    supplier = register_supplier(internet, password=PASSWORD)
    me = internet.get("/api/auth/me", headers=bearer(login(internet, supplier["email"]).json())).json()
    assert (me["id"], me["role"], me["kind"]) == (supplier["id"], "supplier", "supplier")


def test_login_tries_the_user_before_the_supplier_with_the_same_email(internet: httpx2.Client) -> None:
    user = register(internet)
    supplier = register_supplier(internet, email=user["email"], password=PASSWORD)
    kinds = [
        internet.get("/api/auth/me", headers=bearer(login(internet, user["email"], **more).json())).json()["kind"]
        for more in ({}, {"kind": "user"}, {"kind": "supplier"})
    ]
    assert kinds == ["user", "user", "supplier"]
    internet.post(
        "/api/auth/password", json={"password": "something else", "old_password": PASSWORD}, headers=bearer(supplier)
    )
    other = login(internet, user["email"], "something else")
    assert internet.get("/api/auth/me", headers=bearer(other.json())).json()["id"] == supplier["id"]


@pytest.mark.parametrize("email", ["nobody@example.com", "", "\x00", "%", "x" * 300])
def test_all_failed_logins_get_the_same_answer(internet: httpx2.Client, email: str) -> None:
    known = register(internet)
    without = register_user(internet)
    expected = {"detail": "Incorrect email or password"}
    for address, password in ((known["email"], "wrong"), (without["email"], ""), (email, PASSWORD)):
        content = json.dumps({"email": address, "password": password})
        answer = internet.post("/api/auth/login", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()) == (401, expected)


def test_a_password_matches_in_another_unicode_normalization(internet: httpx2.Client) -> None:
    user = register(internet, password="kata sandi é panjang")
    assert login(internet, user["email"], "kata sandi e\u0301 panjang").status_code == 200


def test_sign_in_upgrades_an_outdated_password_hash(market: Market) -> None:
    with market.writing() as session:
        old = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
        user = User(name="Jane", email="jane@example.com", email_key="jane@example.com", password_hash=old)
        session.add(user)
        session.flush()
        user_id = user.id
    with pytest.raises(Unauthenticated):
        sign_in(market, "jane@example.com", SecretStr("not that one"), None)
    sign_in(market, "Jane@example.com", SecretStr(PASSWORD), None)
    with market.reading() as session:
        kept = session.get_one(User, user_id).password_hash
    assert kept is not None and kept != old and not is_outdated(kept)
    assert sign_in(market, "jane@example.com", SecretStr(PASSWORD), "user").access_token


def test_a_refresh_deletes_the_expired_links_of_its_session(market: Market) -> None:
    last_month = now() - timedelta(days=30)
    with market.writing() as session:
        user = User(name="Jane")
        session.add(user)
        session.flush()
        account = f"user:{user.id}"
        newest = begin_chain(session, market, account)
        for links in (2, 2, 2):
            rotated = rotate(session, market, newest.refresh_token)
            assert rotated is not None and count_links(session) == links
            newest = rotated
            used = RefreshToken.used_at.is_not(None)
            session.execute(update(RefreshToken).where(used).values(expires_at=last_month))


def count_links(session: Session) -> int:
    return len(session.scalars(select(RefreshToken.digest)).all())


def test_a_user_without_a_password_can_set_one(internet: httpx2.Client) -> None:
    user = register_user(internet)
    assert login(internet, user["email"]).status_code == 401
    put = internet.post("/api/auth/password", json={"password": PASSWORD}, headers=bearer(user))
    assert (put.status_code, put.json()["has_password"]) == (200, True)
    assert login(internet, user["email"]).status_code == 200


def test_a_changed_password_needs_the_old_one_and_ends_all_other_sessions(internet: httpx2.Client) -> None:
    user = register(internet)
    elsewhere = login(internet, user["email"]).json()
    for old in ({}, {"old_password": "not that one"}):
        refused = internet.post("/api/auth/password", json={"password": "a new sentence", **old}, headers=bearer(user))
        assert refused.status_code == 403
    change = {"password": "a new sentence", "old_password": PASSWORD}
    assert internet.post("/api/auth/password", json=change, headers=bearer(user)).status_code == 200
    assert is_signed_in(internet, user) and refresh(internet, user).status_code == 200
    assert not is_signed_in(internet, elsewhere) and refresh(internet, elsewhere).status_code == 401
    assert login(internet, user["email"]).status_code == 401
    assert login(internet, user["email"], "a new sentence").status_code == 200


def test_logout_ends_only_this_session(internet: httpx2.Client) -> None:
    user = register(internet)
    other = login(internet, user["email"]).json()
    third = login(internet, user["email"]).json()
    assert internet.post("/api/auth/logout", headers=bearer(user)).status_code == 200
    by_token = internet.post("/api/auth/logout", json={"refresh_token": third["refresh_token"]})
    assert by_token.status_code == 200
    assert [is_signed_in(internet, tokens) for tokens in (user, other, third)] == [False, True, False]
    assert refresh(internet, user).status_code == 401 and refresh(internet, other).status_code == 200


def test_refresh_reads_only_the_body(internet: httpx2.Client) -> None:
    first = register(internet)
    in_the_url = internet.post("/api/auth/refresh", params={"refresh_token": first["refresh_token"]})
    assert in_the_url.status_code == 422 and first["refresh_token"] not in in_the_url.text
    without = internet.post("/api/auth/refresh")
    assert without.status_code == 400 and "in the body" in without.json()["detail"]
    second = refresh(internet, first)
    assert second.status_code == 200 and second.json()["refresh_token"] != first["refresh_token"]
    old = {"Authorization": "Bearer long.gone.token"}
    third = internet.post("/api/auth/refresh", json={"refresh_token": second.json()["refresh_token"]}, headers=old)
    assert is_signed_in(internet, third.json())


def test_a_refresh_token_used_twice_ends_its_chain(internet: httpx2.Client) -> None:
    stolen = register(internet)
    owners = refresh(internet, stolen).json()
    assert refresh(internet, stolen).status_code == 401
    assert refresh(internet, owners).status_code == 401 and not is_signed_in(internet, owners)
    again = login(internet, stolen["email"]).json()
    log = internet.get("/api/users/me/export", headers=bearer(again)).json()["audit_log"]
    assert [line["action"] for line in log].count("token.reuse") == 1


def test_of_concurrent_refreshes_one_gets_tokens_and_the_chain_ends(internet: httpx2.Client) -> None:
    tokens = register(internet)
    answers = all_at_once(internet, *[lambda client: refresh(client, tokens)] * 8)
    got = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(got) == 1
    assert refresh(internet, got[0]).status_code == 401 and not is_signed_in(internet, tokens)


def forged(tokens: dict[str, Any], key: str = SECRET, algorithm: str = "HS256", **claims: Any) -> str:
    said = jwt.decode(tokens["access_token"], options={"verify_signature": False})
    return jwt.encode({**said, **claims}, key, algorithm=algorithm)


def test_the_error_for_a_missing_token_says_how_to_get_one(internet: httpx2.Client, laptop: httpx2.Client) -> None:
    for method, path in [("DELETE", "/api/users/me"), ("GET", "/api/reservations"), ("GET", "/api/audit")]:
        refused = internet.request(method, path)
        assert refused.status_code == 401 and refused.headers["WWW-Authenticate"] == "Bearer"
        for told in ("POST /api/auth/login", "registration", "Authorization: Bearer", "MARKETPLACE_AUTH=open"):
            assert told in refused.json()["detail"]
    # Open mode does not suggest itself.
    asked = laptop.get("/api/auth/me")
    assert asked.status_code == 401 and "POST /api/auth/login" in asked.json()["detail"]
    assert "MARKETPLACE_AUTH" not in asked.json()["detail"]


def test_the_open_mode_is_suggested_only_on_a_local_host() -> None:
    with served(settings_with(jwt_secret_key=SECRET, host="0.0.0.0")) as running:
        refused = httpx2.get(f"{running.url}/api/reservations")
    assert refused.status_code == 401 and "POST /api/auth/login" in refused.json()["detail"]
    assert "MARKETPLACE_AUTH" not in refused.json()["detail"]


def test_the_error_for_an_old_token_says_how_to_sign_in(internet: httpx2.Client) -> None:
    user = register(internet)
    internet.post("/api/auth/logout", headers=bearer(user))
    for token in (user["access_token"], forged(user, exp=1_700_000_000)):
        refused = internet.get("/api/auth/me", headers={"Authorization": f"Bearer {token}"})
        assert refused.status_code == 401 and "POST /api/auth/login" in refused.json()["detail"]
        assert "MARKETPLACE_AUTH" not in refused.json()["detail"]  # open mode refuses a bad token, too


@pytest.mark.parametrize("is_open", [True, False])
def test_a_bad_token_never_counts_as_anonymous(laptop: httpx2.Client, internet: httpx2.Client, is_open: bool) -> None:
    asked = laptop if is_open else internet
    user = register(asked)
    whole = user["access_token"]
    bad = {
        "refresh token": f"Bearer {user['refresh_token']}",
        "expired": f"Bearer {forged(user, exp=1_700_000_000)}",
        "other key": f"Bearer {forged(user, 'another key that is long enough, too')}",
        "no signature": f"Bearer {forged(user, '', 'none')}",
        "another account": f"Bearer {whole[:-4]}AAAA",
        "nobody": f"Bearer {forged(user, sub='user:999999999')}",
        "words": "Bearer lorem ipsum",
        "empty": "Bearer",
        "other scheme": "Basic am9objpzZWNyZXQ=",
    }
    for why, header in bad.items():
        answer = asked.get("/api/suppliers", headers={"Authorization": header})
        assert answer.status_code == 401, why
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert asked.get("/api/suppliers", headers={"Authorization": f"bearer {whole}"}).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "\x00", "a.b.c", "é" * 50])
def test_an_invalid_refresh_token_is_a_401(internet: httpx2.Client, token: str) -> None:
    content = json.dumps({"refresh_token": token})
    answer = internet.post("/api/auth/refresh", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 401


def test_an_access_token_is_not_accepted_as_a_refresh_token(internet: httpx2.Client) -> None:
    user = register(internet)
    answer = internet.post("/api/auth/refresh", json={"refresh_token": user["access_token"]})
    assert answer.status_code == 401 and refresh(internet, user).status_code == 200


@pytest.mark.parametrize("path", ["/api/users/register", "/api/auth/register", "/api/suppliers/register"])
def test_concurrent_registrations_with_one_email_make_one_account(internet: httpx2.Client, path: str) -> None:
    email = new_email()
    place = {"business_name": "Toko", "latitude": 0, "longitude": 0, "city": "Pontianak"}
    body = {"name": "Jane", "email": email, **(place if "suppliers" in path else {})}
    body |= {"password": PASSWORD} if "auth" in path else {}
    answers = all_at_once(internet, *[lambda client: client.post(path, json=body)] * 8)
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 7
    refused = [answer.json() for answer in answers if answer.status_code == 400]
    assert refused == [{"detail": "Email already registered"}] * 7


def test_tokens_hold_no_personal_data(internet: httpx2.Client) -> None:
    user = register(internet)
    said = jwt.decode(user["access_token"], SECRET, algorithms=["HS256"])
    assert set(said) == {"sub", "typ", "chain", "jti", "iat", "exp"} and said["typ"] == "access"
    assert 0 < said["exp"] - said["iat"] <= 30 * 60


def test_a_token_of_another_database_is_refused(internet: httpx2.Client, laptop: httpx2.Client) -> None:
    """Both servers have the same key, and ids begin at 1 in both, as after `seed_data.py --reset`."""
    here, elsewhere = register(laptop), register(internet)
    assert is_signed_in(laptop, here) and is_signed_in(internet, elsewhere)
    assert not is_signed_in(laptop, elsewhere) and not is_signed_in(internet, here)
    assert refresh(laptop, elsewhere).status_code == 401


def test_tokens_from_before_a_reset_are_refused(database_url: str) -> None:
    def register_again(email: str) -> tuple[int, str]:
        with market.writing() as session:
            user = register_user_in(session, Principal(), UserRegistration(name="Jane", email=email), None)
            return user.id, begin_chain(session, market, f"user:{user.id}").access_token

    with closing(Market(Database(database_url), MarketRules(jwt_secret=SECRET))) as market:
        seed_commands.reset(market.database, sure=True)
        first, token = register_again("mallory@example.com")
        seed_commands.reset(market.database, sure=True)
        assert register_again("boss@example.com")[0] == first
        with market.reading() as session, pytest.raises(Unauthenticated):
            authenticate(session, market.signer, token, is_open=True, request_id="-")


def test_the_sweeper_deletes_expired_chains_of_all_accounts(database_url: str) -> None:
    last_month = now() - timedelta(days=30)
    with closing(Market(Database(database_url), MarketRules(jwt_secret=SECRET))) as market:
        with market.writing() as session:
            gone, here = (
                register_user_in(session, Principal(), UserRegistration(name="Jane", email=new_email()), None)
                for _ in range(2)
            )
            for user in (gone, here):
                begin_chain(session, market, f"user:{user.id}")
            session.execute(update(RefreshToken).values(expires_at=last_month))
            # A chain with an unexpired link keeps its older links: one of them may be the revoked one.
            kept = begin_chain(session, market, f"user:{here.id}")
            session.execute(
                update(RefreshToken)
                .where(RefreshToken.account == f"user:{here.id}")
                .values(expires_at=last_month, revoked_at=now())
            )
            chain = market.signer.read(kept.refresh_token, "refresh").chain
            newer = RefreshToken(
                digest="newer", chain=chain, account=f"user:{here.id}", expires_at=now() + timedelta(days=1)
            )
            session.add(newer)
        market.delete_expired()
        with market.reading() as session:
            assert set(session.scalars(select(RefreshToken.chain))) == {chain} and count_links(session) == 2
