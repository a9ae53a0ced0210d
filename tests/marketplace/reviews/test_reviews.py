"""Reviews: who may write them, moderation, and the rating of the product."""

from typing import Any

import httpx2
import pytest
from sqlalchemy import update

from tests.marketplace.market_server import MarketServer, new_product
from tests.marketplace.products.test_versions import at_once
from tis.marketplace.columns import now
from tis.marketplace.tables import Review, User


@pytest.fixture
def product_id(server: MarketServer, anybody: httpx2.Client) -> int:
    return int(new_product(anybody, server.supplier())["id"])


def review(server: MarketServer, user_id: int, product_id: int, rating: int = 5, **values: Any) -> dict[str, Any]:
    with server.as_(f"user:{user_id}") as user:
        answer = user.post(f"/api/products/{product_id}/reviews", json={"rating": rating, **values})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_review_is_shown_with_a_first_name_and_an_initial(
    server: MarketServer, stranger: httpx2.Client, product_id: int
) -> None:
    written = review(server, server.user("Jane Ann Smith"), product_id, 4, title="Kencang", body="Cepat sampai.")
    assert written["author"] == "Jane S."
    assert stranger.get(f"/api/products/{product_id}/reviews").json() == [written]
    assert written.items() >= {"rating": 4, "title": "Kencang", "body": "Cepat sampai.", "status": "published"}.items()


@pytest.mark.parametrize(
    ("name", "author"),
    [
        ("Budi", "B."),
        ("budi.s@example.com", "B."),
        ("dewi specimen", "dewi S."),
        ("Ibu Ani ani@example.com", "Ibu A."),
        ("@", "?"),
    ],
)
def test_no_e_mail_address_is_shown(
    server: MarketServer, stranger: httpx2.Client, product_id: int, name: str, author: str
) -> None:
    assert review(server, server.user(name), product_id)["author"] == author
    assert "example.com" not in stranger.get(f"/api/products/{product_id}/reviews").text


def test_reviews_outlive_their_author_without_the_name(
    server: MarketServer, stranger: httpx2.Client, product_id: int
) -> None:
    user_id = server.user("Jane Smith")
    review(server, user_id, product_id)
    with server.market.writing() as session:
        session.execute(update(User).where(User.id == user_id).values(deleted_at=now()))
    assert stranger.get(f"/api/products/{product_id}/reviews").json()[0]["author"] == "Deleted user"


def test_a_user_reviews_a_product_once(server: MarketServer, product_id: int) -> None:
    user_id = server.user()
    review(server, user_id, product_id)
    with server.as_(f"user:{user_id}") as user:
        answer = user.post(f"/api/products/{product_id}/reviews", json={"rating": 1})
    assert (answer.status_code, answer.json()) == (409, {"detail": "Already reviewed"})


def test_who_may_not_review(server: MarketServer, anybody: httpx2.Client, stranger: httpx2.Client) -> None:
    supplier, employee = server.supplier(), server.user()
    server.employ(employee, supplier)
    path = f"/api/products/{new_product(anybody, supplier)['id']}/reviews"
    for client in (anybody, stranger):  # on a laptop, too: a review is somebody's
        assert client.post(path, json={"rating": 5}).status_code == 401
    for account in (f"user:{employee}", f"supplier:{supplier}", f"supplier:{server.supplier()}"):
        with server.as_(account) as client:
            assert client.post(path, json={"rating": 5}).status_code == 403, account
    assert anybody.get(path).json() == []


@pytest.mark.parametrize("rating", [0, 6, -1, 4.5, "5", True, None, 2**63])
def test_ratings_are_one_to_five(server: MarketServer, product_id: int, rating: object) -> None:
    with server.as_(f"user:{server.user()}") as user:
        path = f"/api/products/{product_id}/reviews"
        assert user.post(path, json={"rating": rating}).status_code == 422
        assert user.post(path, json={"rating": 5, "body": "x" * 5001}).status_code == 422


