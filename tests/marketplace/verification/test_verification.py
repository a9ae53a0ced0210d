"""A shop shows the card of its person once; what is kept, what an admin decides, and what buyers see of it."""

import itertools
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from tests.marketplace.accounts import all_at_once, made
from tests.marketplace.market_server import MarketServer, new_product
from tests.marketplace.verification.card_pictures import NIK, ReadsJson, show, show_bytes
from tis.marketplace.admin.retention import RetentionRules, delete_old_rows
from tis.marketplace.columns import now
from tis.marketplace.tables import AuditEntry, Supplier, SupplierMember, SupplierVerification

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cards(server: MarketServer) -> ReadsJson:
    server.market.card_check = reader = ReadsJson()
    return reader


class Owner:
    def __init__(self, server: MarketServer, **values: Any) -> None:
        self.id = server.supplier(**values)
        self.client = server.as_(f"supplier:{self.id}")

    def kept(self) -> dict[str, Any]:
        return made(self.client.get(f"/api/suppliers/{self.id}/verification"))


@pytest.fixture
def owner(server: MarketServer, cards: ReadsJson) -> Iterator[Owner]:
    owner = Owner(server)
    yield owner
    owner.client.close()


def _nik() -> str:
    return f"32010117088{next(_numbers):05}"


def test_a_clear_card_with_the_name_of_the_supplier_gives_the_badge(owner: Owner, stranger: httpx2.Client) -> None:
    assert made(stranger.get(f"/api/suppliers/{owner.id}"))["verified_at"] is None
    answer = show(owner.client, owner.id, nik=_nik())
    shown = made(answer)
    assert (shown["status"], shown["method"], shown["name_matches"], shown["doubts"]) == (
        "verified",
        "ktp-ocr",
        True,
        [],
    )
    assert answer.headers["cache-control"] == "no-store"
    assert made(stranger.get(f"/api/suppliers/{owner.id}"))["verified_at"] == shown["checked_at"]
    assert owner.kept() == shown


def test_nothing_that_is_printed_on_the_card_is_kept_or_logged(
    owner: Owner, server: MarketServer, caplog: pytest.LogCaptureFixture
) -> None:
    nik, name = _nik(), "BUDI SANTOSO"
    made(show(owner.client, owner.id, nik=nik))
    with server.market.reading() as session:
        row = session.get_one(SupplierVerification, owner.id)
        kept = json.dumps({column.name: str(getattr(row, column.name)) for column in row.__table__.columns})
        noted = session.scalars(select(AuditEntry.changes).where(AuditEntry.entity_id == str(owner.id))).all()
    for text in (kept, json.dumps(list(noted)), caplog.text):
        assert nik not in text and name not in text and nik[:6] not in text
    export = owner.client.get(f"/api/suppliers/{owner.id}/export").json()
    assert [one["status"] for one in export["verification"]] == ["verified"] and nik not in json.dumps(export)


def test_another_name_waits_for_an_admin_whose_decision_and_reason_the_owner_reads(
    owner: Owner, admin: httpx2.Client
) -> None:
    doubtful = made(show(owner.client, owner.id, nik=_nik(), name="DEWI LESTARI"))
    assert (doubtful["status"], doubtful["name_matches"], doubtful["doubts"]) == ("doubtful", False, ["name_differs"])
    [waiting] = [one for one in _listed(admin) if one["supplier_id"] == owner.id]
    assert waiting["name"] == "Budi Santoso" and "DEWI" not in json.dumps(waiting)

    reason = "His wife's card; she came with him."
    decided = made(admin.put(f"/api/admin/verifications/{owner.id}", json={"status": "verified", "reason": reason}))
    assert decided["status"] == "verified" and decided["decided_by"].startswith("user:")
    assert owner.id not in [one["supplier_id"] for one in _listed(admin)]
    assert owner.id in [one["supplier_id"] for one in _listed(admin, status="verified")]
    assert owner.kept()["decided_reason"] == reason
    assert made(admin.get(f"/api/suppliers/{owner.id}"))["verified_at"] == doubtful["checked_at"]

    made(admin.put(f"/api/admin/verifications/{owner.id}", json={"status": "refused", "reason": "It was a joke."}))
    assert made(admin.get(f"/api/suppliers/{owner.id}"))["verified_at"] is None
    again = made(show(owner.client, owner.id, nik=_nik()))
    assert (again["status"], again["doubts"]) == ("doubtful", ["refused_before"])


@pytest.mark.parametrize(
    ("read", "doubt"), [({"contradicts_itself": True}, "contradicts_itself"), ({"is_photocopy": True}, "photocopy")]
)
def test_a_card_that_may_be_none_waits_for_an_admin(owner: Owner, read: dict[str, Any], doubt: str) -> None:
    assert made(show(owner.client, owner.id, nik=_nik(), **read))["doubts"] == [doubt]


