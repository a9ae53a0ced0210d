"""What SQLite has of its own, beside the contract."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.streaming.stores.desk import KEY, OTHER, Desk, counted, until

pytestmark = pytest.mark.anyio


async def test_what_can_never_be_kept_does_not_stop_the_rest(desk: Desk) -> None:
    before = counted("other")
    desk.append(b"a")
    await desk.store.flush()
    desk.store.append(KEY, desk.memory[KEY][1], desk.told[KEY].append)  # a second time
    await until(lambda: counted("other") > before)
    desk.append(b"b")
    await desk.caught_up()
    assert [event.data for event in await desk.read_all()] == [b"a", b"b"]


async def test_a_listener_that_fails_does_not_keep_it_from_the_others(desk: Desk) -> None:
    def fail(index: int) -> None:
        raise ValueError(index)

    desk.begin(OTHER)
    desk.store.append(OTHER, [], fail)
    desk.append(b"a", key=OTHER)
    session, events = desk.memory[KEY]
    desk.append(b"b")
    desk.store.append(OTHER, [replace(events[0], index=1)], fail)
    desk.append(b"c")
    await desk.caught_up()


async def test_a_large_session_is_forgotten_little_by_little(desk: Desk, path: Path) -> None:
    desk.begin(OTHER)
    desk.append(*[b"x" * 300] * 5000, key=OTHER)
    await desk.caught_up(OTHER)
    desk.forget(OTHER)
    desk.append(b"meanwhile")
    await desk.caught_up()

    def num_left() -> int:
        with closing(sqlite3.connect(path)) as other:
            [left] = other.execute("SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM forgotten)").fetchone()
            return int(left)

    await until(lambda: num_left() == 1)
