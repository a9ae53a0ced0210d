"""Users read and delete their conversations and preferences over HTTP."""

from datetime import date
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select

from tests.marketplace.accounts import bearer, register_supplier, register_user
from tests.marketplace.shop import Shop
from tis.marketplace.assistant.conversations import add_message, open_conversation
from tis.marketplace.assistant.viewers import count_tokens
from tis.marketplace.tables import ChatUsage, Conversation, ConversationMessage, UserPreferences

# The other databases see these queries in `test_policy.py` and `test_list_plans.py`.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
CHATS = "/api/chat/conversations"
PREFERENCES = "/api/users/me/preferences"
SAVED = {"brands": ["asus", "lenovo"], "max_price": 12_000_000, "city": "Bandung", "condition": "new"}


def chat(shop: Shop, user_id: int, *questions: str) -> str:
    with shop.market.writing() as session:
        conversation = open_conversation(session, user_id, None)
        for number, question in enumerate(questions):
            add_message(session, conversation, f"turn_{number}", "user", question, {})
            add_message(session, conversation, f"turn_{number}", "assistant", "Ada.", {"products": [{"id": 7}]})
        return conversation.session_id


def test_conversations_are_listed_newest_first_page_by_page(internet: httpx2.Client, strict_shop: Shop) -> None:
    user = register_user(internet)
    names = [chat(strict_shop, user["id"], f"kipas nomor {number}") for number in range(3)]
    first = internet.get(CHATS, params={"limit": 2}, headers=bearer(user))
    assert [one["session_id"] for one in first.json()] == names[:0:-1]
    assert first.json()[0]["title"] == "kipas nomor 2" and first.headers["Cache-Control"] == "no-store"
    second = internet.get(first.links["next"]["url"], headers=bearer(user))
    assert [one["session_id"] for one in second.json()] == names[:1] and "Link" not in second.headers


def test_messages_are_listed_newest_first_page_by_page(internet: httpx2.Client, strict_shop: Shop) -> None:
    user = register_user(internet)
    path = f"{CHATS}/{chat(strict_shop, user['id'], 'kipas', 'yang murah')}"
    first = internet.get(path, params={"limit": 3}, headers=bearer(user))
    assert [(one["role"], one["content"]) for one in first.json()] == [
        ("assistant", "Ada."),
        ("user", "yang murah"),
        ("assistant", "Ada."),
    ]
    assert first.json()[0]["details"] == {"products": [{"id": 7}]}
    last = internet.get(first.links["next"]["url"], headers=bearer(user)).json()
    assert [one["content"] for one in last] == ["kipas"]


def test_the_conversation_of_another_does_not_exist(internet: httpx2.Client, strict_shop: Shop) -> None:
    user, other = register_user(internet), register_user(internet)
    path = f"{CHATS}/{chat(strict_shop, user['id'], 'kipas')}"
    for send in (internet.get, internet.delete):
        answer = send(path, headers=bearer(other))
        assert (answer.status_code, answer.json()["detail"]) == (404, "Conversation not found")
        named = send(path, params={"user_id": user["id"]}, headers=bearer(other))
        assert (named.status_code, named.json()["detail"]) == (404, "User not found")
        assert send(path, params={"user_id": user["id"]}).status_code == 401
        assert send(path, headers=bearer(register_supplier(internet))).status_code == 403
    assert internet.get(f"{CHATS}/%00%ff", headers=bearer(user)).status_code == 422
    assert internet.get(path, headers=bearer(user)).status_code == 200


def test_conversations_are_deleted_one_by_one_or_all(internet: httpx2.Client, strict_shop: Shop) -> None:
    user = register_user(internet)
    first, *_ = [chat(strict_shop, user["id"], "kipas") for _ in range(3)]
    assert internet.delete(f"{CHATS}/{first}", headers=bearer(user)).status_code == 200
    assert internet.get(f"{CHATS}/{first}", headers=bearer(user)).status_code == 404
    assert internet.delete(CHATS, headers=bearer(user)).json() == {"detail": "Deleted 2 conversations."}
    assert internet.get(CHATS, headers=bearer(user)).json() == []


