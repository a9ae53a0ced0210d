"""The lowest price of the 30 days before a moment, against a model that walks through the history."""

from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.marketplace.shop import Shop
from tis.marketplace.kit.promoted_prices import LOOK_BACK, discount_percent, lowest_price_of
from tis.marketplace.market import Market
from tis.marketplace.tables import PriceChange

UNTIL = datetime(2026, 12, 12, tzinfo=UTC)
_MAX_HOURS = 24 * 70
# Hours before `UNTIL`, with the edges often: 30 days before, the moment itself, and an instant beside each.
MOMENTS = st.one_of(
    st.integers(-48, _MAX_HOURS).map(lambda hours: UNTIL - timedelta(hours=hours)),
    st.sampled_from(
        [moment + timedelta(microseconds=beside) for moment in (UNTIL, UNTIL - LOOK_BACK) for beside in (-1, 0, 1)]
    ),
)
HISTORIES = st.lists(st.tuples(MOMENTS, st.integers(1, 9)), max_size=8, unique_by=lambda one: one[0]).map(sorted)


def lowest_by_model(history: list[tuple[datetime, int]]) -> int | None:
    """A price is in force from its moment to just before the next one."""
    ends = [*(begin for begin, _ in history), datetime.max.replace(tzinfo=UTC)][1:]
    in_force = [
        price for (begin, price), end in zip(history, ends, strict=True) if begin < UNTIL and end > UNTIL - LOOK_BACK
    ]
    return min(in_force, default=None)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(history=HISTORIES)
@example(history=[(UNTIL - LOOK_BACK, 2), (UNTIL - LOOK_BACK + timedelta(microseconds=1), 5)])
@example(history=[(UNTIL - LOOK_BACK - timedelta(days=9), 1), (UNTIL - LOOK_BACK, 5)])
@example(history=[(UNTIL - timedelta(days=99), 4), (UNTIL, 1)])
def test_the_lowest_price_is_that_of_the_model(market: Market, history: list[tuple[datetime, int]]) -> None:
    product = Shop(market).product()
    with market.writing() as session:
        session.add_all(PriceChange(product_id=product, price=price, valid_from=at) for at, price in history)
        session.flush()
        assert lowest_price_of(session, product, UNTIL) == lowest_by_model(history)


@given(price=st.integers(1, 10**13), lowest=st.integers(1, 10**13))
def test_a_discount_is_never_said_greater_than_it_is(price: int, lowest: int) -> None:
    percent = discount_percent(price, lowest)
    if percent is None:
        assert price >= lowest
    else:
        assert 0 <= percent <= 99 and price * 100 <= lowest * (100 - percent)
