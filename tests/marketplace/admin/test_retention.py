"""Old rows are deleted; what is derived from them stays right."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tis.database.database import Database
from tis.marketplace.admin import retention
from tis.marketplace.admin.retention import RetentionRules, delete_old_rows
from tis.marketplace.columns import now
from tis.marketplace.market import Market, MarketRules
from tis.marketplace.tables import (
    AuditEntry,
    ChatUsage,
    Conversation,
    ConversationMessage,
    IdempotentRequest,
    Reservation,
    StockMovement,
)

RULES = RetentionRules(audit_days=30, movement_days=60, reservation_days=90, chat_days=120)


@pytest.fixture
def shop_with_retention(database_url: str) -> Iterator[Shop]:
    rules = MarketRules(jwt_secret=SECRET, retention=RULES)
    with closing(Market(Database(database_url), rules)) as market:
        with market.writing() as session:
            for table in (AuditEntry, StockMovement, Reservation, IdempotentRequest):
                session.execute(delete(table))
        yield Shop(market)


def days_ago(days: float) -> datetime:
    return now() - timedelta(days=days)


def test_audit_lines_are_deleted_after_their_days(shop_with_retention: Shop) -> None:
    market = shop_with_retention.market
    with market.writing() as session:
        for days in (31, 29, 0):
            session.add(AuditEntry(at=days_ago(days), action="x", entity="user", entity_id=str(days)))
    market.delete_expired()
    with market.reading() as session:
        assert sorted(session.scalars(select(AuditEntry.entity_id))) == ["0", "29"]


def test_ended_reservations_are_deleted_and_held_ones_stay(shop_with_retention: Shop) -> None:
    market, product_id = shop_with_retention.market, shop_with_retention.product()
    rows = {"old": ("committed", 91), "new": ("released", 89), "held": ("held", None)}
    with market.writing() as session:
        for name, (status, days) in rows.items():
            ended_at = days_ago(days) if days else None
            session.add(
                Reservation(
                    id=name, product_id=product_id, quantity=1, status=status, expires_at=now(), ended_at=ended_at
                )
            )
    market.delete_expired()
    with market.reading() as session:
        assert sorted(session.scalars(select(Reservation.id))) == ["held", "new"]


def test_old_movements_become_one_without_a_name_and_the_sum_stays(shop_with_retention: Shop) -> None:
    market = shop_with_retention.market
    goods = [shop_with_retention.product() for _ in range(2)]
    with market.writing() as session:
        session.execute(delete(StockMovement))
        for product_id in goods:
            for days, delta in ((100, 9), (80, -2), (70, -1), (10, -3)):
                session.add(_movement(product_id, delta, days))
    market.delete_expired()
    market.delete_expired()  # nothing more to do
    for product_id in goods:
        assert _ledger(market, product_id) == [("carried", 6, None), ("sold", -3, "user:7")]
    with market.writing() as session:
        session.add(_movement(goods[0], 4, 61))  # becomes old later
    market.delete_expired()
    assert _ledger(market, goods[0]) == [("sold", -3, "user:7"), ("carried", 10, None)]
    assert _ledger(market, goods[1]) == [("carried", 6, None), ("sold", -3, "user:7")]


def test_old_movements_of_several_places_are_summed_by_place(shop_with_retention: Shop) -> None:
    market, product = shop_with_retention.market, shop_with_retention.product()
    with market.writing() as session:
        session.execute(delete(StockMovement))
        for branch_id, delta in ((0, 9), (5, 4), (0, -3), (5, -1)):
            movement = _movement(product, delta, 90)
            movement.branch_id = branch_id
            session.add(movement)
    market.delete_expired()
    with market.reading() as session:
        rows = select(StockMovement.branch_id, StockMovement.kind, StockMovement.delta)
        assert sorted(session.execute(rows).all()) == [(0, "carried", 6), (5, "carried", 3)]


def test_expired_answers_to_idempotency_keys_are_deleted(shop_with_retention: Shop) -> None:
    market = shop_with_retention.market
    with market.writing() as session:
        for key, days in (("old", 1), ("new", -1)):
            row = IdempotentRequest(actor=f"user:{uuid4().hex}", key=key, request_digest="x", expires_at=days_ago(days))
            session.add(row)
    market.delete_expired()
    with market.reading() as session:
        assert list(session.scalars(select(IdempotentRequest.key))) == ["new"]


def test_many_rows_go_in_batches(shop_with_retention: Shop) -> None:
    market, product_id = shop_with_retention.market, shop_with_retention.product()
    with market.writing() as session:
        session.execute(delete(StockMovement))
        session.add_all([_movement(product_id, 1, 100) for _ in range(1203)])
    market.delete_expired()
    assert _ledger(market, product_id) == [("carried", 1203, None)]


def test_servers_that_sweep_at_once_count_each_movement_once(shop_with_retention: Shop) -> None:
    market, product_id = shop_with_retention.market, shop_with_retention.product()
    with market.writing() as session:
        session.execute(delete(StockMovement))
        session.add_all([_movement(product_id, 1, 100) for _ in range(1203)])
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(market.delete_expired) for _ in range(4)]:
            done.result()
    market.delete_expired()
    assert {kind for kind, _, _ in _ledger(market, product_id)} == {"carried"}
    assert sum(delta for _, delta, _ in _ledger(market, product_id)) == 1203


def test_conversations_are_deleted_with_their_messages_when_nobody_used_them_for_long(
    shop_with_retention: Shop,
) -> None:
    market, user_id = shop_with_retention.market, shop_with_retention.user()
    with market.writing() as session:
        session.execute(delete(Conversation))
        for number, days in enumerate((130, 126, 125, 121, 119, 0)):
            times = {"created_at": days_ago(200), "updated_at": days_ago(days)}
            one = Conversation(user_id=user_id, session_id=f"{user_id}-{number}", title=str(days), state={}, **times)
            session.add(one)
            session.flush()
            said = {"turn_id": "t", "role": "user", "content": "kipas", "details": {}}
            session.add(ConversationMessage(conversation_id=one.id, **said))
    market.delete_expired()
    with market.reading() as session:
        assert set(session.scalars(select(Conversation.title))) == {"0", "119"}
        assert session.scalar(select(func.count(ConversationMessage.id))) == 2


def test_used_tokens_are_forgotten_after_a_month(shop_with_retention: Shop) -> None:
    market, user_id = shop_with_retention.market, shop_with_retention.user()
    with market.writing() as session:
        for days in (32, 29, 0):
            session.add(ChatUsage(user_id=user_id, day=days_ago(days).date(), tokens=days))
    market.delete_expired()
    with market.reading() as session:
        assert sorted(session.scalars(select(ChatUsage.tokens).where(ChatUsage.user_id == user_id))) == [0, 29]


def test_zero_days_keep_everything(shop_with_retention: Shop) -> None:
    market = shop_with_retention.market
    with market.writing() as session:
        session.add(AuditEntry(at=days_ago(9999), action="x", entity="user", entity_id="1"))
    delete_old_rows(market.writing, RetentionRules())
    with market.reading() as session:
        assert session.scalar(select(func.count(AuditEntry.id))) == 1


def test_old_movements_are_found_by_an_index(shop_with_retention: Shop) -> None:
    with shop_with_retention.market.reading() as session:
        if session.get_bind().dialect.name == "sqlite":
            assert "ix_stock_movements_at" in _plan(session)


def _plan(session: Session) -> str:
    statement = f"EXPLAIN QUERY PLAN SELECT id FROM stock_movements WHERE at < 'x' AND {retention.NOT_CARRIED}"
    return str(session.connection().exec_driver_sql(statement).all())


def _movement(product_id: int, delta: int, days: float) -> StockMovement:
    return StockMovement(product_id=product_id, delta=delta, kind="sold", actor="user:7", at=days_ago(days))


def _ledger(market: Market, product_id: int) -> list[tuple[str, int, str | None]]:
    with market.reading() as session:
        rows = select(StockMovement).where(StockMovement.product_id == product_id).order_by(StockMovement.id)
        return [(row.kind, row.delta, row.actor) for row in session.scalars(rows)]