def test_without_a_token_an_open_server_takes_the_user_that_the_request_names(
    laptop: httpx2.Client, shop: Shop
) -> None:
    user_id = shop.user()
    session_id = chat(shop, user_id, "kipas")
    named = {"user_id": user_id}
    assert laptop.get(CHATS).status_code == 401
    assert [one["session_id"] for one in laptop.get(CHATS, params=named).json()] == [session_id]
    assert laptop.get(CHATS, params={"user_id": 2**40}).status_code == 404
    assert laptop.put(PREFERENCES, params=named, json=SAVED).status_code == 200
    assert SAVED.items() <= laptop.get(PREFERENCES, params=named).json().items()


def test_preferences_are_replaced_as_a_whole_and_deleted(internet: httpx2.Client) -> None:
    user = bearer(register_user(internet))
    empty: dict[str, Any] = {"brands": [], "max_price": None, "city": None, "condition": None, "updated_at": None}
    assert internet.get(PREFERENCES, headers=user).json() == empty
    sent = {**SAVED, "brands": ["ASUS", " Lenovo", "asus"], "city": "bdg"}
    assert SAVED.items() <= internet.put(PREFERENCES, json=sent, headers=user).json().items()
    changed = internet.put(PREFERENCES, json={"city": "Jakarta"}, headers=user).json()
    assert (changed["city"], changed["brands"], changed["max_price"]) == ("Jakarta", [], None)
    for _ in range(2):
        assert internet.delete(PREFERENCES, headers=user).status_code == 200
    assert internet.get(PREFERENCES, headers=user).json() == empty


def test_preferences_that_make_no_sense_are_refused(internet: httpx2.Client) -> None:
    user = bearer(register_user(internet))
    wrong: list[dict[str, Any]] = [
        {"city": "Atlantis"},
        {"brands": ["a"] * 11},
        {"max_price": 0},
        {"max_price": 1.5},
        {"condition": "broken"},
        {"colour": "red"},
    ]
    for body in wrong:
        assert internet.put(PREFERENCES, json=body, headers=user).status_code == 422, body


def test_the_export_has_it_all_and_an_erased_account_leaves_nothing(internet: httpx2.Client, strict_shop: Shop) -> None:
    user, other = register_user(internet), register_user(internet)
    session_id = chat(strict_shop, user["id"], "laptop untuk ibu saya")
    chat(strict_shop, other["id"], "rahasia orang lain")
    internet.put(PREFERENCES, json=SAVED, headers=bearer(user))
    with strict_shop.market.writing() as session:
        count_tokens(session, user["id"], date(2026, 11, 23), 120)
    answer = internet.get("/api/users/me/export", headers=bearer(user))
    export = answer.json()
    [conversation] = export["conversations"]
    assert conversation["session_id"] == session_id
    assert [one["content"] for one in conversation["messages"]] == ["laptop untuk ibu saya", "Ada."]
    assert SAVED.items() <= export["preferences"].items() and "rahasia" not in answer.text
    assert export["chat_usage"] == [{"user_id": user["id"], "day": "2026-11-23", "tokens": 120}]
    # Of what was said the audit log knows nothing.
    assert {"preferences.change"} <= {one["action"] for one in export["audit_log"]}
    assert "Bandung" not in str(export["audit_log"])

    assert internet.delete("/api/users/me", headers=bearer(user)).status_code == 200
    with strict_shop.market.reading() as session:
        for table in (Conversation, UserPreferences, ChatUsage):
            own = select(func.count()).select_from(table).where(table.user_id == user["id"])
            assert session.scalar(own) == 0
        assert "laptop untuk ibu saya" not in set(session.scalars(select(ConversationMessage.content)))