def test_a_card_that_another_supplier_showed_is_doubtful_for_the_second(
    owner: Owner, server: MarketServer, admin: httpx2.Client
) -> None:
    nik = _nik()
    second = Owner(server)
    assert made(show(owner.client, owner.id, nik=nik))["status"] == "verified"
    assert made(show(second.client, second.id, nik=nik))["doubts"] == ["shown_before"]
    [waiting] = [one for one in _listed(admin) if one["supplier_id"] == second.id]
    assert waiting["shown_before_by"] == [owner.id]
    assert made(show(owner.client, owner.id, nik=nik))["doubts"] == ["shown_before"]  # it does not know who came first
    second.client.close()


def test_of_two_that_show_one_card_at_once_only_one_has_the_badge(server: MarketServer, cards: ReadsJson) -> None:
    nik = _nik()
    ids = [server.supplier() for _ in range(4)]

    def showing(supplier_id: int) -> Any:
        headers = {"authorization": f"Known supplier:{supplier_id}"}

        def send(client: httpx2.Client) -> httpx2.Response:
            client.headers.update(headers)
            return show(client, supplier_id, nik=nik)

        return send

    with server.as_(None) as client:
        answers = all_at_once(client, *map(showing, ids))
    assert {one.status_code for one in answers} <= {200, 409}
    with server.market.reading() as session:
        rows = session.scalars(select(SupplierVerification).where(SupplierVerification.supplier_id.in_(ids))).all()
        assert sum(one.status == "verified" for one in rows) == 1


@pytest.mark.parametrize(
    "read", [{"nik": None}, {"nik": "32010117"}, {"nik_confidence": 0.5}, {"name": None}, {"name_confidence": 0.3}]
)
def test_of_a_card_that_is_not_read_for_certain_nothing_is_kept(owner: Owner, read: dict[str, Any]) -> None:
    answer = show(owner.client, owner.id, **read)
    assert answer.status_code == 422 and "Take another picture" in answer.json()["detail"]
    assert owner.client.get(f"/api/suppliers/{owner.id}/verification").status_code == 404
    assert show_bytes(owner.client, owner.id, b"a cat").status_code == 422


@pytest.mark.parametrize("consent", [None, "", "yes", "True", "truetruetruetruetrue"])
def test_without_consent_the_picture_is_not_looked_at(owner: Owner, cards: ReadsJson, consent: str | None) -> None:
    before = cards.num_looks
    answer = show(owner.client, owner.id, consent, nik=_nik())
    assert answer.status_code == 422 and "consent" in answer.json()["detail"]
    assert cards.num_looks == before


def test_who_withdraws_loses_the_badge_and_nothing_is_kept(
    owner: Owner, server: MarketServer, stranger: httpx2.Client
) -> None:
    nik = _nik()
    made(show(owner.client, owner.id, nik=nik))
    for _ in range(2):
        made(owner.client.delete(f"/api/suppliers/{owner.id}/verification"))
        assert owner.client.get(f"/api/suppliers/{owner.id}/verification").status_code == 404
        assert made(stranger.get(f"/api/suppliers/{owner.id}"))["verified_at"] is None
    other = Owner(server)
    assert made(show(other.client, other.id, nik=nik))["status"] == "verified"  # no digest remembers the first
    other.client.close()


def test_another_name_of_the_person_ends_the_badge(owner: Owner) -> None:
    made(show(owner.client, owner.id, nik=_nik()))
    path = f"/api/suppliers/{owner.id}"
    assert made(owner.client.put(path, json={"business_name": "Toko Baru"}))["verified_at"]
    assert made(owner.client.put(path, json={"name": "Dewi Lestari"}))["verified_at"] is None
    assert owner.client.get(f"{path}/verification").status_code == 404


def test_who_was_refused_does_not_pass_the_admin_by_withdrawing_or_by_another_name(
    owner: Owner, admin: httpx2.Client
) -> None:
    path = f"/api/suppliers/{owner.id}"
    made(show(owner.client, owner.id, nik=_nik()))
    made(admin.put(f"/api/admin/verifications/{owner.id}", json={"status": "refused", "reason": "A bought card."}))
    made(owner.client.delete(f"{path}/verification"))
    pardon = {"status": "verified", "reason": "I was wrong."}
    assert admin.put(f"/api/admin/verifications/{owner.id}", json=pardon).status_code == 409
    assert made(show(owner.client, owner.id, nik=_nik()))["doubts"] == ["refused_before"]
    made(admin.put(f"/api/admin/verifications/{owner.id}", json={"status": "refused", "reason": "Again."}))
    for name in ("Dewi Lestari", "Budi Santoso"):
        made(owner.client.put(path, json={"name": name}))
    assert made(show(owner.client, owner.id, nik=_nik()))["doubts"] == ["refused_before"]


