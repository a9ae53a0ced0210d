"""The contract of all stores, and the part of it that only durable stores have."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.streaming.stores.harness import FAST, FAST_REDIS, KEY, OTHER, StoreHarness
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.archive.sql_archive import ArchiveLimits, SqlArchive
from tis.streaming.errors import ReplayGap
from tis.streaming.stores.memory import MemoryStore
from tis.streaming.stores.redis import RedisStore
from tis.streaming.stores.sqlite import SqliteStore
from tis.streaming.stores.store import Event, Store

pytestmark = pytest.mark.anyio
Make = Callable[[], Store]


STARTED = pytest.param("redis", marks=pytest.mark.server)  # the fixtures look for its server by name
STARTED_TWICE = pytest.param("redis with postgresql", marks=[pytest.mark.server, pytest.mark.slow])


def makers(path: Path, request: pytest.FixtureRequest) -> dict[str, Make]:
    return {
        "redis": lambda: RedisStore(request.getfixturevalue("redis_server").url, timeouts=FAST_REDIS),
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(path / "sessions.db", timeouts=FAST),
        "sqlite-full": lambda: SqliteStore(path / "sessions.db", sync="full", timeouts=FAST),
        "sqlite with sqlite": lambda: ArchivingStore(
            SqliteStore(path / "sessions.db", timeouts=FAST), SqlArchive(f"sqlite:///{path}/last.db", ArchiveLimits())
        ),
        "redis with postgresql": lambda: ArchivingStore(
            RedisStore(request.getfixturevalue("redis_server").url, timeouts=FAST_REDIS),
            SqlArchive(request.getfixturevalue("empty_postgresql"), ArchiveLimits()),
        ),
    }


@pytest.fixture(params=["memory", "sqlite", "sqlite-full", "sqlite with sqlite", STARTED, STARTED_TWICE])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreHarness]:
    harness = StoreHarness(makers(tmp_path, request)[request.param]())
    await harness.open()
    yield harness
    await harness.store.close()


@pytest.fixture(params=["sqlite", "sqlite-full", "sqlite with sqlite", STARTED, STARTED_TWICE])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param.startswith("redis"):
        request.getfixturevalue("redis_server")
    return makers(tmp_path, request)[request.param]


async def test_commits_are_acknowledged_in_order(harness: StoreHarness) -> None:
    harness.begin_turn()
    for number in range(100):
        harness.append(b"%d" % number)
    await harness.store.flush()
    assert harness.acks[KEY] == sorted(harness.acks[KEY])
    assert harness.acks[KEY][-1] == 99
    assert harness.times_degraded == 0


async def test_an_empty_append_is_not_acknowledged(harness: StoreHarness) -> None:
    harness.begin_turn()
    harness.append()
    await harness.store.flush()
    assert harness.acks[KEY] == []


async def test_time_goes_on(harness: StoreHarness) -> None:
    before = harness.store.now()
    assert harness.store.now() >= before


async def test_an_unknown_session_has_a_gap(harness: StoreHarness) -> None:
    with pytest.raises(ReplayGap):
        await harness.store.read(KEY, -1)


async def test_a_deleted_session_has_a_gap(harness: StoreHarness) -> None:
    harness.begin_turn()
    harness.append(b"a")
    harness.forget()
    await harness.store.flush()
    with pytest.raises(ReplayGap):
        await harness.store.read(KEY, -1)


async def test_calls_for_a_deleted_session_do_nothing(harness: StoreHarness) -> None:
    turn = harness.begin_turn()
    harness.append(b"a")
    harness.store.forget(KEY)
    harness.append(b"b")
    harness.end_turn(turn)
    harness.store.save_progress(KEY, 1.0, None)
    harness.store.forget(KEY)
    harness.store.tick()
    await harness.store.flush()
    assert harness.times_degraded == 0


async def test_events_are_read_behind_an_index_without_holes(make: Make) -> None:
    harness = StoreHarness(make())
    await harness.open()
    harness.begin_turn()
    harness.append(*(b"%d" % number for number in range(1000)))
    await harness.store.flush()
    assert await harness.store.read(KEY, 4, limit=2) == [Event(5, b"5", b"state of 5"), Event(6, b"6", b"state of 6")]
    assert await harness.read_all() == harness.memory[KEY][1]
    assert await harness.store.read(KEY, 999) == []
    await harness.store.close()


async def test_two_owners_may_use_the_same_name(make: Make) -> None:
    harness = StoreHarness(make())
    await harness.open()
    harness.begin_turn(KEY)
    harness.begin_turn(OTHER)
    harness.append(b"mine", key=KEY)
    harness.append(b"theirs", key=OTHER)
    harness.forget(KEY)
    await harness.store.flush()
    assert [event.data for event in await harness.read_all(OTHER)] == [b"theirs"]
    await harness.store.close()


async def test_a_restart_finds_the_sessions_and_their_turns(make: Make) -> None:
    first = StoreHarness(make())
    await first.open()
    turn = first.begin_turn()
    first.append(b"a", b"b")
    first.end_turn(turn)
    first.begin_turn()
    first.append(b"c")
    first.begin_turn(OTHER)
    first.store.save_progress(KEY, 7.0, 6.0)
    await first.store.close()

    second = StoreHarness(make())
    found = await second.open()
    session, _ = first.memory[KEY]
    session.used_at, session.no_reader_since = 7.0, 6.0
    assert found == {KEY: session, OTHER: first.memory[OTHER][0]}
    assert [turn.status for turn in found[KEY].turns] == ["finished", "running"]
    assert [event.data for event in await second.read_all()] == [b"a", b"b", b"c"]
    await second.store.close()


async def test_a_session_continues_after_a_restart(make: Make) -> None:
    first = StoreHarness(make())
    await first.open()
    first.begin_turn()
    first.append(b"a")
    await first.store.close()

    second = StoreHarness(make())
    second.memory = {key: (session, []) for key, session in (await second.open()).items()}
    second.append(b"b")
    second.end_turn(second.memory[KEY][0].turns[0])
    second.begin_turn()
    second.append(b"c")
    await second.store.flush()
    assert [(event.index, event.data) for event in await second.read_all()] == [(0, b"a"), (1, b"b"), (2, b"c")]
    await second.store.close()


async def test_deleted_sessions_stay_deleted_after_a_restart(make: Make) -> None:
    first = StoreHarness(make())
    await first.open()
    first.begin_turn()
    first.append(*[b"old"] * 3000)
    first.forget()
    first.begin_turn()
    first.append(b"new")
    await first.store.close()

    second = StoreHarness(make())
    found = await second.open()
    assert found[KEY].next_index == 1
    assert [event.data for event in await second.read_all()] == [b"new"]
    await second.store.close()


async def test_old_turns_of_a_running_session_can_be_deleted(make: Make) -> None:
    first = StoreHarness(make())
    await first.open()
    for size in (2000, 10, 1):
        turn = first.begin_turn(attachments={"old": b"old"} if size > 1 else {"old": b"old", "new": b"new"})
        first.append(*[b"x"] * size)
        first.end_turn(turn)
    first.begin_turn(attachments={"old": b"old"})
    first.store.forget_before(KEY, turn)
    first.append(b"y")
    await first.store.flush()
    await until_gap(first)
    assert [event.index for event in await first.read_all(after=2009)] == [2010, 2011]
    assert await first.store.read_attachments(KEY, ["old", "new"]) == {"old": b"old", "new": b"new"}
    await first.store.close()

    second = StoreHarness(make())
    [session] = (await second.open()).values()
    assert [turn.number for turn in session.turns] == [2, 3]
    assert session.next_index == 2012
    await second.store.close()


async def test_the_session_can_be_deleted_after_its_old_turns(make: Make) -> None:
    harness = StoreHarness(make())
    await harness.open()
    harness.end_turn(harness.begin_turn(attachments={"old": b"old"}))
    turn = harness.begin_turn(attachments={"new": b"new"})
    harness.append(*[b"x"] * 2000)
    harness.store.forget_before(KEY, turn)
    await harness.store.flush()
    assert await harness.store.read_attachments(KEY, ["old"]) == {}
    harness.forget()
    await harness.store.close()
    again = StoreHarness(make())
    assert await again.open() == {}
    await again.store.close()


async def test_is_worth_repeating_is_stored(make: Make) -> None:
    first = StoreHarness(make())
    await first.open()
    turn = first.begin_turn()
    turn.is_worth_repeating = True
    first.end_turn(turn)
    first.end_turn(first.begin_turn())
    await first.store.close()
    second = StoreHarness(make())
    [session] = (await second.open()).values()
    assert [turn.is_worth_repeating for turn in session.turns] == [True, False]
    await second.store.close()


async def until_gap(harness: StoreHarness) -> None:
    """What was forgotten goes little by little, the oldest first."""
    with pytest.raises(ReplayGap):
        while True:
            await harness.store.read(KEY, 2008, limit=1)


async def test_time_goes_on_over_a_restart(make: Make) -> None:
    first = StoreHarness(make())
    await first.open()
    before = first.store.now()
    await first.store.close()
    second = StoreHarness(make())
    await second.open()
    assert before < second.store.now() < before + 60
    await second.store.close()
