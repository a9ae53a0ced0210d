"""Owners of a shop name webhooks, see what came of them, and take them away."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select, update

from tests.marketplace.accounts import bearer, employ, made, register_supplier, register_user
from tests.marketplace.shop import Shop
from tis.marketplace.admin.retention import RetentionRules, delete_old_rows
from tis.marketplace.columns import now
from tis.marketplace.kit.news import News
from tis.marketplace.kit.notice_outbox import notify
from tis.marketplace.market import Market
from tis.marketplace.notices.webhooks import signed_headers
from tis.marketplace.tables import Notice, NoticeDelivery, Webhook

HOOK = {"url": "https://till.example.com/news", "groups": ["orders", "stock"]}


@pytest.fixture
def owner(internet: httpx2.Client) -> dict[str, Any]:
    return register_user(internet)


@pytest.fixture
def path(internet: httpx2.Client, owner: dict[str, Any]) -> str:
    return f"/api/suppliers/{register_supplier(internet, bearer(owner))['id']}/webhooks"


def tell(market: Market, path: str, times: int = 1) -> None:
    number = int(path.split("/")[3])
    with market.writing() as session:
        notify(session, [News("order.placed", {"order_id": f"o{at}"}, "user:1", number) for at in range(times)])


def bury(market: Market, webhook_id: int) -> None:
    with market.writing() as session:
        dead = update(NoticeDelivery).where(NoticeDelivery.webhook_id == webhook_id)
        session.execute(dead.values(status="dead", ended_at=now(), result="timeout"))


def test_a_secret_is_shown_once_and_is_not_in_the_database(
    internet: httpx2.Client, owner: dict[str, Any], path: str, required_market: Market
) -> None:
    hook = made(internet.post(path, json=HOOK, headers=bearer(owner)))
    assert hook["secret"].startswith("whsec_") and (hook["status"], hook["groups"]) == ("on", ["orders", "stock"])
    [listed] = internet.get(path, headers=bearer(owner)).json()
    assert listed == {name: value for name, value in hook.items() if name != "secret"}
    again = made(internet.post(f"{path}/{hook['id']}/secret", headers=bearer(owner)))
    assert again["secret"] != hook["secret"] and again["former_secret_until"]
    with required_market.reading() as session:
        row = session.get_one(Webhook, hook["id"])
        assert all(hook["secret"][6:] not in str(value) for value in vars(row).values())
    shop = path.removesuffix("/webhooks")
    export = internet.get(f"{shop}/export", headers=bearer(owner)).json()
    assert export["webhooks"][0]["url"] == HOOK["url"] and not {"seed", "former_seed"} & export["webhooks"][0].keys()


def test_a_webhook_is_changed_turned_off_and_on_and_deleted(
    internet: httpx2.Client, owner: dict[str, Any], path: str, required_market: Market
) -> None:
    hook = made(internet.post(path, json=HOOK, headers=bearer(owner)))
    own = f"{path}/{hook['id']}"
    changed = made(internet.put(own, json={"groups": ["reviews"]}, headers=bearer(owner)))
    assert (changed["groups"], changed["url"]) == (["reviews"], HOOK["url"])
    assert internet.put(own, json={"url": "http://a.example/"}, headers=bearer(owner)).status_code == 400
    off = made(internet.put(own, json={"is_on": False}, headers=bearer(owner)))
    assert (off["status"], off["off_reason"]) == ("off", "owner")
    assert "is off" in internet.post(f"{own}/test", headers=bearer(owner)).json()["detail"]
    on = made(internet.put(own, json={"is_on": True, "groups": ["orders"]}, headers=bearer(owner)))
    assert (on["status"], on["off_reason"]) == ("on", None)
    tell(required_market, path)
    made(internet.delete(own, headers=bearer(owner)))
    for answer in (
        internet.get(f"{own}/deliveries", headers=bearer(owner)),
        internet.delete(own, headers=bearer(owner)),
    ):
        assert answer.status_code == 404
    with required_market.reading() as session:
        assert session.scalar(select(func.count()).where(NoticeDelivery.webhook_id == hook["id"])) == 0


def test_a_ping_and_the_dead_list_are_read_in_pages_and_sent_again(
    internet: httpx2.Client, owner: dict[str, Any], path: str, required_market: Market
) -> None:
    hook = made(internet.post(path, json=HOOK, headers=bearer(owner)))
    own = f"{path}/{hook['id']}"
    ping = made(internet.post(f"{own}/test", headers=bearer(owner)))
    assert (ping["type"], ping["data"]) == ("ping", {"webhook_id": hook["id"]})
    tell(required_market, path, 5)
    bury(required_market, hook["id"])
    page = internet.get(f"{own}/deliveries", params={"status": "dead", "limit": 4}, headers=bearer(owner))
    rest = internet.get(page.links["next"]["url"], headers=bearer(owner))
    found = [*page.json(), *rest.json()]
    assert [one["number"] for one in found] == [5, 4, 3, 2, 1, 0] and "next" not in rest.links
    assert found[-1]["event_id"] == ping["event_id"]
    one = made(internet.post(f"{own}/deliveries/retry", json={"ids": [found[0]["id"]]}, headers=bearer(owner)))
    rest_of_them = made(internet.post(f"{own}/deliveries/retry", json={}, headers=bearer(owner)))
    assert (one, rest_of_them) == ({"num_waiting": 1}, {"num_waiting": 5})
    assert internet.get(f"{own}/deliveries?status=dead", headers=bearer(owner)).json() == []


def test_a_shop_has_so_many_webhooks(internet: httpx2.Client, owner: dict[str, Any], path: str) -> None:
    for _ in range(5):
        made(internet.post(path, json=HOOK, headers=bearer(owner)))
    refused = internet.post(path, json=HOOK, headers=bearer(owner))
    assert (refused.status_code, "at most 5 webhooks" in refused.json()["detail"]) == (409, True)


def test_another_shop_does_not_find_a_webhook(internet: httpx2.Client, owner: dict[str, Any], path: str) -> None:
    hook = made(internet.post(path, json=HOOK, headers=bearer(owner)))
    rival = register_user(internet)
    other = f"/api/suppliers/{register_supplier(internet, bearer(rival))['id']}/webhooks/{hook['id']}"
    assert internet.delete(other, headers=bearer(rival)).status_code == 404
    assert internet.get(f"{other}/deliveries", headers=bearer(rival)).status_code == 404
    assert internet.delete(f"{path}/{hook['id']}", headers=bearer(rival)).status_code == 403


def test_a_webhook_is_off_when_the_owner_who_set_it_is_gone(
    internet: httpx2.Client, owner: dict[str, Any], path: str
) -> None:
    shop, leaver = path.removesuffix("/webhooks"), register_user(internet)
    employ(internet, owner, shop, leaver, "owner")
    theirs = made(internet.post(path, json=HOOK, headers=bearer(leaver)))
    kept = made(internet.post(path, json=HOOK, headers=bearer(owner)))
    made(internet.delete(f"{shop}/members/{leaver['id']}", headers=bearer(owner)))
    found = {one["id"]: (one["status"], one["off_reason"]) for one in internet.get(path, headers=bearer(owner)).json()}
    assert found == {theirs["id"]: ("off", "owner_left"), kept["id"]: ("on", None)}


def test_the_secret_of_an_owner_who_left_signs_nothing_more_and_the_others_are_told(
    internet: httpx2.Client, owner: dict[str, Any], path: str, required_market: Market
) -> None:
    shop, leaver = path.removesuffix("/webhooks"), register_user(internet)
    employ(internet, owner, shop, leaver, "owner")
    theirs = made(internet.post(path, json=HOOK, headers=bearer(leaver)))
    own = f"{path}/{theirs['id']}"
    made(internet.post(f"{own}/secret", headers=bearer(leaver)))  # the one before is valid for a day
    made(internet.post(f"{own}/test", headers=bearer(leaver)))

    def signatures() -> set[str]:
        with required_market.reading() as session:
            row = session.get_one(Webhook, theirs["id"])
            headers = signed_headers(required_market.signer, row, "a message", b"{}", theirs_at)
            return set(headers["webhook-signature"].split())

    theirs_at = now()
    before = signatures()
    assert len(before) == 2
    made(internet.delete(f"{shop}/members/{leaver['id']}", headers=bearer(owner)))
    assert signatures().isdisjoint(before) and len(signatures()) == 1
    dead = internet.get(f"{own}/deliveries?status=dead", headers=bearer(owner)).json()
    assert [one["type"] for one in dead] == ["ping"]
    with required_market.reading() as session:
        rows = select(Notice.account).where(Notice.type == "webhook.owner_left")
        told = set(session.scalars(rows.where(Notice.account.startswith("user:"))))
    assert f"user:{owner['id']}" in told and f"user:{leaver['id']}" not in told


@pytest.mark.parametrize("demoted", [True, False])
def test_a_webhook_is_off_when_an_owner_who_renewed_its_secret_is_one_no_more(
    internet: httpx2.Client, owner: dict[str, Any], path: str, required_market: Market, demoted: bool
) -> None:
    shop, leaver = path.removesuffix("/webhooks"), register_user(internet)
    employ(internet, owner, shop, leaver, "owner")
    known, renewed, kept = (made(internet.post(path, json=HOOK, headers=bearer(owner)))["id"] for _ in range(3))
    for hook in (known, renewed):
        made(internet.post(f"{path}/{hook}/secret", headers=bearer(leaver)))
    made(internet.post(f"{path}/{renewed}/secret", headers=bearer(owner)))

    def seeds() -> tuple[str, str]:
        with required_market.reading() as session:
            return session.get_one(Webhook, known).seed, session.get_one(Webhook, kept).seed

    before = seeds()
    if demoted:
        body = {"user_id": leaver["id"], "role": "editor"}
        made(internet.post(f"{shop}/members", json=body, headers=bearer(owner)))
    else:
        made(internet.delete(f"{shop}/members/{leaver['id']}", headers=bearer(leaver)))
    found = {one["id"]: (one["status"], one["off_reason"]) for one in internet.get(path, headers=bearer(owner)).json()}
    assert found == {known: ("off", "owner_left"), renewed: ("on", None), kept: ("on", None)}
    assert seeds()[0] != before[0] and seeds()[1] == before[1]


def test_a_change_by_another_owner_does_not_keep_the_address_of_one_who_goes(
    internet: httpx2.Client, owner: dict[str, Any], path: str
) -> None:
    shop, leaver = path.removesuffix("/webhooks"), register_user(internet)
    employ(internet, owner, shop, leaver, "owner")
    theirs = made(internet.post(path, json=HOOK, headers=bearer(leaver)))
    made(internet.put(f"{path}/{theirs['id']}", json={"groups": ["orders"]}, headers=bearer(owner)))
    made(internet.delete(f"{shop}/members/{leaver['id']}", headers=bearer(owner)))
    [found] = internet.get(path, headers=bearer(owner)).json()
    assert (found["status"], found["off_reason"]) == ("off", "owner_left")


def test_a_deleted_shop_leaves_no_webhook(internet: httpx2.Client, required_market: Market) -> None:
    shop = register_supplier(internet)
    path = f"/api/suppliers/{shop['id']}/webhooks"
    made(internet.post(path, json=HOOK, headers=bearer(shop)))
    tell(required_market, path)
    made(internet.delete(f"/api/suppliers/{shop['id']}", params={"confirm": 1}, headers=bearer(shop)))
    with required_market.reading() as session:
        account = f"supplier:{shop['id']}"
        assert session.scalar(select(func.count()).where(Webhook.supplier_id == shop["id"])) == 0
        assert session.scalar(select(func.count()).where(NoticeDelivery.account == account)) == 0


def test_programs_with_a_token_of_the_shop_may_not_change_webhooks(
    internet: httpx2.Client, owner: dict[str, Any], path: str
) -> None:
    tokens = path.replace("webhooks", "tokens")
    till = made(internet.post(tokens, json={"name": "Till", "scopes": ["read", "stock"]}, headers=bearer(owner)))
    answer = internet.post(path, json=HOOK, headers={"Authorization": f"Bearer {till['token']}"})
    assert (answer.status_code, "Tokens of shops may not" in answer.json()["detail"]) == (403, True)


def test_deliveries_are_deleted_after_their_days(strict_shop: Shop) -> None:
    market = strict_shop.market
    with market.writing() as session:
        row = Webhook(supplier_id=strict_shop.id, url="https://a.example/", groups=["orders"], seed="s")
        session.add(row)
        session.flush()
        number = row.id
    tell(market, f"/api/suppliers/{strict_shop.id}/webhooks", 2)
    with market.writing() as session:
        first = select(func.min(NoticeDelivery.id)).where(NoticeDelivery.webhook_id == number).scalar_subquery()
        old = update(NoticeDelivery).where(NoticeDelivery.id == session.scalar(select(first)))
        session.execute(old.values(give_up_at=now() - timedelta(days=15), status="dead"))
    delete_old_rows(market.writing, RetentionRules(delivery_days=14))
    with market.reading() as session:
        assert session.scalar(select(func.count()).where(NoticeDelivery.webhook_id == number)) == 1