def test_who_was_refused_does_not_pass_the_admin_by_showing_a_card_and_withdrawing_it(
    owner: Owner, admin: httpx2.Client
) -> None:
    made(show(owner.client, owner.id, nik=_nik()))
    made(admin.put(f"/api/admin/verifications/{owner.id}", json={"status": "refused", "reason": "A bought card."}))
    for _ in range(2):
        assert made(show(owner.client, owner.id, nik=_nik()))["doubts"] == ["refused_before"]
        made(owner.client.delete(f"/api/suppliers/{owner.id}/verification"))


def _set_status(admin: httpx2.Client, supplier_id: int, status: str) -> None:
    made(admin.put(f"/api/suppliers/{supplier_id}/status", json={"status": status, "reason": "Fraud."}))


def _delete_with_its_owner(server: MarketServer, supplier_id: int) -> None:
    """A suspended shop cannot sign in by itself: it is deleted with the account of the only person that owns it."""
    user_id = server.user()
    with server.market.writing() as session:
        session.add(SupplierMember(supplier_id=supplier_id, user_id=user_id, role="owner"))
    with server.as_(f"user:{user_id}") as client:
        made(client.delete("/api/users/me"))


@pytest.mark.parametrize("leaves_by", ["withdrawing", "another name", "deletion"])
def test_the_card_of_a_suspended_shop_gives_no_badge_to_the_next(
    owner: Owner, server: MarketServer, admin: httpx2.Client, stranger: httpx2.Client, leaves_by: str
) -> None:
    nik, path = _nik(), f"/api/suppliers/{owner.id}"
    other = Owner(server)
    made(show(owner.client, owner.id, nik=nik))
    _set_status(admin, owner.id, "suspended")
    if leaves_by == "withdrawing":
        for _ in range(2):
            answer = made(owner.client.delete(f"{path}/verification"))
            assert answer == {"detail": "A digest of the card is kept until the suspension ends."}
    elif leaves_by == "another name":
        made(owner.client.put(path, json={"name": "Dewi Lestari"}))
    else:
        _delete_with_its_owner(server, owner.id)
    assert made(admin.get(path))["verified_at"] is None
    assert made(show(other.client, other.id, nik=nik))["doubts"] == ["shown_before"]
    [waiting] = [one for one in _listed(admin) if one["supplier_id"] == other.id]
    assert waiting["shown_before_by"] == [owner.id]
    other.client.close()


def test_when_the_suspension_ends_nothing_of_a_withdrawn_card_is_kept(
    owner: Owner, server: MarketServer, admin: httpx2.Client
) -> None:
    nik, path = _nik(), f"/api/suppliers/{owner.id}/verification"
    other = Owner(server)
    made(show(owner.client, owner.id, nik=nik))
    _set_status(admin, owner.id, "suspended")
    made(owner.client.delete(path))
    assert (owner.kept()["status"], owner.kept()["doubts"]) == ("refused", ["withdrawn"])
    assert (
        admin.put(f"/api/admin/verifications/{owner.id}", json={"status": "verified", "reason": "Yes."}).status_code
        == 409
    )
    _set_status(admin, owner.id, "active")
    assert owner.client.get(path).status_code == 404
    assert made(show(other.client, other.id, nik=nik))["status"] == "verified"
    other.client.close()


def test_who_an_admin_has_verified_is_not_refused_for_a_card_withdrawn_while_suspended(
    owner: Owner, admin: httpx2.Client
) -> None:
    path = f"/api/suppliers/{owner.id}/verification"
    made(show(owner.client, owner.id, nik=_nik(), is_photocopy=True))
    made(admin.put(f"/api/admin/verifications/{owner.id}", json={"status": "verified", "reason": "Seen it."}))
    _set_status(admin, owner.id, "suspended")
    for _ in range(2):
        made(owner.client.delete(path))
    assert (owner.kept()["status"], owner.kept()["doubts"]) == ("refused", ["withdrawn"])
    _set_status(admin, owner.id, "active")
    assert owner.client.get(path).status_code == 404
    assert made(show(owner.client, owner.id, nik=_nik()))["status"] == "verified"


