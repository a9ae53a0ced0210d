"""docs/data-map.md lists every table, and every column about a person."""

import re

from tests.serving import REPOSITORY
from tis.marketplace.tables import Supplier, Table, User

NAMED = set(re.findall(r"`(\w+)`", (REPOSITORY / "docs" / "data-map.md").read_text(encoding="utf-8")))


def test_every_table_is_on_the_data_map() -> None:
    assert set(Table.metadata.tables) - NAMED == set()


def test_every_column_of_users_and_suppliers_is_on_the_data_map() -> None:
    columns = {column.key for table in (User, Supplier) for column in table.__table__.columns}
    assert columns - NAMED == set()
