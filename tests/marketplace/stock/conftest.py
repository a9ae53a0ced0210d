from collections.abc import Iterator

import pytest

from tests.marketplace.stock.shelves import Shop, shop_on


@pytest.fixture
def shop(database_url: str) -> Iterator[Shop]:
    """On the database of `laptop`."""
    with shop_on(database_url) as shop:
        yield shop


@pytest.fixture
def strict_shop(strict_database_url: str) -> Iterator[Shop]:
    """On the database of `internet`."""
    with shop_on(strict_database_url) as shop:
        yield shop
