"""Conversations and preferences of users, as the assistant writes and reads them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, insert, select

from tests.marketplace.shop import Shop
from tis.errors import Conflict, NotFound, Unauthenticated
from tis.marketplace.assistant.conversations import (
    MAX_CONVERSATIONS,
    MAX_MESSAGE_CHARS,
    MAX_MESSAGES,
    add_message,
    newest_messages,
    open_conversation,
    save_state,
    state_of,
)
from tis.marketplace.assistant.viewers import save_preferences, viewer_of
from tis.marketplace.auth.accounts import user_account
from tis.marketplace.kit.principal import Principal
from tis.marketplace.reading.structured_query import MAX_SHOWN, StructuredQuery
from tis.marketplace.tables import Conversation, ConversationMessage
from tis.marketplace.users.service import delete_user


def test_a_conversation_is_found_again_with_what_was_said(shop: Shop) -> None:
    user_id = shop.user()
    query = StructuredQuery(category="laptop", cities=["Jakarta"], max_price=12_000_000)
    with shop.market.writing() as session:
        conversation = open_conversation(session, user_id, None)
        session_id = conversation.session_id
        assert session_id.startswith("chat_") and len(session_id) == len("chat_") + 32
        add_message(session, conversation, "t1", "user", "Laptop di Jakarta,\n budget 12 juta", {})
        add_message(session, conversation, "t1", "assistant", "Ada dua.", {"product_ids": [7, 9]})
        save_state(session, conversation, query, [7, 9])
    with shop.market.writing() as session:
        again = open_conversation(session, user_id, session_id)
        assert again.title == "Laptop di Jakarta, budget 12 juta"
        state = state_of(again)
        assert state.query == query and list(state.shown_ids) == [7, 9]
        add_message(session, again, "t2", "user", "yang lebih murah?", {})
        latest = [(one.role, one.content) for one in newest_messages(session, again, 2)]
        assert latest == [("user", "yang lebih murah?"), ("assistant", "Ada dua.")]


def test_nobody_opens_the_conversation_of_another(shop: Shop) -> None:
    user_id, other_id = shop.user(), shop.user()
    with shop.market.writing() as session:
        session_id = open_conversation(session, user_id, None).session_id
    for caller, name in ((other_id, session_id), (user_id, "chat_0"), (user_id, "")):
        with pytest.raises(NotFound, match="Conversation not found"), shop.market.writing() as session:
            open_conversation(session, caller, name)


def test_a_turn_that_is_repeated_is_written_once(shop: Shop) -> None:
    user_id = shop.user()
    with shop.market.writing() as session:
        conversation = open_conversation(session, user_id, None)
        first = add_message(session, conversation, "t1", "user", "kipas", {"n": 1})
        again = add_message(session, conversation, "t1", "user", "kipas lain", {})
        assert again is first and first.content == "kipas"
        assert len(newest_messages(session, conversation, 9)) == 1


def test_a_turn_that_is_written_by_two_at_once_is_written_once(shop: Shop) -> None:
    """A client that reconnects to another server, while the first one still answers."""
    user_id = shop.user()
    with shop.market.writing() as session:
        session_id = open_conversation(session, user_id, None).session_id
    barrier = threading.Barrier(4, timeout=30)

    def write() -> int:
        with shop.market.reading() as session:
            open_conversation(session, user_id, session_id)
        barrier.wait()
        with shop.market.writing() as session:
            conversation = open_conversation(session, user_id, session_id)
            return add_message(session, conversation, "t1", "user", "kipas", {}).id

    with ThreadPoolExecutor(4) as pool:
        assert len({done.result() for done in [pool.submit(write) for _ in range(4)]}) == 1


def test_a_full_conversation_says_so_and_still_takes_the_answer_to_its_last_question(shop: Shop) -> None:
    user_id = shop.user()
    with shop.market.writing() as session:
        conversation = open_conversation(session, user_id, None)
        rows = [
            {"conversation_id": conversation.id, "turn_id": str(n), "role": "user", "content": "a"}
            for n in range(MAX_MESSAGES - 2)
        ]
        session.execute(insert(ConversationMessage), rows)
        add_message(session, conversation, "last", "user", "kipas?", {})
        with pytest.raises(Conflict, match="full"):
            add_message(session, conversation, "next", "user", "lagi?", {})
        assert add_message(session, conversation, "last", "assistant", "Ada.", {}).id


def test_of_too_many_conversations_the_one_that_was_not_used_for_longest_goes(shop: Shop) -> None:
    user_id, other_id = shop.user(), shop.user()
    with shop.market.writing() as session:
        oldest, second = (open_conversation(session, user_id, None) for _ in range(2))
        kept = open_conversation(session, other_id, None).session_id
        rows = [{"user_id": user_id, "session_id": f"chat_{user_id}_{n}"} for n in range(MAX_CONVERSATIONS - 2)]
        session.execute(insert(Conversation), rows)
        add_message(session, oldest, "t", "user", "masih dipakai", {})
        names = oldest.session_id, second.session_id
    with shop.market.writing() as session:
        open_conversation(session, user_id, None)
        own = select(Conversation.session_id).where(Conversation.user_id == user_id)
        left = set(session.scalars(own))
        assert len(left) == MAX_CONVERSATIONS and names[0] in left and names[1] not in left
        assert open_conversation(session, other_id, kept)


def test_long_and_broken_texts_are_stored_within_bounds(shop: Shop) -> None:
    user_id = shop.user()
    with shop.market.writing() as session:
        conversation = open_conversation(session, user_id, None)
        broken = "a\x00b\ud800" + "c" * MAX_MESSAGE_CHARS
        message = add_message(session, conversation, "t", "assistant", broken, {"why": ["x\x00\udfff"]})
        save_state(session, conversation, StructuredQuery(text="x\x00"), range(1, 100))
        assert message.content.startswith("ab?c") and len(message.content) == MAX_MESSAGE_CHARS
        assert message.details == {"why": ["x?"]}
        assert len(state_of(conversation).shown_ids) == MAX_SHOWN
        conversation.state = {"query": {"of": "a later version"}, "shown_ids": [1]}
        assert state_of(conversation).query is None


def test_preferences_are_empty_until_they_are_saved(shop: Shop) -> None:
    user_id = shop.user()
    account = Principal(user_account(user_id), user_id)
    saved = {"brands": ["asus"], "max_price": 12_000_000, "city": "Bandung", "condition": "new"}
    with shop.market.writing() as session:
        assert list(viewer_of(session, user_id, "id").preferences.brands) == []
        save_preferences(session, account, user_id, saved)
    with shop.market.reading() as session:
        found = viewer_of(session, user_id, "id").preferences
        assert {**vars(found), "brands": list(found.brands)} == saved


def test_nothing_is_written_for_an_account_that_was_deleted(shop: Shop) -> None:
    user_id, market = shop.user(), shop.market
    account = Principal(user_account(user_id), user_id)
    with market.writing() as session:
        conversation = open_conversation(session, user_id, None)
        session_id = conversation.session_id
        add_message(session, conversation, "t", "user", "kipas", {})
        save_preferences(session, account, user_id, {"city": "Bandung"})
    with market.writing() as session:
        delete_user(session, account, market.search)
    with pytest.raises(NotFound), market.writing() as session:
        open_conversation(session, user_id, session_id)
    with pytest.raises(Unauthenticated), market.writing() as session:
        open_conversation(session, user_id, None)
    with pytest.raises(Unauthenticated), market.writing() as session:
        save_preferences(session, account, user_id, {"city": "Solo"})
    with market.reading() as session:
        own = select(func.count()).select_from(Conversation).where(Conversation.user_id == user_id)
        assert session.scalar(own) == 0 and not viewer_of(session, user_id, "id").preferences.city
