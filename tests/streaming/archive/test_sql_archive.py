"""The archive itself: what it takes, refuses, and how it does without its database."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.marketplace.postgres import Postgres
from tests.streaming.archive.conftest import FAST_ARCHIVE, SharedClock
from tests.streaming.stores.harness import until
from tis.streaming.archive.packed_events import in_packs, pack, unpack
from tis.streaming.archive.records import SessionRow
from tis.streaming.archive.sql_archive import ArchiveLimits, SqlArchive
from tis.streaming.errors import ReplayGap, StoreUnavailable
from tis.streaming.stores.store import Event, SessionKey, SessionRecord, TurnRecord

pytestmark = pytest.mark.anyio
KEY = SessionKey("me", "letter")


@pytest.fixture
async def archive(archive_url: str, clock: SharedClock) -> AsyncIterator[SqlArchive]:
    archive = SqlArchive(archive_url, FAST_ARCHIVE, clock)
    await archive.open()
    assert archive.is_available
    yield archive
    await archive.close()


def row(num_events: int = 1, *, epoch: int = 0, first_index: int = 0, document: bytes = b"mine") -> SessionRow:
    events = [Event(first_index + number, b"event %d" % (first_index + number)) for number in range(num_events)]
    turn = TurnRecord(0, "fingerprint", b"", 0, first_index + num_events - 1, "finished")
    session = SessionRecord(KEY, True, 0.0, kind="letter", born="then", epoch=epoch)
    return SessionRow(session, turn, document, {}, [(some[0].index, pack(some)) for some in in_packs(events)])


@pytest.mark.parametrize("num_events", [0, 1, 511, 512, 513, 5000])
def test_packed_events_come_back_as_they_were(num_events: int) -> None:
    events = [Event(number + 7, b"x" * (number % 3)) for number in range(num_events)]
    packs = [(some[0].index, pack(some)) for some in in_packs(events)]
    assert [event for first_index, data in packs for event in unpack(first_index, data)] == events


def test_a_pack_is_bounded_in_bytes() -> None:
    events = [Event(number, b"x" * 100_000) for number in range(10)]
    assert [len(some) for some in in_packs(events)] == [2] * 5


async def test_events_are_read_from_anywhere(archive: SqlArchive) -> None:
    await archive.put(row(2000))
    for after in (-1, 0, 510, 511, 512, 1500, 1998):
        found = await archive.find_events(KEY, after, 10)
        assert found and found[0] == Event(after + 1, b"event %d" % (after + 1)) and len(found) <= 10
    assert await archive.find_events(KEY, 1999, 10) == []


async def test_events_that_were_never_there_are_a_gap(archive: SqlArchive) -> None:
    with pytest.raises(ReplayGap):
        await archive.find_events(KEY, -1, 10)
    await archive.put(row(10, first_index=100))
    with pytest.raises(ReplayGap):
        await archive.find_events(KEY, 50, 10)
    assert (await archive.find_events(KEY, 99, 1))[0].index == 100


async def test_a_later_holder_is_not_written_over_and_an_earlier_one_is(archive: SqlArchive) -> None:
    assert await archive.put(row(3, epoch=2, document=b"second"))
    assert not await archive.put(row(9, epoch=1, document=b"late"))
    assert await archive.find_document(KEY) == b"second"
    assert await archive.put(row(5, epoch=2, document=b"again"))
    found = await archive.find(KEY, 0.0)
    assert found and found.record and found.record.next_index == 5 and found.record.born == "then"
    assert len(await archive.find_events(KEY, -1, 100)) == 5


async def test_what_was_deleted_cannot_be_written_back(archive: SqlArchive, clock: SharedClock) -> None:
    await archive.delete(row().session)  # before it was ever stored
    assert not await archive.put(row(epoch=9)) and not await archive.create(row())
    found = await archive.find(KEY, 0.0)
    assert found and found.record is None
    assert await archive.find_document(KEY) is None
    clock.time += 90_000
    assert await archive.delete_expired() == 1
    assert await archive.find(KEY, 0.0) is None


async def test_attachments_of_a_document_are_bounded_and_named(archive: SqlArchive) -> None:
    made = row()
    made.attachments = {"old": b"1" * 60, "kept": b"2" * 60}
    await archive.create(made)
    turn = replace(made.turn, document=b"next", attachments={"new": b"3" * 60})
    turn.attachment_names = frozenset({"old", "kept", "new"})
    assert await archive.replace_document(KEY, turn, 0, 130)
    assert await archive.find_attachments(KEY, ["old", "kept", "new"]) == {"kept": b"2" * 60, "new": b"3" * 60}
    turn.attachments, turn.attachment_names = {}, frozenset({"new"})
    assert not await archive.replace_document(KEY, turn, 0, 130)
    assert await archive.replace_document(KEY, turn, 1, 130)
    assert await archive.find_attachments(KEY, ["old", "kept", "new"]) == {"new": b"3" * 60}


async def test_servers_that_start_at_once_make_the_tables_once(archive_url: str) -> None:
    archives = [SqlArchive(archive_url, FAST_ARCHIVE) for _ in range(4)]
    await asyncio.gather(*(archive.open() for archive in archives))
    await until(lambda: all(archive.is_available for archive in archives))
    for number, archive in enumerate(archives):
        assert await archive.put(row(epoch=number))
        await archive.close()


async def test_a_server_runs_beside_a_later_one_and_says_what_it_cannot_read(
    archive: SqlArchive, archive_url: str, clock: SharedClock
) -> None:
    await archive.put(row())
    with archive._database.writing() as transaction:
        transaction.execute(text("UPDATE stored_sessions_version SET version_num = '9999'"))
        transaction.execute(text("ALTER TABLE stored_sessions ADD COLUMN later TEXT"))
        transaction.execute(text("UPDATE stored_sessions SET record_version = 3"))
    beside = SqlArchive(archive_url, FAST_ARCHIVE, clock)
    await beside.open()
    with pytest.raises(StoreUnavailable, match="later version"):
        await beside.find(KEY, 0.0)
    assert await beside.put(replace(row(), session=SessionRecord(KEY._replace(id="other"), True, 0.0)))
    await beside.close()


async def test_a_database_that_is_locked_is_busy_and_not_away(tmp_path: Path) -> None:
    path = tmp_path / "responses.db"
    archive = SqlArchive(f"sqlite:///{path}", replace(FAST_ARCHIVE, answer_seconds=0.2))
    await archive.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable) as refused:
            await archive.put(row())
        assert refused.value.retry_after
        assert await archive.find(KEY, 0.0) is None
        other.execute("COMMIT")
    assert await archive.put(row())
    await archive.close()


@pytest.mark.slow
async def test_it_comes_back_after_postgresql_was_killed_and_has_what_was_acknowledged(postgres: Postgres) -> None:
    archive = SqlArchive(postgres.new_database("killed"), FAST_ARCHIVE)
    await archive.open()
    assert await archive.put(row(3))
    postgres.kill()
    try:
        with pytest.raises(StoreUnavailable):
            await archive.find(KEY, 0.0)
        assert not archive.is_available
        with pytest.raises(StoreUnavailable):  # at once
            archive.require_available()
    finally:
        postgres.start()
    await until(lambda: archive.is_available)
    assert len(await archive.find_events(KEY, -1, 10)) == 3
    await archive.close()


@pytest.mark.slow
async def test_a_postgresql_that_hangs_is_away_until_it_goes_on(postgres: Postgres) -> None:
    limits = ArchiveLimits(answer_seconds=0.3, retry_seconds=0.02)
    archive = SqlArchive(postgres.new_database("hanging"), limits)
    await archive.open()
    await archive.put(row(3))
    postgres.pause()
    try:
        with pytest.raises(StoreUnavailable):
            await archive.find(KEY, 0.0)
        assert not archive.is_available
    finally:
        postgres.go_on()
    await until(lambda: archive.is_available)
    found = await archive.find(KEY, 0.0)
    assert found and found.record
    await archive.close()


@pytest.mark.slow
async def test_a_server_may_start_before_its_database(postgres: Postgres) -> None:
    url = postgres.new_database("late")
    postgres.stop()
    try:
        archive = SqlArchive(url, FAST_ARCHIVE)
        await archive.open()
        assert not archive.is_available
    finally:
        postgres.start()
    await until(lambda: archive.is_available)
    assert await archive.put(row())
    await archive.close()