def test_reviews_of_deleted_products_are_hidden(server: MarketServer, anybody: httpx2.Client, product_id: int) -> None:
    user_id = server.user()
    review(server, user_id, product_id)
    anybody.delete(f"/api/products/{product_id}")
    assert anybody.get(f"/api/products/{product_id}/reviews").status_code == 404
    with server.as_(f"user:{server.user()}") as user:
        assert user.post(f"/api/products/{product_id}/reviews", json={"rating": 1}).status_code == 404
        assert user.post("/api/products/4711/reviews", json={"rating": 1}).status_code == 404


def rating(client: httpx2.Client, product_id: int) -> tuple[float | None, int]:
    shown = client.get(f"/api/products/{product_id}").json()
    return shown["rating"], shown["rating_count"]


def test_the_rating_follows_every_review(
    server: MarketServer, stranger: httpx2.Client, admin: httpx2.Client, product_id: int
) -> None:
    one, two = server.user(), server.user()
    before = stranger.get(f"/api/products/{product_id}").json()
    first, second = review(server, one, product_id, 5), review(server, two, product_id, 2)
    assert rating(stranger, product_id) == (3.5, 2)
    with server.as_(f"user:{two}") as user:
        changed = user.put(f"/api/reviews/{second['id']}", json={"rating": 4}).json()
        assert changed["rating"] == 4 and changed["updated_at"] > second["updated_at"]
    assert rating(stranger, product_id) == (4.5, 2)
    assert server.product_row(product_id).rating_rank == pytest.approx((3.5 * 5 + 9) / 7)
    admin.put(f"/api/reviews/{first['id']}/status", json={"status": "hidden"})
    assert rating(stranger, product_id) == (4, 1)
    admin.put(f"/api/reviews/{first['id']}/status", json={"status": "hidden"})  # again: nothing new
    assert rating(stranger, product_id) == (4, 1)
    admin.put(f"/api/reviews/{first['id']}/status", json={"status": "published"})
    with server.as_(f"user:{one}") as user:
        assert user.delete(f"/api/reviews/{first['id']}").status_code == 200
        assert user.delete(f"/api/reviews/{first['id']}").status_code == 404
    with server.as_(f"user:{two}") as user:
        user.delete(f"/api/reviews/{second['id']}")
    # Nothing of it was the supplier's doing.
    assert stranger.get(f"/api/products/{product_id}").json() == before
    assert server.product_row(product_id).rating_rank == 3.5


def test_a_hidden_review_stays_hidden_whatever_its_author_does(
    server: MarketServer, stranger: httpx2.Client, admin: httpx2.Client, product_id: int
) -> None:
    author = server.user()
    written = review(server, author, product_id, 1)
    admin.put(f"/api/reviews/{written['id']}/status", json={"status": "hidden"})
    with server.as_(f"user:{author}") as user, server.as_(f"user:{server.user()}") as other:
        assert user.put(f"/api/reviews/{written['id']}", json={"rating": 2}).json()["status"] == "hidden"
        assert other.put(f"/api/reviews/{written['id']}", json={"rating": 5}).status_code == 404
        assert rating(stranger, product_id) == (None, 0)
        assert user.delete(f"/api/reviews/{written['id']}").status_code == 403
        assert user.post(f"/api/products/{product_id}/reviews", json={"rating": 2}).status_code == 409
    assert rating(stranger, product_id) == (None, 0)


def test_a_granted_rating_is_the_prior_of_the_rank(server: MarketServer, admin: httpx2.Client, product_id: int) -> None:
    admin.put(f"/api/products/{product_id}", json={"rating": 5})
    assert server.product_row(product_id).rating_rank == 5
    review(server, server.user(), product_id, 2)
    assert server.product_row(product_id).rating_rank == pytest.approx((5 * 5 + 2) / 6)
    assert rating(admin, product_id) == (2, 1)  # what buyers say goes before what was granted