def test_a_suspended_shop_shows_no_other_card_in_the_place_of_the_first(owner: Owner, admin: httpx2.Client) -> None:
    nik = _nik()
    _set_status(admin, owner.id, "suspended")
    made(show(owner.client, owner.id, nik=nik))  # a first one may be why the suspension ends
    refused = show(owner.client, owner.id, nik=_nik())
    assert refused.status_code == 409 and "no other card" in refused.json()["detail"]
    made(owner.client.delete(f"/api/suppliers/{owner.id}/verification"))
    assert show(owner.client, owner.id, nik=_nik()).status_code == 409
    assert made(show(owner.client, owner.id, nik=nik))["status"] == "verified"


def test_the_digest_of_a_deleted_shop_goes_with_the_audit_log(
    owner: Owner, server: MarketServer, admin: httpx2.Client
) -> None:
    made(show(owner.client, owner.id, nik=_nik()))
    _set_status(admin, owner.id, "suspended")
    _delete_with_its_owner(server, owner.id)

    def kept() -> SupplierVerification | None:
        with server.market.reading() as session:
            return session.get(SupplierVerification, owner.id)

    row = kept()
    assert row is not None and (row.shown_by, row.decided_by, row.decided_reason) == (None, None, None)
    delete_old_rows(server.market.writing, RetentionRules(audit_days=30))
    assert kept() is not None
    with server.market.writing() as session:
        session.get_one(Supplier, owner.id).deleted_at = now() - timedelta(days=31)
    delete_old_rows(server.market.writing, RetentionRules(audit_days=30))
    assert kept() is None


def test_of_a_deleted_shop_nothing_of_its_card_is_kept(owner: Owner, server: MarketServer) -> None:
    nik = _nik()
    made(show(owner.client, owner.id, nik=nik))
    made(owner.client.delete(f"/api/suppliers/{owner.id}", params={"confirm": 1}))
    with server.market.reading() as session:
        assert session.get(SupplierVerification, owner.id) is None
        assert session.get_one(Supplier, owner.id).verified_at is None
    other = Owner(server)
    assert made(show(other.client, other.id, nik=nik))["status"] == "verified"
    other.client.close()


def test_the_badge_is_a_filter_of_goods_and_of_shops(
    server: MarketServer, owner: Owner, stranger: httpx2.Client
) -> None:
    word = f"tampah{next(_numbers)}"
    other = Owner(server)
    mine = new_product(owner.client, owner.id, name=f"Tampah {word}")["id"]
    theirs = new_product(other.client, other.id, name=f"Tampah {word}")["id"]
    search = {"q": word}
    assert _ids(stranger, "/api/products/search", **search) == {mine, theirs}
    assert _ids(stranger, "/api/products/search", **search, verified=True) == set()
    made(show(owner.client, owner.id, nik=_nik()))
    for filters in ({**search}, {**search, "sort": "price_asc"}):
        found = made_list(stranger.get("/api/products/search", params={**filters, "verified": True}))
        assert [(one["id"], one["supplier_verified"]) for one in found] == [(mine, True)]
    everything = {
        one["id"]: one["supplier_verified"] for one in made_list(stranger.get("/api/products/search", params=search))
    }
    assert everything == {mine: True, theirs: False}
    assert mine in _ids(stranger, "/api/products", verified=True, sort="newest")
    assert theirs not in _ids(stranger, "/api/products", verified=True)
    shops = _ids(stranger, "/api/suppliers", verified=True)
    assert owner.id in shops and other.id not in shops
    envelope = stranger.get("/api/products/search", params={"q": word, "verified": True, "envelope": True}).json()
    assert [(one["without"], one["count"]) for one in envelope["relaxations"]] == [("verified", 2)]
    other.client.close()


def test_only_owners_show_cards_and_only_admins_decide(
    server: MarketServer, owner: Owner, stranger: httpx2.Client
) -> None:
    other = Owner(server)
    for client, status in ((other.client, 403), (stranger, 401)):
        assert show(client, owner.id).status_code == status
        assert client.get(f"/api/suppliers/{owner.id}/verification").status_code == status
        assert client.delete(f"/api/suppliers/{owner.id}/verification").status_code == status
        assert client.get("/api/admin/verifications").status_code == status
        decision = {"status": "verified", "reason": "We are friends."}
        assert client.put(f"/api/admin/verifications/{owner.id}", json=decision).status_code == status
    assert NIK  # what `show` sends by itself
    other.client.close()


def _listed(admin: httpx2.Client, **filters: Any) -> list[dict[str, Any]]:
    return made_list(admin.get("/api/admin/verifications", params={"limit": 100, **filters}))


def made_list(answer: httpx2.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return list(answer.json())


def _ids(client: httpx2.Client, path: str, **filters: Any) -> set[int]:
    return {one["id"] for one in made_list(client.get(path, params={"limit": 100, **filters}))}
