"""Products that an older version indexed are indexed again: in steps that go on where the last one ended."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy.orm import Session

from tests.marketplace.search.conftest import Catalogue
from tis.marketplace.search.index_renewal import IndexRenewal
from tis.marketplace.search.sql import id_list, run


def mark(catalogue: Catalogue, ids: list[int]) -> None:
    """As a migration does."""
    with catalogue.market.writing() as session:
        run(session, f"UPDATE product_search SET words_digest = 0 WHERE product_id IN {id_list(ids)}")


def outdated(catalogue: Catalogue) -> list[int]:
    with catalogue.market.reading() as session:
        sql = "SELECT product_id FROM product_search WHERE words_digest = 0 ORDER BY product_id"
        return [product_id for [product_id] in run(session, sql)]


def renewal(catalogue: Catalogue, batch_size: int = 3, max_read: int = 4) -> IndexRenewal:
    market = catalogue.market
    return IndexRenewal(market.reading, market.writing, catalogue.search, batch_size=batch_size, max_read=max_read)


@pytest.fixture
def ids(catalogue: Catalogue) -> list[int]:
    return catalogue.put_all({"name": f"Teko {number}"} for number in range(10))


def test_all_outdated_products_are_indexed_again(catalogue: Catalogue, ids: list[int]) -> None:
    mark(catalogue, [ids[0], *ids[3:9]])
    renewing = renewal(catalogue)
    assert sum(renewing.renew_some() for _ in range(12)) == 7 and outdated(catalogue) == []
    assert len(catalogue.names("teko")) == 10


def test_a_step_goes_on_where_the_last_one_ended_and_a_second_round_finds_what_came_behind_it(
    catalogue: Catalogue, ids: list[int]
) -> None:
    mark(catalogue, ids)
    renewing = renewal(catalogue, max_read=100)
    assert renewing.renew_some() == 3
    mark(catalogue, ids[:1])
    assert renewing.renew_some() == 3 and outdated(catalogue) == [ids[0], *ids[6:]]
    assert [renewing.renew_some() for _ in range(4)] == [3, 1, 1, 0] and outdated(catalogue) == []


def test_it_is_over_when_a_whole_round_found_nothing(catalogue: Catalogue, ids: list[int]) -> None:
    num_read = 0

    @contextmanager
    def reading() -> Iterator[Session]:
        nonlocal num_read
        num_read += 1
        with catalogue.market.reading() as session:
            yield session

    renewing = IndexRenewal(reading, catalogue.market.writing, catalogue.search, batch_size=3, max_read=4)
    assert [renewing.renew_some() for _ in range(9)] == [0] * 9
    assert num_read == 3, "of four, four and two rows"


def test_a_step_that_fails_is_done_again(catalogue: Catalogue, ids: list[int]) -> None:
    mark(catalogue, ids)
    is_broken = True

    @contextmanager
    def writing() -> Iterator[Session]:
        if is_broken:
            raise ConnectionError
        with catalogue.market.writing() as session:
            yield session

    renewing = IndexRenewal(catalogue.market.reading, writing, catalogue.search, batch_size=5, max_read=100)
    with pytest.raises(ConnectionError):
        renewing.renew_some()
    is_broken = False
    assert [renewing.renew_some() for _ in range(2)] == [5, 5] and outdated(catalogue) == []
