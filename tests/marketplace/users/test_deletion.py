"""Data export and deletion of users."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import event, func, select, true
from sqlalchemy.orm import Session

from tests.marketplace.accounts import (
    PASSWORD,
    all_at_once,
    bearer,
    employ,
    erase,
    new_email,
    register_admin,
    register_supplier,
    register_user,
    supplier_body,
)
from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tis.database.database import Database
from tis.errors import Unauthenticated
from tis.marketplace.auth.recovery import account_mails
from tis.marketplace.auth.schemas import UserRegistration
from tis.marketplace.auth.service import register_user as register_user_in
from tis.marketplace.auth.tokens import begin_chain, rotate
from tis.marketplace.columns import now
from tis.marketplace.kit.principal import Principal
from tis.marketplace.mail import FolderMailer
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.reviews.service import add_review
from tis.marketplace.stock.ending import expire_due
from tis.marketplace.stock.service import reserve
from tis.marketplace.suppliers.schemas import SupplierRegistration
from tis.marketplace.suppliers.service import register_supplier as register_supplier_in
from tis.marketplace.tables import OneTimeLink, Product, RefreshToken, Reservation, Review, StockMovement, User
from tis.marketplace.users.service import delete_user

OWNED = (RefreshToken.account, OneTimeLink.account)
PERSONAL: dict[str, Any] = {
    "name": "Sri Wahyuni",
    "phone": "+6281234567890",
    "latitude": -6.2,
    "longitude": 106.8,
    "city": "Jakarta",
}


def add_activity(url: str, user_id: int, supplier_id: int) -> int:
    """A product that the user has reserved (three units still held) and reviewed."""
    account = f"user:{user_id}"
    database = Database(url)
    with database.writing() as session:
        product = Product(
            supplier_id=supplier_id,
            name="Kipas",
            price=1000,
            on_hand=10,
            reserved=5,
            category="fan",
            category_key="fan",
        )
        session.add(product)
        session.flush()
        for quantity, status in ((1, "held"), (2, "held"), (4, "released"), (3, "committed")):
            session.add(
                Reservation(
                    id=f"{user_id}-{quantity}",
                    product_id=product.id,
                    actor=account,
                    quantity=quantity,
                    status=status,
                    expires_at=now() + timedelta(minutes=15),
                )
            )
        session.add(Review(product_id=product.id, user_id=user_id, rating=5, body="Angin kencang"))
        session.add(StockMovement(product_id=product.id, delta=-3, kind="sold", actor=account))
        product_id = product.id
    database.close()
    return product_id


def test_the_export_has_all_data_of_the_user_and_none_of_others(
    internet: httpx2.Client, strict_database_url: str
) -> None:
    other = register_user(internet, name="Somebody Else", email=new_email())
    user = register_user(internet, **PERSONAL, password=PASSWORD)
    supplier = register_supplier(internet, bearer(user), business_name="Toko Sri")
    add_activity(strict_database_url, user["id"], supplier["id"])
    export = internet.get("/api/users/me/export", headers=bearer(user))
    everything: dict[str, Any] = export.json()
    profile = everything["profile"]
    assert PERSONAL.items() <= profile.items() and profile["email"] == user["email"] and profile["has_password"]
    assert [one["business_name"] for one in everything["memberships"]] == ["Toko Sri"]
    assert [one["body"] for one in everything["reviews"]] == ["Angin kencang"]
    assert sorted(one["quantity"] for one in everything["reservations"]) == [1, 2, 3, 4]
    assert [one["delta"] for one in everything["stock_movements"]] == [-3]
    assert {"user.register", "supplier.register"} & {one["action"] for one in everything["audit_log"]}
    assert len(everything["sessions"]) == 1
    for secret in ("argon2", "password_hash", "digest", other["email"], "Somebody Else"):
        assert secret not in export.text


def test_a_deleted_user_leaves_no_personal_data_and_no_reserved_stock(
    internet: httpx2.Client, strict_database_url: str
) -> None:
    user = register_user(internet, **PERSONAL, password=PASSWORD)
    supplier = register_supplier(internet)
    product_id = add_activity(strict_database_url, user["id"], supplier["id"])
    for password in (None, "a wrong sentence"):
        refused = erase(internet, bearer(user), password)
        assert (refused.status_code, refused.json()["detail"]) == (403, "The password is missing or not right.")
    assert erase(internet, bearer(user), PASSWORD).status_code == 200

    database = Database(strict_database_url)
    with database.reading() as session:
        row = session.get_one(User, user["id"])
        kept = {column.key: getattr(row, column.key) for column in User.__table__.columns}
        product = session.get_one(Product, product_id)
        stock = product.on_hand, product.reserved
        held = session.query(Reservation).filter_by(actor=f"user:{user['id']}", status="held").count()
        reviews = session.query(Review).filter_by(user_id=user["id"]).count()
        movements = session.query(StockMovement).filter_by(actor=f"user:{user['id']}").count()
        tokens = session.query(RefreshToken).filter_by(account=f"user:{user['id']}").count()
    database.close()
    assert kept["name"] == "Deleted user" and kept["deleted_at"] is not None
    places = ("latitude", "longitude", "city", "province", "place_code")
    personal = ("email", "email_key", "phone", *places, "password_hash")
    assert [kept[name] for name in personal] == [None] * len(personal)
    assert (stock, held, reviews, movements, tokens) == ((10, 2), 0, 1, 1, 0)

    assert internet.get(f"/api/users/{user['id']}").status_code == 404
    assert internet.get("/api/auth/me", headers=bearer(user)).status_code == 401
    login = {"email": user["email"], "password": PASSWORD}
    assert internet.post("/api/auth/login", json=login).status_code == 401
    refreshed = internet.post("/api/auth/refresh", json={"refresh_token": user["refresh_token"]})
    assert refreshed.status_code == 401
    assert register_user(internet, email=user["email"])["id"] != user["id"]


def test_a_request_that_goes_on_after_the_deletion_leaves_nothing_behind(shop: Shop) -> None:
    """It knew the account before: on PostgreSQL it held units that nobody released for up to an hour."""
    user_id, product, market = shop.user(), shop.product(), shop.market
    stale = Principal(f"user:{user_id}", user_id)
    with market.writing() as session:
        delete_user(session, stale, market.search)
    supplier = SupplierRegistration(**{**supplier_body(), "email": new_email()})
    late: list[Callable[[Session], object]] = [
        lambda session: reserve(session, stale, market.search, product, 1, 60),
        lambda session: add_review(session, market.search, stale, product, {"rating": 5}),
        lambda session: register_supplier_in(session, stale, supplier, None),
    ]
    for write in late:
        with pytest.raises(Unauthenticated), market.writing() as session:
            write(session)
    assert shop.stock_columns(product) == (5, 0)


@pytest.mark.parametrize("late", ["a refresh", "a link"])
def test_what_is_written_for_an_account_during_its_deletion_is_deleted_too(
    database_url: str, tmp_path: Path, late: str
) -> None:
    rules = MarketRules(jwt_secret=SECRET, mailer=FolderMailer(tmp_path, "shop@example.com"))
    market = Market(Database(database_url), rules)
    deleting = threading.Event()

    def watch(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("DELETE FROM one_time_links"):
            deleting.set()

    def leave() -> None:
        with market.writing() as session:
            delete_user(session, Principal(f"user:{user_id}", user_id), market.search)

    with closing(market), ThreadPoolExecutor(1) as pool:
        with market.database.reading() as session:
            engine = session.get_bind()
        with market.writing() as session:
            user_id = register_user_in(session, Principal(), UserRegistration(name="Jane", email=new_email()), None).id
            tokens = begin_chain(session, market, f"user:{user_id}")
        with market.writing() as session:
            event.listen(engine, "after_cursor_execute", watch)
            if late == "a refresh":
                assert rotate(session, market, tokens.refresh_token)
            else:
                assert account_mails(session, market, f"user:{user_id}", "reset")
            left = pool.submit(leave)
            deleting.wait(0.5)  # long enough for the deletion to delete them, if nothing makes it wait
        left.result()
        with market.reading() as session:
            rows = [session.scalar(select(func.count()).where(one == f"user:{user_id}")) for one in OWNED]
    assert rows == [0, 0]


def test_deleting_a_user_and_sweeping_reservations_do_not_deadlock(database_url: str) -> None:
    """The user holds stock of the same products, and one expired reservation, that the sweeper has locked."""
    market = Market(Database(database_url), MarketRules(jwt_secret=SECRET))
    locked, counted, second = threading.Event(), threading.Event(), threading.local()

    def sweep() -> None:
        with market.writing() as session:
            second.stops = True
            expire_due(session, market.search, true(), skip_locked=True)

    def leave(user_id: int) -> None:
        locked.wait(30)
        with market.writing() as session:
            delete_user(session, Principal(f"user:{user_id}", user_id), market.search)

    def before(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE products") and getattr(second, "stops", False):
            locked.set()
            counted.wait(0.5)  # long enough for the deletion to take its locks

    def after(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE products"):
            counted.set()

    with closing(market):
        user_id, goods = _user_with_shared_reservations(market)
        with market.database.reading() as session:
            engine = session.get_bind()
            began = [session.get_one(Product, number).updated_at for number in goods]
        event.listen(engine, "before_cursor_execute", before)
        event.listen(engine, "after_cursor_execute", after)
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(sweep), pool.submit(leave, user_id)]:
                done.result()
        with market.reading() as session:
            products = [session.get_one(Product, number) for number in goods]
            assert [product.reserved for product in products] == [0, 0]
            assert [product.updated_at for product in products] == began


def _user_with_shared_reservations(market: Market) -> tuple[int, list[int]]:
    with market.writing() as session:
        user = register_user_in(session, Principal(), UserRegistration(name="Jane", email=new_email()), None)
        body = SupplierRegistration(**{**supplier_body(), "email": new_email()})
        shop = register_supplier_in(session, Principal(), body, None)
        goods = [
            Product(supplier_id=shop.id, name="Kipas", price=1, on_hand=9, reserved=n, category="f", category_key="f")
            for n in (2, 1)
        ]
        session.add_all(goods)
        session.flush()
        late, soon = now() - timedelta(seconds=1), now() + timedelta(minutes=15)
        for product, actor, end in ((0, user.id, soon), (1, user.id, late), (0, 0, late)):
            session.add(
                Reservation(
                    id=str(uuid4()), product_id=goods[product].id, actor=f"user:{actor}", quantity=1, expires_at=end
                )
            )
        return user.id, [product.id for product in goods]


def test_a_supplier_stays_with_its_remaining_owner(internet: httpx2.Client) -> None:
    owner, successor = register_user(internet), register_user(internet)
    path = f"/api/suppliers/{register_supplier(internet, bearer(owner))['id']}"
    employ(internet, owner, path, successor, "owner")
    assert internet.delete("/api/users/me", headers=bearer(owner)).status_code == 200
    assert [one["user_id"] for one in internet.get(f"{path}/members", headers=bearer(successor)).json()] == [
        successor["id"]
    ]


def test_a_supplier_is_deleted_with_its_last_owner(internet: httpx2.Client, strict_database_url: str) -> None:
    """The first owner made the second one owner and left. Nobody could restore the supplier after the second one."""
    mallory, victim = register_user(internet), register_user(internet)
    shop = register_supplier(internet, bearer(mallory), phone="+6281234567890", name="Mallory")
    path = f"/api/suppliers/{shop['id']}"
    employ(internet, mallory, path, victim, "owner")
    internet.post("/api/auth/logout", headers=bearer(shop))
    assert internet.delete(f"{path}/members/{mallory['id']}", headers=bearer(mallory)).status_code == 200
    assert internet.delete("/api/users/me", headers=bearer(victim)).status_code == 200
    assert internet.get(path).status_code == 404
    admin = register_admin(internet, strict_database_url)
    left = internet.get(path, headers=bearer(admin)).text
    assert "Mallory" not in left and "+6281234567890" not in left


def test_a_supplier_with_a_login_of_its_own_survives_its_last_owner(
    internet: httpx2.Client, strict_database_url: str
) -> None:
    admin = register_admin(internet, strict_database_url)
    for password in ({}, {"password": PASSWORD}):
        for closes_first in (False, True):
            member = register_user(internet)
            shop = register_supplier(internet, bearer(member), business_name="Toko Sri", **password)
            path = f"/api/suppliers/{shop['id']}"
            if closes_first:
                assert internet.delete(path, headers=bearer(member)).status_code == 200
            assert internet.delete("/api/users/me", headers=bearer(member)).status_code == 200
            left = internet.get(path, headers=bearer(admin)).json()
            assert (left["business_name"], left["is_active"]) == ("Toko Sri", not closes_first)
            assert internet.get("/api/auth/me", headers=bearer(shop)).status_code == (401 if closes_first else 200)


def test_a_deleted_user_takes_its_invitations_along(internet: httpx2.Client) -> None:
    owner, user = register_user(internet), register_user(internet)
    path = f"/api/suppliers/{register_supplier(internet, bearer(owner))['id']}"
    internet.post(f"{path}/members", json={"user_id": user["id"]}, headers=bearer(owner))
    [invitation] = internet.get("/api/users/me/export", headers=bearer(user)).json()["invitations"]
    assert (invitation["user_id"], invitation["role"]) == (user["id"], "editor")
    internet.delete("/api/users/me", headers=bearer(user))
    assert [one["user_id"] for one in internet.get(f"{path}/members", headers=bearer(owner)).json()] == [owner["id"]]


def test_a_user_who_leaves_while_accepting_is_no_member(internet: httpx2.Client) -> None:
    for _ in range(4):
        owner, user = register_user(internet), register_user(internet)
        path = f"/api/suppliers/{register_supplier(internet, bearer(owner))['id']}"
        internet.post(f"{path}/members", json={"user_id": user["id"]}, headers=bearer(owner))
        accept, headers = f"/api/users/me/invitations/{path.rpartition('/')[2]}/accept", bearer(user)
        answers = all_at_once(internet, accepting(accept, headers), leaving(headers))
        assert {answer.status_code for answer in answers} <= {200, 401, 404}
        members = internet.get(f"{path}/members", headers=bearer(owner)).json()
        assert [one["user_id"] for one in members] == [owner["id"]]


def accepting(path: str, headers: dict[str, str]) -> Callable[[httpx2.Client], httpx2.Response]:
    return lambda client: client.post(path, headers=headers)


def leaving(headers: dict[str, str]) -> Callable[[httpx2.Client], httpx2.Response]:
    return lambda client: client.delete("/api/users/me", headers=headers)


def without_admins(url: str) -> None:
    database = Database(url)
    with database.writing() as session:
        session.query(User).filter_by(role="admin").update({"role": "user"})
    database.close()


def demoting(by: dict[str, Any], whom: dict[str, Any]) -> Callable[[httpx2.Client], httpx2.Response]:
    return lambda client: client.put(f"/api/users/{whom['id']}/grants", json={"role": "user"}, headers=bearer(by))


def test_of_two_admins_who_demote_each_other_one_remains(internet: httpx2.Client, strict_database_url: str) -> None:
    for _ in range(5):
        without_admins(strict_database_url)
        one, other = (register_admin(internet, strict_database_url) for _ in range(2))
        answers = all_at_once(internet, demoting(one, other), demoting(other, one))
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses in ([200, 403], [200, 409])  # the second is no admin any more, or is the last one
        roles = [internet.get("/api/auth/me", headers=bearer(admin)).json()["role"] for admin in (one, other)]
        assert sorted(roles) == ["admin", "user"]


def test_the_last_admin_cannot_leave(internet: httpx2.Client, strict_database_url: str) -> None:
    without_admins(strict_database_url)
    admin, user = register_admin(internet, strict_database_url), register_user(internet)
    grants = f"/api/users/{admin['id']}/grants"
    assert internet.put(grants, json={"role": "user"}, headers=bearer(admin)).status_code == 409
    assert internet.put("/api/users/me", json={"role": "user"}, headers=bearer(admin)).status_code == 409
    assert internet.delete("/api/users/me", headers=bearer(admin)).status_code == 409
    internet.put(f"/api/users/{user['id']}/grants", json={"role": "admin"}, headers=bearer(admin))
    assert internet.put(grants, json={"role": "user"}, headers=bearer(user)).json()["role"] == "user"
    assert internet.delete("/api/users/me", headers=bearer(admin)).status_code == 200
