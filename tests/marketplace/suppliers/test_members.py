"""Members of suppliers and their roles."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
from sqlalchemy import insert, update

from tests.marketplace.accounts import PASSWORD, all_at_once, bearer, employ, register_supplier, register_user
from tis.database.database import Database
from tis.marketplace.columns import now
from tis.marketplace.tables import SupplierInvitation, User


def new_supplier_path(client: httpx2.Client, owner: dict[str, Any], **given: Any) -> str:
    return f"/api/suppliers/{register_supplier(client, bearer(owner), **given)['id']}"


def test_a_user_who_registers_a_supplier_owns_it(internet: httpx2.Client) -> None:
    owner = register_user(internet, name="Sri")
    path = new_supplier_path(internet, owner)
    [member] = internet.get(f"{path}/members", headers=bearer(owner)).json()
    assert (member["user_id"], member["name"], member["role"]) == (owner["id"], "S.", "owner")
    assert internet.put(path, json={"city": "Bandung"}, headers=bearer(owner)).status_code == 200
    me = internet.get("/api/auth/me", headers=bearer(owner)).json()
    assert me["suppliers"] == [{"supplier_id": int(path.rpartition("/")[2]), "role": "owner"}]


def invitations(client: httpx2.Client, user: dict[str, Any]) -> list[dict[str, Any]]:
    answer = client.get("/api/users/me/invitations", headers=bearer(user))
    assert answer.status_code == 200, answer.text
    listed: list[dict[str, Any]] = answer.json()
    return listed


def accept(client: httpx2.Client, user: dict[str, Any], path: str) -> httpx2.Response:
    return client.post(f"/api/users/me/invitations/{path.rpartition('/')[2]}/accept", headers=bearer(user))


def test_a_user_becomes_a_member_by_accepting_an_invitation(internet: httpx2.Client) -> None:
    owner, user = register_user(internet), register_user(internet, name="Sri Wahyuni")
    path = new_supplier_path(internet, owner, business_name="Toko Sari")
    invited = internet.post(f"{path}/members", json={"user_id": user["id"]}, headers=bearer(owner)).json()
    assert (invited["status"], invited["name"], invited["role"]) == ("invited", None, "editor")
    assert internet.get(f"{path}/members", headers=bearer(owner)).json()[1] == invited
    assert internet.get("/api/auth/me", headers=bearer(user)).json()["suppliers"] == []
    assert internet.get(f"{path}/stock-movements", headers=bearer(user)).status_code == 403
    [mine] = invitations(internet, user)
    assert (mine["business_name"], mine["role"]) == ("Toko Sari", "editor")
    assert accept(internet, user, path).json() == {"supplier_id": mine["supplier_id"], "role": "editor"}
    assert invitations(internet, user) == [] and accept(internet, user, path).status_code == 404
    assert internet.get(f"{path}/stock-movements", headers=bearer(user)).status_code == 200
    listed = internet.get(f"{path}/members", headers=bearer(owner)).json()
    assert [(one["status"], one["name"]) for one in listed] == [("member", "Jane S."), ("member", "Sri W.")]


def test_an_invitation_sent_again_with_its_key_is_not_made_again(internet: httpx2.Client) -> None:
    owner, user = register_user(internet), register_user(internet)
    path = new_supplier_path(internet, owner)
    headers, body = {**bearer(owner), "Idempotency-Key": "one"}, {"user_id": user["id"]}
    first = internet.post(f"{path}/members", json=body, headers=headers)
    assert internet.delete(f"{path}/members/{user['id']}", headers=bearer(owner)).status_code == 200
    again = internet.post(f"{path}/members", json=body, headers=headers)
    assert again.headers["idempotent-replayed"] == "true" and again.json() == first.json()
    assert invitations(internet, user) == []


def test_with_an_owner_who_is_removed_or_lowered_all_open_invitations_end(internet: httpx2.Client) -> None:
    """Else it comes back under another name: its accomplice is still invited as an owner."""
    owner, thief, accomplice = (register_user(internet) for _ in range(3))
    path = new_supplier_path(internet, owner)
    members = f"{path}/members"
    for as_editor in (False, True):
        internet.post(members, json={"user_id": thief["id"], "role": "owner"}, headers=bearer(owner))
        assert accept(internet, thief, path).status_code == 200
        invited = {"user_id": accomplice["id"], "role": "owner"}
        assert internet.post(members, json=invited, headers=bearer(thief)).status_code == 200
        if as_editor:
            internet.post(members, json={"user_id": thief["id"], "role": "editor"}, headers=bearer(owner))
        else:
            internet.delete(f"{members}/{thief['id']}", headers=bearer(owner))
        assert accept(internet, accomplice, path).status_code == 404
        assert [one["status"] for one in internet.get(members, headers=bearer(owner)).json()][1:] == (
            ["member"] if as_editor else []
        )


def test_an_invitation_is_declined_withdrawn_or_expires(internet: httpx2.Client, strict_database_url: str) -> None:
    owner, user = register_user(internet), register_user(internet)
    path = new_supplier_path(internet, owner)
    invitation: dict[str, Any] = {"json": {"user_id": user["id"]}, "headers": bearer(owner)}
    own = f"/api/users/me/invitations/{path.rpartition('/')[2]}"
    internet.post(f"{path}/members", **invitation)
    assert internet.delete(own, headers=bearer(user)).status_code == 200
    assert internet.delete(own, headers=bearer(user)).status_code == 404
    internet.post(f"{path}/members", **invitation)
    assert internet.delete(f"{path}/members/{user['id']}", headers=bearer(owner)).status_code == 200
    assert accept(internet, user, path).status_code == 404
    internet.post(f"{path}/members", **invitation)
    database = Database(strict_database_url)
    with database.writing() as session:
        session.execute(update(SupplierInvitation).values(expires_at=now()))
    database.close()
    assert invitations(internet, user) == [] and accept(internet, user, path).status_code == 404
    assert len(internet.get(f"{path}/members", headers=bearer(owner)).json()) == 1
    internet.post(f"{path}/members", **invitation)
    assert accept(internet, user, path).status_code == 200


def test_nobody_accepts_the_invitation_of_another(internet: httpx2.Client) -> None:
    owner, user, other = (register_user(internet) for _ in range(3))
    path = new_supplier_path(internet, owner)
    internet.post(f"{path}/members", json={"user_id": user["id"]}, headers=bearer(owner))
    shop = register_supplier(internet)
    assert [accept(internet, who, path).status_code for who in (other, owner, shop)] == [404, 404, 403]
    internet.delete(path, headers=bearer(owner))  # a closed supplier invites nobody
    assert invitations(internet, user) == [] and accept(internet, user, path).status_code == 404


def test_an_owner_is_made_by_acceptance_and_unmade_at_once(internet: httpx2.Client) -> None:
    owner, helper = register_user(internet), register_user(internet)
    path = new_supplier_path(internet, owner)
    change: dict[str, Any] = {"json": {"city": "Bandung"}, "headers": bearer(helper)}

    def set_role(role: str) -> tuple[int, str]:
        body = {"user_id": helper["id"], "role": role}
        answer = internet.post(f"{path}/members", json=body, headers=bearer(owner))
        return answer.status_code, answer.json()["status"]

    assert internet.put(path, **change).status_code == 403
    employ(internet, owner, path, helper)
    assert internet.put(path, **change).status_code == 403
    assert set_role("owner") == (200, "invited") and internet.put(path, **change).status_code == 403
    assert accept(internet, helper, path).json()["role"] == "owner"
    assert internet.put(path, **change).status_code == 200
    assert set_role("owner") == (200, "member")
    assert set_role("editor") == (200, "member") and internet.put(path, **change).status_code == 403
    assert set_role("owner") == (200, "invited") and set_role("editor") == (200, "member")
    assert accept(internet, helper, path).status_code == 404  # the second thought withdrew it
    gone = internet.delete(f"{path}/members/{helper['id']}", headers=bearer(owner))
    assert gone.status_code == 200
    again = internet.delete(f"{path}/members/{helper['id']}", headers=bearer(owner))
    assert (again.status_code, again.json()) == (404, {"detail": "Member not found"})


def test_a_supplier_invites_so_many(internet: httpx2.Client, strict_database_url: str) -> None:
    owner, user, helper = (register_user(internet) for _ in range(3))
    path = new_supplier_path(internet, owner)
    employ(internet, owner, path, helper)
    later, supplier_id = now() + timedelta(days=1), int(path.rpartition("/")[2])
    database = Database(strict_database_url)
    with database.writing() as session:
        people = [User(name="a") for _ in range(98)]
        session.add_all(people)
        session.flush()
        rows = [
            {"supplier_id": supplier_id, "user_id": one.id, "role": "editor", "expires_at": later} for one in people
        ]
        session.execute(insert(SupplierInvitation), rows)
    database.close()
    refused = internet.post(f"{path}/members", json={"user_id": user["id"]}, headers=bearer(owner))
    assert (refused.status_code, refused.json()) == (
        409,
        {"detail": "A supplier has at most 100 members and invitations."},
    )
    raised = internet.post(f"{path}/members", json={"user_id": helper["id"], "role": "owner"}, headers=bearer(owner))
    assert raised.json()["status"] == "invited"  # one who is there already


def test_every_member_but_the_last_owner_may_leave(internet: httpx2.Client) -> None:
    owner, helper = register_user(internet), register_user(internet)
    path = new_supplier_path(internet, owner)
    employ(internet, owner, path, helper)
    assert internet.delete(f"{path}/members/{helper['id']}", headers=bearer(helper)).status_code == 200
    last = f"{path}/members/{owner['id']}"
    assert internet.delete(last, headers=bearer(owner)).status_code == 409
    demoted = internet.post(f"{path}/members", json={"user_id": owner["id"], "role": "editor"}, headers=bearer(owner))
    assert demoted.status_code == 409


def test_the_last_owner_may_leave_a_supplier_with_a_password(internet: httpx2.Client) -> None:
    owner = register_user(internet)
    path = new_supplier_path(internet, owner, password=PASSWORD)
    assert internet.delete(f"{path}/members/{owner['id']}", headers=bearer(owner)).status_code == 200


def leaving(owner: dict[str, Any], path: str) -> Callable[[httpx2.Client], httpx2.Response]:
    return lambda client: client.delete(f"{path}/members/{owner['id']}", headers=bearer(owner))


def test_of_two_owners_who_leave_concurrently_one_remains(internet: httpx2.Client) -> None:
    for _ in range(5):
        owners = [register_user(internet), register_user(internet)]
        path = new_supplier_path(internet, owners[0])
        employ(internet, owners[0], path, owners[1], "owner")
        answers = all_at_once(internet, *(leaving(owner, path) for owner in owners))
        assert sorted(answer.status_code for answer in answers) == [200, 409]


def test_a_member_must_be_an_existing_user(internet: httpx2.Client) -> None:
    owner = register_user(internet)
    path = new_supplier_path(internet, owner)
    nobody = internet.post(f"{path}/members", json={"user_id": 999999999}, headers=bearer(owner))
    assert (nobody.status_code, nobody.json()) == (404, {"detail": "User not found"})
    for odd in ({"user_id": 2**63}, {"user_id": 0}, {"user_id": 1, "role": "king"}, {}):
        assert internet.post(f"{path}/members", json=odd, headers=bearer(owner)).status_code == 422
    assert internet.delete(f"{path}/members/{2**63}", headers=bearer(owner)).status_code == 422