def test_only_its_author_changes_a_review(server: MarketServer, stranger: httpx2.Client, admin: httpx2.Client) -> None:
    with server.as_("open") as anybody:
        product_id = new_product(anybody, server.supplier())["id"]
    path = f"/api/reviews/{review(server, server.user(), product_id)['id']}"
    with server.as_(f"user:{server.user()}") as other, server.as_("open") as anybody:
        for client, status in [(stranger, 401), (anybody, 401), (other, 403), (admin, 403)]:
            assert client.put(path, json={"rating": 1}).status_code == status
            assert client.delete(path).status_code == status
        for client, status in [(stranger, 401), (anybody, 401), (other, 403)]:
            assert client.put(f"{path}/status", json={"status": "hidden"}).status_code == status
            assert client.get(f"/api/products/{product_id}/reviews?status=hidden").status_code == status
    assert rating(stranger, product_id) == (5, 1)


def test_admins_list_hidden_reviews(
    server: MarketServer, stranger: httpx2.Client, admin: httpx2.Client, product_id: int
) -> None:
    written = review(server, server.user(), product_id)
    admin.put(f"/api/reviews/{written['id']}/status", json={"status": "hidden"})
    assert stranger.get(f"/api/products/{product_id}/reviews").json() == []
    [hidden] = admin.get(f"/api/products/{product_id}/reviews?status=hidden").json()
    assert (hidden["id"], hidden["status"]) == (written["id"], "hidden")


def test_paging_reviews_is_stable_while_more_are_written(
    server: MarketServer, stranger: httpx2.Client, product_id: int
) -> None:
    written = [review(server, server.user(), product_id)["id"] for _ in range(5)]
    seen, url = [], f"/api/products/{product_id}/reviews?limit=2"
    while url:
        answer = stranger.get(url)
        seen += [one["id"] for one in answer.json()]
        review(server, server.user(), product_id)
        url = answer.links.get("next", {}).get("url", "")
    assert seen == written[::-1]
    assert "next" not in stranger.get(f"/api/products/{product_id}/reviews?limit=8").links  # 3 came meanwhile


def test_concurrent_reviews_are_all_counted(server: MarketServer, stranger: httpx2.Client, product_id: int) -> None:
    users = [server.user() for _ in range(8)]
    at_once(8, lambda number: review(server, users[number], product_id, 1 + number % 5))
    assert rating(stranger, product_id) == (2.62, 8)  # (1+2+3+4+5+1+2+3) / 8


def test_of_two_concurrent_reviews_of_one_user_one_is_refused(
    server: MarketServer, stranger: httpx2.Client, product_id: int
) -> None:
    user_id = server.user()

    def write(number: int) -> int:
        with server.as_(f"user:{user_id}") as user:
            return user.post(f"/api/products/{product_id}/reviews", json={"rating": 3}).status_code

    assert sorted(at_once(4, write)) == [200, 409, 409, 409]
    assert rating(stranger, product_id) == (3, 1)


def test_a_review_repeated_with_one_key_is_created_once(server: MarketServer, product_id: int) -> None:
    with server.as_(f"user:{server.user()}") as user:
        path, headers = f"/api/products/{product_id}/reviews", {"idempotency-key": "r"}
        first = user.post(path, json={"rating": 3}, headers=headers)
        again = user.post(path, json={"rating": 3}, headers=headers)
    assert first.json() == again.json() and again.headers["idempotent-replayed"] == "true"


def test_the_text_of_a_review_is_not_in_the_audit_log(
    server: MarketServer, admin: httpx2.Client, product_id: int
) -> None:
    author = server.user()
    written = review(server, author, product_id, 4, title="rahasia", body="rahasia")
    with server.as_(f"user:{author}") as user:
        user.put(f"/api/reviews/{written['id']}", json={"body": "rahasia sekali", "rating": 3})
    admin.put(f"/api/reviews/{written['id']}/status", json={"status": "hidden"})
    answer = admin.get("/api/audit", params={"entity": "review", "entity_id": written["id"]})
    moderated, changed, made_ = answer.json()
    assert changed["changes"] == {"rating": [4, 3], "body": True} and changed["actor"] == f"user:{author}"
    assert moderated["changes"] == {"status": ["published", "hidden"]} and moderated["actor"].startswith("user:")
    assert made_["action"] == "create" and "rahasia" not in answer.text
    with server.market.reading() as session:
        assert session.get_one(Review, written["id"]).body == "rahasia sekali"
