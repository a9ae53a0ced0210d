"""The reservations of a shop and of an account are found by an index, however many others there are."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from tests.marketplace.shop import Shop
from tis.marketplace.context import ServiceRules
from tis.marketplace.kit.principal import Principal
from tis.marketplace.stock import sales
from tis.marketplace.stock.caps import require_within_caps
from tis.marketplace.stock.schemas import ReservationStatus

ANYBODY = Principal(is_open=True)
RECENT = ("ix_stock_reservations_actor_created_at_id",)  # what the account held lately without buying


def listed(status: ReservationStatus | None) -> Callable[[Session, Shop], object]:
    return lambda session, shop: sales.list_for_shop(session, ANYBODY, shop.id, status, None, 51)


def counted(session: Session, shop: Shop) -> None:
    user_id = shop.user()
    require_within_caps(session, Principal(f"user:{user_id}", user_id), ServiceRules(), {1: 1})


@pytest.mark.parametrize(
    ("query", "indexes"),
    [
        # The first lists, either counts.
        (listed(None), {"ix_stock_reservations_supplier_id_created_at", "ix_stock_reservations_supplier_id_status"}),
        (listed("refused"), {"ix_stock_reservations_supplier_id_status"}),
        # Few reservations are held at any time.
        (listed("held"), {"ix_stock_reservations_supplier_id_status", "ix_stock_reservations_status_expires_at"}),
        (counted, {"ix_stock_reservations_actor_status", "ix_stock_reservations_status_expires_at", *RECENT}),
    ],
    ids=["shop", "shop by status", "shop held", "caps"],
)
def test_an_index_finds_them(shop: Shop, query: Callable[[Session, Shop], object], indexes: set[str]) -> None:
    for plan in plans(shop, query):
        assert any(index in plan for index in indexes), plan


def plans(shop: Shop, query: Callable[[Session, Shop], object]) -> list[str]:
    """Of every statement that reads reservations."""
    statements: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if "FROM stock_reservations" in statement:
            statements.append((statement, values))

    with shop.market.reading() as session:
        connection = session.connection()
        event.listen(connection, "before_cursor_execute", note)
        query(session, shop)
        event.remove(connection, "before_cursor_execute", note)
        is_sqlite = connection.dialect.name == "sqlite"
        if not is_sqlite:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # the table is small here
            connection.exec_driver_sql("SET LOCAL enable_sort = off")
        explain = "EXPLAIN QUERY PLAN " if is_sqlite else "EXPLAIN "
        found = [connection.exec_driver_sql(explain + statement, values) for statement, values in statements]
        assert found
        return ["\n".join(str(row[-1]) for row in rows) for rows in found]
