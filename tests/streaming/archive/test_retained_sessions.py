"""Stored responses and conversations of two processes that share an archive, wherever their streams are."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.streaming.archive.conftest import MakeSessions, SharedClock
from tests.streaming.scripted_source import ScriptedSource, data_of
from tests.streaming.stores.harness import until
from tis.streaming.archive.archiving_store import ArchivingStore
from tis.streaming.errors import SessionExpired, SessionNotFound
from tis.streaming.retention import Retention
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

pytestmark = pytest.mark.anyio
Pair = tuple[Sessions, Sessions]
KIND = "letter"
LETTER = Retention(KIND, 600, document=b"photo", attachment_names=frozenset({"photo"}))
REQUEST = SessionRequest("me", "letter-1", "fingerprint", retention=LETTER)


class SourceWithPhoto(ScriptedSource):
    attachments: Mapping[str, bytes] = {"photo": b"of me", "other": b"of you"}


def begun(sessions: Sessions, *lines: bytes, request: SessionRequest = REQUEST) -> tuple[ScriptedSource, Turn]:
    script = SourceWithPhoto(*lines)
    _, turn = sessions.start(request, lambda: script)
    return script, turn


async def ended(sessions: Sessions, *lines: bytes, request: SessionRequest = REQUEST) -> None:
    script, turn = begun(sessions, *lines, request=request)
    script.go.set()
    await data_of(sessions.find(request.owner, str(request.session_id), KIND), turn)


async def found(sessions: Sessions, name: str = "letter-1") -> Session:
    await sessions.refresh("me", name, KIND, is_required=True)
    return sessions.find("me", name, KIND)


async def require_gone(sessions: Sessions, name: str = "letter-1") -> None:
    with pytest.raises((SessionNotFound, SessionExpired)):
        await found(sessions, name)


def archiving(sessions: Sessions) -> ArchivingStore:
    assert isinstance(sessions._store, ArchivingStore)
    return sessions._store


async def conversation(sessions: Sessions, name: str = "talk") -> Session:
    retention = Retention(KIND, 600, document=b"one", attachment_names=frozenset({"photo"}))
    return await sessions.save_document("me", name, retention, {"photo": b"first"})


async def test_a_response_of_one_process_is_found_by_another_with_all_that_belongs_to_it(pair: Pair) -> None:
    a, b = pair
    await ended(a, *(b"line %d" % number for number in range(1500)))
    session = await found(b)
    assert session.latest.status == "finished" and not session.is_running
    expected = [*(b"line %d" % number for number in range(1500)), b"end"]
    assert await data_of(session, session.latest) == expected
    assert (await session.recording.event(1500)).data == b"end"
    assert await session.document() == b"photo"
    assert await session.attachments(["photo", "other"]) == {"photo": b"of me"}
    assert await data_of(await found(a), (await found(a)).latest) == expected


async def test_a_failed_and_a_cancelled_response_are_found_too(pair: Pair) -> None:
    a, b = pair
    script = ScriptedSource(b"1", fails=ValueError("broken"))
    _, turn = a.start(REQUEST, lambda: script)
    script.go.set()
    await data_of(a.find("me", "letter-1", KIND), turn)
    session = await found(b)
    assert session.latest.status == "failed" and await data_of(session, session.latest) == [b"1", b"ValueError"]
    other = replace(REQUEST, session_id="letter-2")
    begun(a, b"1", request=other)
    await until(lambda: a.find("me", "letter-2", KIND).recording.next_index)
    assert await a.cancel("me", "letter-2", KIND) == "cancelled"
    assert (await found(b, "letter-2")).latest.status == "cancelled"


async def test_a_process_that_was_restarted_finds_it(make_sessions: MakeSessions) -> None:
    first = make_sessions()
    await first.open()
    await ended(first, b"1")
    await conversation(first)
    await first.close()
    second = make_sessions()
    await second.open()
    session = await found(second)
    assert await data_of(session, session.latest) == [b"1", b"end"]
    assert await (await found(second, "talk")).document() == b"one"
    await second.close()


async def test_a_stream_without_a_kind_is_no_matter_of_the_archive(pair: Pair) -> None:
    a, _ = pair
    script = ScriptedSource(b"1")
    session, turn = a.start(SessionRequest("me", "chat", "f"), lambda: script)
    script.go.set()
    assert await data_of(session, turn) == [b"1", b"end"]
    assert await archiving(a).archive.find(session.recording.key, a.now()) is None


async def test_what_one_process_deletes_is_gone_for_all_and_stays_gone(pair: Pair, clock: SharedClock) -> None:
    a, b = pair
    await ended(a, b"1")
    script, turn = begun(a, b"1", request=replace(REQUEST, session_id="letter-2"))
    await conversation(a)
    for name in ("letter-1", "talk"):
        await b.delete(await found(b, name))
        for sessions in pair:
            await require_gone(sessions, name)
    running = a.find("me", "letter-2", KIND)
    await archiving(b).archive.delete(replace(running.to_record()))  # while it ran
    script.go.set()
    assert await data_of(running, turn) == [b"1", b"end"]  # whoever reads it gets it to its end
    await until(lambda: not running.is_running)
    for sessions in pair:
        await require_gone(sessions, "letter-2")


async def test_of_two_changes_of_one_version_one_is_refused(pair: Pair) -> None:
    a, b = pair
    await conversation(a)
    at_a, at_b = await found(a, "talk"), await found(b, "talk")
    names = frozenset({"photo"})
    won = await asyncio.gather(
        at_a.save_document(b"of a", {}, names, replaced_version=0),
        at_b.save_document(b"of b", {}, names, replaced_version=0),
    )
    assert sorted(won) == [False, True]
    for sessions in pair:
        session = await found(sessions, "talk")
        assert session.document_version == 1
        assert await session.document() == (b"of a" if won[0] else b"of b")
        assert await session.attachments(["photo"]) == {"photo": b"first"}
    assert await (await found(b, "talk")).save_document(b"more", {"b": b"2"}, frozenset({"b"}), replaced_version=1)
    session = await found(a, "talk")
    assert (await session.document(), await session.attachments(["photo", "b"])) == (b"more", {"b": b"2"})


async def test_it_is_kept_from_its_last_use_on_and_then_deleted(pair: Pair, clock: SharedClock) -> None:
    a, b = pair
    ttl = archiving(a).archive.limits.ttl_seconds
    await ended(a, b"1")
    await ended(a, b"1", request=replace(REQUEST, session_id="letter-2"))
    clock.time += ttl * 0.9
    await found(b)
    await asyncio.gather(*archiving(b)._work)
    clock.time += ttl * 0.9
    assert await found(a)
    await require_gone(b, "letter-2")
    assert await archiving(a).archive.delete_expired() == 1
    clock.time += ttl
    assert await archiving(b).archive.delete_expired() == 1
    assert await archiving(b).archive.delete_expired() == 0


async def test_a_conversation_from_before_the_archive_moves_when_it_is_changed(make_sessions: MakeSessions) -> None:
    sessions = make_sessions()
    await sessions.open()
    streams = archiving(sessions).streams
    if streams.durability == "memory":
        await sessions.close()
        return  # no process before has left anything there
    without = Sessions(sessions._limits, streams)
    await without.save_document("me", "talk", LETTER, {"photo": b"first"})
    await streams.flush()
    archiving(sessions)._local |= {
        one.recording.key: one.to_record() for one in without if not archiving(sessions).is_remote
    }
    if not archiving(sessions).is_remote:
        sessions.adopt(without.find("me", "talk", KIND).to_record())
    session = await found(sessions, "talk")
    assert await session.document() == b"photo"
    assert await session.save_document(b"photo b", {"b": b"2"}, frozenset({"photo", "b"}), replaced_version=0)
    assert archiving(sessions).keeps(session.recording.key)
    again = make_sessions()
    await again.open()
    session = await found(again, "talk")
    assert await session.document() == b"photo b"
    assert await session.attachments(["photo", "b"]) == {"photo": b"first", "b": b"2"}
    await sessions.close()
    await again.close()
