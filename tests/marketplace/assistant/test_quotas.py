"""The daily quota of model tokens."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

from tests.marketplace.shop import Shop
from tis.marketplace.assistant.viewers import count_tokens, has_tokens_left, tokens_used

TODAY = date(2026, 11, 23)


def test_the_tokens_of_a_day_are_counted_per_user(shop: Shop) -> None:
    user_id, other_id = shop.user(), shop.user()
    with shop.market.writing() as session:
        count_tokens(session, user_id, TODAY, 300)
        count_tokens(session, user_id, TODAY, 500)
        assert tokens_used(session, user_id, TODAY) == 800
        assert has_tokens_left(session, user_id, TODAY, 1000)
        count_tokens(session, user_id, TODAY, 500)
        assert not has_tokens_left(session, user_id, TODAY, 1000)
        assert has_tokens_left(session, user_id, TODAY + timedelta(days=1), 1000)
        assert has_tokens_left(session, other_id, TODAY, 1000)
        assert has_tokens_left(session, user_id, TODAY, 0)


def test_answers_at_the_same_time_are_all_counted(shop: Shop) -> None:
    user_id = shop.user()

    def count() -> None:
        with shop.market.writing() as session:
            count_tokens(session, user_id, TODAY, 10)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(count) for _ in range(8)]:
            done.result()
    with shop.market.reading() as session:
        assert tokens_used(session, user_id, TODAY) == 80
